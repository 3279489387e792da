"""What the page after the matmul ladder's last rung says is what the record of that measurement says."""

from __future__ import annotations

import re

import pytest

from tests.evidence.run import ROOT
from tests.evidence.test_ladders import ladder_item

RECORD = (ROOT / "benchmarks/results/matmul-limits-nvidia-h200.md").read_text(encoding="utf-8")
PAGE = next(page.text for page in ladder_item("matmul").pages if page.title.startswith("Why nothing here beats"))


def rows(heading: str, *, table: int = 0) -> list[list[str]]:
    """The cells of a table under this heading of the record, without its head."""
    (section,) = [part for part in RECORD.split("\n## ") if part.startswith(heading)]
    lines = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)[table].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def number(text: str) -> float:
    return float(text.replace(",", ""))


def forms(size: str) -> dict[str, str]:
    """Form to µs, of the run with more rounds; the fastest first, of each form its best order."""
    found: dict[str, str] = {}
    for form, _, us, *_ in rows(size):
        found.setdefault(form, us)
    return found


def says(text: str) -> bool:
    return text in " ".join(PAGE.split())


@pytest.mark.parametrize("size", ["4096³", "8192³"])
def test_the_page_says_what_the_record_says(size):
    times = forms(size)
    best = next(iter(times.values()))
    assert number(best) == min(map(number, times.values()))
    gain = f"{number(times['rung 8']) / number(best):.2f}"
    assert f"| {size} | {times['torch.matmul']} µs | {times['rung 8']} µs | {best} µs | {gain} × |" in PAGE
    assert number(times["torch.matmul"]) / number(best) < 1.05  # as the title says
    zeros = {row[1]: row[3] for row in rows("The same on zeros") if row[0] == size}
    assert says(f"{zeros['torch.matmul']}{' µs' if size == '4096³' else ''} at {size}")
    dearer = f"{number(times['torch.matmul']) / number(zeros['torch.matmul']):.2f}"
    assert dearer in ("1.15", "1.30") and says("Normal values cost it 1.15 and 1.30 times as much")


def test_the_page_says_how_the_form_did_in_the_ladder_and_at_which_clock():
    ladder = rows("The ladder's run")
    rung_8, rung_9 = [row[3] for row in ladder], [row[5] for row in ladder]
    assert says("took {}, {} and {} µs at the three sizes".format(*rung_9))
    assert says("rung 8 took {}, {} and {}".format(*rung_8))
    among_fast, between_slow = forms("8192³")["torch.matmul"], ladder[2][1]
    assert says(f"`torch.matmul` took {among_fast} µs there, among fast kernels only, and {between_slow} in the ladder")
    clock = {(row[0], row[1]): row[3:6] for row in rows("Clock and power")}
    highest = clock["2048³", "first look"][0]
    _, median, watts = clock["8192³", "more rounds"]
    assert says(f"At 8192³ it fell from {highest} MHz to {median} (median, at {watts} W)")
    assert clock["2048³", "first look"][:2] == [highest, highest] and says(f"the clock stayed at {highest} MHz")
    tried = {row[0] for size in ("4096³", "8192³") for table in (0, 1) for row in rows(size, table=table)}
    tried -= {"torch.matmul", "rung 8", "the file of rung 9"}
    assert len(tried) == 7 and says("Seven forms of it were measured")
    assert {tile for form in tried for tile in re.findall(r"\d+ × \d+", form)} == {
        "128 × 256", "256 × 128", "192 × 256", "128 × 128",
    }  # fmt: skip
