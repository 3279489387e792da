from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run


def test_without_a_terminal_the_app_says_so_and_names_the_plain_commands(command: Run) -> None:
    done = command()
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    assert "grade" in done.stderr


def test_list_names_every_item_and_makes_nothing_on_disk(command: Run, work: Path) -> None:
    done = command("list")
    assert done.returncode == 0
    for name in ("m01.lesson.launch", "m01.bug.mask", "m01.exercise.vector-add", "[vector_add]"):
        assert name in done.stdout
    assert not work.exists()


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        ("m01", "Whether kernel[grid](x) is understood."),
        ("m01.lesson.launch", "kernel[grid](x, acc[i][j])"),
        ("m01.quiz.a", "What does kernel[grid](x) do?"),
        ("m01.bug.mask", "  2 |     tl.store(x)"),
        ("m01.match.words", "how many programs [n]"),
        ("m01.walk.add", "  b = 2"),
        ("m01.predict.speed", "nearly all"),
        ("m01.open.why", "Why masks?"),
        ("vector_add", "Task: out[i] = x[i] for vector_add."),
        ("m01.exercise.vector-add", "kernel[grid](x)"),
        ("m01.quiz.was-a", "m01.quiz.a"),
    ],
)
def test_show_prints_each_kind_as_written(command: Run, item: str, shown: str) -> None:
    done = command("show", item)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("item", "answer"),
    [
        ("m01.quiz.a", "Yes [indeed]."),
        ("m01.bug.mask", "tl.store(x, mask=m)"),
        ("m01.open.why", "no multiple of BLOCK"),
        ("m01.predict.speed", "0.97"),
        ("m01.match.words", "grid = how many programs [n]"),
    ],
)
def test_show_keeps_the_answer_until_asked(command: Run, item: str, answer: str) -> None:
    assert answer not in command("show", item).stdout
    assert answer in command("show", item, "--answer").stdout


def test_an_unknown_item_names_the_nearest_and_exits_2(command: Run) -> None:
    done = command("show", "m01.quiz.aa")
    assert done.returncode == 2
    assert "m01.quiz.a" in done.stderr
    assert done.stdout == ""


def test_showing_a_lesson_counts_as_reading_it_once_there_is_a_workspace(command: Run) -> None:
    command("init")
    command("show", "m01.lesson.launch")
    report = json.loads(command("progress", "--json").stdout)
    assert report["done"] == 1
    assert report["next"] == "m01.quiz.a"
    assert "✓ done  m01.lesson.launch" in command("list").stdout


def test_progress_is_told_in_words_and_json(command: Run) -> None:
    command("quiz", "m01.quiz.a", stdin="1\n")
    assert "1 of 10 done" in command("progress").stdout
    report = json.loads(command("progress", "--json").stdout)
    assert report["schema"] == 1
    assert report["items"][0]["id"] == "m01.quiz.a"
    assert report["items"][0]["passed"] is True


def test_a_closed_pipe_is_no_error(environment: dict[str, str]) -> None:
    script = f"{sys.executable} -m tutor show m01.lesson.launch | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_output_that_the_encoding_lacks_is_replaced(command: Run) -> None:
    done = command("list", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr


def test_a_damaged_course_is_named_with_its_line(command: Run, course_root: Path) -> None:
    file = course_root / "modules" / "01-tiny.yaml"
    file.write_text(file.read_text().replace("title: The launch", "titel: The launch"))
    done = command("list")
    assert done.returncode == 3
    assert "01-tiny.yaml:12: m01.lesson.launch: unknown key 'titel'; write 'title'" in done.stderr


@pytest.mark.parametrize("no_color", [False, True])
def test_colour_only_on_a_terminal_and_not_with_no_color(
    environment: dict[str, str], work: Path, no_color: bool
) -> None:
    environment = {**environment, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    if no_color:
        environment["NO_COLOR"] = "1"
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "tutor", "grade", "vector_add"]
    done = subprocess.run(command, env=environment, stdout=slave, stderr=subprocess.DEVNULL, timeout=60, check=False)
    os.close(slave)
    shown = os.read(master, 65536).decode()
    assert done.returncode == 1
    assert "not started" in shown
    assert ("\x1b[" in shown) is not no_color


def test_only_a_list_is_indented_where_it_goes_on() -> None:
    from tutor.course.text import wrapped

    long = "word " * 12
    assert wrapped(f"- {long}", 40).splitlines()[1].startswith("  word")
    assert wrapped(f"12. {long}", 40).splitlines()[1].startswith("    word")
    for prose in (f"16 tokens {long}", f"**Layout.** {long}", f"4096³ {long}"):
        assert all(not line.startswith(" ") for line in wrapped(prose, 40).splitlines())
