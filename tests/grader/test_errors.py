"""What a call raised, in a verdict's words: what no machine without a GPU raises, by its text."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from grader import errors

SOURCE = """import triton
import triton.language as tl

FACTOR = 2.0


@triton.jit
def add_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, FACTOR * x, mask=offs < n)
"""
# torch 2.11, Triton 3.6: what torch.compile says of that kernel
INDUCTOR = """CompilationError: at 4:29:
def add_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, FACTOR * x, mask=offs < n)
                             ^
NameError('Cannot access global variable FACTOR from within @jit'ed function. Triton kernels can only access globals')

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace"""


class InductorError(RuntimeError):
    pass


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    """As it looks when Triton has read it; Triton itself is not needed for this."""
    made = ModuleType("mine")
    made.__file__ = str(tmp_path / "mine.py")
    lines = SOURCE.splitlines(keepends=True)
    first = lines.index("@triton.jit\n")
    made.FACTOR = 2.0  # type: ignore[attr-defined]
    made.add_kernel = SimpleNamespace(raw_src=lines[first:], starting_line_number=first + 1)  # type: ignore[attr-defined]
    return made


def described(error: BaseException, module: ModuleType) -> dict[str, object]:
    assert module.__file__ is not None
    try:
        raise error
    except type(error) as raised:
        return errors.described(raised, Path(module.__file__), "call", module)


UNKNOWN = INDUCTOR.replace(
    "Cannot access global variable FACTOR from within @jit'ed function.", "FACTOR is not defined."
)


@pytest.mark.parametrize("text", [INDUCTOR, UNKNOWN])
def test_a_compile_error_that_torch_compile_passes_on_as_text_has_its_reason_and_its_line(module, text):
    told = described(InductorError(text), module)
    assert (told["status"], told["cause"]) == ("compile_error", "plain_global")
    assert isinstance(told["line"], int) and "FACTOR * x" in SOURCE.splitlines()[told["line"] - 1]
    assert str(told["message"]).startswith("the kernel uses the plain global FACTOR. Try: ")


def test_a_name_that_the_file_does_not_have_is_unknown_in_torch_compile_too(module):
    told = described(InductorError(UNKNOWN.replace("FACTOR is", "FAKTOR is")), module)
    assert (told["status"], told["cause"]) == ("compile_error", "undefined_name")


def test_the_excerpt_of_a_kernel_that_is_not_in_the_file_gives_no_line(module):
    told = described(InductorError(INDUCTOR.replace("add_kernel", "other")), module)
    assert (told["status"], told["line"]) == ("compile_error", None)


def test_a_tensor_on_the_cpu_is_no_compile_error_although_the_launcher_lies_in_the_compilers_folder(module):
    launcher = ModuleType("driver")
    text = (
        "def launch():\n    raise ValueError('Pointer argument (at 2) cannot be accessed from Triton (cpu tensor?)')\n"
    )
    exec(compile(text, "/site-packages/triton/backends/nvidia/driver.py", "exec"), vars(launcher))
    assert module.__file__ is not None
    try:
        launcher.launch()
    except ValueError:
        told = errors.described(sys.exception(), Path(module.__file__), "call", module)  # type: ignore[arg-type]
    assert (told["status"], told["cause"]) == ("runtime_error", "tensor_on_the_cpu")
