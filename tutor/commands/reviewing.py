"""review: what is due, across modules, asked on stdout and read from stdin."""

from __future__ import annotations

import sys
from pathlib import Path

from tutor.commands.asking import ask_item
from tutor.commands.session import Session, open_session, say_unkept
from tutor.commands.terminal import FELL_SHORT, PASSED, ask, note, say, say_json
from tutor.course.course import kind_of
from tutor.course.model import Exercise, Item
from tutor.review import Agenda, agenda, day_words, scheduled_cards
from tutor.schedule import RATING_WORDS, retrievability

INTERRUPTED = 130


def review(limit: int | None, only_list: bool, as_json: bool, folder: Path | None) -> int:
    """0 when everything asked was right, or nothing was due."""
    session = open_session(folder, create=not (only_list or as_json))
    day = agenda(session.course, session.progress, limit)
    if as_json:
        say_json(_as_json(session, day))
        return PASSED
    if not day.due:
        say("Nothing is due." + (f" The next review is {day.next_words}." if day.next_due else _how_it_begins()))
        return PASSED
    if only_list:
        _list(session, day)
        return PASSED
    return _ask_all(session, day)


def _how_it_begins() -> str:
    return " What you answer comes back here after a day or more."


def _ask_all(session: Session, day: Agenda) -> int:
    asked = day.questions
    right = answered = 0
    try:
        for number, item in enumerate(asked, 1):
            say(f"\n{number} of {len(asked)} · {session.course.module_of(item.id).title}")
            right += ask_item(session, item)
            answered += 1
            say(f"\n{_comes_back(session, item)}")
            if number < len(asked) and sys.stdin.isatty():
                ask("Enter goes on, Ctrl-D stops. ")  # the explanation is to be read before the next question
    except (EOFError, KeyboardInterrupt) as end:
        note(f"Stopped after {answered} of {len(asked)}. The others stay due.")
        say_unkept(session.progress)
        return INTERRUPTED if isinstance(end, KeyboardInterrupt) else FELL_SHORT
    if asked:
        say(f"\n{right} of {len(asked)} right.")
    _say_exercises(day.exercises)
    if day.left_over:
        say(f"{day.left_over} more due: triton-prep review")
    after = agenda(session.course, session.progress)
    if not after.due and after.next_due:
        say(f"The next review is {after.next_words}.")
    say_unkept(session.progress)
    return PASSED if right == len(asked) else FELL_SHORT


def _comes_back(session: Session, item: Item) -> str:
    card = session.progress.cards().get(item.id)
    if card is None:
        return ""
    return f"Counts as {RATING_WORDS[card.rating]}: comes back {day_words(card.due, session.progress.today())}."


def _say_exercises(exercises: tuple[Exercise, ...]) -> None:
    if not exercises:
        return
    say("\nDue as well, to be written again from the stub (your version is kept as a backup):")
    for item in exercises:
        say(f"  {item.title}: triton-prep reset {item.exercise}, then triton-prep grade {item.exercise}")


def _list(session: Session, day: Agenda) -> None:
    say(f"Due: {day.words}." + (f" Left for later: {day.left_over} more." if day.left_over else ""))
    longest = max(len(item.id) for item in day.due)
    for item in day.due:
        slug = f"  [{item.exercise}]" if isinstance(item, Exercise) else ""
        say(f"  {item.id:{longest}}  {kind_of(item):8}  {item.title}{slug}")


def _as_json(session: Session, day: Agenda) -> dict[str, object]:
    cards = scheduled_cards(session.course, session.progress)
    return {
        "schema": 1,
        "date": day.today.isoformat(),
        "due": [
            {
                "id": item.id,
                "kind": kind_of(item),
                "module": session.course.module_of(item.id).id,
                "title": item.title,
                "exercise": item.exercise if isinstance(item, Exercise) else None,
                "due": cards[item.id].due.isoformat(),
                "retrievability": round(retrievability(cards[item.id], day.today), 4),
                "reviews": cards[item.id].reviews,
                "lapses": cards[item.id].lapses,
            }
            for item in day.due
        ],
        "left_over": day.left_over,
        "minutes": sum(item.minutes for item in day.due),
        "next_due": day.next_due.isoformat() if day.next_due else None,
        "next_count": day.next_count,
    }
