"""The course as values: what a module's YAML may say. `modules/schema.json` is generated from these types."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# m04.quiz.shift: the module, the kind, a name
ItemId = Annotated[str, Meta(pattern=r"^(m\d\d|drills)\.[a-z]+(\.[a-z0-9_-]+)+$")]
# test:tests/evidence/test_m04.py::test_shift   or   doc:Triton 3.7, triton.language.load
Evidence = Annotated[str, Meta(pattern=r"^(test:tests/[\w/]+\.py::\w+|doc:.{8,})$")]
Markdown = Annotated[str, Meta(min_length=1)]
Difficulty = Annotated[int, Meta(ge=1, le=3, description="1 warm-up, 2 expected in a screen, 3 senior")]


class Base(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class ItemBase(Base, frozen=True, kw_only=True):
    id: ItemId
    title: str
    difficulty: Difficulty = 1
    minutes: Annotated[int, Meta(ge=1, le=120)] = 2
    concept: str = ""  # "masking", "strides", …: what mastery and diagnosis refer to
    evidence: tuple[Evidence, ...] = ()
    aliases: tuple[ItemId, ...] = ()  # ids this item had before


class Page(Base, frozen=True, kw_only=True):
    title: str
    text: Markdown  # at most 60 lines


class Lesson(ItemBase, frozen=True, kw_only=True, tag_field="kind", tag="lesson"):
    pages: Annotated[tuple[Page, ...], Meta(min_length=1)]


class Option(Base, frozen=True, kw_only=True):
    text: str
    why: str  # shown after answering, for right and wrong options alike
    correct: bool = False


class Quiz(ItemBase, frozen=True, kw_only=True, tag_field="kind", tag="quiz"):
    question: Markdown
    options: Annotated[tuple[Option, ...], Meta(min_length=2, max_length=8)]
    code: str = ""  # shown above the options
    remember: str = ""  # one sentence to take along

    @property
    def several(self) -> bool:
        """Whether more than one option is right: all of them must be ticked."""
        return sum(option.correct for option in self.options) > 1


class Mend(Base, frozen=True, kw_only=True):
    line: Annotated[int, Meta(ge=1)]  # 1-based line of `code` that is replaced
    text: str  # one or several lines; empty deletes the line


class Bug(ItemBase, frozen=True, kw_only=True, tag_field="kind", tag="bug"):
    story: Markdown  # what was seen: the symptom, the call
    code: str  # a whole submission for `exercise`; the three usual imports are put before it when it has none
    faulty: Annotated[tuple[int, ...], Meta(min_length=1)]  # 1-based lines of `code`; picking any one is right
    mends: Annotated[tuple[Mend, ...], Meta(min_length=1)]  # all applied together, they mend it
    exercise: str  # the slug whose grader proves bug and mend
    status: str  # the verdict's status when `code` is graded
    cause: str  # the diagnosis's cause
    explain: Markdown
    hint: str = ""
    needs_gpu: str = ""  # why it shows only on a GPU; empty: the interpreter shows it


class Pair(Base, frozen=True, kw_only=True):
    left: str
    right: str
    why: str = ""


class Match(ItemBase, frozen=True, kw_only=True, tag_field="kind", tag="match"):
    prompt: Markdown
    pairs: Annotated[tuple[Pair, ...], Meta(min_length=2, max_length=8)]


class Step(Base, frozen=True, kw_only=True):
    text: Markdown
    lines: tuple[int, ...] = ()  # 1-based lines of the stage to mark
    state: dict[str, str] = {}  # the whole table at this step: name to value, both as shown


class Walkthrough(ItemBase, frozen=True, kw_only=True, tag_field="kind", tag="walkthrough"):
    intro: Markdown
    stage: str  # code or a drawing, at most 72 columns
    steps: Annotated[tuple[Step, ...], Meta(min_length=2)]
    language: Literal["python", "text"] = "python"


class Measurement(Base, frozen=True, kw_only=True):
    device: str
    versions: str
    date: str
    figure: str  # as shown: "0.97 of copy bandwidth"


class Predict(ItemBase, frozen=True, kw_only=True, tag_field="kind", tag="predict"):
    question: Markdown
    options: Annotated[tuple[Option, ...], Meta(min_length=2, max_length=8)]
    measured: Measurement
    code: str = ""


class RubricPoint(Base, frozen=True, kw_only=True):
    text: str
    points: Annotated[int, Meta(ge=1, le=5)] = 1


class Open(ItemBase, frozen=True, kw_only=True, tag_field="kind", tag="open"):
    question: Markdown
    answer: Markdown
    rubric: Annotated[tuple[RubricPoint, ...], Meta(min_length=2)]
    followups: tuple[str, ...] = ()
    strong: str = ""  # what sets a strong answer apart
    weak: str = ""  # what a weak answer says


class Exercise(ItemBase, frozen=True, kw_only=True, tag_field="kind", tag="exercise"):
    exercise: str  # the slug: exercises/<NN-module>/<slug>
    brief: Markdown  # why it is here, what to practise; the task itself is in the stub
    after: str = ""  # once passed, at most 60 lines: what is asked next, what it costs, what would be faster


Item = Lesson | Quiz | Bug | Match | Walkthrough | Predict | Open | Exercise


class Note(Base, frozen=True, kw_only=True):
    text: Markdown
    evidence: Annotated[tuple[Evidence, ...], Meta(min_length=1)]


class Module(Base, frozen=True, kw_only=True):
    id: Annotated[str, Meta(pattern=r"^(m\d\d|drills)$")]
    title: str
    blurb: Annotated[str, Meta(max_length=200)]
    probes: Markdown  # what interviewers probe here
    items: Annotated[tuple[Item, ...], Meta(min_length=1)]
    gotchas: tuple[Note, ...] = ()
    versions: tuple[Note, ...] = ()
    next: Markdown = ""  # what comes next
