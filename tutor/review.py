"""What is due for review, in which order, and what is the next best thing to do."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sized
from datetime import date, timedelta

import msgspec

from tutor.course.course import Course, kind_of
from tutor.course.model import Exercise, Item, Module
from tutor.progress import Progress
from tutor.schedule import SCHEDULED, Card, retrievability
from tutor.standing import Standing


class Agenda(msgspec.Struct, frozen=True):
    """The reviews of one day."""

    today: date
    due: tuple[Item, ...]  # across modules, in the order of the day; exercises, which take longest, at the end
    left_over: int  # due as well, but beyond the limit
    next_due: date | None  # the first later day on which something is due
    next_count: int  # how many items are due on that day

    @property
    def questions(self) -> tuple[Item, ...]:
        return tuple(item for item in self.due if not isinstance(item, Exercise))

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        return tuple(item for item in self.due if isinstance(item, Exercise))

    @property
    def words(self) -> str:
        """What is due: "7 questions (about 15 min) and 1 exercise (about 20 min)"."""
        parts = []
        if self.questions:
            parts.append(f"{counted(self.questions, 'question')} (about {_minutes(self.questions)} min)")
        if self.exercises:
            parts.append(f"{counted(self.exercises, 'exercise')} (about {_minutes(self.exercises)} min)")
        return " and ".join(parts)

    @property
    def next_words(self) -> str:
        """When the next review is: "tomorrow (3 items)"; empty when nothing is scheduled."""
        if self.next_due is None:
            return ""
        return f"{day_words(self.next_due, self.today)} ({counted(range(self.next_count), 'item')})"


def agenda(course: Course, progress: Progress, limit: int | None = None) -> Agenda:
    """With a `limit`, those that are most likely to be forgotten. The order is drawn from the day, item by item: it is
    the same all day long, and an item that is done leaves the others where they are."""
    today = progress.today()
    cards = scheduled_cards(course, progress)
    due = [card for card in cards.values() if card.due <= today]
    if limit is not None and len(due) > limit:
        due.sort(key=lambda card: (retrievability(card, today), card.item_id))
    chosen = due if limit is None else due[:limit]
    later = sorted(card.due for card in cards.values() if card.due > today)
    items = sorted((course.item(card.item_id) for card in chosen), key=lambda item: _place(today, item))
    return Agenda(
        today,
        tuple(items),
        len(due) - len(chosen),
        later[0] if later else None,
        later.count(later[0]) if later else 0,
    )


def scheduled_cards(course: Course, progress: Progress) -> dict[str, Card]:
    """The cards of items that the course still holds, by id."""
    return {
        item.id: _named(card, item.id)
        for item_id, card in progress.cards().items()
        if (current := course.current_id(item_id)) and kind_of(item := course.item(current)) in SCHEDULED
    }


def due_by_module(course: Course, progress: Progress) -> dict[str, int]:
    counts: dict[str, int] = {}
    today = progress.today()
    for item_id, card in scheduled_cards(course, progress).items():
        if card.due <= today:
            module: Module = course.module_of(item_id)
            counts[module.id] = counts.get(module.id, 0) + 1
    return counts


class NextBest(msgspec.Struct, frozen=True):
    kind: str  # "review", "item" or "done"
    words: str
    item_id: str | None = None


def next_best(agenda: Agenda, standing: Standing) -> NextBest:
    """What is due comes first: it takes minutes, and waiting makes it harder. Then the course goes on."""
    if agenda.due:
        return NextBest("review", f"Review {agenda.words}")
    if standing.next_item is not None:
        item = standing.next_item
        return NextBest("item", f"{item.title} ({kind_of(item)}, {item.id})", item.id)
    words = f"Everything is done. The next review is {agenda.next_words}." if agenda.next_due else "Everything is done."
    return NextBest("done", words)


def counted(things: Sized, word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def day_words(day: date, today: date) -> str:
    """ "today", "tomorrow", "in 5 days (Fri 4 Dec)"."""
    days = (day - today).days
    if days <= 0:
        return "today"
    return "tomorrow" if days == 1 else f"in {days} days ({day:%a} {day.day} {day:%b})"


def load_ahead(cards: Mapping[str, Card], today: date, days: int = 7) -> tuple[tuple[date, int], ...]:
    """How many items are due on each of the coming days; what is overdue counts for today."""
    counts = [0] * days
    for card in cards.values():
        ahead = max(0, (card.due - today).days)
        if ahead < days:
            counts[ahead] += 1
    return tuple((today + timedelta(days=number), count) for number, count in enumerate(counts))


def _minutes(items: Iterable[Item]) -> int:
    return sum(item.minutes for item in items)


def _place(today: date, item: Item) -> tuple[bool, bytes]:
    return isinstance(item, Exercise), hashlib.sha256(f"{today.isoformat()}/{item.id}".encode()).digest()


def _named(card: Card, item_id: str) -> Card:
    return card if card.item_id == item_id else msgspec.structs.replace(card, item_id=item_id)
