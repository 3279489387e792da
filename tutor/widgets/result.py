"""The result of a grade: stages and cases while they come, then the verdict in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.visual import Visual
from textual.widgets import Static

from tutor.grading import CaseDone, Stage
from tutor.widgets.content import (
    DIM_STYLE,
    RIGHT,
    RIGHT_STYLE,
    WRONG,
    WRONG_STYLE,
    Content,
    plain,
)
from tutor.widgets.desk import Words, desk, key_of, said
from tutor.widgets.hanging import Column, hanging_line

TONES = {
    "plain": "",
    "good": "$text-success",
    "bad": "$text-error",
    "dim": DIM_STYLE,
    "head": "bold",
    "code": "$text-accent",
}


UNWRAPPED = 100_000  # the widget wraps, again at every new width


class ResultView(VerticalScroll, can_focus=True):
    BINDING_GROUP_TITLE = "Result"
    _above: Words = ""
    _made: Callable[[], list[Visual]] | None = None  # makes the rows with the keys in force; None: they name none

    def compose(self) -> ComposeResult:
        yield Static(Content(""), id="result-text")

    def on_mount(self) -> None:
        self._rows: list[Visual] = []

    def say(self, words: Words, tone: str = "plain") -> None:
        """One message instead of what was there."""
        self._make(lambda: [plain(said(words), TONES[tone])])

    def _make(self, rows: Callable[[], list[Visual]]) -> None:
        self._made, self._rows = rows, rows()
        self._show()

    def name_keys(self) -> None:
        if self._made is not None:
            self._rows = self._made()
        self._show()

    def text(self) -> str:
        return "\n".join(getattr(row, "plain", "") for row in self._rows)

    def begin(self, text: str) -> None:
        self._made, self._rows = None, [plain(text, DIM_STYLE)]
        self._show()

    def add_stage(self, stage: Stage) -> None:
        if stage.state == "started":
            self._rows.append(plain(f"  {stage.name} …", DIM_STYLE))
        else:
            seconds = f" {stage.seconds:.2f} s" if stage.seconds is not None else ""
            row = plain(f"  {stage.name}{seconds}", DIM_STYLE)
            running = f"  {stage.name} …"
            for index in reversed(range(len(self._rows))):
                if getattr(self._rows[index], "plain", "") == running:
                    self._rows[index] = row
                    break
            else:
                self._rows.append(row)
        self._show()

    def add_case(self, done: CaseDone) -> None:
        status = str(done.case.get("status", ""))
        nothing = plain("– ", DIM_STYLE)
        signs = {"passed": plain(f"{RIGHT} ", RIGHT_STYLE), "not_run": nothing, "skipped": nothing}
        sign = signs.get(status, plain(f"{WRONG} ", WRONG_STYLE))
        status = status.replace("_", " ")
        count = plain(f"{done.index + 1}/{done.total} ", DIM_STYLE)
        self._rows.append(Content.assemble(sign, count, plain(f"{done.case.get('name', '')}: {status}")))
        self._show()
        self.scroll_end(animate=False)

    def show_verdict(self, verdict: dict[str, Any], source: str | None, onward: Words = "") -> None:
        """`onward` is said beside a pass: what may come next."""
        self.app.clear_notifications()  # what was said before covers nothing of it
        self._make(lambda: self._told(verdict, source, said(onward)))
        self.scroll_home(animate=False)

    def _told(self, verdict: dict[str, Any], source: str | None, onward: str) -> list[Visual]:
        from tutor.verdict_text import verdict_lines

        look_up, title_of = f"{key_of(self, 'exercise.see', 'l')} opens it", desk(self).course.title_of
        lines = verdict_lines(
            verdict, width=UNWRAPPED, source=source, look_up=look_up, onward=onward, title_of=title_of
        )
        return [hanging_line(line.text, TONES.get(line.tone, "")) for line in lines]

    def say_above(self, words: Words) -> None:
        """What is to be known of the verdict, as that it is about an earlier text; empty: nothing."""
        if words != self._above:
            self._above = words
            self._show()

    def _show(self) -> None:
        above = [plain(said(self._above), "bold")] if self._above else []
        self.query_one("#result-text", Static).update(Column([*above, *self._rows]))
