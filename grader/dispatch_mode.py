"""The base of every mode that watches a submission's PyTorch calls: it costs no import of the compiler."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """A TorchDispatchMode whose first call does not import torch._dynamo, which takes seconds.

    PyTorch hides `__torch_dispatch__` from its compiler, and imports the compiler for that when a mode is first used.
    Here it is hidden once the compiler is there: before, nothing can be traced.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:  # PyTorch 2.9 neither asks nor hides
        return False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        raw = cls.__dict__.get("__torch_dispatch__")
        if raw is None:
            return
        hidden = torch._disable_dynamo(raw, recursive=True)

        @functools.wraps(raw)
        def dispatch(self: Any, *args: Any, **kwargs: Any) -> Any:
            there = hasattr(sys.modules.get("torch._dynamo"), "disable")  # wholly imported
            return (hidden if there else raw)(self, *args, **kwargs)

        cls.__torch_dispatch__ = dispatch  # type: ignore[method-assign]
