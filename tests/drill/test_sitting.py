from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.drill.conftest import BLITZ, COURSE, HandClock
from tutor.drill.sitting import Sitting
from tutor.drill.store import DrillBusy, DrillUnreadable, Store, unfinished

Begin = Callable[..., Sitting]


def journal(sitting: Sitting) -> list[dict[str, object]]:
    return [json.loads(line) for line in (sitting.store.folder / "journal.jsonl").read_text().splitlines()]


def again(sitting: Sitting, clock: HandClock) -> tuple[Sitting, list[str]]:
    """As after kill -9: nothing of the old process is left but its files."""
    sitting.store.release()
    back, notices = Sitting.resume(sitting.store.folder, clock, COURSE)
    return back, [notice.text for notice in notices]


def write(sitting: Sitting, task_id: str, text: str, clock: HandClock) -> None:
    file = sitting.file(sitting.state.task(task_id))
    file.write_text(text)
    os.utime(file, (clock.wall(), clock.wall()))


def test_a_whole_round_at_speed(begin: Begin, clock: HandClock) -> None:
    """45 minutes, second by second: phases end on time, each end is warned of once, what is written is taken."""
    sitting = begin()
    said: list[tuple[int, str, str]] = []
    for second in range(1, 45 * 60 + 1):
        clock.go(1)
        if second == 100:
            sitting.draft(sitting.state.task("clarify.1"), "Sizes?")
        if second == 600:
            write(sitting, "kernel.1", "# a kernel\n", clock)
        if second == 2400:
            write(sitting, "optimise.1", "# a faster kernel\n", clock)
        said += [(second, notice.kind, notice.text) for notice in sitting.tick()]
    assert [(second, kind) for second, kind, _ in said] == [
        (270, "near_end"), (300, "phase_ended"), (1500, "near_end"), (1620, "phase_ended"), (1944, "near_end"),
        (1980, "phase_ended"), (2580, "near_end"), (2700, "time_up"),
    ]  # fmt: skip
    assert sitting.state.stage == "debrief"
    assert [(phase.started, phase.ended, phase.how) for phase in sitting.state.phases] == [
        (0, 300, "time"), (300, 1620, "time"), (1620, 1980, "time"), (1980, 2700, "time"),
    ]  # fmt: skip
    assert sitting.state.answers["clarify.1"].detail["draft"] == "Sizes?"
    assert sitting.state.sources == {"kernel.1": "# a kernel\n", "optimise.1": "# a faster kernel\n"}


def test_an_answer_after_the_lock_is_recorded_and_not_counted(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ)
    first, second = sitting.tasks()[:2]
    clock.go(599)
    assert sitting.hand_in(first, {"line": 1}).counted
    clock.go(1)
    receipt = sitting.hand_in(second, {"line": 2})
    assert not receipt.counted and "Too late" in receipt.text
    assert list(sitting.state.answers) == [first.id]
    assert [entry["task"] for entry in sitting.state.late] == [second.id]


def test_the_first_answer_counts(begin: Begin) -> None:
    sitting = begin(BLITZ)
    task = sitting.tasks()[2]
    sitting.hand_in(task, {"chosen": [1]}, 0.0)
    assert not sitting.hand_in(task, {"chosen": [0]}, 1.0).counted
    assert sitting.state.answers[task.id].score == 0.0


def test_the_clock_goes_on_while_nothing_runs(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ)
    clock.go(60)
    sitting.tick()
    os.utime(sitting.store.folder / "alive", (clock.wall(), clock.wall()))
    clock.go(125)
    back, said = again(sitting, clock)
    assert back.elapsed() == 185
    assert said == ["You were away for 02:05; the clock went on."]


def test_the_clock_goes_on_over_a_restart_of_the_machine(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ)
    clock.go(60)
    sitting.flag(sitting.tasks()[0])
    clock.shut_down(120)
    back, _ = again(sitting, clock)
    assert back.elapsed() == 180
    clock.go(10)
    assert back.elapsed() == 190


def test_a_changed_wall_clock_matters_only_after_a_restart(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ)
    clock.go(30)
    sitting.flag(sitting.tasks()[0])
    clock.epoch -= 3600
    clock.go(30)
    back, _ = again(sitting, clock)
    assert back.elapsed() == 60
    clock.shut_down(-7200)
    back, said = again(back, clock)
    assert back.elapsed() == 60
    assert any("set back" in text for text in said)


def test_phases_end_on_time_while_nobody_is_there(begin: Begin, clock: HandClock) -> None:
    sitting = begin()
    write(sitting, "kernel.1", "# in time\n", clock)
    clock.go(301)
    sitting.tick()
    clock.go(1620)
    write(sitting, "kernel.1", "# too late\n", clock)
    back, said = again(sitting, clock)
    assert back.phase.name == "follow-ups"
    assert back.state.phases[2].started == 1620
    assert back.state.sources["kernel.1"] == "# in time\n"
    assert any("'kernel' is over" in text for text in said)


def test_the_whole_time_may_run_out_while_nobody_is_there(begin: Begin, clock: HandClock) -> None:
    sitting = begin()
    clock.go(100_000)
    back, said = again(sitting, clock)
    assert back.state.stage == "debrief"
    assert back.elapsed() == 2700
    assert said[-1] == "The time is up: answers are locked."


def test_strict_cannot_pause(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ, strict=True)
    assert not sitting.pause().counted
    clock.go(10)
    assert sitting.elapsed() == 10


def test_a_pause_stops_the_clock_also_over_a_crash(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ, strict=False)
    clock.go(50)
    assert sitting.pause().counted
    clock.go(1000)
    assert not sitting.hand_in(sitting.tasks()[0], {}).counted
    assert not sitting.state.late
    back, said = again(sitting, clock)
    assert back.elapsed() == 50 and said == ["The drill is paused: the time away is not counted."]
    back.go_on()
    clock.go(5)
    assert back.elapsed() == 55


def test_an_early_end_of_a_phase_is_not_carried_over(begin: Begin, clock: HandClock) -> None:
    sitting = begin()
    clock.go(60)
    sitting.next_phase()
    assert sitting.now().phase_left == 22 * 60
    assert sitting.now().whole_left == 40 * 60


def test_grading_runs_are_counted_by_phase_and_survive_a_crash(begin: Begin, clock: HandClock) -> None:
    sitting = begin()
    assert sitting.runs_left() == 0
    sitting.next_phase()
    kernel = sitting.tasks()[0]
    assert [sitting.begin_run(kernel).counted for _ in range(2)] == [True, True]
    back, _ = again(sitting, clock)
    assert back.runs_left() == 1
    back.give_run_back(kernel)
    assert back.runs_left() == 2
    assert [back.begin_run(kernel).counted for _ in range(3)] == [True, True, False]


def test_the_kernel_starts_from_the_stub_and_optimise_from_the_kernel(begin: Begin, clock: HandClock) -> None:
    from grader import catalog

    sitting = begin()
    task = sitting.state.task("kernel.1")
    assert sitting.file(task).read_bytes() == catalog.find("vector_add").stub.read_bytes()
    sitting.next_phase()
    write(sitting, "kernel.1", "# mine\n", clock)
    sitting.next_phase()
    sitting.next_phase()
    assert sitting.state.sources["optimise.1"] == "# mine\n"


def test_time_is_kept_by_task(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ)
    first, second = sitting.tasks()[:2]
    for task, seconds in ((first, 10), (second, 20), (first, 5)):
        sitting.show(task)
        clock.go(seconds)
    sitting.finish()
    assert sitting.state.spent == {first.id: 15, second.id: 20}


def test_two_processes_cannot_hold_one_drill(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ)
    with pytest.raises(DrillBusy, match="open in another window"):
        Sitting.resume(sitting.store.folder, clock, COURSE)


def test_a_newer_format_and_a_damaged_file_are_left_alone(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ)
    sitting.store.release()
    place = sitting.store.folder / "state.json"
    good = place.read_bytes()
    for content, words in ((good.replace(b'"schema":1', b'"schema":9', 1), "newer"), (good[:-20], "cannot be read")):
        place.write_bytes(content)
        with pytest.raises(DrillUnreadable, match=words):
            Sitting.resume(sitting.store.folder, clock, COURSE)
        assert place.read_bytes() == content


def test_a_torn_line_of_the_journal_swallows_nothing(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ)
    with open(sitting.store.folder / "journal.jsonl", "ab") as file:
        file.write(b'{"seq":2,"ev')
    back, _ = again(sitting, clock)
    assert [entry["event"] for entry in journal(back)] == ["begun", "resumed"]


def test_a_full_disk_is_said_and_the_drill_goes_on(
    begin: Begin, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sitting = begin(BLITZ)
    task = sitting.tasks()[2]
    good = Store.save

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "save", full)
    assert sitting.hand_in(task, {"chosen": [0]}, 1.0).counted
    assert any("No space left" in notice.text for notice in sitting.tick())
    monkeypatch.setattr(Store, "save", good)
    sitting.flag(task)
    back, _ = again(sitting, clock)
    assert back.state.answers[task.id].score == 1.0


def test_a_moved_workspace_is_found_again(begin: Begin, clock: HandClock, tmp_path: Path) -> None:
    sitting = begin()
    sitting.store.release()
    shutil.move(tmp_path / "work", tmp_path / "elsewhere")
    state = unfinished(tmp_path / "elsewhere")
    assert state is not None
    back, _ = Sitting.resume(tmp_path / "elsewhere" / ".triton-prep" / "drills" / state.id, clock, COURSE)
    assert back.file(back.state.task("kernel.1")).is_file()


def test_a_question_that_left_the_course_does_not_count(begin: Begin, clock: HandClock) -> None:
    from tutor.drill.scorecard import skill_scores

    sitting = begin(BLITZ)
    gone = sitting.tasks()[2]
    sitting.store.release()
    smaller = msgspec.structs.replace(
        COURSE.modules[0], items=tuple(i for i in COURSE.modules[0].items if i.id != gone.item)
    )
    other = msgspec.structs.replace(
        COURSE.modules[1], items=tuple(i for i in COURSE.modules[1].items if i.id != gone.item)
    )
    back, notices = Sitting.resume(sitting.store.folder, clock, type(COURSE)((smaller, other)))
    assert gone.id in next(notice for notice in notices if notice.kind == "gone").text
    assert gone not in back.tasks()
    back.finish()
    tasks = {skill.skill: skill.tasks for skill in skill_scores(back.state)}
    assert tasks["problem_solving"] == 3


def test_a_lock_found_by_an_answer_is_still_told(begin: Begin, clock: HandClock) -> None:
    sitting = begin(BLITZ)
    clock.go(600)
    sitting.hand_in(sitting.tasks()[0], {})
    assert [notice.kind for notice in sitting.tick()] == ["time_up"]
    assert sitting.tick() == ()
