"""Hooks in Triton's interpreter: exact bounds, provenance of pointers, traffic, fillers, traces, order of programs.

Touches Triton's private names, as grader/triton_adapter.py does; tests/grader/test_triton_adapter.py tests them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from grader.lanes import bits, filled, order_of, outside, place_of
from grader.watch import MOST_LANES, TUNING, Access, Extent, LaunchTrace, OutOfBounds, Watch, extent_of

BESIDE = 4096  # bytes next to a tensor that belong to nobody: the judge's guard bands are as wide, or wider
POINTER_OPERATIONS = (
    "create_addptr create_splat create_unsplat create_broadcast create_expand_dims create_trans create_reshape "
    "create_select create_cat create_join create_bitcast"
).split()
LANES_OF_AN_ACCESS = 64  # what keeping an access costs beside its lanes, so that a spin loop fills the trace
NOWHERE = Extent("", 0, 0, 0, 1)  # of a block of pointers into several tensors


def watch_interpreter(learner_file: str) -> Watch:
    """Hook the interpreter of this process. Every pointer remembers the argument it came from, so that an overrun into
    another argument is found as well."""
    mend_index()
    watch = Watch(learner_file)
    hooks = _Hooks(watch)
    hooks.follow_pointers()
    hooks.watch_memory()
    hooks.watch_atomics()
    hooks.watch_grid()
    return watch


class _Hooks:
    def __init__(self, watch: Watch) -> None:
        from triton.runtime import interpreter

        self.watch, self.interpreter = watch, interpreter
        self.builder: Any = interpreter.InterpreterBuilder
        self.unmasked = False  # the access under way was given no mask
        self.atomic = False  # the load or store under way is an atomic one
        self.given = False  # the load under way was given an `other`
        self.epoch = 0  # barriers passed by the program that runs

    # -- provenance ---------------------------------------------------------------------------------------------

    def origin_of(self, handle: Any) -> Extent | None:
        found = handle.attr.get("origin")
        if found is None and handle.data.size:
            found = self.watch.extents.get(int(handle.data.flat[0]))
        return None if found is NOWHERE else found

    def follow_pointers(self) -> None:
        for name in POINTER_OPERATIONS:
            if hasattr(self.builder, name):
                self.keep_origin(name)
        for name in ("BlockPointerHandle", "TensorDescHandle"):  # Triton 3.9 has no block pointers
            if hasattr(self.interpreter, name):
                self.keep_base(getattr(self.interpreter, name))

    def keep_origin(self, name: str) -> None:
        original = getattr(self.builder, name)
        make_handle = self.interpreter.TensorHandle

        def wrapped(builder: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(builder, *args, **kwargs)
            if getattr(result, "dtype", None) is not None and result.dtype.is_ptr():
                pointers = [arg for arg in args if isinstance(arg, make_handle) and arg.dtype.is_ptr()]
                origins = [self.origin_of(pointer) for pointer in pointers]
                if origins and origins[0] is not None:
                    same = all(origin == origins[0] for origin in origins)
                    result.attr["origin"] = origins[0] if same else NOWHERE
            return result

        setattr(self.builder, name, wrapped)

    def keep_base(self, handle_class: Any) -> None:
        original = handle_class.materialize_pointers

        def materialize_pointers(handle: Any, *args: Any) -> Any:
            pointers, masks = original(handle, *args)
            origin = self.origin_of(handle.base)
            if origin is not None:
                pointers.attr["origin"] = origin
            return pointers, masks

        handle_class.materialize_pointers = materialize_pointers

    # -- loads and stores ---------------------------------------------------------------------------------------

    def watch_memory(self) -> None:
        # The builder's plain load and store go through the masked ones: note on the way that no mask was given.
        for plain in ("create_load", "create_store"):
            self.during(plain, "unmasked")
        masked_load, masked_store = self.builder.create_masked_load, self.builder.create_masked_store

        def load(builder: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
            access = self.access(builder, "load", ptrs, self.handle_of(mask))
            mask = access.mask
            self.count_bytes(access.count * access.size, 0)
            if other is None and not self.given:
                self.watch.undefined += ptrs.data.size - access.count
                if self.watch.filler != "zero" and access.count < ptrs.data.size:
                    undefined = filled(ptrs.data.shape, access.dtype, self.watch.filler)
                    other = self.interpreter.TensorHandle(undefined, ptrs.get_element_ty())
            result = masked_load(builder, ptrs, mask, other, *rest, **named)
            if self.recording:
                self.record(builder, "atomic" if self.atomic else "load", access, values=np.asarray(result.data))
            return result

        def store(builder: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
            access = self.access(builder, "store", ptrs, self.handle_of(mask))
            mask = access.mask
            self.count_bytes(0, access.count * access.size)
            self.note_store(builder, access)
            if self.recording:
                values = np.broadcast_to(np.asarray(value.data), access.addresses.shape)
                zeros = np.zeros(access.addresses.shape, dtype=access.dtype)
                before = self.interpreter._interpreter.load(ptrs.data, mask.data, zeros, access.dtype)
                self.record(builder, "atomic" if self.atomic else "store", access, values, before)
            return masked_store(builder, ptrs, value, mask, *rest, **named)

        self.builder.create_masked_load, self.builder.create_masked_store = load, store
        self.note_given_other()

    def note_given_other(self) -> None:
        """Triton asks `if other`; in the interpreter a scalar 0 is false, and reaches the builder as none."""
        from triton.language.semantic import TritonSemantic

        original = TritonSemantic.load

        def load(semantic: Any, ptr: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
            self.given = other is not None
            try:
                return original(semantic, ptr, mask, other, *rest, **named)
            finally:
                self.given = False

        TritonSemantic.load = load

    def during(self, name: str, flag: str) -> None:
        """Set a flag of these hooks while one of the builder's methods runs."""
        original = getattr(self.builder, name)

        def wrapped(builder: Any, *args: Any, **kwargs: Any) -> Any:
            setattr(self, flag, True)
            try:
                return original(builder, *args, **kwargs)
            finally:
                setattr(self, flag, False)

        setattr(self.builder, name, wrapped)

    def handle_of(self, mask: Any) -> Any:
        """Block pointers before Triton 3.9 pass the bare array."""
        if isinstance(mask, np.ndarray):
            return self.interpreter.TensorHandle(mask, self.interpreter.tl.int1)
        return mask

    def access(self, builder: Any, kind: str, ptrs: Any, mask: Any) -> SimpleNamespace:
        """The lanes of an access. Raises OutOfBounds for the first active one outside its tensor."""
        addresses = np.asarray(ptrs.data)
        active = np.broadcast_to(np.asarray(mask.data, dtype=bool), addresses.shape)
        dtype = np.dtype(self.interpreter._get_np_dtype(ptrs.get_element_ty()))
        found = SimpleNamespace(
            addresses=addresses, active=active, count=int(active.sum()), dtype=dtype, size=dtype.itemsize, mask=mask
        )
        extent = self.origin_of(ptrs)
        mapping = self.watch.map if not TUNING.active else None
        if mapping is not None:
            origin = None if extent is None else extent.origin
            program = place_of(builder.grid_idx, builder.grid_dim)
            place = _learner_place(self.watch)
            mapping.note("atomic" if self.atomic else kind, program, addresses, active, found.size, origin, place)
        if found.count == 0:
            return found
        if extent is not None:
            beyond = active & outside(addresses, found.size, extent)
        else:
            extent, beyond = self.beside(addresses, active, found.size)
        if extent is not None and beyond.any():
            first = int(addresses[beyond].flat[0]) if addresses.ndim else int(addresses)
            error = OutOfBounds(
                kind,
                extent.name,
                (first - extent.origin) // extent.itemsize,
                (extent.high - extent.origin) // extent.itemsize,
                tuple(int(i) for i in builder.grid_idx),
                _learner_line(self.watch),
                not bool(active.all()) if kind == "atomic" else not self.unmasked,
            )
            if mapping is None:
                raise error
            mapping.bad = mapping.bad or error
            found.active = np.asarray(active & ~beyond)  # left out, so that the map shows what comes after as well
            found.count, found.mask = int(found.active.sum()), self.handle_of(found.active)
        return found

    def beside(self, addresses: Any, active: Any, size: int) -> tuple[Extent | None, Any]:
        """Of pointers made from integers: the lanes beside a tensor of this launch, and in none of its tensors."""
        nowhere = active.copy()
        for extent in self.watch.extents.values():
            nowhere &= outside(addresses, size, extent)
        if nowhere.any():
            for extent in self.watch.extents.values():
                wide = Extent(extent.name, extent.low - BESIDE, extent.high + BESIDE, extent.origin, extent.itemsize)
                near = nowhere & ~outside(addresses, size, wide)
                if near.any():
                    return extent, near
        return None, nowhere

    def count_bytes(self, loaded: int, stored: int) -> None:
        if not TUNING.active:
            self.watch.traffic.loaded_bytes += loaded
            self.watch.traffic.stored_bytes += stored

    # -- atomics and barriers -----------------------------------------------------------------------------------

    def watch_atomics(self) -> None:
        for name in ("create_atomic_load", "create_atomic_store", "create_atomic_poll"):  # since Triton 3.9
            if hasattr(self.builder, name):
                self.during(name, "atomic")
                self.mark(name)
        exchange = self.interpreter._ir.ATOMIC_OP.XCHG
        rmw, cas, barrier = (
            self.builder.create_atomic_rmw,
            self.builder.create_atomic_cas,
            self.builder.create_barrier,
        )

        def atomic_rmw(builder: Any, op: Any, ptr: Any, value: Any, mask: Any, *rest: Any) -> Any:
            access = self.update(builder, ptr, mask, locks=op == exchange)
            return rmw(builder, op, ptr, value, access.mask, *rest)

        def atomic_cas(builder: Any, ptr: Any, compare: Any, value: Any, *rest: Any) -> Any:
            every_lane = self.handle_of(np.ones_like(np.asarray(ptr.data), dtype=bool))
            access = self.update(builder, ptr, every_lane, locks=True)
            if access.mask is not every_lane:
                raise self.watch.map.bad  # no mask can leave a lane of it out
            return cas(builder, ptr, compare, value, *rest)

        def passed(builder: Any, *args: Any, **kwargs: Any) -> Any:
            self.epoch += 1
            return barrier(builder, *args, **kwargs)

        self.builder.create_atomic_rmw, self.builder.create_atomic_cas = atomic_rmw, atomic_cas
        self.builder.create_barrier = passed

    def mark(self, name: str) -> None:
        """Atomic loads, stores and polls are how programs wait for each other."""
        original = getattr(self.builder, name)

        def wrapped(builder: Any, *args: Any, **kwargs: Any) -> Any:
            if self.watch.launches:
                self.watch.launches[-1].locks = True
            return original(builder, *args, **kwargs)

        setattr(self.builder, name, wrapped)

    def update(self, builder: Any, ptr: Any, mask: Any, locks: bool) -> SimpleNamespace:
        """Check, count and note one atomic operation."""
        access = self.access(builder, "atomic", ptr, mask)
        self.count_bytes(access.count * access.size, access.count * access.size)
        self.note_store(builder, access)
        if self.watch.launches and not TUNING.active:
            trace = self.watch.launches[-1]
            trace.locks |= locks
            trace.counters |= access.addresses.size == 1 and access.dtype.kind in "iu"
        if self.recording:
            self.record(builder, "atomic", access)
        if access.addresses.size == 1:
            self.epoch += 1  # the compiler puts barriers around it, to give every thread its result
        return access

    # -- traces -------------------------------------------------------------------------------------------------

    @property
    def recording(self) -> bool:
        return bool(self.watch.launches) and not TUNING.active and self.watch.lanes < MOST_LANES

    def note_store(self, builder: Any, access: SimpleNamespace) -> None:
        if self.watch.stores is not None:
            self.watch.stores.append((tuple(int(i) for i in builder.grid_idx), access.addresses[access.active]))

    def record(self, builder: Any, kind: Any, access: SimpleNamespace, values: Any = None, before: Any = None) -> None:
        assert self.watch.launches is not None
        trace = self.watch.launches[-1]
        self.watch.lanes += access.count + LANES_OF_AN_ACCESS
        trace.accesses.append(
            Access(
                kind,
                place_of(builder.grid_idx, builder.grid_dim),
                access.addresses[access.active],
                np.flatnonzero(access.active),
                bits(values, access),
                bits(before, access),
                access.size,
                _learner_line(self.watch),
                self.epoch,
            )
        )

    # -- launches -----------------------------------------------------------------------------------------------

    def watch_grid(self) -> None:
        launch = self.interpreter.GridExecutor.__call__
        set_dim, set_index = self.builder.set_grid_dim, self.builder.set_grid_idx
        watch = self.watch
        order: list[Any] = [None]

        def run(executor: Any, *args: Any, **kwargs: Any) -> Any:
            if not TUNING.active:
                watch.traffic.launches += 1
            if watch.noop:
                return None
            if not TUNING.active:
                self.note_constexprs(executor, args, kwargs)
            if watch.map is not None and not TUNING.active:
                watch.map.launch(executor.fn.__name__)
            self.take_extents(zip(executor.arg_names, args, strict=False), kwargs.items())
            if watch.launches is not None and not TUNING.active:
                watch.launches.append(LaunchTrace((), list(watch.extents.values())))
            try:
                with np.errstate(all="ignore"):  # inf - inf is the kernel's business
                    return launch(executor, *args, **kwargs)
            finally:
                watch.extents.clear()

        def set_grid_dim(builder: Any, *grid: Any) -> None:
            set_dim(builder, *grid)
            programs = int(np.prod([int(n) for n in grid]))
            order[0] = order_of(watch.order, programs)
            if not TUNING.active:
                watch.traffic.programs = max(watch.traffic.programs, programs)
                if watch.launches:
                    watch.launches[-1].grid = tuple(int(n) for n in grid)
                if watch.map is not None:
                    watch.map.grid(grid)

        def set_grid_idx(builder: Any, *index: Any) -> None:
            self.epoch = 0
            if order[0] is not None:
                place = int(order[0][place_of(index, builder.grid_dim)])
                index = tuple(int(i) for i in np.unravel_index(place, builder.grid_dim))
            set_index(builder, *index)

        self.interpreter.GridExecutor.__call__ = run
        self.builder.set_grid_dim, self.builder.set_grid_idx = set_grid_dim, set_grid_idx

    def note_constexprs(self, executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for name, value in [*zip(executor.arg_names, args, strict=False), *kwargs.items()]:
            if name in executor.constexprs and type(value) is int:
                self.watch.constexprs.setdefault((executor.fn.__name__, name), set()).add(value)

    def take_extents(self, *arguments: Any) -> None:
        """Two arguments may start at one address (an in-place call): the wider extent holds for both."""
        extents = self.watch.extents
        for name, arg in [pair for pairs in arguments for pair in pairs]:
            tensor = getattr(arg, "base", arg)  # a TensorDescriptor holds its tensor
            if hasattr(tensor, "data_ptr") and hasattr(tensor, "stride"):
                new = extent_of(name, tensor)
                if self.watch.map is not None and not TUNING.active:
                    self.watch.map.take(name, tensor, new)
                old = extents.get(new.origin)
                if old is None or old.high <= new.high or tensor.numel() == 0:
                    extents[new.origin] = new


def _learner_line(watch: Watch) -> int:
    return _learner_place(watch)[0]


def _learner_place(watch: Watch) -> tuple[int, int, str]:
    """Line, instruction and function of the innermost frame in the learner's file; zeros when there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == watch.learner_file:
            return frame.f_lineno, frame.f_lasti, frame.f_code.co_name
        frame = frame.f_back  # type: ignore[assignment]
    return 0, 0, ""


def mend_index() -> None:
    """Triton 3.6 makes numbers of one-element arrays in a way that NumPy 2.4 refuses: `range(0, n, BLOCK)` failed."""
    from triton.runtime import interpreter

    original: Callable[..., None] = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))

    interpreter._patch_lang_tensor = patched
