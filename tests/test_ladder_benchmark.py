"""The benchmark of the ladders without a GPU: what its tables say, what it survives, and a dry run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from benchmarks.ladders import __main__ as ladders
from benchmarks.ladders import timed as process
from benchmarks.ladders.report import gain, markdown
from benchmarks.ladders.settings import SETTINGS, rungs
from grader import timing
from tests.conftest import REPOSITORY

READY = {"event": "ready", "device": "NVIDIA Test", "versions": {"torch": "1", "triton": "2"}}


def row(median: float, spread: float = 0.02, wrong: str | None = None) -> dict[str, object]:
    return {
        "median_us": median,
        "p20_us": median * (1 - spread / 2),
        "p80_us": median * (1 + spread / 2),
        "wrong": wrong,
    }


def test_a_gain_is_stated_only_where_it_is_larger_than_the_noise() -> None:
    assert gain(row(200.0), row(100.0)) == "2.00 ×"
    assert gain(row(100.0), row(110.0)) == "0.91 ×"  # a rung may lose
    assert gain(row(100.0), row(99.0)) == "within the spread"
    assert gain(row(200.0, spread=0.4), row(100.0)) == "too noisy"
    assert gain(None, row(100.0)) == "–"


def result(setting_name: str, times: dict[str, float], **more: object) -> dict[str, object]:
    rows = {name: row(us) for name, us in times.items()}
    limits = {"copy_gb_per_s": 4000.0, "matmul_tflop_per_s": 700.0}
    return {"rows": rows, "failed": {}, "bytes": 400_000_000, "flops": 137_438_953_472, "limits": limits, **more}


def test_a_table_compares_with_the_limit_the_rung_below_and_the_best_library_call() -> None:
    name = "4096 x 4096 x 4096"
    times = {"torch.matmul": 200.0, "1 rows": 20000.0, "2 tiled": 500.0, "4 tuned": 250.0}
    measured = result(name, times, failed={"3 grouped": "hung | stopped"})
    text = markdown({"device": "D", "versions": {"torch": "2"}, "date": "today", "settings": {name: measured}})
    lines = {line.split("|")[1].strip(): line for line in text.splitlines() if line.count("|") > 2}
    assert "| 40.00 × | 275 TFLOP/s | 39 | 0.40 |" in lines["2 tiled"]
    assert lines["3 grouped"].startswith("| 3 grouped | hung / stopped |")
    assert "| 2.00 × | 550 TFLOP/s | 79 | 0.80 |" in lines["4 tuned"]  # over rung 2: 3 has no time
    assert "Not measured." in text  # the other sizes


def test_what_is_faster_than_the_data_sheet_is_not_believed() -> None:
    name = "32768 x 4096"
    text = markdown({"device": "D", "versions": {}, "date": "", "settings": {name: result(name, {"1 row": 50.0})}})
    assert "200, not believed" in text


@pytest.fixture
def run(tmp_path: Path) -> ladders.Run:
    return ladders.Run("cuda", tmp_path, time.monotonic() + 60, READY)


def timed(name: str) -> dict[str, object]:
    rows = {rung.label: row(10.0) for s in SETTINGS if s.name == name for rung in s.rungs()}
    return {"event": "timed", "setting": name, "rows": rows, "bytes": 1, "flops": 1, "limits": {}}


def test_a_later_run_goes_on_where_the_earlier_one_stopped(run: ladders.Run, tmp_path: Path) -> None:
    names = run.wanted("softmax")
    run.keep("softmax", timed(names[1]))
    again = ladders.Run("cuda", tmp_path, 0.0, READY)
    assert again.wanted("softmax") == [names[0], *names[2:]]
    for other in ({"device": "NVIDIA Other"}, {"versions": {"torch": "9"}}):
        assert ladders.Run("cuda", tmp_path, 0.0, {**READY, **other}).wanted("softmax") == names
    again.record["settings"][names[1]]["rungs"] = "of other files"
    assert again.wanted("softmax") == names


def test_the_run_is_complete_when_every_rung_ran_and_was_right(run: ladders.Run) -> None:
    for name in run.wanted("softmax"):
        assert not run.complete(["softmax"])
        run.keep("softmax", timed(name))
    assert run.complete(["softmax"])
    run.record["settings"]["32768 x 4096"]["rows"]["2 rows"]["wrong"] = "differs"
    assert not run.complete(["softmax"])


def spoken(source: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-uc", source], stdout=subprocess.PIPE, text=True)


def climbed(run: ladders.Run, monkeypatch: pytest.MonkeyPatch, *sources: str) -> list[dict[str, object]]:
    """Climb softmax with these programs for the timing processes; the jobs they were given."""
    jobs: list[dict[str, object]] = []

    def start(job: dict[str, object]) -> subprocess.Popen[str]:
        jobs.append(json.loads(json.dumps(job)))
        return spoken(sources[len(jobs) - 1])

    monkeypatch.setattr(ladders, "start", start)
    run.climb("softmax")
    return jobs


def says(*events: dict[str, object]) -> str:
    return "import time\n" + "".join(f"print({json.dumps(event)!r})\n" for event in events)


def test_a_candidate_that_ends_its_process_is_left_out_of_the_next_one(run, monkeypatch) -> None:
    names = run.wanted("softmax")
    trying = {"event": "trying", "setting": names[1], "candidate": "5 online"}
    crash = says(timed(names[0]), trying) + "import os; os.abort()"
    jobs = climbed(run, monkeypatch, crash, says(*map(timed, names[1:])))
    assert jobs[1]["settings"] == names[1:]
    assert all(jobs[1]["excluded"][name] == ["5 online"] for name in names[1:])
    assert "ended with -6" in run.record["settings"][names[1]]["failed"]["5 online"]
    assert run.record["settings"][names[0]]["failed"] == {}


def test_a_size_whose_rounds_fail_is_given_up_and_the_others_are_timed(run, monkeypatch) -> None:
    names = run.wanted("softmax")
    crash = says({"event": "trying", "setting": names[0], "candidate": None}) + "raise SystemExit(1)"
    jobs = climbed(run, monkeypatch, crash, says(*map(timed, names[1:])))
    assert jobs[1]["settings"] == names[1:]
    assert set(run.record["settings"]) == set(names[1:])


def test_a_process_that_says_nothing_counts_as_hung() -> None:
    read, write = os.pipe()
    os.write(write, b'{"event": "trying"}\nwhat a rung printed\n')
    hung = SimpleNamespace(stdout=os.fdopen(read))
    first, last = list(ladders.events(hung, silence=3.0))  # type: ignore[arg-type]
    os.close(write)
    assert first == {"event": "trying"} and last["event"] == "ended" and "no word" in last["why"]


def test_what_hangs_is_stopped() -> None:
    hung = spoken("import time; time.sleep(600)")
    ladders.stop(hung)
    assert hung.returncode == -9


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "benchmarks.ladders", *arguments]
    return subprocess.run(line, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)


def test_a_dry_run_goes_through_every_rung_and_compares_it(tmp_path: Path) -> None:
    done = command("--device", "cpu", "--only", "softmax", "--only", "rms_norm", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "ladders-dry-run.json").read_text())
    settings = {s.name: s for s in SETTINGS if s.ladder in ("softmax", "rms_norm")}
    assert set(record["settings"]) == set(settings)
    for name, result in record["settings"].items():
        assert all(row == {"wrong": None} for row in result["rows"].values())
        assert {rung.label for rung in settings[name].rungs()} <= set(result["rows"])
    text = (tmp_path / "ladders-dry-run.md").read_text()
    assert "| 6 split | right, not timed |" in text and "| 4 hints | right, not timed |" in text
    assert "## rms_norm: 16384 x 8192 bfloat16" in text and "| torch.compile | left out of the dry run" in text


def test_rms_norm_is_timed_in_bfloat16_beside_torch_compile() -> None:
    for setting in (s for s in SETTINGS if s.ladder == "rms_norm"):
        x, weight, eps = args = process.inputs(setting, "cpu")
        assert setting.name.endswith("bfloat16") and x.dtype == weight.dtype == torch.bfloat16 and eps == 1e-6
        assert setting.shape[0] * setting.shape[1] == 2**27
        assert list(process.library(setting, args, "cuda")) == ["F.rms_norm", "torch.compile"]  # compiled when called
        assert list(process.library(setting, args, "cpu")) == ["F.rms_norm"]
        assert process.work(setting, args) == (2 * (2 * x.numel() + weight.numel()), 0) and setting.limit == "memory"
    assert all(s.dtype == "float16" and "float" not in s.name for s in SETTINGS if s.ladder != "rms_norm")


def test_two_ladders_of_one_folder_have_rungs_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert {rung.exercise for rung in rungs("softmax")} == {"softmax"}
    assert {rung.exercise for rung in rungs("rms_norm")} == {"rms_norm"}
    folder = tmp_path / "solutions" / "04-softmax-and-reductions" / "ladder"
    folder.mkdir(parents=True)
    monkeypatch.setattr("benchmarks.ladders.settings.ROOT", tmp_path)
    (folder / "matmul_1_rows.py").touch()
    with pytest.raises(ValueError, match="for a ladder of this folder"):
        rungs("softmax")


def test_what_the_interpreter_cannot_run_is_left_out_by_name(run: ladders.Run, tmp_path: Path) -> None:
    dry = ladders.Run("cpu", tmp_path, time.monotonic() + 60, READY)
    for setting in (s for s in SETTINGS if s.ladder == "attention"):
        on_gpu, here = setting.rungs(), setting.rungs("cpu")
        gluon = [rung for rung in on_gpu if "gluon" in rung.path.read_text()]
        assert gluon and list(here) == [rung for rung in on_gpu if rung not in gluon]
        assert list(setting.skipped("cpu")) == [rung.label for rung in gluon] and not setting.skipped("cuda")
        right = {"rows": {rung.label: {"wrong": None} for rung in here}, "bytes": 1, "flops": 1, "limits": {}}
        for each in (dry, run):
            each.keep("attention", {"setting": setting.name, **right})
    assert dry.complete(["attention"]) and not run.complete(["attention"])
    lines = dry.stem.with_suffix(".md").read_text().splitlines()
    (line, *_) = [line for line in lines if line.startswith("| 10 gluon roles |")]
    assert "not interpreted: Gluon is compiled" in line


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """What a timing process writes."""
    lines: list[dict[str, object]] = []
    monkeypatch.setattr(process, "emit", lambda event, **fields: lines.append({"event": event, **fields}))
    return lines


def test_a_wrong_rung_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch, said: list) -> None:
    setting = next(s for s in SETTINGS if s.ladder == "softmax")
    monkeypatch.setattr(process, "submission", lambda rung, args, programs: lambda: torch.zeros_like(args[0]))
    process.time_setting(setting, process.Device("cpu"), [], {})
    assert [s["candidate"] for s in said if s["event"] == "failed"] == [rung.label for rung in rungs("softmax")]
    assert list(said[-1]["rows"]) == ["torch.softmax"]


class Clocked(process.Device):
    """A device with a clock that shows 9, 10 and 11 µs."""

    def samples(self, candidates, rounds):
        super().samples(candidates, rounds)
        return {name: [11.0, 9.0, 10.0] for name in candidates}


def test_what_is_timed_reaches_the_tables(monkeypatch: pytest.MonkeyPatch, said: list, run: ladders.Run) -> None:
    setting = next(s for s in SETTINGS if s.ladder == "softmax")
    monkeypatch.setattr(process, "submission", lambda rung, args, programs: lambda: torch.softmax(args[0], dim=1))
    limits = {"copy_gb_per_s": 4000.0, "matmul_tflop_per_s": 700.0}
    process.time_setting(setting, Clocked("cpu"), ["2 rows"], limits)
    run.keep("softmax", said[-1])
    assert run.record["settings"][setting.name]["rows"]["1 row"] == {
        "wrong": None, "median_us": 10.0, "p20_us": 9.0, "p80_us": 11.0, "rounds": 3,
    }  # fmt: skip
    text = run.stem.with_suffix(".md").read_text()
    assert "| 5 online | 10.0 | 9.0–11.0 | too noisy |" in text and "| 2 rows | – |" in text
    assert "4000 GB/s copied, 700 TFLOP/s multiplied" in text


def test_the_clock_of_the_grader_takes_what_it_is_given() -> None:
    """Called on a GPU only, so held here to its signature."""
    signature(timing.interleaved).bind({}, timing.Rounds(None))
    signature(timing.matmul_peak).bind([])
    signature(timing.copy_bandwidth).bind()


def test_without_a_gpu_it_says_so_and_exits_with_3() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = command()
    assert done.returncode == 3 and "no CUDA device" in done.stderr
