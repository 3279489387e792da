from __future__ import annotations

import re

import pytest

from grader.catalog import find
from tutor.homework.results import similarity
from tutor.homework.results.similarity import SOLUTION, likeness, similarity_page

pytest.importorskip("copydetect")

MINE = '''
import torch
import triton
import triton.language as tl


@triton.jit
def totals(src, dst, rows, cols, stride, WIDTH: tl.constexpr):
    """Each program walks down one row, a window at a time."""
    line = tl.program_id(axis=0)
    acc = tl.zeros([WIDTH], dtype=tl.float32)
    for begin in range(0, cols, WIDTH):
        where = begin + tl.arange(0, WIDTH)
        piece = tl.load(src + line * stride + where, mask=where < cols, other=0.0)
        acc += piece.to(tl.float32)
    tl.store(dst + line, tl.sum(acc, axis=0))


def row_sum(x):
    result = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    totals[(x.shape[0],)](x, result, x.shape[0], x.shape[1], x.stride(0), WIDTH=256)
    return result
'''
OTHER = """
import torch
import triton
import triton.language as tl

CHUNK = 1024


@triton.jit
def k(x, o, n, s, B: tl.constexpr):
    i = tl.program_id(0)
    r = tl.arange(0, B)
    m = r < n
    tl.store(o + i, tl.sum(tl.load(x + i * s + r, mask=m, other=0)))


def row_sum(x):
    M, N = x.shape
    o = x.new_empty((M,))
    if M:
        k[(M,)](x, o, N, x.stride(0), B=max(16, triton.next_power_of_2(N)))
    return o
"""


def renamed(text: str) -> str:
    for old, new in {
        "src": "inp",
        "dst": "outp",
        "line": "me",
        "acc": "summe",
        "where": "cols_here",
        "piece": "v",
    }.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text.replace('"""Each program walks down one row, a window at a time."""', "# mine, really")


def test_a_copy_stands_out_whatever_its_names() -> None:
    texts = {"ana": MINE, "ben": renamed(MINE), "cyd": OTHER, "dan": MINE.replace("256", "512")}
    found = likeness({"row_sum": {name: name for name in texts}}, {name: text.encode() for name, text in texts.items()})
    pairs = {(pair.first, pair.second): pair for pair in found.pairs}
    assert set(pairs) == {("ana", "ben"), ("ana", "dan"), ("ben", "dan")}
    assert pairs["ana", "ben"].by_structure > 0.95 > pairs["ana", "ben"].as_written
    assert pairs["ana", "dan"].as_written > 0.9
    assert "Nothing here proves anything" in similarity_page("Homework", found)


def test_the_same_file_is_told_and_the_stub_is_nobodys_copy() -> None:
    stub = find("row_sum").stub.read_bytes()
    handed_in = {"row_sum": {"ana": "m", "<ben>": "m", "cyd": "stub", "dan": "stub"}}
    found = likeness(handed_in, {"m": MINE.encode(), "stub": stub})
    assert found.same == (("row_sum", ("<ben>", "ana")),)
    assert "&lt;ben&gt;, ana" in similarity_page("Homework", found)


def test_what_the_stub_gives_is_nobodys_likeness() -> None:
    stub = find("row_sum").stub.read_text()
    texts = {
        "ana": stub + "\n\ndef mine(rows):\n    return 12345 * len(rows)\n",
        "ben": stub + "\n\nassert 'abc' != 'def', 'no'\n",
    }
    found = likeness({"row_sum": {name: name for name in texts}}, {name: text.encode() for name, text in texts.items()})
    assert found.pairs == ()


def test_who_hands_in_the_solution_is_found() -> None:
    solution = find("row_sum").solution.read_bytes() + b"\n# my own work\n"
    found = likeness({"row_sum": {"ana": "s", "ben": "o"}}, {"s": solution, "o": OTHER.encode()})
    assert [(pair.first, pair.second) for pair in found.pairs] == [(SOLUTION, "ana")]


def test_without_the_library_the_report_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "copydetect", None)
    with pytest.raises(similarity.NotInstalled, match="pip install"):
        likeness({}, {})
