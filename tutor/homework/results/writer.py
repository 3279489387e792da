"""Writes results as they come: a learner's files once the learner is complete, the tables anew with each."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tutor.homework.assignment import Assignment, Exercise
from tutor.homework.files import folder_name, write
from tutor.homework.marking import Result
from tutor.homework.results import class_page, classroom, feedback, gradescope, junit, similarity, tables, told
from tutor.homework.work import Facts
from tutor.html_page import left_out_words
from tutor.verdict_text import TitleOf, untitled

FORMATS = ("csv", "json", "junit", "gradescope", "classroom", "feedback", "class", "similarity")
TABLE_EVERY = 2.0  # seconds: the tables of a large class are not written anew for each of many learners at once


class Writer:
    def __init__(
        self,
        out: Path,
        formats: Sequence[str],
        assignment: Assignment,
        asked: Sequence[Exercise],
        title_of: TitleOf = untitled,
    ) -> None:
        self._title_of = title_of
        self.out, self.formats = out, frozenset(formats)
        self.assignment, self.asked = assignment, tuple(asked)
        self.facts: Facts | None = None
        self.results: dict[str, Result] = {}
        self._folders: dict[str, str] = {}
        self._tables_at = 0.0

    def learner(self, result: Result) -> None:
        """Raises OSError when they cannot be written."""
        self.results[result.learner] = result
        folder = self.out / "learners" / folder_name(result.learner)
        by_name = {one.exercise: one for one in self.asked}
        said = [told.tell(mark, by_name[mark.exercise], self._title_of) for mark in result.counted.marks]
        seconds = {mark.exercise: mark.seconds for mark in result.counted.marks}
        title = f"{self.assignment.title}: {result.learner}"
        if "gradescope" in self.formats:
            write(folder / "results.json", _json(gradescope.results_json(result, said, title, sum(seconds.values()))))
        if "classroom" in self.formats:
            write(folder / "classroom.json", _json(classroom.classroom_json(result, said, seconds)))
        if "junit" in self.formats:
            write(folder / "junit.xml", junit.junit_xml(result.learner, said))
        if "feedback" in self.formats:
            heading = told.heading(result, title)
            write(folder / "feedback.md", feedback.markdown(heading, said))
            write(folder / "feedback.html", feedback.page(heading, said))
        if time.monotonic() - self._tables_at > TABLE_EVERY:
            self.tables()
            self._tables_at = time.monotonic()

    def tables(self) -> None:
        results = [self.results[name] for name in sorted(self.results)]
        if "csv" in self.formats:
            write(self.out / "results.csv", tables.results_csv(results, self.asked))
            write(self.out / "times.csv", tables.times_csv(results))
        if "json" in self.formats:
            write(self.out / "summary.json", _json(self.summary()))

    def summary(self) -> dict[str, Any]:
        assert self.facts is not None
        results = [self.results[name] for name in sorted(self.results)]
        return tables.summary(results, self.asked, self.assignment, self.facts)

    def end(self) -> list[str]:
        """The pages of the class. Returns what could not be made, in words."""
        self.tables()
        results = [self.results[name] for name in sorted(self.results)]
        problems = self._class_page(results) if "class" in self.formats else []
        if "similarity" in self.formats and len(results) > 1:
            problems += self._similarity(results)
        return problems

    def _class_page(self, results: Sequence[Result]) -> list[str]:
        try:
            page = class_page.class_page(self.assignment.title, self.summary()["notes"], results, self.asked)
        except ImportError as error:  # of the plots: no grade hangs on them
            return [left_out_words("class.html", error)]
        write(self.out / "class.html", page)
        return []

    def _similarity(self, results: Sequence[Result]) -> list[str]:
        handed_in: dict[str, dict[str, str]] = {}
        sources: dict[str, bytes] = {}
        for result in results:
            for slug, content in result.counted.attempt.files.items():
                handed_in.setdefault(slug, {})[result.learner] = content.sha256
                sources[content.sha256] = content.path.read_bytes()
        asked = {one.exercise for one in self.asked}
        try:
            found = similarity.likeness({slug: by for slug, by in handed_in.items() if slug in asked}, sources)
        except similarity.NotInstalled as error:
            return [str(error)]
        write(self.out / "similarity.html", similarity.similarity_page(self.assignment.title, found))
        write(self.out / "similarity.json", _json(msgspec.to_builtins(found)))
        return []


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
