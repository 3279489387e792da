"""In a runner that holds only a file's kernels: a record becomes a function of the call's arguments."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from grader import errors, learner_file, triton_interpreted_launches
from grader.kernels_alone import record as form
from grader.verified.record import DTYPES


class Replay:
    """Called with the arguments of the recorded call, of the same shapes, it returns what the record's outputs name."""

    def __init__(self, kernels: ModuleType, record: form.Record) -> None:
        self.kernels, self.record = kernels, record

    def __call__(self, *args: Any) -> Any:
        memory = [
            args[buffer.position]
            if isinstance(buffer, form.Argument)
            else torch.empty(-(-buffer.nbytes // DTYPES[buffer.dtype].itemsize), dtype=DTYPES[buffer.dtype])
            for buffer in self.record.buffers
        ]
        for step in self.record.steps:
            if isinstance(step, form.Launch):
                arguments = {name: self._value(value, memory) for name, value in step.arguments.items()}
                triton_interpreted_launches.launch(self._kernel(step.kernel), step.grid, arguments)
            elif isinstance(step, form.Operation):
                result = _operation(step.name)(*[self._value(value, memory) for value in step.arguments])
                if step.out is not None:
                    _tensor(step.out, memory).copy_(result)
            elif isinstance(step, form.Fill):
                _tensor(step.to, memory).fill_(step.value.number())
            else:
                _tensor(step.to, memory).copy_(_tensor(step.source, memory))
        outputs = [_tensor(o, memory) if isinstance(o, form.View) else o for o in self.record.outputs]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _kernel(self, name: str) -> Any:
        found = getattr(self.kernels, name, None)
        if found is None or not triton_interpreted_launches.is_kernel(found):
            raise NameError(f"{name} was launched, and is no kernel at the top level of the file")
        return found

    def _value(self, value: form.Value, memory: list[torch.Tensor]) -> Any:
        if isinstance(value, form.Tensor):
            return _tensor(value.view, memory)
        if isinstance(value, form.Descriptor):
            parts = (list(value.shape), list(value.strides), list(value.block_shape))
            return triton_interpreted_launches.descriptor(_tensor(value.base, memory), *parts, value.padding)
        if isinstance(value, form.Many):
            return tuple(self._value(v, memory) for v in value.items)
        made = {"int": int, "float": float.fromhex, "bool": lambda text: text == "True", "str": str}
        if value.what in made:
            return made[value.what](value.text)  # type: ignore[operator]
        if value.what == "dtype":
            return triton_interpreted_launches.dtype_of(value.text)
        return self._kernel(value.text) if value.what == "kernel" else None


def _operation(name: str) -> Any:
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _tensor(view: form.View, memory: list[torch.Tensor]) -> torch.Tensor:
    base, dtype = memory[view.buffer], DTYPES[view.dtype]
    if not base.numel() or 0 in view.shape:
        return torch.empty(view.shape, dtype=dtype)
    start = base.storage_offset() * base.element_size() + view.offset
    flat = torch.empty(0, dtype=dtype)
    return flat.set_(base.untyped_storage(), start // dtype.itemsize, view.shape, view.stride)


def load(runner: Any, message: dict[str, Any]) -> dict[str, Any]:
    """Make the record the runner's entry. The judge has checked it."""
    import msgspec

    try:
        if runner.module is None:
            runner.module = learner_file.module_of(runner.path)
        runner.entry = Replay(runner.module, msgspec.json.decode(message["record"], type=form.Record))
    except BaseException as error:
        return errors.described(error, runner.path, "import")
    return {"event": "loaded"}
