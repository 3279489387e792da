"""Spot the bug: pick the line, type what it should say, and let the grader judge the mended file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Button, Input, OptionList, Static, TextArea

from tutor.answers import indented, mark_bug_line, mended_source, same_mend, submission_line
from tutor.course.model import Bug
from tutor.grading import Failed, GradeRequest, VerdictReady
from tutor.widgets.content import DIM_STYLE, Content, code_lines, plain
from tutor.widgets.desk import desk, key_of
from tutor.widgets.hanging import Column, hanging_lines
from tutor.widgets.lists import AnswerList
from tutor.widgets.pane import Answered, ItemPane, Verdict
from tutor.widgets.prose import Prose, Reading


class BugPane(ItemPane):
    BINDINGS = [
        Binding("f6", "grade", "Grade", key_display="F6", priority=True, id="bug.grade"),
        Binding("f7", "cancel", "Cancel", key_display="F7", priority=True, id="bug.cancel"),
        Binding("f8", "more_lines", "More lines", key_display="F8", priority=True, id="bug.more-lines"),
        Binding("u", "undo", "Undo edit", id="bug.undo"),
        Binding("y", "copy", "Copy code", show=False, id="bug.copy"),
        Binding("r", "again", "Again", id="bug.again"),
        Binding("escape", "leave_input", "To the lines", key_display="Esc", id="bug.leave-input"),
        Binding("pageup", "scroll_verdict(-1)", "Verdict up", show=False, id="bug.verdict-up"),
        Binding("pagedown", "scroll_verdict(1)", "Verdict down", show=False, id="bug.verdict-down"),
    ]

    def __init__(self, item: Bug, position: int = 0) -> None:
        super().__init__(item, position)
        self.bug = item
        self.to_mend = {mend.line: mend.text for mend in item.mends}
        self.edits: dict[int, str] = {}
        self.line = 0  # the line in the input
        self.misses = 0
        self.found = self.grading = self.done = False

    def compose(self) -> ComposeResult:
        with Reading(id="question"):
            yield Prose(self.bug.story)
        with Vertical(id="answering"):
            yield Static(plain(self._ask(), DIM_STYLE), classes="cue")
            yield AnswerList(self._rows(), id="lines", classes="answer code-list")
            yield Verdict()
            yield Input(id="mend", compact=True, select_on_focus=False)
            yield TextArea(id="mend-lines", compact=True, tab_behavior="indent")
            yield Button(plain("Grade the mended code"), id="grade", compact=True)
        with Reading(id="feedback"):
            yield Verdict(id="outcome")
            yield Prose(self.bug.explain)

    def _ask(self) -> str:
        return f"Which line is wrong? {key_of(self, 'list.select', 'enter')} or a click picks it."

    def name_keys(self) -> None:
        if not self.found:
            self._cue(self._ask())

    @property
    def grade_key(self) -> str:
        return key_of(self, "bug.grade", "f6")

    def on_mount(self) -> None:
        for name in ("#feedback", "#mend", "#mend-lines", "#grade"):
            self.query_one(name).display = False

    def _rows(self) -> list[Content]:
        lines = list(code_lines(self.bug.code))
        width = len(str(len(lines)))
        rows = []
        for number, line in enumerate(lines, 1):
            edited = number in self.edits
            gutter = plain(f"{'✎' if edited else ' '}{number:>{width}} ", "bold $text-success" if edited else DIM_STYLE)
            body = plain(self.edits[number] or "(deleted)", "$text-success") if edited else line
            rows.append(Content.assemble(gutter, body))
        return rows

    def _refresh_rows(self) -> None:
        lines = self.query_one("#lines", AnswerList)
        for index, row in enumerate(self._rows()):
            lines.replace_option_prompt_at_index(index, row)

    @on(OptionList.OptionSelected, "#lines")
    def _line_picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.pick(event.option_index + 1)

    def pick(self, line: int) -> None:
        if self.found:
            self._keep_edit()
            self._edit(line)
            return
        mark = mark_bug_line(self.bug, line)
        verdict = self.query_one(Verdict)
        if not mark.correct:
            self.misses += 1
            self.post_message(Answered(self.item, False, 0.0, mark.detail))
            more = f" {key_of(self, 'item.solution', 's')} shows the answer." if self.misses > 1 else ""
            verdict.say(plain(f"Line {line} is not where it goes wrong.{more}"), "bad")
            return
        self.found = True
        target = line if line in self.to_mend else min(self.to_mend, key=lambda other: abs(other - line))
        where = "" if target == line else f" The mend goes into line {target}."
        count = len(self.to_mend)
        more = (
            f" The mend changes {count} lines: begin here."
            if count > 1
            else f" Now write what line {target} should say."
        )
        verdict.say(plain(f"Line {line} it is.{where}{more}"), "good")
        self._edit(target)

    def _edit(self, line: int, several: bool = False) -> None:
        self.line = line
        text = self.edits.get(line, self.bug.code.split("\n")[line - 1])
        several = several or "\n" in self.to_mend.get(line, "") or "\n" in text
        field, box = self.query_one("#mend", Input), self.query_one("#mend-lines", TextArea)
        field.display, box.display = not several, several
        self.query_one("#grade").display = True
        self.add_class("-mending")
        more = key_of(self, "bug.more-lines", "f8")
        one = f"Enter hands it in, {more} allows several lines."  # a box's own Enter is nobody's to change
        how = f"{self.grade_key} hands it in (several lines allowed)." if several else one
        self._cue(f"Line {line}: {how}")
        lines = self.query_one("#lines", AnswerList)
        lines.highlighted = line - 1
        self.call_after_refresh(lines.scroll_to_highlight)
        if several:
            box.load_text(text)
            box.focus()
        else:
            field.value = text
            field.cursor_position = len(text)
            field.focus()
        self.refresh_bindings()

    @on(Input.Submitted, "#mend")
    def _mend_typed(self, event: Input.Submitted) -> None:
        event.stop()
        self._hand_in()

    def _hand_in(self) -> None:
        """Keep the line that was typed; grade once as many lines are mended as the author needed."""
        self._keep_edit()
        if self.line and self.line not in self.edits:
            leave = key_of(self, "bug.leave-input", "escape")
            self.query_one(Verdict).say(plain(f"Line {self.line} says what it said before: change it, or {leave}."))
            return
        missing = len(self.to_mend) - len(self.edits)
        if missing > 0:
            lines = "1 more line" if missing == 1 else f"{missing} more lines"
            words = f"Line {self.line} is changed. {lines} to mend: pick one. {self.grade_key} grades what you have."
            self.query_one(Verdict).say(plain(words))
            self._leave_field()
        else:
            self._start_grading()

    def _leave_field(self) -> None:
        """Back to the lines, with nothing open to type in."""
        self.line = 0
        for name in ("#mend", "#mend-lines"):
            self.query_one(name).display = False
        self.remove_class("-mending")
        self._cue("Pick a line to change it.")
        self.query_one("#lines").focus()

    def _cue(self, words: str) -> None:
        self.query_one(".cue", Static).update(plain(words, DIM_STYLE))

    def _keep_edit(self) -> None:
        if not self.line:
            return
        box = self.query_one("#mend-lines", TextArea)
        text = box.text if box.display else self.query_one("#mend", Input).value
        text = indented(self.bug, self.line, text)
        if text != self.bug.code.split("\n")[self.line - 1] or self.line in self.edits:
            self.edits[self.line] = text
        self._refresh_rows()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "grade":
            return self.found and not self.grading and not self.done
        if action == "cancel":
            return self.grading
        if action == "again":
            return self.done
        if action == "undo":
            return bool(self.edits) and not self.grading and not self.done
        typing = self.screen.focused.id if self.screen.focused is not None else None
        if action == "leave_input":
            return typing in ("mend", "mend-lines")
        if action == "more_lines":
            return typing == "mend"
        return True

    @property
    def finished(self) -> bool:
        return self.done

    def action_undo(self) -> None:
        """The highlighted line as it was given, or the line edited last."""
        line = (self.query_one("#lines", AnswerList).highlighted or 0) + 1
        if line not in self.edits:
            line = list(self.edits)[-1]
        del self.edits[line]
        self._refresh_rows()
        if self.line == line:
            self._leave_field()
        self.refresh_bindings()

    def action_more_lines(self) -> None:
        text = self.query_one("#mend", Input).value
        self._edit(self.line, several=True)
        box = self.query_one("#mend-lines", TextArea)
        box.load_text(text)
        box.move_cursor(box.document.end)

    def action_scroll_verdict(self, direction: int) -> None:
        strip = self.query_one(Verdict)
        strip.scroll_page_down(animate=False) if direction > 0 else strip.scroll_page_up(animate=False)

    @on(Button.Pressed, "#grade")
    def action_grade(self) -> None:
        if self.query_one("#mend-lines").has_focus:
            self._hand_in()
        else:
            self._keep_edit()
            self._start_grading()

    def action_cancel(self) -> None:
        self.workers.cancel_node(self)
        self.grading = False
        self.query_one(Verdict).say("Cancelled.")
        self.refresh_bindings()

    def action_leave_input(self) -> None:
        self.query_one("#lines").focus()

    def action_copy(self) -> None:
        self.app.copy(self.bug.code, "Code")  # type: ignore[attr-defined]

    def _start_grading(self) -> None:
        self.grading = True
        ready = desk(self).grader.ready is not None
        wait = "" if ready else " The grader imports torch first, which takes a few seconds."
        self.query_one(Verdict).say(plain(f"Grading the mended code …{wait}"))
        self.query_one("#lines").focus()  # what is typed while waiting belongs to no line
        self.refresh_bindings()
        self._grade(mended_source(self.bug, self.edits))

    @work(group="grade", exclusive=True, exit_on_error=False)
    async def _grade(self, source: str) -> None:
        with tempfile.TemporaryDirectory(prefix="triton-prep-") as folder:
            file = Path(folder) / f"{self.bug.exercise}.py"
            file.write_text(source, encoding="utf-8")
            async for event in desk(self).grader.grade(GradeRequest(self.bug.exercise, file)):
                if isinstance(event, VerdictReady):
                    self._judged(event.verdict)
                elif isinstance(event, Failed):
                    self._ungraded(event)

    def _judged(self, verdict: dict[str, Any]) -> None:
        self.grading = False
        self.app.clear_notifications()  # what was said before covers nothing of it
        unproven = bool(self.bug.needs_gpu) and verdict.get("backend") != "cuda"
        if verdict["status"] != "passed":
            self.misses += 1
            self._fall_short(verdict)
        elif unproven and not same_mend(self.bug, self.edits):
            self._finish(plain("It passes here, but this bug shows only on a GPU; compare yours with the text."), 0.5)
        else:
            self._finish(plain("Mended: every case passes."), max(0.25, 1 - 0.25 * self.misses))
        self.refresh_bindings()

    def _fall_short(self, verdict: dict[str, Any]) -> None:
        from tutor.verdict_text import shortfall_lines

        self.post_message(
            Answered(self.item, False, 0.0, {"status": verdict["status"], "edits": self._edits_as_text()})
        )
        head, *rest = shortfall_lines(self._as_shown(verdict), source=self._shown_code())
        lines = [plain(f"Not yet: {head.text}", "bold"), *[hanging_lines(line.text) for line in rest]]
        self.query_one(Verdict).say(Column(lines), "bad")
        if self.line:
            self._edit(self.line)
        else:
            self.query_one("#lines").focus()

    def _as_shown(self, verdict: dict[str, Any]) -> dict[str, Any]:
        """The verdict with the line number of the code on the screen instead of the graded file's."""
        diagnosis = dict(verdict.get("diagnosis") or {})
        if diagnosis.get("line"):
            diagnosis["line"] = max(0, submission_line(self.bug, diagnosis["line"], self.edits))
        return {**verdict, "diagnosis": diagnosis or None}

    def _shown_code(self) -> str:
        lines = self.bug.code.split("\n")
        return "\n".join(self.edits.get(row, line).replace("\n", " ⏎ ") for row, line in enumerate(lines, 1))

    def _ungraded(self, event: Failed) -> None:
        """No verdict: say why, and fall back on comparing with the author's lines."""
        self.grading = False
        if event.kind == "cancelled":
            self.query_one(Verdict).say("Cancelled.")
        elif same_mend(self.bug, self.edits):
            self._finish(plain("Not graded here, but it is the same as the author's mend."), 1.0)
        else:
            self.query_one(Verdict).say(plain(f"Could not grade: {event.message}"), "bad")
        self.refresh_bindings()

    def _edits_as_text(self) -> dict[str, str]:
        return {str(line): text for line, text in self.edits.items()}

    def _finish(self, words: Content, score: float) -> None:
        good = score > 0.5 or not self.bug.needs_gpu
        self.post_message(Answered(self.item, good, score, {"edits": self._edits_as_text()}))
        self._explain(words, "good" if good else "plain")

    def _explain(self, words: Content, tone: str) -> None:
        self.done = True
        self.remove_class("-mending")
        self.query_one("#outcome", Verdict).say(words, tone)
        for name in ("#mend", "#mend-lines", "#grade", "#question", ".cue"):
            self.query_one(name).display = False
        self.query_one(Verdict).display = False
        feedback = self.query_one("#feedback", Reading)
        feedback.display = True
        feedback.focus()
        self.call_after_refresh(self.query_one("#lines", AnswerList).scroll_to_highlight)
        self.refresh_bindings()

    def reveal(self) -> None:
        """Give up: the author's mend and the explanation."""
        self.workers.cancel_node(self)
        self.grading = False
        self.edits = dict(self.to_mend)
        self._refresh_rows()
        self.query_one("#lines", AnswerList).highlighted = min(self.to_mend) - 1
        self._explain(plain("The author's mend is shown in the code."), "plain")

    def action_again(self) -> None:
        self.edits.clear()
        self.found = self.done = False
        self.misses = 0
        self._refresh_rows()
        self.query_one("#feedback").display = False
        for name in ("#question", ".cue"):
            self.query_one(name).display = True
        self._cue(self._ask())
        self.query_one("#lines").focus()
        self.refresh_bindings()

    def hints(self) -> tuple[str, ...]:
        return (self.bug.hint,) if self.bug.hint else ()
