from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Run


def test_a_fresh_stub_is_not_started(command: Run, work: Path) -> None:
    done = command("grade", "vector_add")
    assert done.returncode == 1
    assert "not started" in done.stdout
    assert (work / "01-tiny" / "vector_add.py").is_file()


def test_a_pass_is_told_recorded_and_exits_0(command: Run, work: Path) -> None:
    command("init")
    (work / "01-tiny" / "vector_add.py").write_text("fine")
    done = command("grade", "m01.exercise.vector-add")
    assert done.returncode == 0, done.stderr
    assert "✓ vector_add: passed" in done.stdout
    assert "✓ pass  n=1000" in done.stdout
    assert "Not timed: no GPU here." in done.stdout
    assert "\x1b" not in done.stdout
    assert json.loads(command("progress", "--json").stdout)["done"] == 1


def test_a_failure_shows_the_case_the_cause_and_the_line(command: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("# fake: wrong_answer\nstore(x)  # cause: missing_store_mask\n")
    done = command("grade", "vector_add", "--file", str(file))
    assert done.returncode == 1
    assert "wrong answer" in done.stdout
    assert "✗ FAIL  n=1001" in done.stdout
    assert "index 1000" in done.stdout
    assert "program 0" in done.stdout
    assert "Why: missing store mask" in done.stdout
    assert "line 2:  store(x)" in done.stdout
    assert "More in m01.quiz.a (One right): triton-prep show m01.quiz.a" in done.stdout
    file.write_text("# fake: wrong_answer\n# cause: missing_store_mask\n# see: m01.quiz.was-a\n")
    assert "More in m01.quiz.was-a (One right): " in command("grade", "vector_add", "--file", str(file)).stdout
    file.write_text("# fake: wrong_answer\n# cause: missing_store_mask\n# see: m01.quiz.gone\n")
    assert "More in m01.quiz.gone: triton-prep" in command("grade", "vector_add", "--file", str(file)).stdout


def test_a_remark_beside_a_pass_is_told_and_leaves_it_a_pass(command: Run, work: Path) -> None:
    command("init")
    (work / "01-tiny" / "vector_add.py").write_text("launch(x)  # cause: wrong_device_current\n")
    done = command("grade", "vector_add")
    assert done.returncode == 0
    assert "A remark beside the pass: wrong device current" in done.stdout and "Why" not in done.stdout
    assert (
        "✓ vector_add: passed (1 cases). A remark beside the pass: wrong device current"
        in command("grade", "--all").stdout
    )


def test_json_is_the_graders_verdict_alone(command: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("fine")
    done = command("grade", "vector_add", "--file", str(file), "--json", "--seed", "7", "--target", "sm_80")
    verdict = json.loads(done.stdout)
    assert verdict["schema"] == 1
    assert (verdict["exercise"], verdict["status"], verdict["seed"]) == ("vector_add", "passed", 7)
    assert verdict["compile"][0]["target"] == "sm_80"
    assert done.stderr == ""


def test_all_gives_a_list_in_order_and_the_worst_exit_code(command: Run, work: Path) -> None:
    command("init")
    (work / "01-tiny" / "vector_add.py").write_text("fine")
    done = command("grade", "--all", "--json")
    assert [verdict["exercise"] for verdict in json.loads(done.stdout)] == ["row_sum", "vector_add"]
    assert done.returncode == 1
    told = command("grade", "--all")
    assert "1 of 2 passed." in told.stdout
    (work / "01-tiny" / "row_sum.py").write_text("# die")
    done = command("grade", "row_sum", "vector_add", "--json")
    assert done.returncode == 3
    assert [verdict["status"] for verdict in json.loads(done.stdout)] == ["infrastructure_error", "passed"]
    assert "last words" in done.stderr


def test_the_courses_solutions_are_graded_without_touching_progress(command: Run, work: Path) -> None:
    done = command("grade", "--solutions", "--json")
    assert done.returncode == 0
    assert len(json.loads(done.stdout)) == 2
    assert not work.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["grade"], "--all"),
        (["grade", "vector_ad"], "vector_add"),
        (["grade", "--all", "vector_add"], "not both"),
        (["grade", "--all", "--file", "x.py"], "exactly one"),
        (["grade", "vector_add", "--file", "nowhere.py"], "not there"),
        (["grade", "vector_add", "--backend", "tpu"], "interpreter"),
        (["inspect", "vector_add", "--stage", "asm"], "ptx"),
        (["hint", "nothing_like_it"], "no exercise"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_exits_2_and_says_what_to_write(command: Run, arguments: list[str], said: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_grader_that_cannot_start_exits_3_with_its_last_words(command: Run) -> None:
    done = command("grade", "vector_add", FAKE_GRADER_SILENT="1")
    assert done.returncode == 3
    assert "no module named torch" in done.stderr
    gone = command("grade", "vector_add", TRITON_PREP_GRADER="/nowhere/at-all")
    assert gone.returncode == 3
    assert "/nowhere/at-all" in gone.stderr


def test_inspect_prints_only_the_code_on_stdout(command: Run) -> None:
    done = command("inspect", "vector_add", "--stage", "sass", "--target", "sm_80")
    assert done.returncode == 0
    assert done.stdout == ".visible .entry add_kernel  // sass\n"
    assert "sm_80" in done.stderr


def test_hints_come_one_by_one(command: Run) -> None:
    assert "nudge" in command("hint", "vector_add").stdout
    assert "idea" in command("hint", "vector_add").stdout
    assert "line" in command("hint", "vector_add").stdout
    assert "nudge" in command("hint", "vector_add", "--level", "1").stdout
    assert command("hint", "vector_add", "--level", "4").returncode == 2


def test_the_solution_waits_for_a_pass_or_giving_up(command: Run, work: Path) -> None:
    refused = command("solution", "vector_add")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert "--give-up" in refused.stderr
    assert "# the solution of vector_add" in command("solution", "vector_add", "--give-up").stdout
    assert command("solution", "vector_add").returncode == 0  # given up once, it stays open
    (work / "01-tiny" / "row_sum.py").write_text("fine")
    command("grade", "row_sum")
    assert "# the solution of row_sum" in command("solution", "row_sum").stdout


def test_reset_says_where_the_backup_is(command: Run, work: Path) -> None:
    command("init")
    file = work / "01-tiny" / "vector_add.py"
    file.write_text("my work")
    done = command("reset", "vector_add")
    assert done.returncode == 0
    (backup,) = (work / ".triton-prep" / "backups").iterdir()
    assert str(backup) in done.stdout
    assert backup.read_text() == "my work"
    assert "TODO" in file.read_text()


def test_init_never_overwrites(command: Run, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    assert "2 stubs written" in command("init", str(folder)).stdout
    (folder / "01-tiny" / "row_sum.py").write_text("my work")
    assert "0 stubs written, 0 untouched ones updated, 2 kept" in command("init", str(folder)).stdout
    assert (folder / "01-tiny" / "row_sum.py").read_text() == "my work"


def test_the_workspace_can_be_named_before_or_after_the_command(command: Run, tmp_path: Path) -> None:
    command("--workspace", str(tmp_path / "one"), "init")
    command("init", "--workspace", str(tmp_path / "two"))
    assert (tmp_path / "one" / "01-tiny").is_dir()
    assert (tmp_path / "two" / "01-tiny").is_dir()


def test_doctor_tells_what_is_missing_and_what_to_do(command: Run) -> None:
    done = command("doctor")
    assert done.returncode == 0
    assert "✗ missing  GPU: no CUDA device" in done.stdout
    assert "grading uses the interpreter" in done.stdout
    report = json.loads(command("doctor", "--json").stdout)
    assert {row["name"] for row in report["rows"]} >= {"Course", "Workspace", "GPU"}
    assert command("doctor", FAKE_GRADER_SILENT="1").returncode == 3


def test_a_damaged_progress_file_is_kept_and_said(command: Run, work: Path) -> None:
    command("init")
    (work / ".triton-prep" / "progress.sqlite3").write_bytes(b"garbage" * 1000)
    done = command("quiz", "m01.quiz.a", stdin="1\n")
    assert done.returncode == 0
    assert "damaged" in done.stderr
    assert list((work / ".triton-prep").glob("progress.sqlite3.corrupt-*"))
    assert json.loads(command("progress", "--json").stdout)["done"] == 1


def test_watch_grades_on_every_save_and_ctrl_c_leaves_with_0(
    command: Run, environment: dict[str, str], work: Path, tmp_path: Path
) -> None:
    command("init")
    file = work / "01-tiny" / "vector_add.py"
    output = tmp_path / "watch.txt"
    with output.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "tutor", "watch", "vector_add"], env=environment, stdout=stream, stderr=stream
        )
    try:
        wait_for(output, "not started")
        wait_for(output, "Watching")
        file.write_text("# fake: wrong_answer\n")
        wait_for(output, "wrong answer")
        new = file.with_suffix(".tmp")  # the way most editors save
        new.write_text("fine")
        new.replace(file)
        wait_for(output, "✓ vector_add: passed")
        file.unlink()
        wait_for(output, "is gone")
        process.send_signal(signal.SIGINT)
        assert process.wait(90) == 0
    finally:
        process.kill()
    assert "Traceback" not in output.read_text()


def wait_for(file: Path, text: str, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while text not in file.read_text():
        assert time.monotonic() < end, f"{text!r} did not come; there is:\n{file.read_text()}"
        time.sleep(0.05)


def test_modules_with_errors_do_not_stop_grading(command: Run, course_root: Path, tmp_path: Path) -> None:
    (course_root / "modules" / "01-tiny.yaml").write_text("id: nonsense\n")
    file = tmp_path / "mine.py"
    file.write_text("fine")
    done = command("grade", "vector_add", "--file", str(file))
    assert done.returncode == 0
    assert "The modules have errors" in done.stderr
    assert "'probes' is missing" in command("list").stderr


def test_the_cases_after_a_failure_run_on_demand(command: Run, work: Path) -> None:
    command("init")
    (work / "01-tiny" / "vector_add.py").write_text("# fake: wrong_answer\n")
    assert "1 not run" in command("grade", "vector_add").stdout
    whole = command("grade", "vector_add", "--keep-going").stdout
    assert "not run" not in whole and "✓ pass  n=4099" in whole
