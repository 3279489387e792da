"""Module 8: what the tools for finding mistakes show, and what they hide."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.evidence.run import compiled, interpreted


def test_interpreter_shows_values_and_hides_races_missing_masks_and_asserts():
    out = interpreted(
        """
@triton.jit
def look(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_print("static", BLOCK)
    tl.static_assert(BLOCK >= 4)
    x = tl.load(x_ptr + offs, mask=offs < n)
    print("python", x)
    tl.device_print("device", x)
    tl.device_assert(x > 100, "not reached by the interpreter")
    tl.store(out_ptr + offs, x, mask=offs < n)
look[(2,)](torch.arange(6.0), torch.empty(6), 6, BLOCK=4)
look[(2,)](torch.arange(6.0), torch.empty(6), 6, BLOCK=4, debug=True)  # in debug mode the assert is ignored too

@triton.jit
def count(out_ptr):
    tl.store(out_ptr, tl.load(out_ptr) + 1)  # a race on a GPU
total = torch.zeros(1)
count[(100,)](total)
assert total.item() == 100

@triton.jit
def padded(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n))
filled = torch.full((8,), 7.0)
padded[(1,)](torch.ones(8), filled, 3, BLOCK=8)
assert filled.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]  # undefined on a GPU, 0 here

LIMIT = 3
@triton.jit
def accepted(out_ptr, n):
    i = 0
    while True:
        i += 1
        if i == LIMIT:
            break
    tl.store(out_ptr, i)
result = torch.zeros(1, dtype=torch.int32)
accepted[(1,)](result, 5)
assert result.item() == 3
"""
    )
    assert "static 4" in out and "python [0. 1. 2. 3.]" in out and "device" in out


def test_compiler_rejects_what_the_interpreter_accepts():
    compiled(
        """
LIMIT = 3
@triton.jit
def uses_global(out_ptr):
    tl.store(out_ptr, LIMIT)
@triton.jit
def breaks(out_ptr, n):
    for i in range(0, n):
        if i == 3:
            break
        tl.store(out_ptr, i)
@triton.jit
def ragged(out_ptr):
    tl.store(out_ptr + tl.arange(0, 6), 1)
@triton.jit
def too_small(BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 8, "block too small")
out = torch.zeros(8, dtype=torch.int32)
def message(action):
    try:
        action()
    except Exception as error:
        return str(error) + str(error.__cause__)
    return ""
assert "global variable" in message(lambda: uses_global[(1,)](out))
assert message(lambda: breaks[(1,)](out, 5))
assert "power of 2" in message(lambda: ragged[(1,)](out))
assert "block too small" in message(lambda: too_small[(1,)](BLOCK=4))
"""
    )


def test_device_assert_is_compiled_only_in_debug_mode():
    compiled(
        """
@triton.jit
def checked(x_ptr):
    x = tl.load(x_ptr)
    tl.device_assert(x < 2, "too large")
    tl.store(x_ptr, x + 1)
@triton.jit
def checked_in_debug(x_ptr):
    x = tl.load(x_ptr)
    tl.device_assert(x < 2, "too large")
    tl.store(x_ptr, x + 1)
x = torch.zeros(1)
assert "assert" not in checked[(1,)](x).asm["ttir"]
assert "too large" in checked_in_debug[(1,)](x, debug=True).asm["ttir"]
"""
    )


def test_interpreter_is_chosen_when_the_kernel_is_decorated():
    source = """
import os, torch, triton, triton.language as tl
@triton.jit
def early(x_ptr):
    tl.store(x_ptr, 1.0)
os.environ["TRITON_INTERPRET"] = "1"
@triton.jit
def late(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr) + 1)
@triton.jit
def late_sum(x_ptr):
    tl.store(x_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, 4))))
print(type(early).__name__, type(late).__name__)
try:
    late_sum[(1,)](torch.ones(4))
    print("summed")
except Exception as error:
    print("failed")  # tl.sum was decorated when triton was imported
"""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "snippet.py"
        file.write_text(source)
        environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
        done = subprocess.run([sys.executable, str(file)], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["JITFunction", "InterpretedFunction", "failed"], done.stderr


def test_assert_close_checks_dtype_and_shape_and_depends_on_dtype():
    interpreted(
        """
from torch.testing import assert_close
def fails(a, b, **options):
    try:
        assert_close(a, b, **options)
    except AssertionError as error:
        return str(error)
    return ""
one = torch.ones(2)
assert "dtype" in fails(one, one.double())
assert "shape" in fails(one, torch.ones(1))
assert fails(torch.ones(2, 3).t(), torch.ones(3, 2)) == ""  # strides are not compared
nan = torch.full((2,), float("nan"))
assert fails(nan, nan) and not fails(nan, nan, equal_nan=True)
assert fails(one, one + 1e-4) and not fails(one.half(), one.half() + 1e-3)
"""
    )
