"""Triton's private names for compiling a launch with other options than it names: what would 8 warps change?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def force_options(options: Mapping[str, int]) -> None:
    """Every launch of this process takes these options (num_warps, num_stages), whatever it or its tuner says.

    Put on before the hooks of `watch_launches`, which then see the launch as the learner's code makes it.
    """
    from triton.runtime.jit import JITFunction

    original = JITFunction.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self, *args, **{**kwargs, **options})

    JITFunction.run = run
