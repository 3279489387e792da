"""In the runner: one call's launches, fills and copies as a record. What it says is checked by the judge, by replay.

Any other PyTorch operation gives a tensor that the record cannot make. That matters only if a kernel, a copy or the
result uses it: then the call is refused by name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader import errors
from grader.dispatch_mode import DispatchMode
from grader.triton_launches import SeenLaunch, watch_for_recording, watch_tuning
from grader.verified import record as form

ATEN = torch.ops.aten
EMPTY = {
    ATEN.empty.memory_format,
    ATEN.empty_like.default,
    ATEN.empty_strided.default,
    ATEN.empty_permuted.default,
    ATEN.new_empty.default,
    ATEN.new_empty_strided.default,
}
FILLED = {  # the constant, or the position of the argument that gives it
    ATEN.zeros.default: 0,
    ATEN.zeros_like.default: 0,
    ATEN.new_zeros.default: 0,
    ATEN.ones.default: 1,
    ATEN.ones_like.default: 1,
    ATEN.new_ones.default: 1,
}
FILLED_FROM = {ATEN.full.default: 1, ATEN.full_like.default: 1, ATEN.new_full.default: 2}
COPIED = {ATEN.clone.default, ATEN._to_copy.default}


class Refusal(Exception):
    """The call cannot be recorded. `status` is not_triton, or unverified when nothing wrong was done."""

    def __init__(self, status: str, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True)
class Held:
    """Memory of a tensor, which is kept alive so that no other tensor gets its address."""

    tensor: torch.Tensor
    low: int
    high: int  # address after the last byte
    made_by: str = ""  # a PyTorch operation that the record does not hold; empty for a buffer

    def holds(self, address: int) -> bool:
        return self.low <= address < self.high or self.low == address == self.high


class Recorder(DispatchMode):
    """Records while it is entered. `arguments` are the call's, in order; those that are no tensors are passed over."""

    def __init__(self, arguments: Sequence[Any], device: str) -> None:
        super().__init__()
        self.device = device
        self.paused = False
        self.refusal: Refusal | None = None
        self.buffers: list[form.Argument | form.Scratch] = []
        self.held: list[Held] = []  # as `buffers`
        self.foreign: list[Held] = []
        self.kernels: list[form.Kernel] = []
        self.steps: list[form.Step] = []
        for position, value in enumerate(arguments):
            if isinstance(value, torch.Tensor):
                self.buffers.append(form.Argument(position))
                self.held.append(_held(value))

    @contextlib.contextmanager
    def tuning(self) -> Iterator[None]:
        """What an autotuner tries is no part of the call."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def refuse(self, reason: str, status: str = "unverified") -> None:
        if self.refusal is None and not self.paused:
            self.refusal = Refusal(status, reason)

    def finish(self, returned: Sequence[Any]) -> form.Record:
        """The record. Raises Refusal."""
        outputs: list[form.View | str] = []
        for value in returned[: form.MOST_OUTPUTS]:
            if isinstance(value, torch.Tensor):
                plain = value.detach().as_subclass(torch.Tensor)
                view = self._view(plain, "what is returned")
                outputs.append(view if view is not None else type(value).__name__)
            else:
                outputs.append(type(value).__name__)
        if self.refusal is not None:
            raise self.refusal
        return form.Record(tuple(self.buffers), tuple(self.kernels), tuple(self.steps), tuple(outputs))

    # -- launches ---------------------------------------------------------------------------------------------------

    def launched(self, seen: SeenLaunch) -> None:
        if self.paused or 0 in seen.grid:
            return
        arguments: list[form.Pointer | form.Scalar] = []
        for kind, value in zip(seen.types, seen.values, strict=True):
            if kind.startswith("*"):
                arguments.append(self._pointer(value, seen.name))
            else:
                arguments.append(form.scalar_of(kind, value))
        kernel = form.Kernel(seen.name, seen.ttir, seen.options)
        if kernel not in self.kernels:
            self.kernels.append(kernel)
        self._step(form.Launch(self.kernels.index(kernel), seen.grid, tuple(arguments)))

    def _pointer(self, value: Any, kernel: str) -> form.Pointer:
        if not hasattr(value, "data_ptr"):
            self.refuse(f"{kernel} takes an address in place of a tensor: which memory it means cannot be recorded")
            return form.Pointer(None)
        address = value.data_ptr()
        number = self._find(address)
        if number is not None:
            return form.Pointer(number, address - self.held[number].low)
        if address:
            self._refuse_foreign(address, f"{kernel} works on")
        return form.Pointer(None)

    # -- PyTorch ----------------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self.paused:
            self._note(func, args, kwargs or {}, result)
        return result

    def _note(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        here = isinstance(result, torch.Tensor) and result.device.type == self.device
        if here and func in EMPTY:
            self._allocated(result)
        elif here and func in FILLED:
            self._filled(result, FILLED[func])
        elif here and func in FILLED_FROM:
            self._filled(result, args[FILLED_FROM[func]] if len(args) > FILLED_FROM[func] else kwargs["fill_value"])
        elif here and func in COPIED:
            if self._constant(args[0]):
                self._filled(result, args[0])
            elif self._known(args[0]):
                self._allocated(result)
                self._copied(result, args[0])
            else:
                self._foreign(result, self._origin(args[0]))
        elif here and func is ATEN.zero_.default:
            self._fill(args[0], 0)
        elif here and func in (ATEN.fill_.Scalar, ATEN.fill_.Tensor):
            self._fill(args[0], args[1])
        elif here and func is ATEN.copy_.default:
            self._copied(args[0], args[1])
        else:
            self._other(func, args, kwargs, result)

    def _other(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """A view is free. Of anything else, in-place work on a buffer is refused, and a new tensor marked."""
        for position, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                for tensor in _tensors(args[position] if position < len(args) else kwargs.get(argument.name)):
                    if tensor.numel() and self._find(tensor.data_ptr()) is not None:
                        self.refuse(f"PyTorch computed in place: {func}", "not_triton")
        if func is ATEN.lift_fresh.default:
            return  # numbers that Python made
        for tensor in _tensors(result):
            if tensor.numel() and self._holder(tensor.data_ptr()) is None:
                self._foreign(tensor, str(func))

    def _allocated(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        self.buffers.append(form.Scratch(storage.nbytes(), _name(tensor.dtype)))
        self.held.append(Held(tensor, storage.data_ptr(), storage.data_ptr() + storage.nbytes()))
        if len(self.buffers) > form.MOST_BUFFERS:
            self.refuse(f"the call allocates more than {form.MOST_BUFFERS} tensors")
            self.buffers.pop()
            self.held.pop()

    def _filled(self, tensor: torch.Tensor, value: Any) -> None:
        self._allocated(tensor)
        self._fill(tensor, value)

    def _fill(self, tensor: torch.Tensor, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            if not self._constant(value):
                self.refuse(
                    f"PyTorch filled a tensor with a value of another one ({self._origin(value)})", "not_triton"
                )
                return
            value = value.item()
        if isinstance(value, complex) or not tensor.numel():
            return
        view = self._view(tensor, "a fill")
        if view is not None:
            kind = "fp64" if isinstance(value, float) else "i64" if value < 2**63 else "u64"
            self._step(form.Fill(view, form.scalar_of(kind, value)))

    def _copied(self, target: torch.Tensor, source: torch.Tensor) -> None:
        if not target.numel():
            return
        if self._constant(source):
            self._fill(target, source)
            return
        to, origin = self._view(target, "a copy"), self._view(source.expand_as(target), "a copy")
        if to is not None and origin is not None:
            self._step(form.Copy(to, origin))

    # -- memory -----------------------------------------------------------------------------------------------------

    def _step(self, step: form.Step) -> None:
        if len(self.steps) >= form.MOST_STEPS:
            self.refuse(f"the call makes more than {form.MOST_STEPS} launches, fills and copies")
        else:
            self.steps.append(step)

    def _find(self, address: int) -> int | None:
        """The buffer that holds this address: one that it lies in, before an empty one or the end of one."""
        found = [n for n, held in enumerate(self.held) if held.holds(address)]
        if not found and address:
            found = [n for n, held in enumerate(self.held) if held.high == address]
        return found[0] if found else None

    def _holder(self, address: int) -> Held | None:
        number = self._find(address)
        if number is not None:
            return self.held[number]
        return next((held for held in self.foreign if held.holds(address)), None)

    def _known(self, tensor: torch.Tensor) -> bool:
        return not tensor.numel() or self._find(tensor.data_ptr()) is not None

    def _constant(self, tensor: torch.Tensor) -> bool:
        """A single number that Python made, on the host."""
        return tensor.numel() == 1 and tensor.device.type == "cpu" and self._holder(tensor.data_ptr()) is None

    def _origin(self, tensor: torch.Tensor) -> str:
        held = self._holder(tensor.data_ptr())
        return held.made_by if held is not None else ""

    def _foreign(self, tensor: torch.Tensor, made_by: str) -> None:
        self.foreign.append(Held(tensor, *_extent(tensor), made_by))

    def _refuse_foreign(self, address: int, what: str) -> None:
        held = self._holder(address)
        if held is not None and held.made_by:
            self.refuse(f"{what} what PyTorch computed: {held.made_by}", "not_triton")
        else:
            self.refuse(f"{what} a tensor that is neither an argument nor made in this call")

    def _view(self, tensor: torch.Tensor, what: str) -> form.View | None:
        """None when the tensor lies in no buffer; the refusal is noted."""
        shape, stride = tuple(tensor.shape), tuple(tensor.stride())
        if _name(tensor.dtype) not in form.DTYPES or min(stride, default=0) < 0 or tensor.layout != torch.strided:
            self.refuse(f"{what} is a tensor of a kind that cannot be recorded ({tensor.dtype}, {tensor.layout})")
            return None
        number = self._find(tensor.data_ptr()) if tensor.numel() else self._empty()
        if number is None:
            self._refuse_foreign(tensor.data_ptr(), f"{what} is")
            return None
        offset = tensor.data_ptr() - self.held[number].low if tensor.numel() else 0
        return form.View(number, offset, _name(tensor.dtype), shape, stride)

    def _empty(self) -> int:
        """A buffer for a tensor without elements."""
        self.buffers.append(form.Scratch(0, "uint8"))
        self.held.append(Held(torch.empty(0), 0, 0))
        return len(self.buffers) - 1


def _held(tensor: torch.Tensor) -> Held:
    return Held(tensor, *_extent(tensor))


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) if tensor.numel() else 0
    return tensor.data_ptr(), tensor.data_ptr() + span * tensor.element_size()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [v for v in value if isinstance(v, torch.Tensor)] if isinstance(value, (list, tuple)) else []


class Recording:
    """A runner's recording mode: its hooks, and the answers to the judge's `record` and `part`."""

    PART = 200_000  # characters in one message: with the worst escapes, less than the channel's limit

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.recorder: Recorder | None = None
        self.text = ""
        watch_for_recording(self._launched, self._refused)
        watch_tuning(self._tuning)

    def _launched(self, seen: SeenLaunch) -> None:
        if self.recorder is not None:
            self.recorder.launched(seen)

    def _refused(self, reason: str) -> None:
        if self.recorder is not None:
            self.recorder.refuse(reason)

    def _tuning(self) -> contextlib.AbstractContextManager[None]:
        return self.recorder.tuning() if self.recorder is not None else contextlib.nullcontext()

    def record(self, message: dict[str, Any]) -> dict[str, Any]:
        """Call the entry once; the record is then fetched in parts."""
        runner = self.runner
        args = [runner.memory.tensor(a["tensor"]) if "tensor" in a else a["value"] for a in message["args"]]
        self.recorder = Recorder(args, runner.device)
        try:
            with self.recorder:
                returned = runner.perform(args)
            if runner.device == "cuda":
                torch.cuda.synchronize()
            values = returned if isinstance(returned, (tuple, list)) else (returned,)
            self.text = form.dump(self.recorder.finish(values))
        except Refusal as refusal:
            return {"event": "refused", "status": refusal.status, "message": str(refusal)}
        except BaseException as error:
            return errors.described(error, runner.path, "call", runner.module)
        finally:
            self.recorder = None
        return {"event": "recorded", "parts": -(-len(self.text) // self.PART)}

    def part(self, message: dict[str, Any]) -> dict[str, Any]:
        start = int(message["part"]) * self.PART
        return {"event": "part", "text": self.text[start : start + self.PART]}
