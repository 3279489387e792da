"""In the interpreter's runner, for a file written for a GPU: what asks for CUDA by name gets the CPU.

A file may take its device from anywhere, `device="cuda"` or `torch.cuda.current_device()`, and be right on a GPU.
Beside a run on one, the interpreter still has something to tell of its kernels; without this it would see nothing but
PyTorch's "No CUDA GPUs are available". A convenience and no proof: it lives in the learner's process, and what is
recorded there is carried out elsewhere.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch

from grader import triton_adapter
from grader.dispatch_mode import DispatchMode
from grader.kernels_alone import operators

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
STREAM = SimpleNamespace(
    cuda_stream=0, device=CUDA, synchronize=lambda: None, wait_stream=lambda stream: None, query=lambda: True
)


def properties() -> dict[str, Any]:
    """In the judge: what the device in use says of itself, as `use` takes it."""
    found = torch.cuda.get_device_properties(0)
    return {
        "name": found.name,
        "major": found.major,
        "minor": found.minor,
        "multi_processor_count": found.multi_processor_count,
        "total_memory": found.total_memory,
        "shared_memory_per_block_optin": int(getattr(found, "shared_memory_per_block_optin", 0)),
    }


def use(file: str, described: dict[str, Any]) -> None:
    """Before the learner's `file` is imported: from now on, every way to name the GPU leads to the CPU."""
    torch.cuda._lazy_init = lambda *_: None  # what makes a tensor asks for a device that is there, before any dispatch
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor copies to its device where a mode sees it
    _OnTheCpu().__enter__()
    tensor: Any = torch.Tensor
    for name, told in (("is_cuda", True), ("is_cpu", False), ("device", CUDA)):
        setattr(tensor, name, _told(file, getattr(tensor, name), told))
    tensor.cuda = lambda self, *_, **__: self
    tensor.pin_memory = lambda self, *_, **__: self
    tensor.to = _moved(tensor.to)
    for name in ("tensor", "as_tensor", "asarray"):
        setattr(torch, name, _moved(getattr(torch, name)))
    _name_the_device(file, described)
    _register_for_the_cpu()
    triton_adapter.name_device(described, CUDA)


class _OnTheCpu(DispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and skipping begins with an import that takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inside = operators.function_of(func)
        if inside is not None:  # an operator of the learner's own allocates inside
            with self:
                return inside(*args, **(kwargs or {}))
        named = {name: _here(value) for name, value in (kwargs or {}).items() if name != "pin_memory"}
        return func(*[_here(a) for a in args], **named)


def _here(value: Any) -> Any:
    return CPU if isinstance(value, torch.device) and value.type == "cuda" else value


def _told(file: str, original: Any, told: Any) -> property:
    """What a tensor says of its device: the truth, but to the learner's file."""

    def get(tensor: Any) -> Any:
        asked = sys._getframe(1).f_code.co_filename == file
        return told if asked else original.__get__(tensor)

    return property(get)


def _moved(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original, updated=())
    def moved(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = _device(kwargs["device"])
        return original(*[_device(a) for a in args], **kwargs)

    return moved


def _device(value: Any) -> Any:
    named = isinstance(value, str) and value.partition(":")[0] == "cuda"
    return CPU if named else _here(value)


def _name_the_device(file: str, described: dict[str, Any]) -> None:
    """torch.cuda's functions, as the learner's file sees them; PyTorch's own code sees that there is no GPU."""
    told = SimpleNamespace(**described)
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: told.name,
        "get_device_capability": lambda device=None: (told.major, told.minor),
        "get_device_properties": lambda device=None: told,
        "is_bf16_supported": lambda *_, **__: True,
        "current_stream": lambda device=None: STREAM,
        "default_stream": lambda device=None: STREAM,
        "stream": lambda stream: nullcontext(),
        "init": lambda: None,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, _answered(file, getattr(torch.cuda, name), answer))
    for name in ("device", "device_of"):
        setattr(torch.cuda, name, type(name, (getattr(torch.cuda, name),), _NO_CHANGE))


_NO_CHANGE = {
    "__init__": lambda self, *_: None,
    "__enter__": lambda self: None,
    "__exit__": lambda self, *_: False,
}


def _answered(file: str, original: Any, answer: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        asked = sys._getframe(1).f_code.co_filename == file
        return (answer if asked else original)(*args, **kwargs)

    return function


def _register_for_the_cpu() -> None:
    """An operator that is registered for CUDA alone is registered for every device."""
    import torch.library
    from torch._library.custom_ops import CustomOpDef

    custom_op, register = torch.library.custom_op, CustomOpDef.register_kernel

    def for_every_device(*args: Any, **kwargs: Any) -> Any:
        return custom_op(*args, **{**kwargs, "device_types": None})

    def for_the_cpu(self: Any, device_types: Any, fn: Any = None, /) -> Any:
        return register(self, "cpu" if "cuda" in (device_types or ()) else device_types, fn)

    torch.library.custom_op = for_every_device  # type: ignore[assignment]
    CustomOpDef.register_kernel = for_the_cpu  # type: ignore[method-assign]
