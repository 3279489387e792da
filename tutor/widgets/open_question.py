"""An interviewer's question: answer it yourself, then compare and score yourself by the rubric."""

from __future__ import annotations

import time

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.visual import Visual
from textual.widgets import Button, Static, TextArea

from tutor.answers import mark_open
from tutor.course.model import Open
from tutor.widgets.content import DIM_STYLE, Content, inline, plain
from tutor.widgets.desk import key_of
from tutor.widgets.hanging import Column, Hanging
from tutor.widgets.lists import TickList
from tutor.widgets.pane import Answered, ItemPane, Verdict
from tutor.widgets.prose import Prose, Reading


class OpenPane(ItemPane):
    BINDINGS = [
        Binding("f6", "reveal", "Model answer", key_display="F6", priority=True, id="open.reveal"),
        Binding("escape", "leave_box", "Leave the box", key_display="Esc", id="open.leave-box"),
    ]

    def __init__(self, item: Open, position: int = 0) -> None:
        super().__init__(item, position)
        self.question = item
        self.opened = time.monotonic()
        self.revealed = self.scored = False

    def compose(self) -> ComposeResult:
        with Reading(id="question"):
            yield Prose(self.question.question)
        with Vertical(id="answering"):
            yield Static(plain(self._cue(), DIM_STYLE), classes="cue")
            yield TextArea(id="draft", compact=True, classes="answer", placeholder="Your answer (optional)")
            yield Button(plain("Show the model answer"), id="reveal", compact=True)
        with Reading(id="model"):
            yield Prose(self._model())
            yield Static(self._afterwards(), id="afterwards")
        with Vertical(id="scoring"):
            cue = f"Tick the points that your answer made, then {key_of(self, 'ticks.hand-in', 'enter')}."
            yield Static(plain(cue, DIM_STYLE), classes="cue")
            yield TickList(
                [
                    Content.assemble(inline(point.text), plain(f"  ({point.points})", DIM_STYLE))
                    for point in self.question.rubric
                ],
                id="rubric",
            )
            yield Button(plain("Record my score"), id="score", compact=True)
            yield Verdict()

    def _cue(self) -> str:
        return f"Say it aloud or write it; then {key_of(self, 'open.reveal', 'f6')} shows a model answer."

    def name_keys(self) -> None:
        self.query_one("#answering .cue", Static).update(plain(self._cue(), DIM_STYLE))

    def on_mount(self) -> None:
        self.query_one("#model").display = self.query_one("#scoring").display = False
        self.query_one("#afterwards").display = False

    def _model(self) -> str:
        return f"**A model answer**\n\n{self.question.answer}"

    def _afterwards(self) -> Column:
        parts: list[Visual] = []
        if self.question.strong:
            parts += [plain("A strong answer", "bold"), inline(self.question.strong), plain("")]
        if self.question.weak:
            parts += [plain("A weak answer", "bold"), inline(self.question.weak), plain("")]
        if self.question.followups:
            parts.append(plain("Follow-up questions", "bold"))
            parts += [Hanging(plain("· "), inline(text)) for text in self.question.followups]
        return Column(parts)

    @property
    def finished(self) -> bool:
        return self.scored

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "reveal":
            return not self.revealed
        if action == "leave_box":
            return self.screen.focused is not None and self.screen.focused.id == "draft"
        return True

    def action_leave_box(self) -> None:
        self.query_one("#reveal").focus()

    @on(Button.Pressed, "#reveal")
    def action_reveal(self) -> None:
        self.revealed = True
        self.add_class("-revealed")
        self.query_one("#answering").display = False
        self.query_one("#model").display = self.query_one("#scoring").display = True
        self.query_one("#rubric").focus(scroll_visible=False)
        self.query_one("#model", Reading).scroll_home(animate=False)
        self.refresh_bindings()

    @on(TickList.HandedIn)
    @on(Button.Pressed, "#score")
    def _score(self) -> None:
        ticks = sorted(self.query_one("#rubric", TickList).ticked)
        mark = mark_open(self.question, ticks)
        total = sum(point.points for point in self.question.rubric)
        gained = sum(self.question.rubric[index].points for index in ticks)
        self.query_one(Verdict).say(f"{gained} of {total} points recorded.", "good" if mark.correct else "plain")
        self.scored = True
        afterwards = self.query_one("#afterwards")
        afterwards.display = True
        draft = self.query_one("#draft", TextArea).text
        detail = {"points": ticks, "draft": draft, "seconds": round(time.monotonic() - self.opened, 1)}
        self.post_message(Answered(self.item, mark.correct, mark.score, {**mark.detail, **detail}))
        self.call_after_refresh(self.query_one("#model", Reading).scroll_end, animate=False)
