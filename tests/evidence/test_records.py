"""What a `predict` item says was measured on a GPU stands in the record that it cites."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tutor.course.loader import load
from tutor.course.model import Predict

ROOT = Path(__file__).resolve().parents[2]
MEASURED = [item for item in load().items() if isinstance(item, Predict)]
ON_A_GPU = [item for item in MEASURED if not item.measured.device.startswith("compiled for")]


def test_every_prediction_cites_a_test_or_a_record() -> None:
    assert [item.id for item in MEASURED if not item.evidence] == []
    assert len(ON_A_GPU) > 10


@pytest.mark.parametrize("item", ON_A_GPU, ids=lambda item: item.id)
def test_the_figure_is_in_the_record(item: Predict) -> None:
    cited = [found[1] for line in item.evidence if (found := re.match(r"doc:(benchmarks/results/[\w./-]+)", line))]
    assert cited, f"{item.id} cites no record"
    record = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in cited)
    figures = re.findall(r"(\d[\d,.]*\d) ?(?:µs|ms|MB|GB/s)|(\d\.\d+e-\d+)", item.measured.figure)
    shares = re.findall(r"\b0\.\d\d\b", item.measured.figure) if not figures else []
    wanted = [plain or scientific for plain, scientific in figures] + shares
    assert wanted, item.measured.figure
    for figure in wanted:
        assert figure in record or figure.replace(",", "") in record, f"{figure} is not in {', '.join(cited)}"
