"""One run of a homework: what is known from before is taken, the rest is graded, results are written as they come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from grader.catalog import exercises
from tutor.homework.assignment import Assignment, Exercise
from tutor.homework.journal import Journal
from tutor.homework.marking import Marking, Result, allowed, mark_learner
from tutor.homework.places import Place
from tutor.homework.submissions import Content, Learner
from tutor.homework.work import Facts, Graded, Run, Work, is_verified, work_for

Spot = tuple[str, str, str]  # content, exercise, run


class Watcher(Protocol):
    """Hears how the run goes on."""

    def begins(self, facts: Facts, total: int, known: int) -> None: ...

    def graded(self, work: Work, graded: Graded, more: int) -> None:
        """`more`: grades that this one has given rise to."""
        ...

    def complete(self, result: Result) -> None: ...


def asked_of(assignment: Assignment, learners: Iterable[Learner]) -> tuple[Exercise, ...]:
    """The assignment's exercises; where it names none, every one that somebody handed in, in the course's order."""
    if assignment.exercises:
        return assignment.exercises
    found = {slug for learner in learners for one in learner.attempts for slug in (*one.files, *one.problems)}
    return tuple(Exercise(exercise=one.slug) for one in exercises() if one.slug in found)


@dataclass
class HomeworkRun:
    assignment: Assignment
    learners: Sequence[Learner]
    asked: Sequence[Exercise]
    journal: Journal
    place: Place
    watcher: Watcher
    facts: Facts | None = None
    results: dict[str, Result] = field(default_factory=dict)
    _outcomes: dict[Spot, Graded] = field(default_factory=dict)
    _spots: dict[str, tuple[Spot, Content]] = field(default_factory=dict)  # by key
    _needed: dict[Spot, set[str]] = field(default_factory=lambda: defaultdict(set))  # the learners that wait for it
    _waits: dict[str, set[Spot]] = field(default_factory=dict)
    _work: dict[str, Work] = field(default_factory=dict)

    async def go(self) -> list[Result]:
        """The results of all learners, by name. Raises CannotGrade."""
        self.facts = await self.place.facts()
        is_verified(self.assignment, self.facts)
        for learner in self.learners:
            self._waits[learner.name] = set()
            for content, slug in self._contents(learner):
                self._want((content.sha256, slug, "shown"), content, {learner.name})
        known = self._settle_known()
        self.watcher.begins(self.facts, len(self._work) + known, known)
        for work in self._work.values():
            self.place.submit(work)
        for learner in self.learners:
            self._finish(learner)
        if self._work:
            async for graded in self.place.collect():
                self._take(graded)
        return [self.results[learner.name] for learner in self.learners]

    def _contents(self, learner: Learner) -> Iterable[tuple[Content, str]]:
        for attempt in allowed(learner, self.assignment):
            for one in self.asked:
                if one.exercise in attempt.files:
                    yield attempt.files[one.exercise], one.exercise

    def _want(self, spot: Spot, content: Content, learners: set[str]) -> Work:
        """Alike content is graded once, whoever handed it in."""
        assert self.facts is not None
        run: Run = "hidden" if spot[2] == "hidden" else "shown"
        work = work_for(self.assignment, self.facts, spot[1], content, run)
        self._spots[work.key] = spot, content
        self._needed[spot] |= learners
        for name in learners:
            self._waits[name].add(spot)
        self._work.setdefault(work.key, work)
        return work

    def _settle_known(self) -> int:
        """Takes what the journal knows, with the hidden runs that follow from it."""
        known = 0
        while found := [key for key in self._work if key in self.journal.graded]:
            for key in found:
                known += 1
                del self._work[key]
                self._settle(self.journal.graded[key])
        return known

    def _take(self, graded: Graded) -> None:
        self.journal.add(graded)
        work = self._work.pop(graded.key)
        before = set(self._work)
        waiting = self._needed[self._spots[graded.key][0]]
        self._settle(graded)
        new = [key for key in self._work if key not in before]
        for key in new:
            if key in self.journal.graded:
                self._work.pop(key)
                self._settle(self.journal.graded[key])
            else:
                self.place.submit(self._work[key])
        self.watcher.graded(work, graded, sum(key in self._work for key in new))
        for learner in self.learners:
            if learner.name in waiting:
                self._finish(learner)

    def _settle(self, graded: Graded) -> None:
        spot, content = self._spots[graded.key]
        self._outcomes[spot] = graded
        for name in self._needed[spot]:
            self._waits[name].discard(spot)
        passed = graded.verdict is not None and graded.verdict["status"] == "passed"
        if spot[2] == "shown" and passed and self.assignment.hidden.seed is not None:
            self._want((*spot[:2], "hidden"), content, self._needed[spot])

    def _finish(self, learner: Learner) -> None:
        if self._waits[learner.name] or learner.name in self.results:
            return
        assert self.facts is not None
        timed = self.facts.backend == "cuda" and self.assignment.timing == "auto"
        result = mark_learner(learner, Marking(self.assignment, tuple(self.asked), timed, self._outcomes))
        self.results[learner.name] = result
        self.watcher.complete(result)
