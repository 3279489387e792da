"""What module 4 says of warps stands in the record of `python benchmarks/row_warps.py`."""

from __future__ import annotations

import re
from pathlib import Path

from tutor.course.loader import load

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
RECORD = (RESULTS / "row-warps-nvidia-h200.md").read_text(encoding="utf-8")
CELL = re.compile(r"([\d.]+) \((\d+)\)")


def shares(kernel: str) -> dict[str, list[str]]:
    """Columns to the shares of a copy with 1, 2, 4, 8, 16 and 32 warps; a dash where it was not tried."""
    section = RECORD.split(f"\n## {kernel}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:2] == "| "]
    return {cells[0]: [cell.partition(" ")[0] for cell in cells[1:-1]] for cells in rows[1:]}


def test_the_lesson_shows_the_record() -> None:
    text = " ".join(page.text for item in load().items() if item.id == "m04.lesson.warps" for page in item.pages)
    shown = re.findall(r"^(\d+) +([\d.–]+(?: +[\d.–]+){5})$", text, re.MULTILINE)
    assert len(shown) == 4
    for columns, cells in shown:
        assert cells.split() == shares("softmax")[columns]


def test_the_solutions_limit_on_registers_wins() -> None:
    section = RECORD.split("\n## softmax\n")[1].split("\n## ")[0]
    solution = {line.split("|")[1].strip(): line.split("|")[-2].strip() for line in section.splitlines() if "|" in line}
    text = " ".join(page.text for item in load().items() if item.id == "m04.lesson.warps" for page in item.pages)
    for columns in ("12288", "16384"):
        *_, eight, sixteen, _ = shares("softmax")[columns]
        assert re.search(rf"^{columns} +{sixteen} +{eight} +{solution[columns]}$", text, re.MULTILINE)
        assert float(solution[columns]) >= float(sixteen) + 0.04


def test_between_16_and_64_elements_a_thread_little_changes() -> None:
    """Within 15 % of the best, at the widths that the lesson names; with 2 or 4 elements it may be a third of it."""
    section = RECORD.split("\n## softmax\n")[1].split("\n## ")[0]
    worst = 1.0
    for line in section.splitlines():
        if line.split("|")[1:2] and line.split("|")[1].strip() in ("1024", "4096", "8192", "16384"):
            found = [(float(share), int(elements)) for share, elements in CELL.findall(line)]
            best = max(share for share, _ in found)
            assert all(share >= 0.85 * best for share, elements in found if 16 <= elements <= 64), line
            worst = min([worst, *(share / best for share, elements in found if elements <= 4)])
    assert 0.3 < worst < 0.4
