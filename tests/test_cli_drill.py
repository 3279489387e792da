"""`drill` without the app."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Run

PLANS = """\
plans:
  - id: drills.plan.tiny
    name: tiny
    title: Tiny
    about: Two phases of a minute.
    hire: {overall: 2}
    phases:
      - name: ask
        minutes: 1
        script: A few of kernel[grid](x).
        picks:
          - {kinds: [bug]}
          - {kinds: [quiz], count: 2}
        followups: [And then?]
      - name: tell
        minutes: 1
        script: Tell me.
        grading_runs: 1
        picks:
          - {kinds: [open]}
          - {kinds: [exercise]}
"""


@pytest.fixture(autouse=True)
def plans(course_root: Path) -> None:
    (course_root / "modules" / "drills.yaml").write_text(PLANS)


def card(work: Path) -> dict[str, object]:
    found = list((work / "drills").glob("*/scorecard.json"))
    assert len(found) == 1
    value: dict[str, object] = json.loads(found[0].read_text())
    return value


# with seed 1: m01.bug.mask; m01.quiz.a (1 is right), m01.quiz.b (2 and 3 are) in the order drawn; m01.open.why
BUG = "2\n    tl.store(x, mask=m)\n\n"


def answers(command: Run) -> str:
    first = command("drill", "--plan", "tiny", "--seed", "1", "--interviewer").stdout
    quizzes = "1\n2,3\n" if first.index("m01.quiz.a") < first.index("m01.quiz.b") else "2,3\n1\n"
    return f"{BUG}{quizzes}because [n]\n\ng\ng\nd\n1,2\n"


def test_a_whole_drill_in_a_pipe(command: Run, work: Path) -> None:
    done = command("drill", "--plan", "tiny", "--seed", "1", "--plain", stdin=answers(command))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Handed in.") == 4
    assert "Right" not in done.stdout.split("The clock has stopped")[0]
    assert "No grading run is left." in done.stdout
    assert "kernel[grid](x)" in done.stdout
    scores = {task["kind"]: task["score"] for task in card(work)["tasks"]}  # type: ignore[attr-defined]
    assert scores == {"bug": 1.0, "quiz": 1.0, "open": 1.0, "exercise": 0.0}
    again = command("progress", "--json").stdout
    assert '"m01.quiz.a"' in again


def test_the_app_and_the_pipe_draw_the_same(command: Run, small_course: Path, tmp_path: Path) -> None:
    from tutor.course.loader import load
    from tutor.drill.opening import Wanted, drawn
    from tutor.drill.plan import load_plans
    from tutor.progress import Progress
    from tutor.workspace import Workspace

    command("drill", "--plan", "tiny", "--seed", "7", "--plain", stdin=":finish\n")
    state = next((tmp_path / "work" / ".triton-prep" / "drills").glob("*/state.json"))
    tasks = [task["item"] for task in json.loads(state.read_text())["drill"]["tasks"]]
    progress = Progress.open(None)
    workspace = Workspace.open(tmp_path / "app")
    assert [task.item for task in drawn(Wanted(load_plans()[0], 7), load(), progress, workspace).tasks] == tasks


def test_the_end_of_the_input_leaves_the_drill_to_be_resumed(command: Run, work: Path) -> None:
    first = command("drill", "--plan", "tiny", "--seed", "1", "--plain", stdin=BUG)
    assert first.returncode == 1
    assert "--resume" in first.stderr
    state = next((work / ".triton-prep" / "drills").glob("*/state.json"))
    value = json.loads(state.read_text())
    value["anchor"]["now"] -= 20
    value["anchor"]["wall"] -= 20
    state.write_text(json.dumps(value))
    os.utime(state.parent / "alive", (value["anchor"]["wall"],) * 2)
    second = command("drill", "--plain", "--resume", stdin=":time\n:finish\n")
    assert "You were away for 00:2" in second.stdout and "[ask 00:" in second.stdout
    assert "-- 2 of 3" in second.stdout and "-- 1 of 3" not in second.stdout
    tasks = {task["task"]: task["score"] for task in card(work)["tasks"]}  # type: ignore[attr-defined]
    assert tasks["ask.1"] == 1.0
    assert command("drill", "--plain", "--resume").returncode == 2


def test_what_is_wrong_with_the_command_is_said(command: Run) -> None:
    for arguments, said in (
        (("--plan", "onsight"), "There is no plan 'onsight'. Plans: tiny."),
        (("--plan", "tiny", "--module", "m07"), "no item 'm07'"),
        (("--plan", "tiny", "--module", "begun"), "No module is begun yet."),
        (("--plan", "tiny", "--module", "begun", "--seed", "1"), "does not go with --module begun"),
        (("--plan", "tiny", "--module", "begun", "--interviewer"), "does not go with --module begun"),
        (("--resume",), "No drill is unfinished"),
    ):
        done = command("drill", "--plain", *arguments)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    assert "--plain" in command("drill").stderr


def test_strict_has_no_hints_and_no_pause_and_the_other_way_has(command: Run) -> None:
    strict = command("drill", "--plan", "tiny", "--seed", "1", "--plain", stdin=":hint\n:pause\n:finish\n")
    assert "A strict drill has no hints." in strict.stdout and "cannot be paused" in strict.stdout
    loose = command(
        "drill", "--plan", "tiny", "--seed", "1", "--plain", "--no-strict", stdin=":hint\n:pause\n\n:finish\n"
    )
    assert "Hint 1 of 1: Look at the store." in loose.stdout and "The clock runs again." in loose.stdout


def test_the_modules_begun_are_said_and_kept_in_the_scorecard(command: Run, work: Path) -> None:
    command("quiz", "m01.quiz.a", stdin="1\n")
    done = command("drill", "--plan", "tiny", "--module", "begun", "--plain", stdin=":finish\n")
    assert ", only from m01" in done.stdout and "Drawn from the modules begun: m01" in done.stdout
    assert card(work)["modules"] == ["m01"] and card(work)["module"] == ""


def test_the_list_shows_plans_and_earlier_mocks(command: Run) -> None:
    command("drill", "--plan", "tiny", "--seed", "1", "--plain", stdin=":finish\n")
    done = command("drill", "--list")
    assert "tiny    2 min  strict" in done.stdout and "no hire" in done.stdout


def test_the_interviewer_has_script_answers_followups_and_rubric(command: Run) -> None:
    sheet = command("drill", "--plan", "tiny", "--seed", "1", "--interviewer").stdout
    for text in (
        "A few of kernel[grid](x).",
        "And then?",
        "Because n is no multiple of BLOCK.",
        "sizes (2)",
        "--seed 1",
    ):
        assert text in sheet


def test_time_runs_out_while_it_waits_for_an_answer(environment: dict[str, str], work: Path, tmp_path: Path) -> None:
    """Begun 57 s ago, by its state: three seconds later the phase is locked, and the next one begins."""
    command = [sys.executable, "-m", "tutor", "drill", "--plain"]
    begun = subprocess.run(
        [*command, "--plan", "tiny", "--seed", "1"],
        input="",
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert begun.returncode == 1
    state = next((work / ".triton-prep" / "drills").glob("*/state.json"))
    value = json.loads(state.read_text())
    value["anchor"]["elapsed"] = 57.0
    state.write_text(json.dumps(value))
    process = subprocess.Popen(
        [*command, "--resume"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=tmp_path, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    seen = ""
    deadline = time.monotonic() + 120
    while "== Phase 2" not in seen and time.monotonic() < deadline:
        seen += os.read(process.stdout.fileno(), 65536).decode()
    assert "Time: the phase 'ask' is over and locked." in seen
    process.communicate(":finish\n0\n", timeout=180)
    assert card(work)["phases"][0]["how"] == "time"  # type: ignore[index]
