"""What touches Triton's private names, here and in the triton_*.py beside: with a test for each supported version.

Three modes of a process, chosen before triton is imported:
  interpreter  TRITON_INTERPRET=1: kernels run on NumPy, with exact bounds checks and counted traffic
  offline      no GPU: launches compile for a target that is not there, and run nothing
  cuda         launches run
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from grader.triton_autotuner import use_own_benchmark, watch_tuners
from grader.triton_interpreter import mend_index, watch_interpreter
from grader.watch import TUNING

__all__ = ["mend_index", "use_own_benchmark", "watch_interpreter", "watch_tuners"]  # with what is defined here


def preload_driver() -> None:
    """Build and load Triton's driver module now: runners forked later inherit it. Makes no CUDA context."""
    from triton.backends.nvidia.driver import CudaUtils

    CudaUtils()
    # it is one object, and yet each further call of the class would run the C compiler again, where that finds no cache
    CudaUtils.__init__ = lambda self: None


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


def name_device(described: dict[str, Any], device: Any) -> None:
    """Make Triton's driver name `device`, which is not there, and what `described` says of it. For the interpreter."""
    from triton.runtime import driver

    use_stand_in_driver(f"sm_{described['major']}{described['minor']}")
    told = {
        "multiprocessor_count": described["multi_processor_count"],
        "max_shared_mem": described["shared_memory_per_block_optin"],
        "warpSize": 32,
    }
    driver.active.get_active_torch_device = lambda: device
    driver.active.utils = SimpleNamespace(get_device_properties=lambda device=0: told)


@dataclass
class Launches:
    """What `watch_launches` saw. `mode`: run (launch), compile (compile only) or skip (nothing at all)."""

    mode: str = "run"
    kernels: list[Any] = field(default_factory=list)  # CompiledKernel objects, each once
    names: list[str] = field(default_factory=list)
    # of every launch that was compiled only: the kernel's place in `kernels`, the grid, whether an autotuner tried it
    grids: list[tuple[int, tuple[int, ...], bool]] = field(default_factory=list)
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
        sizes = None
        if launches.mode == "compile":
            sizes = _grid_of(self, grid, args, kwargs)
            warmup = True
        kernel = original(self, *args, grid=grid, warmup=warmup, **kwargs)
        if kernel is not None and hasattr(kernel, "result") and not hasattr(kernel, "asm"):
            kernel = kernel.result()
        if kernel is not None and id(kernel) not in launches._seen:
            launches._seen.add(id(kernel))
            launches.kernels.append(kernel)
        if kernel is not None and sizes is not None:
            place = next(i for i, known in enumerate(launches.kernels) if known is kernel)
            launches.grids.append((place, sizes, TUNING.active))
        return kernel

    JITFunction.run = run
    return launches


def _grid_of(kernel: Any, grid: Any, args: Any, kwargs: Any) -> tuple[int, ...]:
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
    return tuple(grid)


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
