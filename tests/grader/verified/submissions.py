"""What the tests of verified grading record: vector_add with another body."""

from __future__ import annotations

from typing import Any

from grader.catalog import find
from grader.judge import Judge
from grader.verified import verify
from grader.verified.record import Record

ADD = find("vector_add").solution.read_text()
PLAIN = "return run(x, y, torch.empty_like(x))"
MANY = (
    "@triton.jit\ndef many(x_ptr, out_ptr, one, seed, eps, flag, big, pair, none, B: tl.constexpr, rest=6):\n"
    "    offs = tl.arange(0, B)\n"
    "    x = tl.load(x_ptr + offs) * one + seed + eps + flag.to(tl.float32) + big + pair[0] + pair[1] + rest\n"
    "    tl.store(out_ptr + offs, x)\n"
)
LAUNCH_MANY = (
    "out = torch.empty_like(x)\n"
    "many[(3, 2)](x, out, 1, -7, 1e-5, True, 2**31 + 5, (3, float('-inf')), None, B=64, num_warps=8)\nreturn out"
)


def recorded(judge: Judge, grade: Any, body: str, kernel: str = "") -> Record:
    """The record of vector_add's case of 1000 elements with this body for `add(x, y)`; `run(x, y, out)` launches the kernel."""
    source = (
        ADD.split("def add(")[0]
        + "def run(x, y, out, n=None):\n"
        + "    add_kernel[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, y, out, x.numel(), BLOCK=1024)\n"
        + "    return out\n"
        + kernel
        + "def add(x, y):\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
    )
    under_way = grade("vector_add", source)
    case = next(case for case in under_way.problem.cases if case.name == "n=1000 float32")
    values = under_way.values(case)
    with judge.runner(under_way, "offline", [values], record=True) as runner:
        return verify.recorded(runner, values)


def changed(source: str, old: str, new: str) -> str:
    assert old in source, f"{old!r} is not in the solution any more"
    return source.replace(old, new)
