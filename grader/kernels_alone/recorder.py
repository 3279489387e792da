"""In the runner: one call of the learner's function in the interpreter, recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from grader import errors, triton_interpreted_launches
from grader.kernels_alone import operators
from grader.kernels_alone import record as form
from grader.triton_interpreted_launches import SeenLaunch
from grader.verified.record import MOST_OUTPUTS, View
from grader.verified.recorder import Held, Recorder, Refusal
from grader.watch import TUNING


class InterpretedRecorder(Recorder):
    """`earlier` is scratch memory of earlier calls, which a wrapper may keep: in this call it counts as new.

    `allowed` names the operations that the task leaves to PyTorch, `by_torch` the outputs.
    """

    def __init__(
        self, arguments: list[Any], earlier: list[Held], allowed: Sequence[str] = (), by_torch: Sequence[int] = ()
    ) -> None:
        super().__init__(arguments, "cpu")
        self.earlier, self.allowed, self.by_torch = earlier, allowed, by_torch
        self.launching = False

    @contextlib.contextmanager
    def launch(self) -> Iterator[None]:
        """What the interpreter does with tensors while a kernel runs is no part of the call."""
        before, self.launching = self.launching, True
        try:
            yield
        finally:
            self.launching = self.paused = before

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.paused = TUNING.active or self.launching
        inside = operators.function_of(func)
        if inside is not None:  # an operator of the learner's own, or one made of others: what it does counts
            with self:
                return inside(*args, **(kwargs or {}))
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _other(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if str(func) not in self.allowed or kwargs or not isinstance(result, torch.Tensor):
            super()._other(func, args, kwargs, result)
            return
        tensors = [a for a in args if isinstance(a, torch.Tensor) and not self._constant(a)]
        if not all(self._known(tensor) for tensor in tensors):
            super()._other(func, args, kwargs, result)
            return
        plain = [a.item() if isinstance(a, torch.Tensor) and self._constant(a) else a for a in args]
        values = tuple(self._value(a, str(func)) for a in plain)
        out = None
        if result is not args[0]:
            self._allocated(result)
            out = self._view(result, str(func))
        self._step(form.Operation(str(func), values, out))  # type: ignore[arg-type]

    def interpreted(self, seen: SeenLaunch) -> None:
        self.paused = False
        arguments = {name: self._value(value, seen.name) for name, value in seen.arguments.items()}
        if 0 not in seen.grid:
            self._step(form.Launch(seen.name, seen.grid, arguments))  # type: ignore[arg-type]

    def _value(self, value: Any, kernel: str) -> form.Value:
        if isinstance(value, torch.Tensor):
            view = self._kept(value, kernel)
            return form.Tensor(view) if view is not None else form.Plain("none")
        if triton_interpreted_launches.is_descriptor(value):
            view = self._kept(value.base, kernel)
            if view is None:
                return form.Plain("none")
            shape, strides, block = (tuple(int(n) for n in p) for p in (value.shape, value.strides, value.block_shape))
            return form.Descriptor(view, shape, strides, block, str(getattr(value, "padding", "zero")))
        if isinstance(value, tuple):
            return form.Many(tuple(self._value(v, kernel) for v in value))  # type: ignore[misc]
        if value is None or isinstance(value, (bool, int, float, str)):
            kind: Any = "none" if value is None else type(value).__name__
            return form.Plain(kind, value.hex() if isinstance(value, float) else "" if value is None else str(value))
        named = triton_interpreted_launches.named(value)
        if named is None:
            self.refuse(f"{kernel} is given {type(value).__name__}, which is no tensor, number or dtype")
            return form.Plain("none")
        return form.Plain(*named)  # type: ignore[arg-type]

    def _kept(self, tensor: torch.Tensor, kernel: str) -> View | None:
        with self.launch():  # a look at the tensor, and nothing the learner does
            plain = tensor.detach().as_subclass(torch.Tensor)
        if plain.numel() and self._find(plain.data_ptr()) is None:
            for held in self.earlier:
                if held.holds(plain.data_ptr()):
                    self._allocated(held.tensor)
        return self._view(plain, f"what {kernel} works on")

    def done(self, returned: list[Any]) -> form.Record:
        """Raises Refusal."""
        self.paused = False
        returned = [None if n in self.by_torch else value for n, value in enumerate(returned)]
        finished = self.finish(returned[:MOST_OUTPUTS])
        return form.Record(finished.buffers, finished.steps, finished.outputs)  # type: ignore[arg-type]


class Recording:
    """The runner's answers to the judge's `record kernels`."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.recorder: InterpretedRecorder | None = None
        self.earlier: list[Held] = []
        triton_interpreted_launches.watch(self._launched, self._launching)

    def _launched(self, seen: SeenLaunch) -> None:
        if self.recorder is not None:
            self.recorder.interpreted(seen)

    def _launching(self) -> contextlib.AbstractContextManager[None]:
        return self.recorder.launch() if self.recorder is not None else contextlib.nullcontext()

    def record(self, message: dict[str, Any]) -> dict[str, Any]:
        """Call the entry once; with `noop` the kernels do not run, which a record needs only where results steer."""
        runner = self.runner
        args = [runner.memory.tensor(a["tensor"]) if "tensor" in a else a["value"] for a in message["args"]]
        runner.watch.new_call(filler="poison", noop=bool(message.get("noop")), order="forward", trace=None)
        self.recorder = InterpretedRecorder(args, self.earlier, message.get("allowed", ()), message.get("by_torch", ()))
        try:
            with self.recorder:
                returned = runner.perform(args)
            values = list(returned) if isinstance(returned, (tuple, list)) else [returned]
            text = form.dump(self.recorder.done(values))
        except Refusal as refusal:
            return {"event": "refused", "status": refusal.status, "message": str(refusal)}
        except BaseException as error:
            return errors.described(error, runner.path, "call", runner.module)
        finally:
            self.earlier += _scratch(self.recorder)
            self.recorder = None
        if len(text) > form.LONGEST:
            return {"event": "refused", "status": "unverified", "message": "the call makes too many launches"}
        return {"event": "recorded", "text": text}


def _scratch(recorder: Recorder) -> list[Held]:
    pairs = zip(recorder.held, recorder.buffers, strict=True)
    return [held for held, buffer in pairs if isinstance(buffer, form.Scratch) and held.high > held.low]
