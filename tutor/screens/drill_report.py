"""The scorecard on the screen, and where its files are."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.visual import Visual
from textual.widgets import OptionList, Static

from tutor.drill.clock import time_taken
from tutor.drill.report import SIGNS, Report, trend
from tutor.widgets.content import DIM_STYLE, RIGHT_STYLE, WRONG_STYLE, Content, bar, columns, inline, plain
from tutor.widgets.desk import key_of
from tutor.widgets.hanging import Column, Hanging
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList
from tutor.widgets.prose import Reading


class DrillReportScreen(Screen[None]):
    CSS_PATH = "drill.tcss"
    BINDINGS = [Binding("escape,q", "dismiss", "Back", key_display="Esc", id="report.dismiss")]

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report
        course = report.course
        tasks = [task for task in report.card.tasks if task.look_up and task.result != "right"]
        self.missed = [task for task in tasks if course.current_id(task.item)]

    def compose(self) -> ComposeResult:
        card = self.report.card
        overall = "–" if card.overall is None else f"{card.overall:.1f}"
        tone = RIGHT_STYLE if card.signal == "hire" else WRONG_STYLE
        yield Static(
            Content.assemble(inline(f"{card.title}: "), plain(f"{card.signal}, {overall} of 5", tone)), id="where"
        )
        with Reading(id="drill-report"):
            yield Static(self._text())
        if self.missed:
            yield Static(
                plain(f"Review these: {key_of(self, 'list.select', 'enter')} opens one.", DIM_STYLE), classes="cue"
            )
            yield AnswerList([inline(task.title) for task in self.missed], id="missed")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#missed" if self.missed else "#drill-report").focus()

    @on(OptionList.OptionSelected, "#missed")
    def _look_up(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.app.call_later(self.app.run_action, f"look_up({self.missed[event.option_index].item!r})")

    def _text(self) -> Column:
        card = self.report.card
        parts: list[Visual] = [Hanging(plain("· "), plain(reason)) for reason in (*card.reasons, *card.notes)]
        parts += [Hanging(plain("· "), plain(trend(card))), plain("")]
        shown = [skill for skill in card.skills if skill.score is not None]
        rows = [
            (bar(round(10 * (skill.score - 1) / 4), 10), plain(f"{skill.score:.1f}", "bold"), plain(skill.words))
            for skill in shown
            if skill.score is not None
        ]
        parts += [columns(rows)] if rows else []
        missing = [skill.words for skill in card.skills if skill not in shown]
        if missing:
            parts.append(Hanging(plain("· "), plain(f"Not shown in this drill: {', '.join(missing)}.", DIM_STYLE)))
        parts.append(plain(""))
        phases = [
            (
                plain(phase.name),
                plain(f"{time_taken(phase.seconds)} of {time_taken(phase.planned_seconds)}"),
                plain(phase.how),
            )
            for phase in card.phases
        ]
        parts += [columns(phases), plain(""), plain("What was asked", "bold")]
        for task in card.tasks:
            head = Content.assemble(
                inline(task.title, "bold"), plain(f"  {task.result}, {time_taken(task.seconds)}", DIM_STYLE)
            )
            parts.append(Hanging(plain(f"{SIGNS[task.result]} "), head))
            if task.note:
                parts.append(Hanging(plain("  "), inline(task.note)))
        parts += [plain(""), plain("Files", "bold")]
        parts += [plain(str(file)) for file in self.report.files]
        if self.report.left_out:
            parts.append(plain(self.report.left_out))
        return Column(parts)
