"""Hooks in Triton's autotuner: tuning where nothing can be timed, one chosen configuration, what its key sees.

Touches Triton's private names, as grader/triton_adapter.py does; tests/grader/test_triton_adapter.py tests them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from grader.watch import TUNING

MOST_VALUES = 64  # values of one argument that are remembered


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
        TUNING.configuration = config_name(config)
        timings = original(self, *args, config=config, **meta)
        TUNING.configuration = None  # stays where the trial raised
        return timings

    autotuner.Autotuner._bench = bench


def config_name(config: Any) -> str:
    """`BLOCK=1024, num_warps=8`: what the learner wrote."""
    return ", ".join(f"{name}={value}" for name, value in [*config.kwargs.items(), ("num_warps", config.num_warps)])


@dataclass
class Tuned:
    """One autotuned kernel, and which values its arguments have had."""

    tuner: Any
    name: str
    keys: tuple[str, ...]
    values: dict[str, set[Any]] = field(default_factory=dict)  # of whole numbers and floats
    pointers: set[str] = field(default_factory=set)

    def note(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for name, value in [*zip(self.tuner.arg_names, args, strict=False), *kwargs.items()]:
            if hasattr(value, "data_ptr"):
                self.pointers.add(name)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                known = self.values.setdefault(name, set())
                if len(known) < MOST_VALUES:
                    known.add(value)


@dataclass
class Tuners:
    """The autotuned kernels that have been launched, in the order of their first launch."""

    kernels: list[Tuned] = field(default_factory=list)
    ran: int = 0  # launches since the call began
    forced: tuple[int, int] | None = None  # the kernel and the configuration it must run with

    def new_call(self, forced: tuple[int, int] | None) -> None:
        self.ran, self.forced = 0, forced

    def described(self) -> list[dict[str, Any]]:
        return [
            {
                "kernel": tuned.name,
                "configurations": [config_name(config) for config in tuned.tuner.configs],
                "keys": list(tuned.keys),
                "pointers": sorted(tuned.pointers),
                "sizes": sorted(n for n, known in tuned.values.items() if _varies(known, int)),
                "factors": sorted(n for n, known in tuned.values.items() if _varies(known, float)),
            }
            for tuned in self.kernels
        ]


def _varies(values: set[Any], kind: type) -> bool:
    return len(values) > 1 and all(isinstance(value, kind) for value in values)


def watch_tuners() -> Tuners:
    """Hook Autotuner.run of this process, in every mode."""
    from triton.runtime.autotuner import Autotuner

    tuners = Tuners()
    original = Autotuner.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        tuners.ran += 1
        position = next((i for i, tuned in enumerate(tuners.kernels) if tuned.tuner is self), None)
        if position is None:
            position = len(tuners.kernels)
            tuners.kernels.append(Tuned(self, self.base_fn.__name__, tuple(self.keys)))
        tuners.kernels[position].note(args, kwargs)
        if tuners.forced is None or tuners.forced[0] != position:
            return original(self, *args, **kwargs)
        configs = self.configs
        chosen = configs[tuners.forced[1]]
        if not _allowed(self, chosen, args, kwargs):
            return original(self, *args, **kwargs)
        self.configs = [chosen]  # of one configuration nothing is measured, and no cache is asked
        try:
            return original(self, *args, **kwargs)
        finally:
            self.configs = configs

    Autotuner.run = run
    return tuners


def _allowed(tuner: Any, config: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the learner's own pruning leaves this configuration for this call."""
    if not tuner.early_config_prune:
        return True
    named = dict(zip(tuner.arg_names, args, strict=False))
    return any(kept is config for kept in tuner.early_config_prune(tuner.configs, named, **kwargs))
