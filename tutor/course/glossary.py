"""The course's terms as values: what modules/glossary.yaml may say, and modules/glossary.schema.json from the types."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from tutor.course.course import Course
from tutor.course.loader import CourseError, CourseErrors, modules_folder
from tutor.course.model import Base, ItemId
from tutor.course.typed_yaml import json_schema, load_typed


class Term(Base, frozen=True, kw_only=True):
    term: Annotated[str, Meta(min_length=1, max_length=32)]
    text: Annotated[str, Meta(min_length=10, max_length=320)]  # one or two sentences
    item: ItemId  # the item that teaches it
    also: tuple[str, ...] = ()  # other names and spellings, found as the term is

    @property
    def names(self) -> tuple[str, ...]:
        return (self.term, *self.also)


class Glossary(Base, frozen=True, kw_only=True):
    terms: Annotated[tuple[Term, ...], Meta(min_length=1)]


class UnknownTerm(KeyError):
    """Nothing in the glossary goes by this name; the text names what comes near."""

    def __init__(self, name: str, terms: Iterable[Term]) -> None:
        known = {_folded(other): term.term for term in terms for other in term.names}
        near = list(dict.fromkeys(known[key] for key in difflib.get_close_matches(_folded(name), known, n=3)))
        advice = f"Did you mean {' or '.join(near)}?" if near else "`triton-prep glossary` lists every term."
        self.text = f"The glossary has no {name!r}. {advice}"
        super().__init__(self.text)

    def __str__(self) -> str:
        return self.text


def glossary_file() -> Path:
    return modules_folder() / "glossary.yaml"


def load_glossary(file: Path | None = None) -> tuple[Term, ...]:
    """In alphabetical order; empty where the course has none. Raises CourseErrors, with file, line and advice."""
    file = file or glossary_file()
    if not file.is_file():
        return ()
    terms = load_typed(file, Glossary, "terms", "term").terms
    if errors := _repeated(file, terms):
        raise CourseErrors(errors)
    return tuple(sorted(terms, key=lambda term: _folded(term.term)))


def find(terms: Iterable[Term], name: str) -> tuple[Term, ...]:
    """The term of that name, else all that have it in a name of theirs. Raises UnknownTerm."""
    terms = tuple(terms)
    wanted = _folded(name)
    exact = tuple(term for term in terms if wanted in map(_folded, term.names))
    found = exact or matching(terms, name)
    if not found:
        raise UnknownTerm(name, terms)
    return found


def matching(terms: Iterable[Term], typed: str) -> tuple[Term, ...]:
    """Those with `typed` in a name: names that begin with it first."""
    wanted = _folded(typed)
    found = [term for term in terms if any(wanted in _folded(name) for name in term.names)]
    return tuple(sorted(found, key=lambda term: not any(_folded(name).startswith(wanted) for name in term.names)))


def occurring(terms: Iterable[Term], text: str) -> tuple[Term, ...]:
    """The terms that `text` uses, as whole words, in the singular or with an s."""
    return tuple(term for term in terms if any(_use_of(name).search(text) for name in term.names))


def item_errors(terms: Iterable[Term], course: Course, file: Path | None = None) -> tuple[CourseError, ...]:
    """Terms whose item the course does not hold."""
    file = file or glossary_file()
    known = [item.id for item in course.items()]
    errors = []
    for term in terms:
        if term.item not in known:
            near = difflib.get_close_matches(term.item, known, n=1)
            advice = f"did you mean {near[0]}?" if near else "`triton-prep list` shows every id"
            line = _line_of(file, term.term)
            errors.append(CourseError(str(file), line, term.term, f"there is no item {term.item}", advice))
    return tuple(errors)


def schema_text() -> str:
    return json_schema(Glossary, "The glossary")


def schema_file() -> Path:
    return modules_folder() / "glossary.schema.json"


def _folded(name: str) -> str:
    """`Split-K`, `split K` and `split_k` are one name."""
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


@cache
def _use_of(name: str) -> re.Pattern[str]:
    spelled = r"[\s_-]+".join(re.escape(part) for part in re.split(r"[\s_-]+", name))
    before = r"(?<![\w.])" if name[0].isalnum() else ""
    after = r"s?(?!\w)" if name[-1].isalnum() else ""
    return re.compile(before + spelled + after, re.IGNORECASE)


def _line_of(file: Path, name: str) -> int:
    """1-based line of the term's `item:`; 1 when it is not to be found."""
    import yaml

    from tutor.course.lines import Positions

    positions = Positions(file)
    data = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    for number, term in enumerate(data["terms"]):
        if term["term"] == name:
            return positions.line(("terms", number, "item"))
    return 1


def _repeated(file: Path, terms: tuple[Term, ...]) -> tuple[CourseError, ...]:
    from tutor.course.lines import Positions

    owners: dict[str, str] = {}
    errors = []
    for number, term in enumerate(terms):
        for name in term.names:
            owner = owners.setdefault(_folded(name), term.term)
            if owner != term.term or term.names.count(name) > 1:
                line = Positions(file).line(("terms", number))
                message = f"the name {name!r} is taken by {owner!r}"
                errors.append(CourseError(str(file), line, term.term, message, "keep one of them"))
    return tuple(errors)


if __name__ == "__main__":
    schema_file().write_text(schema_text(), encoding="utf-8")
