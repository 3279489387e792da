"""progress: what is done, how well it is known, what comes next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tutor.commands.session import Session, open_session
from tutor.commands.terminal import PASSED, say, say_json
from tutor.course.course import kind_of
from tutor.mastery import best_times, concepts, streak
from tutor.review import agenda, load_ahead, next_best, scheduled_cards
from tutor.schedule import RATING_WORDS
from tutor.standing import Standing, standing

SHOWN_CONCEPTS = 5


def progress(as_json: bool, folder: Path | None) -> int:
    session = open_session(folder, create=False)
    status = standing(session.course, session.progress)
    if as_json:
        say_json(_as_json(session, status))
        return PASSED
    longest = max(len(part.module.title) for part in status.modules)
    for part in status.modules:
        filled = round(20 * part.done / part.total)
        bar = "█" * filled + "░" * (20 - filled)
        say(f"{part.module.id}  {part.module.title:{longest}}  {bar}  {part.done:3} of {part.total}")
    say(f"\n{status.done} of {status.total} done.")
    _say_habit(session)
    _say_times(session)
    _say_concepts(session)
    day = agenda(session.course, session.progress)
    best = next_best(day, status)
    if best.kind == "review":
        say(f"Due: {day.words}\n     triton-prep review")
    elif day.next_due:
        say(f"The next review is {day.next_words}.")
    if status.next_item:
        say(f"Next: {status.next_item.id}  {status.next_item.title}")
    return PASSED


def _say_habit(session: Session) -> None:
    attempts = session.progress.attempts()
    if not attempts:
        return
    row = streak(attempts, session.progress.today())
    days = "1 day" if row.days == 1 else f"{row.days} days"
    say(f"{len(attempts)} answers, {row.today} today; {days} in a row, {row.longest} at most.")


def _say_times(session: Session) -> None:
    times = best_times(session.progress.attempts())
    quick = [best.seconds for best in times.values() if best.seconds is not None]
    if quick:
        say(f"Right answers, each at its quickest: {sum(quick) / len(quick):.0f} s on average.")
    fast = {item_id: best.median_us for item_id, best in times.items() if best.median_us is not None}
    if fast:
        shown = ", ".join(f"{item_id} {median:.1f} µs" for item_id, median in sorted(fast.items()))
        say(f"Fastest kernels: {shown}.")


def _say_concepts(session: Session) -> None:
    begun = [concept for concept in concepts(session.course, session.progress) if concept.answered]
    if not begun:
        return
    say("\nWeakest concepts (last score × chance of recall today, mean over all items):")
    widest = max(len(concept.name) for concept in begun[:SHOWN_CONCEPTS])
    for concept in begun[:SHOWN_CONCEPTS]:
        say(f"  {concept.name:{widest}}  {concept.mastery:4.0%}  {concept.answered} of {concept.items} items answered")
    say()


def _as_json(session: Session, status: Standing) -> dict[str, Any]:
    states, attempts = session.progress.states(), session.progress.attempts()
    cards, times = scheduled_cards(session.course, session.progress), best_times(attempts)
    today, day = session.progress.today(), agenda(session.course, session.progress)
    habit, best = streak(attempts, today), next_best(day, status)
    items = []
    for item in session.course.items():
        if (state := states.get(item.id)) is None:
            continue
        card, time = cards.get(item.id), times.get(item.id)
        items.append(
            {
                "id": item.id,
                "kind": kind_of(item),
                "passed": state.passed,
                "best": state.best,
                "attempts": state.attempts,
                "hints": state.hints,
                "gave_up": state.gave_up,
                "due": card.due.isoformat() if card else None,
                "rating": RATING_WORDS[card.rating] if card else None,
                "best_seconds": time.seconds if time else None,
                "best_median_us": time.median_us if time else None,
            }
        )
    return {
        "schema": 1,
        "done": status.done,
        "total": status.total,
        "next": status.next_item.id if status.next_item else None,
        "modules": [
            {"id": part.module.id, "title": part.module.title, "done": part.done, "total": part.total}
            for part in status.modules
        ],
        "items": items,
        "attempts": len(attempts),
        "streak": {"days": habit.days, "longest": habit.longest, "answers_today": habit.today},
        "concepts": [
            {"name": each.name, "mastery": round(each.mastery, 4), "answered": each.answered, "items": each.items}
            for each in concepts(session.course, session.progress)
        ],
        "review": {
            "due": len(day.due),
            "minutes": sum(item.minutes for item in day.due),
            "next_due": day.next_due.isoformat() if day.next_due else None,
            "ahead": [{"date": when.isoformat(), "due": count} for when, count in load_ahead(cards, today)],
        },
        "next_best": {"kind": best.kind, "item": best.item_id, "words": best.words},
    }
