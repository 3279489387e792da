"""PyTorch's private names: what is inside an operator that was registered with torch.library.triton_op or custom_op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

BUILT_IN = frozenset(("aten", "prims", "prim", "rngprims", "debug_mode_ops"))


def function_of(func: Any) -> Callable[..., Any] | None:
    """The Python function that the learner registered, or the parts of an operator that is made of others; else None.

    A dispatch mode sees a learner's operator as one call, and within it `contiguous` and its like undivided.
    """
    if func.namespace in BUILT_IN:
        made_of_others = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
        return func.decompose if made_of_others else None
    from torch._library.custom_ops import OPDEFS

    definition = OPDEFS.get(func.name().split(".")[0])
    return getattr(definition, "_init_fn", None)
