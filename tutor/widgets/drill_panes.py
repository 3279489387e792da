"""The item panes as they are in a drill: an answer is handed in once, and nothing is given away."""

from __future__ import annotations

import textwrap
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, TextArea

from tutor.answers import mark_match, mark_quiz
from tutor.course.model import Bug, Exercise, Match, Open, Predict, Quiz
from tutor.drill.draw import Task
from tutor.widgets.bug import BugPane
from tutor.widgets.content import plain
from tutor.widgets.desk import Words, key_of, said
from tutor.widgets.exercise import ExercisePane
from tutor.widgets.lists import TickList
from tutor.widgets.match import MatchPane
from tutor.widgets.open_question import OpenPane
from tutor.widgets.pane import Answered, ItemPane
from tutor.widgets.prose import Prose, Reading
from tutor.widgets.quiz import QuizPane
from tutor.widgets.result import ResultView

if TYPE_CHECKING:
    from tutor.drill.sitting import Sitting
    from tutor.editing.differences import Version


@dataclass
class HandedIn(Message):
    """An answer that has no score yet."""

    task: Task
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass
class Scored(Message):
    """The rubric points that a spoken answer made, as its candidate says."""

    task: Task
    claimed: tuple[int, ...]


def drill_pane(sitting: Sitting, task: Task) -> ItemPane:
    item = sitting.item(task)
    match item:
        case Quiz() | Predict():
            return DrillQuizPane(item, sitting.state.strict)
        case Match():
            return DrillMatchPane(item, sitting.state.strict)
        case Bug():
            return DrillBugPane(item, task)
        case Open():
            return DrillOpenPane(item, task, sitting.state.drafts.get(task.id, ""))
        case Exercise():
            return DrillExercisePane(item, task, sitting)
    raise TypeError(f"a drill has no {type(item).__name__}")


class DrillQuizPane(QuizPane):
    def __init__(self, item: Quiz | Predict, strict: bool) -> None:
        super().__init__(item)
        self.strict = strict

    def submit(self, chosen: Collection[int]) -> None:
        if not self.strict:
            super().submit(chosen)
            return
        mark = mark_quiz(self.quiz, chosen)
        self.answered = True
        self.post_message(Answered(self.item, mark.correct, mark.score, mark.detail))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return False if action == "again" else super().check_action(action, parameters)


class DrillMatchPane(MatchPane):
    def __init__(self, item: Match, strict: bool) -> None:
        super().__init__(item)
        self.strict = strict

    @on(Button.Pressed, "#check")
    def _check_pressed(self, event: Button.Pressed) -> None:
        event.prevent_default()  # or the handler of the pane above would check a second time
        event.stop()
        self.action_check()

    def action_check(self) -> None:
        if not self.strict:
            super().action_check()
            return
        mark = mark_match(self.match, self.paired)
        self.answered = True
        self.post_message(Answered(self.item, mark.correct, mark.score, mark.detail))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return False if action == "again" else super().check_action(action, parameters)


class DrillBugPane(BugPane, inherit_bindings=False):
    """The line and the mend, without a word on either before the drill has ended."""

    BINDINGS = [
        Binding("f6", "grade", "Hand in", key_display="F6", priority=True, id="bug.grade"),
        Binding("f7", "more_lines", "More lines", key_display="F7", priority=True, id="bug.more-lines"),
        Binding("u", "undo", "Undo edit", id="bug.undo"),
        Binding("y", "copy", "Copy code", show=False, id="bug.copy"),
        Binding("escape", "leave_input", "To the lines", key_display="Esc", id="bug.leave-input"),
    ]

    def __init__(self, item: Bug, task: Task) -> None:
        super().__init__(item)
        self.asked = task
        self.first = 0  # the line named as the faulty one

    def on_mount(self) -> None:
        self.name_keys()
        self._cue(self._ask())

    def name_keys(self) -> None:
        super().name_keys()
        self.query_one("#grade", Button).label = plain(f"Hand in ({self.grade_key})")

    def _ask(self) -> str:
        select = key_of(self, "list.select", "enter")
        return f"Which line is wrong? {select} picks it; then write what it should say."

    def pick(self, line: int) -> None:
        self.first = self.first or line
        self.found = True
        self._keep_edit()
        self._edit(line)

    def _edit(self, line: int, several: bool = False) -> None:
        super()._edit(line, several)
        several = bool(self.query_one("#mend-lines").display)
        keeps = "" if several else "Enter keeps it, "
        words = f"Line {self.first} is your faulty line. Line {line} should say: {keeps}{self.grade_key} hands in."
        self._cue(words)

    @on(Input.Submitted, "#mend")
    def _line_typed(self, event: Input.Submitted) -> None:
        event.prevent_default()  # the pane above would grade
        event.stop()
        self._keep_edit()
        self._leave_field()
        select = key_of(self, "list.select", "enter")
        self._cue(f"Kept. {self.grade_key} hands in; {select} on a line changes that one too.")

    @on(Button.Pressed, "#grade")
    def _hand_in_pressed(self, event: Button.Pressed) -> None:
        event.prevent_default()
        event.stop()
        self.action_grade()

    def action_grade(self) -> None:
        self._keep_edit()
        self.done = True
        self.post_message(HandedIn(self.asked, {"line": self.first, "edits": self._edits_as_text()}))


FENCE = "~" * 12  # longer than any that an answer may hold


class DrillOpenPane(OpenPane, inherit_bindings=False):
    """During the drill: write or say it, and hand it in. In the debrief: the model answer, and the rubric to tick."""

    BINDINGS = [
        Binding("f6", "reveal", "Hand in", key_display="F6", priority=True, id="open.reveal"),
        Binding("escape", "leave_box", "Leave the box", key_display="Esc", id="open.leave-box"),
    ]

    def __init__(self, item: Open, task: Task, written: str, *, debrief: bool = False) -> None:
        super().__init__(item)
        self.asked, self.written, self.debrief = task, written, debrief

    def on_mount(self, event: events.Mount) -> None:  # type: ignore[override]
        event.prevent_default()
        super().on_mount()
        box = self.query_one("#draft", TextArea)
        box.load_text(self.written)
        box.move_cursor(box.document.end)
        self.name_keys()
        if self.debrief:
            super().action_reveal()
            self.query_one("#question").display = False  # it stands below the model answer

    def _cue(self) -> str:
        key = key_of(self, "open.reveal", "f6")
        return f"Say it aloud or write it; {key} hands it in. You score it once the clock has stopped."

    def name_keys(self) -> None:
        super().name_keys()
        self.query_one("#reveal", Button).label = plain(f"Hand in ({key_of(self, 'open.reveal', 'f6')})")

    def answer_focus(self) -> Widget | None:
        return self.query_one("#rubric" if self.debrief else "#draft")

    def _model(self) -> str:
        width = min(self.app.size.width - 8, 88)
        lines = [part for line in self.written.splitlines() for part in textwrap.wrap(line, width) or [""]]
        body = "\n".join(lines)
        said = f"{FENCE}text\n{body}\n{FENCE}" if body.strip() else "You answered aloud."
        model, question = self.question.answer, self.question.question
        return f"**Your answer**\n\n{said}\n\n**A model answer**\n\n{model}\n\n**The question was**\n\n{question}"

    @property
    def text(self) -> str:
        return self.query_one("#draft", TextArea).text

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return False if action == "reveal" and self.debrief else super().check_action(action, parameters)

    @on(Button.Pressed, "#reveal")
    def _hand_in_pressed(self, event: Button.Pressed) -> None:
        event.prevent_default()
        event.stop()
        self.action_reveal()

    def action_reveal(self) -> None:
        self.post_message(HandedIn(self.asked, {"draft": self.text}))

    @on(TickList.HandedIn)
    @on(Button.Pressed, "#score")
    def _scored(self, event: TickList.HandedIn | Button.Pressed) -> None:
        event.prevent_default()
        event.stop()
        self.post_message(Scored(self.asked, tuple(sorted(self.query_one("#rubric", TickList).ticked))))


class DrillExercisePane(ExercisePane):
    """A kernel in a file of the drill's own: whatever the workspace holds, everyone begins with the stub."""

    def __init__(self, item: Exercise, task: Task, sitting: Sitting) -> None:
        self.asked, self.sitting = task, sitting
        # the course's own words on an exercise are a hint
        super().__init__(structs.replace(item, brief=self._last_result(), after=""))
        self.run_spent = True  # False while a run has given no verdict

    @property
    def file(self) -> Path:
        return self.sitting.file(self.asked)

    def _show_after(self, passed: bool) -> None:
        self.query_one("#show-after").display = False

    def _last_result(self) -> str:
        left = self.sitting.runs_left()
        runs = "as often as you want" if left is None else f"{left} more times" if left else "at the end only"
        words = f"It is graded {runs}. What the file holds when the phase ends is handed in."
        optimise = self.sitting.phase.optimise
        if optimise is None:
            return words
        return (
            f"Make it faster: {optimise.percent_of_limit:g} % of the hardware's limit is the bar. The time needs a "
            "GPU; without one, bytes moved, spills and vector loads are counted against the course's solution, as a "
            f"model.\n\n{words}"
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("reset", "see", "watch", "grade_all", "map"):  # a map would be a grading run for nothing
            return False
        if action == "grade" and self.sitting.runs_left() == 0:
            return False
        return super().check_action(action, parameters)

    def action_watch(self) -> None:
        """A save spends no grading run."""

    @property
    def kept_as(self) -> str:
        return f"drill-{self.sitting.state.id}-{self.slug}"

    def versions(self) -> tuple[list[Version], str]:
        """What was written before the drill, and the solution, are not for it."""
        found, _ = super().versions()
        return found[:1], ""

    def action_grade(self, keep_going: bool = False) -> None:
        if not self.keep_typed(ask=True):
            return
        self._reload()
        receipt = self.sitting.begin_run(self.asked)
        if receipt.counted:
            self.run_spent = False
            super().action_grade(keep_going)
        else:
            self.notify(receipt.text, markup=False)
        self.refresh_bindings()

    def action_cancel(self) -> None:
        self.run_spent = True  # or cancelling in time would be a way to see cases for nothing
        super().action_cancel()
        self.query_one(ResultView).say("Cancelled. The run is spent.")

    def _ended(self) -> None:
        if not self.run_spent:
            self.sitting.give_run_back(self.asked)  # the grader failed
            self.run_spent = True
        super()._ended()

    def _judged(self, verdict: dict[str, Any], source: str) -> None:
        from tutor.drill.judging import as_shown

        self.run_spent = True
        self.sitting.checked(self.asked, {"status": verdict["status"], "backend": verdict["backend"]})
        left = self.sitting.runs_left()
        runs = "" if left is None else f"  {left} grading runs left."
        shown = as_shown(verdict, strict=self.sitting.state.strict)
        self.query_one(ResultView).show_verdict(shown, source, f"{runs} Other inputs decide at the end.")
        self.tell_editor(shown)

    def hints(self) -> tuple[str, ...]:
        return () if self.sitting.state.strict else super().hints()


class WaitPane(Vertical):
    """Between two tasks: what is said, and the key that goes on."""

    finished = True

    def __init__(self, words: Words) -> None:
        super().__init__(id="waiting")
        self.words = words

    def compose(self) -> ComposeResult:
        with Reading(classes="answer"):
            yield Prose(said(self.words))

    async def say(self, words: Words) -> None:
        self.words = words
        await self.query_one(Prose).update(said(words))

    def name_keys(self) -> None:
        self.query_one(Prose).update(said(self.words))
