"""`triton-prep homework` with a stand-in grader: going on after an end at any moment, lost graders, several workers."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.process_tree import children
from tests.conftest import Run
from tests.homework.conftest import fill

LIMIT = 60.0
LIGHT = ("--format", "csv,json")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "grader.log"


def requests(log: Path, op: str = "grade") -> list[dict]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [one for line in lines if (one := json.loads(line.partition(" ")[2]))["op"] == op]


def rows(out: Path) -> dict[str, dict[str, str]]:
    if not (out / "results.csv").exists():
        return {}
    return {row["learner"]: row for row in csv.DictReader((out / "results.csv").open())}


def tree(out: Path) -> dict[str, str]:
    """Every file of results without its times."""
    found = {}
    for path in sorted(out.rglob("*")):
        if path.is_file() and path.name not in ("journal.jsonl", "times.csv"):
            text = re.sub(r'"(execution_time|duration)": [\d.]+| time="[\d.]+"', "", path.read_text())
            text = re.sub(r'<section class="times">.*?</section>', "", text, flags=re.DOTALL)
            found[path.relative_to(out).as_posix()] = text
    return found


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def test_a_class_is_graded_and_everybody_has_files(command: Run, class_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = command("homework", str(class_folder), "--out", str(out))
    assert done.returncode == 1, done.stderr
    assert "ben: 0 of 2  fell short: row_sum (missing), vector_add (wrong answer)" in done.stdout
    found = {name: (row["score"], row["vector_add status"], row["row_sum status"]) for name, row in rows(out).items()}
    assert found == {
        "ana": ("2.0", "passed", "passed"),
        "ben": ("0.0", "wrong_answer", "missing"),
        "cyd": ("1.0", "missing", "passed"),
    }
    for name in found:
        files = {path.name for path in (out / "learners" / name).iterdir()}
        assert files == {"results.json", "classroom.json", "junit.xml", "feedback.md", "feedback.html"}
    for file in ("feedback.md", "feedback.html", "results.json"):
        assert "More in m01.quiz.a (One right): triton-prep show" in (out / "learners" / "ben" / file).read_text(), file
    assert (out / "class.html").is_file()
    assert not list(out.rglob(".*"))  # no half-written file is left


def test_without_the_package_of_the_plots_all_but_the_class_page_is_written_and_a_line_says_so(
    command: Run, class_folder: Path, tmp_path: Path
) -> None:
    pytest.importorskip("copydetect")
    (tmp_path / "without" / "pygal").mkdir(parents=True)
    broken = "raise ModuleNotFoundError(\"No module named 'pygal'\", name='pygal')"
    (tmp_path / "without" / "pygal" / "__init__.py").write_text(broken)
    out = tmp_path / "out"
    done = command("homework", str(class_folder), "--out", str(out), PYTHONPATH=str(tmp_path / "without"))
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    (told,) = [line for line in done.stderr.splitlines() if "pygal" in line]
    assert told == "class.html needs the package pygal, which cannot be imported."
    assert "ben: 0 of 2" in done.stdout
    written = {path.name for path in out.iterdir() if path.is_file()} - {"journal.jsonl"}
    assert written == {"results.csv", "times.csv", "summary.json", "similarity.html", "similarity.json"}
    assert all((out / "learners" / name / "feedback.html").is_file() for name in ("ana", "ben", "cyd"))


def test_somebody_alone_is_told_why(command: Run, tmp_path: Path) -> None:
    folder = fill(
        tmp_path / "mine", {"vector_add.py": "# fake: wrong_answer\n# cause: missing_mask\n", "row_sum.py": "# fine\n"}
    )
    done = command("homework", str(folder))
    assert done.returncode == 1
    assert "The store has no mask." in done.stdout and "More in m01.quiz.a (One right)" in done.stdout
    assert "mine: 1 of 2  fell short: vector_add (wrong answer)" in done.stdout
    assert "Results are in homework-results" in done.stdout


def test_a_hidden_run_follows_what_passed_and_nothing_else(
    command: Run, class_folder: Path, tmp_path: Path, log: Path
) -> None:
    assignment = tmp_path / "a.yaml"
    assignment.write_text("hidden: {seed: 4242}\ntime_limit: 7\n")
    out = tmp_path / "out"
    arguments = ("homework", str(class_folder), "--assignment", str(assignment), "--out", str(out), "--json")
    done = command(*arguments, FAKE_GRADER_LOG=str(log))
    summary = json.loads(done.stdout)
    assert {entry["learner"]: entry["score"] for entry in summary["learners"]} == {"ana": 2, "ben": 0, "cyd": 0}
    asked = [(Path(one["file"]).read_text()[:8], one["seed"], one["call_limit"]) for one in requests(log)]
    assert sorted(asked) == [
        ("# fake: ", 0, 7),
        ("# fine\n", 0, 7), ("# fine\n", 4242, 7),
        ("# fine t", 0, 7), ("# fine t", 4242, 7),
        ("# hidden", 0, 7), ("# hidden", 4242, 7),
    ]  # fmt: skip
    told = "".join(path.read_text() for path in (out / "learners").rglob("*") if path.is_file())
    assert "4242" not in told
    assert "out of bounds" in told
    # everything is known now, and nothing is graded again
    log.unlink()
    assert json.loads(command(*arguments, FAKE_GRADER_LOG=str(log)).stdout) == summary
    assert requests(log) == []


def test_alike_files_are_graded_once_and_other_points_need_no_grade(command: Run, tmp_path: Path, log: Path) -> None:
    folder = fill(tmp_path / "class", {f"{name}/vector_add.py": "# same\n" for name in ("ana", "ben", "cyd")})
    out = tmp_path / "out"
    assert command("homework", *LIGHT, str(folder), "--out", str(out), FAKE_GRADER_LOG=str(log)).returncode == 0
    assert len(requests(log)) == 1
    assignment = tmp_path / "a.yaml"
    assignment.write_text("exercises: [{exercise: vector_add, points: 5}]\n")
    again = command(
        "homework", str(folder), "--out", str(out), "--assignment", str(assignment), FAKE_GRADER_LOG=str(log)
    )
    assert again.returncode == 0
    assert len(requests(log)) == 1
    assert {row["score"] for row in rows(out).values()} == {"5.0"}
    assignment.write_text("exercises: [{exercise: vector_add, points: 5}]\nseed: 3\n")
    command(
        "homework", *LIGHT, str(folder), "--out", str(out), "--assignment", str(assignment), FAKE_GRADER_LOG=str(log)
    )
    assert len(requests(log)) == 2  # other values are another grade


def test_any_number_of_workers_gives_the_same_files(command: Run, tmp_path: Path) -> None:
    statuses = ("passed", "timeout", "wrong_answer", "import_error", "not_triton")
    files = {
        f"learner{n}/{slug}.py": f"# {n}\n# fake: {statuses[n % 5]}\n"
        for n in range(12)
        for slug in ("vector_add", "row_sum")
    }
    folder = fill(tmp_path / "class", files)
    trees = []
    for workers in ("1", "3"):
        done = command("homework", str(folder), "--out", str(tmp_path / workers), "--workers", workers)
        assert done.returncode == 1, done.stderr
        trees.append(tree(tmp_path / workers))
    assert trees[0] == trees[1]
    assert len(trees[0]) > 60


def test_a_lost_grader_is_replaced_and_its_work_done_again(command: Run, tmp_path: Path) -> None:
    folder = fill(tmp_path / "class", {"ana/vector_add.py": "# die once\n", "ben/vector_add.py": "# fine\n"})
    done = command("homework", *LIGHT, str(folder), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert {row["score"] for row in rows(tmp_path / "out").values()} == {"1.0"}


def test_a_grader_lost_twice_is_no_score_and_tried_again_the_next_time(command: Run, tmp_path: Path, log: Path) -> None:
    folder = fill(tmp_path / "class", {"ana/vector_add.py": "# die\n", "ben/vector_add.py": "# fine\n"})
    out = tmp_path / "out"
    done = command("homework", *LIGHT, str(folder), "--out", str(out), FAKE_GRADER_LOG=str(log))
    assert done.returncode == 3
    assert "ana: vector_add: could not be graded" in done.stderr
    found = rows(out)
    assert (found["ana"]["score"], found["ana"]["vector_add status"]) == ("", "infrastructure_error")
    assert found["ben"]["score"] == "1.0"
    assert len(requests(log)) == 3
    assert command("homework", *LIGHT, str(folder), "--out", str(out), FAKE_GRADER_LOG=str(log)).returncode == 3
    assert len(requests(log)) == 5  # ben's is known


def test_what_a_submission_started_ends_with_its_lost_grader(command: Run, tmp_path: Path) -> None:
    folder = fill(tmp_path / "class", {"ana/vector_add.py": "# stray\n# die\n"})
    assert command("homework", *LIGHT, str(folder), "--out", str(tmp_path / "out")).returncode == 3
    (stray,) = (tmp_path / "out" / "sources").glob("*.stray")
    assert not Path(f"/proc/{stray.read_text()}").exists()


@pytest.fixture
def started(environment: dict[str, str], tmp_path: Path, log: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        env = {**environment, "FAKE_GRADER_LOG": str(log)}
        command = [sys.executable, "-m", "tutor", "homework", *arguments]
        running.append(
            subprocess.Popen(command, env=env, cwd=tmp_path, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def journaled(out: Path) -> list[str]:
    file = out / "journal.jsonl"
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return [json.loads(line)["key"] for line in lines]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_ended_command_goes_on_and_grades_nothing_twice(
    command: Run, started: Callable[..., subprocess.Popen[str]], tmp_path: Path, log: Path, number: signal.Signals
) -> None:
    files = {f"l{n}/vector_add.py": f"# {n}\n" for n in range(6)} | {
        "m/vector_add.py": "# slow once\n",
        "n/vector_add.py": "# n\n",
    }
    folder = fill(tmp_path / "class", files)
    out = tmp_path / "out"
    process = started(*LIGHT, str(folder), "--out", str(out), "--workers", "1")
    wait_for(lambda: len(requests(log)) == 7 and len(journaled(out)) == 6)  # six are done, the slow one is under way
    process.send_signal(number)
    _, said = process.communicate(timeout=LIMIT)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "Interrupted: 6 of 8 learners are complete. The same command goes on from here." in said
    known = journaled(out)
    assert len(known) == 6
    if number == signal.SIGKILL:  # killed within a line, too
        with (out / "journal.jsonl").open("ab") as stream:
            stream.write(b'{"key": "torn", "verd')
    log.unlink()
    done = command("homework", *LIGHT, str(folder), "--out", str(out), FAKE_GRADER_LOG=str(log))
    assert done.returncode == 0, done.stderr
    assert "6 of 8 grades are known from before." in done.stderr
    assert len(requests(log)) == 2
    after = journaled(out)
    assert after[:6] == known
    assert len(after) == len(set(after)) == 8
    assert len(rows(out)) == 8


def test_a_killed_worker_costs_nobody_a_grade(
    started: Callable[..., subprocess.Popen[str]], tmp_path: Path, log: Path
) -> None:
    folder = fill(tmp_path / "class", {"ana/vector_add.py": "# slow once\n", "ben/vector_add.py": "# fine\n"})
    process = started(*LIGHT, str(folder), "--out", str(tmp_path / "out"), "--workers", "1")
    wait_for(lambda: len(requests(log)) == 1)
    (worker,) = children(process.pid)
    os.kill(worker, signal.SIGKILL)
    _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, said
    assert {row["score"] for row in rows(tmp_path / "out").values()} == {"1.0"}


def test_a_second_run_on_the_same_results_is_refused(
    command: Run, started: Callable[..., subprocess.Popen[str]], tmp_path: Path, log: Path
) -> None:
    folder = fill(tmp_path / "class", {"ana/vector_add.py": "# slow\n"})
    started(*LIGHT, str(folder), "--out", str(tmp_path / "out"))
    wait_for(lambda: len(requests(log)) == 1)
    done = command("homework", *LIGHT, str(folder), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "another homework run is writing" in done.stderr


def test_a_grade_that_takes_too_long_in_all_ends_as_out_of_time(command: Run, tmp_path: Path) -> None:
    folder = fill(tmp_path / "class", {"ana/vector_add.py": "# slow\n", "ben/vector_add.py": "# fine\n"})
    assignment = tmp_path / "a.yaml"
    assignment.write_text("total_limit: 2\n")
    done = command("homework", *LIGHT, str(folder), "--assignment", str(assignment), "--out", str(tmp_path / "out"))
    assert done.returncode == 1, done.stderr
    found = rows(tmp_path / "out")
    assert (found["ana"]["vector_add status"], found["ben"]["vector_add status"]) == ("timeout", "passed")


def test_verified_grades_are_for_gpus(command: Run, class_folder: Path, tmp_path: Path, log: Path) -> None:
    assignment = tmp_path / "a.yaml"
    assignment.write_text("verified: always\n")
    arguments = ("homework", *LIGHT, str(class_folder), "--out", str(tmp_path / "out"))
    done = command(*arguments, "--assignment", str(assignment))
    assert done.returncode == 3
    assert "need a GPU" in done.stderr
    done = command(*arguments, "--json", FAKE_GRADER_BACKEND="cuda", FAKE_GRADER_LOG=str(log))
    assert json.loads(done.stdout)["verified"] is True
    assert all(one["verified"] and one["time"] is None for one in requests(log))


def test_wrong_usage_is_told_before_anything_starts(command: Run, class_folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "a.yaml"
    bad.write_text("exercises:\n  - exercise: vector_ad\n")
    for arguments, text in (
        (("homework", "nowhere"), "does not exist"),
        (("homework", str(class_folder), "--assignment", str(bad)), "a.yaml:2: vector_ad: no exercise"),
        (("homework", str(class_folder), "--format", "csv,pdf"), "name some of csv, json"),
        (("homework", str(class_folder), "--out", str(class_folder)), "a folder of its own"),
        (("homework", str(class_folder), "--out", str(bad)), "a folder of its own"),
    ):
        done = command(*arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert text in done.stderr
        assert "Traceback" not in done.stderr
