"""Everything that touches Triton's private names: one file, with a test for each supported version.

Three modes of a process, chosen before triton is imported:
  interpreter  TRITON_INTERPRET=1: kernels run on NumPy, with exact bounds checks and counted traffic
  offline      no GPU: launches compile for a target that is not there, and run nothing
  cuda         launches run
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grader.watch import TUNING, Extent, OutOfBounds, Watch, extent_of


def _learner_line(watch: Watch) -> int:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == watch.learner_file:
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return 0


def watch_interpreter(learner_file: str) -> Watch:
    """Hook the interpreter of this process: bounds, provenance of pointers, traffic, no-op launches, filler.

    Every pointer remembers the argument it came from, so that an overrun into another argument is found as well.
    """
    from triton.runtime import interpreter

    mend_index()
    watch = Watch(learner_file)
    builder_class = interpreter.InterpreterBuilder
    make_handle = interpreter.TensorHandle

    def origin_of(handle: Any) -> Extent | None:
        found = handle.attr.get("origin")
        if found is None and handle.data.size:
            found = watch.extents.get(int(handle.data.flat[0]))
        return found

    def keep_origin(name: str) -> None:
        original = getattr(builder_class, name, None)
        if original is None:
            return

        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if getattr(result, "dtype", None) is not None and result.dtype.is_ptr():
                for arg in args:
                    if isinstance(arg, make_handle) and arg.dtype.is_ptr():
                        origin = origin_of(arg)
                        if origin is not None:
                            result.attr["origin"] = origin
                            break
            return result

        setattr(builder_class, name, wrapped)

    for name in (
        "create_addptr create_splat create_unsplat create_broadcast create_expand_dims create_trans create_reshape "
        "create_select create_cat create_join create_bitcast"
    ).split():
        keep_origin(name)

    def count_bytes(loaded: int, stored: int) -> None:
        if not TUNING.active:
            watch.traffic.loaded_bytes += loaded
            watch.traffic.stored_bytes += stored

    def note_store(self: Any, ptrs: Any, mask: Any) -> None:
        if watch.stores is not None:
            addresses = np.asarray(ptrs.data)
            active = np.broadcast_to(np.asarray(mask.data, dtype=bool), addresses.shape)
            watch.stores.append((tuple(int(i) for i in self.grid_idx), addresses[active]))

    def check(self: Any, access: str, ptrs: Any, mask: Any, masked: bool) -> int:
        """Raise OutOfBounds for the first active lane outside its tensor; return how many lanes are active."""
        addresses = np.asarray(ptrs.data)
        active = np.broadcast_to(np.asarray(mask.data, dtype=bool), addresses.shape)
        count = int(active.sum())
        if count == 0:
            return 0
        extent = origin_of(ptrs)
        if extent is None:
            return count  # a pointer made from an integer: nothing is known about it
        size = extent.itemsize
        outside = active & (
            (addresses < np.uint64(extent.low)) | (addresses + np.uint64(size) > np.uint64(extent.high))
        )
        if outside.any():
            first = int(addresses[outside].flat[0]) if addresses.ndim else int(addresses)
            raise OutOfBounds(
                access,
                extent.name,
                (first - extent.origin) // size,
                (extent.high - extent.origin) // size,
                tuple(int(i) for i in self.grid_idx),
                _learner_line(watch),
                masked,
            )
        return count

    def without_mask(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            unmasked.append(True)
            try:
                return original(self, *args, **kwargs)
            finally:
                unmasked.clear()

        return wrapped

    # The builder's plain load and store go through the masked ones: note on the way that no mask was given.
    unmasked: list[bool] = []
    for plain in ("create_load", "create_store"):
        setattr(builder_class, plain, without_mask(getattr(builder_class, plain)))

    masked_load, masked_store = builder_class.create_masked_load, builder_class.create_masked_store

    def load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any) -> Any:
        if isinstance(mask, np.ndarray):  # block pointers before Triton 3.9 pass the bare array
            mask = make_handle(mask, interpreter.tl.int1)
        count = check(self, "load", ptrs, mask, not unmasked)
        element = ptrs.get_element_ty()
        dtype = interpreter._get_np_dtype(element)
        count_bytes(count * np.dtype(dtype).itemsize, 0)
        if other is None:
            watch.undefined += ptrs.data.size - count
        if other is None and watch.filler != "zero" and count < ptrs.data.size:
            other = make_handle(_filler(ptrs.data.shape, np.dtype(dtype), watch.filler), element)
        return masked_load(self, ptrs, mask, other, *rest)

    def store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        if isinstance(mask, np.ndarray):
            mask = make_handle(mask, interpreter.tl.int1)
        count = check(self, "store", ptrs, mask, not unmasked)
        count_bytes(0, count * np.dtype(interpreter._get_np_dtype(ptrs.get_element_ty())).itemsize)
        note_store(self, ptrs, mask)
        return masked_store(self, ptrs, value, mask, *rest)

    builder_class.create_masked_load, builder_class.create_masked_store = load, store

    atomic = builder_class.create_atomic_rmw

    def atomic_rmw(self: Any, op: Any, ptr: Any, value: Any, mask: Any, *rest: Any) -> Any:
        count = check(self, "atomic", ptr, mask, not bool(np.asarray(mask.data).all()))
        size = count * np.dtype(interpreter._get_np_dtype(ptr.get_element_ty())).itemsize
        count_bytes(size, size)
        note_store(self, ptr, mask)
        return atomic(self, op, ptr, value, mask, *rest)

    builder_class.create_atomic_rmw = atomic_rmw

    launch = interpreter.GridExecutor.__call__

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not TUNING.active:
            watch.traffic.launches += 1
        if watch.noop:
            return None
        # two arguments may start at one address (an in-place call): the wider extent holds for both
        for name, arg in [*zip(self.arg_names, args, strict=False), *kwargs.items()]:
            tensor = getattr(arg, "base", arg)  # a TensorDescriptor holds its tensor
            if hasattr(tensor, "data_ptr") and hasattr(tensor, "stride"):
                new = extent_of(name, tensor)
                old = watch.extents.get(new.origin)
                if old is None or old.high <= new.high or tensor.numel() == 0:
                    watch.extents[new.origin] = new
        try:
            with np.errstate(all="ignore"):  # inf - inf is the kernel's business
                return launch(self, *args, **kwargs)
        finally:
            watch.extents.clear()

    interpreter.GridExecutor.__call__ = run
    return watch


def mend_index() -> None:
    """Triton 3.6 makes numbers of one-element arrays in a way that NumPy 2.4 refuses: `range(0, n, BLOCK)` failed."""
    from triton.runtime import interpreter

    original = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))

    interpreter._patch_lang_tensor = patched


def preload_driver() -> None:
    """Build and load Triton's driver module now: runners forked later inherit it. Makes no CUDA context."""
    from triton.backends.nvidia.driver import CudaUtils

    CudaUtils()


def preheat_interpreter() -> None:
    """Interpret one small kernel: a runner's first launch is then as fast as its second."""
    import torch

    from grader.preheat_kernel import copy_kernel

    torch.set_num_threads(1)
    copy_kernel[(1,)](torch.ones(4), torch.empty(4), 4, BLOCK=4)


def preheat(target: str) -> None:
    """Compile one small kernel: later compiles take 0.05 s, not 0.4 s, in every process forked from this one."""
    from triton.compiler import ASTSource, compile

    from grader.preheat_kernel import copy_kernel

    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    compile(ASTSource(copy_kernel, signature, {"BLOCK": 128}), target=parse_target(target))


def _filler(shape: tuple[int, ...], dtype: np.dtype, kind: str) -> np.ndarray:
    """`poison`: a NaN other than the outputs'. `huge`: the largest value, for what ignores NaN, as a maximum does."""
    if kind == "huge" and dtype.kind in "fiu":
        return np.full(shape, np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max, dtype=dtype)
    if dtype.kind == "f":
        return np.full(shape, np.nan, dtype=dtype)
    if dtype == np.uint16:  # bfloat16 to the interpreter
        return np.full(shape, 0x7FC0, dtype=dtype)
    raw = np.full(int(np.prod(shape)) * dtype.itemsize, 0x7F, dtype=np.uint8)
    return raw.view(dtype).reshape(shape)


def use_own_benchmark(runs: int, every_key: bool = True) -> None:
    """Autotune where nothing can be timed: run each configuration `runs` times, then the first one wins.

    A kernel that is not safe to run several times shows itself just as it does on a GPU.
    """
    from triton.runtime import autotuner

    seen: set[tuple[int, str]] = set()
    original = autotuner.Autotuner._bench

    def bench(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        identity = (id(self), str(config))
        first_time = every_key or identity not in seen
        seen.add(identity)
        order = float(self.configs.index(config)) if config in self.configs else 0.0

        def stand_in(kernel_call: Callable[[], Any], quantiles: Any = None, **more: Any) -> list[float]:
            TUNING.active = True
            try:
                for _ in range(runs if first_time else 0):
                    kernel_call()
            finally:
                TUNING.active = False
            return [1.0 + order] * 3

        self.__dict__["do_bench"] = stand_in
        return original(self, *args, config=config, **meta)

    autotuner.Autotuner._bench = bench


def parse_target(name: str) -> Any:
    """`sm_90` or `gfx942` as Triton's GPUTarget. Raises ValueError with what is accepted."""
    from triton.backends.compiler import GPUTarget

    if name.startswith("sm_") and name[3:].isdigit():
        return GPUTarget("cuda", int(name[3:]), 32)
    if name.startswith("gfx"):
        return GPUTarget("hip", name, 64 if name.startswith("gfx9") else 32)
    raise ValueError(f"unknown target {name!r}: write sm_80, sm_90, sm_100 or gfx942")


def use_stand_in_driver(target: str) -> None:
    """Make this process compile for `target` although no such device is here. Launching is not possible."""
    from triton.backends.driver import GPUDriver
    from triton.runtime import driver

    gpu_target = parse_target(target)

    class StandInDriver(GPUDriver):
        def __init__(self) -> None:
            self.get_current_device = lambda: 0
            self.get_current_stream = lambda device: 0
            self.get_device_capability = lambda device=0: (9, 0)
            self.set_current_device = lambda device: None

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            return ty

        def get_current_target(self) -> Any:
            return gpu_target

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device("cpu")

        def get_benchmarker(self) -> Any:
            return lambda kernel_call, **kwargs: (kernel_call(), [1.0, 1.0, 1.0])[1]

    driver.set_active(StandInDriver())


@dataclass
class Launches:
    """What `watch_launches` saw. `mode`: run (launch), compile (compile only) or skip (nothing at all)."""

    mode: str = "run"
    kernels: list[Any] = field(default_factory=list)  # CompiledKernel objects, each once
    names: list[str] = field(default_factory=list)
    count: int = 0
    _seen: set[int] = field(default_factory=set)


def watch_launches(mode: str) -> Launches:
    """Hook JITFunction.run of this process (offline and cuda modes)."""
    from triton.runtime.jit import JITFunction

    launches = Launches(mode)
    original = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        launches.count += 1
        launches.names.append(self.fn.__name__)
        if launches.mode == "skip":
            return None
        if launches.mode == "compile":
            _check_grid(self, grid, args, kwargs)
            warmup = True
        kernel = original(self, *args, grid=grid, warmup=warmup, **kwargs)
        if kernel is not None and hasattr(kernel, "result") and not hasattr(kernel, "asm"):
            kernel = kernel.result()
        if kernel is not None and id(kernel) not in launches._seen:
            launches._seen.add(id(kernel))
            launches.kernels.append(kernel)
        return kernel

    JITFunction.run = run
    return launches


def _check_grid(kernel: Any, grid: Any, args: Any, kwargs: Any) -> None:
    """A grid callable that fails must fail offline too."""
    if callable(grid):
        bound = dict(zip((p.name for p in kernel.params), args, strict=False))
        for parameter in kernel.params:
            if parameter.has_default and parameter.name not in bound:
                bound[parameter.name] = parameter.default
        bound.update({name: value for name, value in kwargs.items() if name in kernel.arg_names})
        grid = grid(bound)
    if not isinstance(grid, (tuple, list)):
        raise TypeError(f"the grid must be a tuple of up to three numbers, not {type(grid).__name__}: write ({grid},)")


@contextmanager
def skipping(launches: Launches) -> Iterator[None]:
    before, launches.mode = launches.mode, "skip"
    try:
        yield
    finally:
        launches.mode = before


def allow_interpreted_in_torch_library() -> None:
    """PyTorch's wrap_triton accepts a JITFunction only; the interpreter's functions are called as they are."""
    import torch
    import torch._library.triton as library

    def wrap_triton(kernel: Any) -> Any:
        return kernel

    torch.library.wrap_triton = wrap_triton
    library.wrap_triton = wrap_triton
