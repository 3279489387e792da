"""How far the learner is, per module and kind, and what went wrong last."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from tutor.course.course import kind_of
from tutor.mastery import best_times, concepts, streak
from tutor.progress import Attempt, ItemState
from tutor.review import agenda, counted, load_ahead, scheduled_cards
from tutor.standing import standing
from tutor.widgets.content import DIM_STYLE, WRONG, WRONG_STYLE, Content, bar, columns, inline, plain, stack
from tutor.widgets.desk import desk
from tutor.widgets.keys import KeyLine
from tutor.widgets.prose import Reading


class StatsScreen(Screen[None]):
    BINDINGS = [Binding("escape,q", "dismiss", "Back", key_display="Esc", id="stats.dismiss")]

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
            *self._habit(),
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

    def _habit(self) -> list[Content]:
        """Reviews, the streak, concepts, times: what only makes sense once something was answered."""
        course, progress = desk(self.app).course, desk(self.app).progress
        attempts, today = progress.attempts(), progress.today()
        if not attempts:
            return []
        habit, day = streak(attempts, today), agenda(course, progress)
        due = f"Due: {day.words}." if day.due else "Nothing is due."
        later = f" Next review {day.next_words}." if day.next_due else ""
        ahead = load_ahead(scheduled_cards(course, progress), today)
        week = [(plain(f"{when:%a} {when.day} {when:%b}"), plain(f"{count:>3}"), _load(count)) for when, count in ahead]
        begun = [concept for concept in concepts(course, progress) if concept.answered]
        mastery = [
            (bar(round(each.mastery * 100), 100), plain(f"{each.mastery:4.0%}"), inline(each.name)) for each in begun
        ]
        return [
            plain("Review", "bold"),
            plain(f"{due}{later}"),
            plain(f"{counted(attempts, 'answer')}, {habit.today} today."),
            plain(f"Days in a row with an answer: {habit.days}, at most {habit.longest}."),
            columns(week),
            plain(""),
            plain("Concepts begun, weakest first", "bold"),
            plain("The last score times the chance to recall it today, over all items of the concept.", DIM_STYLE),
            columns(mastery) if mastery else plain("None yet.", DIM_STYLE),
            plain(""),
            *self._times(attempts),
        ]

    def _times(self, attempts: tuple[Attempt, ...]) -> list[Content]:
        course, rows = desk(self.app).course, []
        for item_id, best in best_times(attempts).items():
            if (current := course.current_id(item_id)) is not None and best.median_us is not None:
                rows.append((plain(f"{best.median_us:.1f} µs"), inline(course.item(current).title)))
        quick = [best.seconds for best in best_times(attempts).values() if best.seconds is not None]
        parts = [plain("Best times", "bold")]
        if quick:
            parts.append(plain(f"Right answers, each at its quickest: {sum(quick) / len(quick):.0f} s on average."))
        if rows:
            parts.append(columns(rows))
        return [*parts, plain("")] if quick or rows else []


def _load(count: int) -> Content:
    return plain("━" * min(count, 40), "$warning")


def _missed(state: ItemState) -> bool:
    return bool(state.attempts) and not state.passed
