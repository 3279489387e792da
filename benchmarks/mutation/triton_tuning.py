"""Triton's private names that the truth needs: which configuration an autotuner picks."""

from __future__ import annotations

from typing import Any


class Tuning:
    """Autotuners try every configuration once for a new key; then number `pick` wins (past the last: the last)."""

    def __init__(self) -> None:
        from triton.runtime import autotuner

        self.pick = 0
        original = autotuner.Autotuner._bench
        tuning = self

        def bench(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
            place = self.configs.index(config)
            wins = place == min(tuning.pick, len(self.configs) - 1)

            def once(kernel_call: Any, quantiles: Any = None, **more: Any) -> list[float]:
                kernel_call()
                return [0.5 if wins else 1.0 + place] * 3

            self.__dict__["do_bench"] = once
            return original(self, *args, config=config, **meta)

        autotuner.Autotuner._bench = bench  # type: ignore[method-assign]

    def tuners(self, module: Any) -> list[Any]:
        from triton.runtime.autotuner import Autotuner

        return [value for value in vars(module).values() if isinstance(value, Autotuner)]

    def choose(self, module: Any, pick: int) -> None:
        self.pick = pick
        for tuner in self.tuners(module):
            tuner.cache.clear()
