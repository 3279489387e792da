"""What the ladder lessons say of times stands in the record, and the record is of the rungs that are here."""

from __future__ import annotations

import json
import re
from itertools import combinations

import pytest

from benchmarks.ladders.__main__ import fingerprint
from benchmarks.ladders.page import RECORD, ladder_table, rung_table
from benchmarks.ladders.report import markdown
from benchmarks.ladders.settings import FOLDERS, SETTINGS, rungs
from grader.ranking import apart
from tests.evidence.test_ladders import lesson, rung_pages
from tutor.course.loader import load


@pytest.fixture(scope="module")
def record() -> dict:
    return json.loads(RECORD.read_text(encoding="utf-8"))


def took(record: dict, setting: str, candidate: str) -> float:
    """Microseconds of the one candidate whose name begins with this word: a rung's number, `torch`."""
    begins = re.compile(rf"{re.escape(candidate)}\b")
    (row,) = [row for name, row in record["settings"][setting]["rows"].items() if begins.match(name)]
    assert row["wrong"] is None
    return row["median_us"]


def test_the_record_is_of_these_rungs(record):
    assert set(record["settings"]) == {setting.name for setting in SETTINGS}
    for setting in SETTINGS:
        result = record["settings"][setting.name]
        assert result["rungs"] == fingerprint(setting.ladder), f"measure again: {setting.ladder}"
        assert not result["failed"] and not any(row["wrong"] for row in result["rows"].values())
        assert {rung.label for rung in setting.rungs()} <= set(result["rows"])
    assert RECORD.with_suffix(".md").read_text(encoding="utf-8") == markdown(record)


@pytest.mark.parametrize("ladder", FOLDERS)
def test_the_pages_show_the_record(record, ladder):
    """After a new measurement: `python -m benchmarks.ladders.page` prints the tables."""
    first, *_, last = lesson(ladder)
    for page, rung in zip(rung_pages(ladder), rungs(ladder), strict=True):
        assert rung_table(record, rung) in page
    assert ladder_table(record, ladder) in last
    words = " ".join(first.split())
    torch, triton = record["versions"]["torch"].partition("+")[0], record["versions"]["triton"]
    assert f"an {record['device']} with torch {torch} and Triton {triton} on {record['date']}" in words


def says(ladder: str, page: int, text: str) -> bool:
    """Page 0 introduces, then come the rungs by number; -1 is the last."""
    return text in " ".join(lesson(ladder)[page].split())


def shown(record: dict, setting: str, numerator: str, denominator: str) -> str:
    return f"{took(record, setting, numerator) / took(record, setting, denominator):.2f}"


def test_what_the_softmax_pages_say_of_the_times(record):
    wide, square, odd, narrow = "4096 x 32768", "32768 x 4096", "10922 x 12288", "524288 x 128"
    assert took(record, square, "4") > took(record, square, "1") and took(record, narrow, "4") > took(
        record, narrow, "2"
    )
    assert says("softmax", 4, "It loses where rows are narrow")
    assert says("softmax", 4, f"it is {shown(record, odd, '2', '4')} times as fast as rung 2, and slower than rung 3")
    assert took(record, odd, "4") > 1.05 * took(record, odd, "3")
    assert says("softmax", 5, f"cost it {shown(record, wide, '5', '1')} times rung 1's time, not 1.5")
    assert all(took(record, s, "5") > took(record, s, n) for s in (wide, square, odd) for n in "1234")


def differ(record: dict, setting: str, one: str, other: str) -> bool:
    """Whether the spreads of two candidates are apart."""
    rows = record["settings"][setting]["rows"]
    spreads = []
    for begins in (one, other):
        (row,) = [row for name, row in rows.items() if re.match(rf"{re.escape(begins)}\b", name)]
        spreads.append([row["median_us"], row["p20_us"], row["p80_us"]])
    return apart(*spreads)


def test_what_the_rms_norm_pages_say_of_the_times(record):
    narrow, small, medium, wide = sizes = [setting.name for setting in SETTINGS if setting.ladder == "rms_norm"]
    before = json.loads(RECORD.with_name("bench-nvidia-h200.json").read_text(encoding="utf-8"))["results"]
    (rows,) = [each["rows"] for each in before if each["exercise"] == "rms_norm"]
    (solution,) = [row for row in rows if row["case"] == wide]
    assert says("rms_norm", 0, f"it took {solution['median_us']:.1f} µs on an H200")
    assert says("rms_norm", 0, f"`torch.compile` generated {solution['compiled_us']:.1f} µs")
    gained = [took(record, size, "1") / took(record, size, "5") for size in (medium, wide)]
    assert all(abs(each - 1.025) < 0.002 for each in gained) and says(
        "rms_norm", 0, "about 2.5 %, at two of four widths"
    )
    assert not any(differ(record, size, "1", "2") for size in sizes) and says(
        "rms_norm", 2, "No difference at any width"
    )
    assert [size for size in sizes if differ(record, size, "2", "3")] == [medium]
    assert says("rms_norm", 3, "2 % longer") and shown(record, medium, "3", "2") == "1.02"
    over = [shown(record, size, "2", "4") for size in (medium, wide)]
    assert says("rms_norm", 4, "it is {} × at 4,096 columns and {} × at 8,192".format(*over))
    assert not any(differ(record, size, "4", "5") for size in sizes) and says("rms_norm", 5, "At no width a difference")
    for size in (narrow, small):
        assert not any(differ(record, size, one, other) for one, other in combinations("1245", 2))
    assert all(differ(record, size, one, "5") for size in (medium, wide) for one in "12")
    copies = [
        round(100 * result["bytes"] / took(record, name, rung) / 1e3 / result["limits"]["copy_gb_per_s"])
        for name, result in record["settings"].items()
        for rung in "12345"
        if name in sizes
    ]
    assert says("rms_norm", -1, f"{min(copies)} to {max(copies)} % of a copy")
    question = load().item("m04.quiz.read-twice").question
    us = tuple(f"{took(record, wide, rung):.1f}" for rung in "32")
    assert "it takes {} µs, and one that keeps the row {}".format(*us) in " ".join(question.split())


def test_what_the_matmul_pages_say_of_the_times(record):
    small, medium, large = (f"{n} x {n} x {n}" for n in (2048, 4096, 8192))
    assert says("matmul", 1, f"{took(record, medium, '1') / 1e3:.1f} ms at 4096³ are 39 times the 2.1 ms")
    assert round(took(record, medium, "1") / (2 * 4096**3 / 67e12 * 1e6)) == 39
    assert says("matmul", 3, f"it does not explain the {shown(record, small, '2', '3')}")
    assert shown(record, medium, "2", "3") == "1.00" and shown(record, large, "2", "3") == "1.00"
    of_cublas = [shown(record, size, "torch", "4") for size in (small, medium, large)]
    assert says("matmul", 4, f"{min(of_cublas)} to {max(of_cublas)} of cuBLAS")
    lost = [round(took(record, size, "5") - took(record, size, "4")) for size in (small, medium, large)]
    assert lost == [2, 8, 22] and says("matmul", 5, "2 µs more at 2048³")
    assert says("matmul", 5, "8 at 4096³ (four rounds), 22 at 8192³")
    rounds = [-(-((n // 128) * (n // 256)) // 132) for n in (2048, 4096, 8192)]
    assert rounds == [1, 4, 16] and all(1 <= us / n <= 2.1 for us, n in zip(lost, rounds, strict=True))
    assert round(took(record, medium, "5") - took(record, medium, "6")) == 11
    of_rung_6 = [shown(record, size, "6", "7") for size in (small, medium, large)]
    assert says("matmul", 7, f"{min(of_rung_6)} to {max(of_rung_6)} of rung 6's speed")
    over_rung_6 = [shown(record, size, "6", "8") for size in (small, medium, large)]
    gained = "Over rung 6 it is {} at 2048³, {} at 4096³ and {} at 8192³".format(*over_rung_6)
    assert says("matmul", 8, f"{gained}: the fewer tiles a program has (1, 4, 16), the more.")
    assert over_rung_6 == sorted(over_rung_6, reverse=True)
    assert of_question("matmul-descriptors", "descriptors", "pointers") == "0.98"
    assert of_question("warp-specialise", "warp_specialize=True", "warp_specialize=False") == "1.17"


def of_question(key: str, numerator: str, denominator: str) -> str:
    """From the record of `python -m benchmarks.questions`."""
    questions = json.loads(RECORD.with_name("questions-nvidia-h200.json").read_text(encoding="utf-8"))
    rows = questions["questions"][key]["rows"]
    return f"{rows[numerator]['median_us'] / rows[denominator]['median_us']:.2f}"


def test_what_the_attention_pages_say_of_the_times(record):
    short, long, slim = (f"attention, B=4 H=16 N={n} D={d}" for n, d in ((1024, 128), (4096, 128), (4096, 64)))
    causal = [f"causal {setting}" for setting in (short, long)]
    assert round(took(record, long, "1") / (3 * 64 * 4096**2 * 4 / 4.8e12 * 1e6), 1) == 1.9
    plain = took(record, long, "5")
    assert says("attention", 7, f"rung 5 takes {plain:,.1f} µs without a mask")
    assert round(took(record, causal[1], "7") / plain, 2) == 0.70 and round(1056 / 2048, 2) == 0.52
    questions = json.loads(RECORD.with_name("questions-nvidia-h200.json").read_text(encoding="utf-8"))["questions"]
    large_tile = questions["exp2"]["rows"]["exp2"]  # 128 x 128, two stages
    assert 1.05 < large_tile["median_us"] / plain < 1.15 and says("attention", 5, "about a tenth longer")
    assert of_question("mask-everywhere", "every tile", "solution") == "1.19"
    assert of_question("long-first", "short first", "long first") == "1.02"
    causal.append(f"causal {slim}")
    for plain_rung, causal_rung, words in (("6", "8", "rungs 6 and 8"), ("10", "11", "rungs 10 and 11")):
        best = {**dict.fromkeys((short, long, slim), plain_rung), **dict.fromkeys(causal, causal_rung)}
        of_cudnn, of_flash = (
            sorted(shown(record, setting, call, rung) for setting, rung in best.items())
            for call in ("SDPA cuDNN", "SDPA flash")
        )
        reached = f"{words} reach {of_cudnn[0]} to {of_cudnn[-1]} of cuDNN's speed, {of_flash[0]} to {of_flash[-1]} of"
        assert says("attention", -1, reached)
    gluon = " ".join(load().item("m08.lesson.gluon").pages[-1].text.split())
    us = [f"{took(record, long, candidate):,.1f}" for candidate in ("6", "10", "SDPA cuDNN")]
    assert "in Triton {} µs, in Gluon {}, and {} for SDPA's cuDNN kernel".format(*us) in gluon
    assert "(torch 2.11.0, Triton 3.6.0, {})".format(record["date"]) in gluon
    assert says("attention", 9, f"At D = 64 it takes {shown(record, slim, '9', '6')} of rung 6's time")
    assert 1 <= took(record, long, "6") / took(record, long, "9") < 1.02
    assert says("attention", 11, "roles gain nothing over rung 8")
    assert 0.99 < took(record, causal[2], "8") / took(record, causal[2], "11") < 1.01
    lines = [len(rungs("attention")[number - 1].path.read_text().splitlines()) for number in (4, 10, 11)]
    assert [round(each / lines[0]) for each in lines[1:]] == [4, 4] and says("attention", -1, "four times the lines")
