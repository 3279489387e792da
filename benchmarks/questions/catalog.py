"""All the questions, by name."""

from __future__ import annotations

from itertools import chain

from benchmarks.questions import (
    attentions,
    decoding,
    elementwise,
    launching,
    layouts,
    matmuls,
    reductions,
    tuning,
)
from benchmarks.questions.question import Question

TOPICS = (elementwise, launching, layouts, reductions, tuning, matmuls, attentions, decoding)


def by_name(questions: list[Question]) -> dict[str, Question]:
    """Raises ValueError where two have one name."""
    found = {question.name: question for question in questions}
    if len(found) < len(questions):
        raise ValueError("two questions have the same name")
    return found


QUESTIONS = by_name(list(chain.from_iterable(topic.QUESTIONS for topic in TOPICS)))
