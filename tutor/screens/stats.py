"""How far the learner is, per module and kind, and what went wrong last."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from tutor.course.course import kind_of
from tutor.progress import ItemState
from tutor.standing import standing
from tutor.widgets.content import DIM_STYLE, WRONG, WRONG_STYLE, Content, bar, columns, inline, plain, stack
from tutor.widgets.desk import desk
from tutor.widgets.keys import KeyLine
from tutor.widgets.prose import Reading


class StatsScreen(Screen[None]):
    BINDINGS = [Binding("escape,q", "dismiss", "Back", key_display="Esc")]

    def compose(self) -> ComposeResult:
        yield Static(plain("Progress", "bold"), id="where")
        with Reading(id="stats"):
            yield Static(self._text())
        yield KeyLine()

    def _text(self) -> Content:
        course, progress = desk(self.app).course, desk(self.app).progress
        now, states = standing(course, progress), progress.states()
        rows: list[tuple[Content, ...]] = []
        for part in now.modules:
            rows.append((bar(part.done, part.total), plain(f"{part.done}/{part.total}"), inline(part.module.title)))
        kinds: dict[str, list[bool]] = {}
        for item in course.items():
            kinds.setdefault(kind_of(item), []).append(item.id in states and states[item.id].passed)
        kind_rows = [(plain(kind), plain(f"{sum(done)}/{len(done)}")) for kind, done in kinds.items()]
        missed = [item for item in course.items() if item.id in states and _missed(states[item.id])]
        parts = [
            plain(f"{now.done} of {now.total} items done", "bold"),
            plain(""),
            columns(rows) if rows else plain(""),
            plain(""),
            plain("By kind", "bold"),
            columns(kind_rows) if kind_rows else plain(""),
            plain(""),
            plain("Tried and not right yet", "bold"),
        ]
        if not missed:
            parts.append(plain("Nothing.", DIM_STYLE))
        for item in missed[:30]:
            sign = plain(f"{WRONG} ", WRONG_STYLE)
            parts.append(Content.assemble(sign, inline(item.title), plain(f"  {item.id}", DIM_STYLE)))
        return stack(parts)


def _missed(state: ItemState) -> bool:
    return bool(state.attempts) and not state.passed
