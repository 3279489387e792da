"""Two names for one value before a loop: what Triton 3.6 to 3.9 compile, and what the interpreter gives."""

from __future__ import annotations

import triton

from tests.evidence.run import compiled, interpreted

MENDED = (
    f"Triton {triton.__version__} carries `prev` through this loop: it is mended. The page 'Two names for one value' of "
    "m08.lesson.debug, m08.quiz.two-names and the remark of grader/compiled_otherwise.py hold for earlier versions only"
)
LOOP = """
    for i in range(n):
        tl.store(out_ptr + i, prev)
        prev = cur
        cur = cur + 1
"""
SHARED = "\n    cur = start + 0\n    prev = cur" + LOOP
OWN = SHARED.replace("prev = cur\n    for", "prev = cur + 0\n    for")
LITERALS = SHARED.replace("start + 0", "0").replace("prev = cur\n    for", "prev = 0\n    for")
LITERAL_SHARED = SHARED.replace("start + 0", "0")
WHILE = SHARED.replace("for i in range(n):", "i = 0\n    while i < n:") + "        i += 1\n"
TILE = SHARED.replace("start + 0", "tl.arange(0, 8)").replace("out_ptr + i, prev", "out_ptr + prev, i")
POINTER = SHARED.replace("start + 0", "out_ptr").replace("out_ptr + i, prev", "prev, i")
HEAD = "@triton.jit\ndef kernel(out_ptr, n, start):"


def stored(body: str) -> list[int]:
    """What the interpreter stores in four iterations from 3 on."""
    out = interpreted(
        f"{HEAD}{body}\nout = torch.zeros(4, dtype=torch.int32)\nkernel[(1,)](out, 4, 3)\nprint(*out.tolist())\n"
    )
    return [int(number) for number in out.split()]


def carried(body: str) -> int:
    """How many values the compiled loop hands from one iteration to the next, the counter of a `while` not counted."""
    ttir = compiled(
        f"{HEAD}{body}\nprint(kernel[(1,)](torch.zeros(64, dtype=torch.int32), 4, 3).asm['ttir'])\n", "sm_90"
    )
    loops = [line for line in ttir.splitlines() if "scf.for" in line or "scf.while" in line]
    assert len(loops) == 1, ttir
    handed = loops[0].split("iter_args" if "scf.for" in loops[0] else "scf.while")[1].split("->")[0]
    return handed.count(" = ") - ("scf.while" in loops[0])


def test_a_name_that_shares_its_value_before_the_loop_is_not_carried():
    assert stored(SHARED) == [3, 3, 4, 5]
    for body in (SHARED, LITERAL_SHARED, WHILE, TILE, POINTER):
        assert carried(body) == 1, MENDED


def test_a_value_of_its_own_before_the_loop_is_carried():
    assert stored(OWN) == [3, 3, 4, 5] and stored(LITERALS) == [0, 0, 1, 2]
    assert carried(OWN) == carried(LITERALS) == 2


def test_the_compiled_loop_stores_the_first_value_each_time():
    ttir = compiled(
        f"{HEAD}{SHARED}\nprint(kernel[(1,)](torch.zeros(64, dtype=torch.int32), 4, 3).asm['ttir'])\n", "sm_90"
    )
    store = next(line for line in ttir.splitlines() if "tt.store" in line)
    assert ", %start :" in store, f"{MENDED}\n{store}"  # the argument itself


def test_fibonacci_keeps_its_first_number():
    body = """
    a = tl.load(out_ptr)
    b = a
    for i in range(n):
        tl.store(out_ptr + i, a)
        a, b = b, a + b
"""
    numbers = interpreted(
        f"{HEAD}{body}\nout = torch.ones(5, dtype=torch.int32)\nkernel[(1,)](out, 5, 0)\nprint(*out.tolist())\n"
    )
    assert numbers.split() == ["1", "1", "2", "3", "5"]
    assert carried(body) == 1, MENDED
    ttir = compiled(
        f"{HEAD}{body}\nprint(kernel[(1,)](torch.zeros(64, dtype=torch.int32), 4, 3).asm['ttir'])\n", "sm_90"
    )
    first = next(line.split(" = ")[0].strip() for line in ttir.splitlines() if "tt.load" in line)
    store = next(line for line in ttir.splitlines() if "tt.store" in line)
    assert f", {first} :" in store, f"{MENDED}\n{store}"
