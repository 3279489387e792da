"""Fifty drills on the built-in course: does a question come twice in a row, and how much oftener do weak topics come?

python -m benchmarks.drill_draws
"""

from __future__ import annotations

import argparse
from collections import Counter

from tutor.course.course import Course
from tutor.course.loader import load
from tutor.drill.draw import History, draw
from tutor.drill.plan import Plan, load_plans

WEAK, STRONG = 0.0, 1.0


def repeats(plan: Plan, course: Course, drills: int, mastery: dict[str, float]) -> tuple[int, Counter[str]]:
    """Questions that also stood in the drill before, and how often each item was drawn."""
    last: frozenset[str] = frozenset()
    again, drawn = 0, Counter[str]()
    for seed in range(drills):
        items = [task.item for task in draw(plan, course, seed, History(mastery, last)).tasks if task.kind != "talk"]
        asked = [item for item in dict.fromkeys(items) if item]
        again += sum(item in last for item in asked)
        drawn.update(asked)
        last = frozenset(asked)
    return again, drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drills", type=int, default=50)
    given = parser.parse_args()
    course = load()
    concept_of = {item.id: item.concept for item in course.items()}
    concepts = sorted({concept for concept in concept_of.values() if concept})
    weak = set(concepts[::4])
    mastery = {concept: WEAK if concept in weak else STRONG for concept in concepts}
    print(f"{len(concepts)} concepts, every fourth weak; {given.drills} drills a plan, without a seed given")
    print(f"{'plan':14}  repeats  share of weak topics: with history, without, odds against strong ones")
    for plan in load_plans():
        again, drawn = repeats(plan, course, given.drills, mastery)
        _, even = repeats(plan, course, given.drills, {})
        shares = [_share(counted, concept_of, weak) for counted in (drawn, even)]
        odds = [share / (1 - share) for share in shares]
        print(f"{plan.name:14}  {again:7}  {shares[0]:.2f}  {shares[1]:.2f}  {odds[0] / odds[1]:.1f} x")


def _share(drawn: Counter[str], concept_of: dict[str, str], weak: set[str]) -> float:
    total = sum(drawn.values())
    return sum(count for item, count in drawn.items() if concept_of[item] in weak) / total


if __name__ == "__main__":
    main()
