"""`triton-prep bench` against a stand-in grader: measured on its make-believe GPU, modelled, compared."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import Run
from tutor import batch
from tutor.bench.compare import NotComparable, compare
from tutor.bench.record import Record, Result
from tutor.bench.report import comparison_lines
from tutor.commands import benching
from tutor.grading import Answer

GPU = {"FAKE_GRADER_BACKEND": "cuda"}


def solution(course_root: Path, slug: str) -> Path:
    return course_root / "solutions" / "01-tiny" / f"{slug}.py"


def test_without_a_gpu_nothing_is_measured_and_the_model_is_offered(command: Run) -> None:
    done = command("bench", "vector_add")
    assert done.returncode == 3
    assert "GPU" in done.stderr and "--model" in done.stderr
    assert done.stdout == ""


def test_the_model_says_that_it_is_one(command: Run, tmp_path: Path) -> None:
    done = command("bench", "vector_add", "--model", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "model, not measured" in done.stdout
    assert "eager" not in done.stdout and "n=[big]" in done.stdout
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"bench-model-some-gpu.{ending}" for ending in ("html", "json", "md")]
    for name in names[::2]:
        assert "model, not measured" in (tmp_path / "out" / name).read_text()


def test_every_size_of_every_exercise_is_in_each_report(command: Run, tmp_path: Path) -> None:
    done = command("bench", "--out", str(tmp_path / "out"), **GPU)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "bench-some-gpu.html").read_text()
    text = (tmp_path / "out" / "bench-some-gpu.md").read_text()
    record = json.loads((tmp_path / "out" / "bench-some-gpu.json").read_text())
    assert [result["exercise"] for result in record["results"]] == ["row_sum", "vector_add"]
    for report in (done.stdout, text, page):
        assert report.count("n=[big]") >= 2 and "in L2" in report and "fast" in report
        assert "model" not in report
    plots = page.count("<svg")
    assert plots == 3  # a ratio for each exercise, one roofline
    assert "<script" not in page and "nan" not in page.lower().split("<figure>", 1)[1]
    ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])


def test_what_was_measured_outlives_an_interrupted_run(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[list[str]] = []

    def interrupted(jobs, *, on_event, on_result):  # type: ignore[no-untyped-def]
        row = {"case": "n=1", "reason": "not timed"}
        data = {"model": False, "device": "Some GPU", "versions": {}, "rows": [row]}
        on_result(0, Answer("vector_add", data))
        record = json.loads((tmp_path / "bench-some-gpu.json").read_text())
        kept.append([result["exercise"] for result in record["results"]])
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        benching.bench(("vector_add", "softmax"), benching.Options(out=tmp_path), tmp_path / "work")
    assert kept == [["vector_add"]]
    assert (tmp_path / "bench-some-gpu.json").exists()


def test_without_the_package_of_the_plots_there_are_json_and_markdown_and_a_line_that_names_it(
    command: Run, tmp_path: Path
) -> None:
    (tmp_path / "without" / "pygal").mkdir(parents=True)
    broken = "raise ModuleNotFoundError(\"No module named 'pygal'\", name='pygal')"
    (tmp_path / "without" / "pygal" / "__init__.py").write_text(broken)
    out = tmp_path / "out"
    done = command("bench", "vector_add", "--out", str(out), PYTHONPATH=str(tmp_path / "without"), **GPU)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert "The HTML page needs the package pygal, which cannot be imported." in done.stderr
    assert sorted(path.name for path in out.iterdir()) == ["bench-some-gpu.json", "bench-some-gpu.md"]
    for name in ("bench-some-gpu.json", "bench-some-gpu.md"):
        assert "n=[big]" in (out / name).read_text()


def test_json_is_the_record_alone(command: Run) -> None:
    record = json.loads(command("bench", "vector_add", "--json", **GPU).stdout)
    assert (record["kind"], record["model"], record["device"]) == ("bench", False, "Some GPU")
    assert [row["median_us"] for row in record["results"][0]["rows"]] == [100.0, 200.0, 300.0]


def test_what_got_slower_by_more_than_the_noise_is_said_and_ends_with_1(
    command: Run, course_root: Path, tmp_path: Path
) -> None:
    assert command("bench", "--out", str(tmp_path / "out"), **GPU).returncode == 0
    old = str(tmp_path / "out" / "bench-some-gpu.json")
    solution(course_root, "vector_add").write_text("# takes: 1.05\n")
    solution(course_root, "row_sum").write_text("# takes: 1.01\n")
    done = command("bench", "--compare", old, **GPU)
    assert done.returncode == 1, done.stderr
    assert "3 slower by more than the noise" in done.stdout
    assert "vector_add, n=[big]: 300.0 to 315.0 µs (+5.0 %)" in done.stdout
    assert "row_sum, n=" not in done.stdout.split("slower by more", 1)[1]
    assert command("bench", "row_sum", "--compare", old, **GPU).returncode == 0


def test_mine_times_the_learners_files(command: Run, work: Path) -> None:
    assert command("bench", "--mine", **GPU).returncode == 2  # nothing has passed yet
    command("init")
    (work / "01-tiny" / "vector_add.py").write_text("# takes: 2\n")
    assert command("grade", "vector_add").returncode == 0
    record = json.loads(command("bench", "--mine", "--json", **GPU).stdout)
    assert [result["exercise"] for result in record["results"]] == ["vector_add"]
    assert record["whose"] == "mine" and record["results"][0]["rows"][0]["median_us"] == 200.0


@pytest.mark.parametrize(
    "arguments",
    [("--compare", "README"), ("--compare", "{}"), ("--device", "h100"), ("--model", "--compare", "{}"), ("no_such",)],
)
def test_wrong_usage_ends_with_2(command: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "{}").write_text("{}")
    done = command("bench", *arguments, **GPU)
    assert done.returncode == 2, done.stdout
    assert done.stderr.strip() and "Traceback" not in done.stderr


def record(us: float, spread: float, device: str = "A", limit: float = 4000.0, model: bool = False) -> Record:
    row = {"case": "n", "median_us": us, "p20_us": us - spread, "p80_us": us + spread}
    row |= {"limit_measured": {"copy_gb_per_s": limit}}  # type: ignore[dict-item]
    return Record(device, model, "solutions", "2026-01-01", {"triton": "3.7"}, (Result("e", (row,)),))


def test_overlapping_spreads_are_no_change() -> None:
    (change,) = compare(record(100, 3), record(105, 3)).changes
    assert change.state == "same"
    (change,) = compare(record(100, 1), record(105, 1)).changes
    assert (change.state, round(change.ratio, 2)) == ("slower", 1.05)
    (change,) = compare(record(105, 1), record(100, 1)).changes
    assert change.state == "faster"


def test_a_wide_spread_is_too_noisy_to_say() -> None:
    found = compare(record(100, 1), record(600, 200))
    assert [change.state for change in found.changes] == ["too_noisy"]
    lines = comparison_lines(found)
    assert "0 slower by more than the noise." in lines and any(line.startswith("Too noisy to say: ") for line in lines)


def test_another_device_and_a_model_are_no_comparison_and_a_drift_is_said() -> None:
    for other in (record(100, 1, device="B"), record(100, 1, model=True)):
        with pytest.raises(NotComparable):
            compare(record(100, 1), other)
    assert any("device may differ" in note for note in compare(record(100, 1), record(100, 1, limit=3600.0)).notes)
    assert not compare(record(100, 1), record(100, 1, limit=3960.0)).notes
