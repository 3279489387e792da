"""What a pane needs of the world outside the screen, in one value that the app owns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from textual.dom import DOMNode

from tutor.course.course import Course
from tutor.progress import Progress

if TYPE_CHECKING:
    from tutor.grading import Grader
    from tutor.workspace import Workspace


Words = str | Callable[[], str]  # a text that names keys is asked for again when they have been changed


@dataclass(frozen=True)
class Desk:
    course: Course
    progress: Progress
    workspace: Workspace
    grader: Grader


def desk(node: DOMNode) -> Desk:
    """The desk of the app that `node` is in."""
    return cast(Desk, getattr(node.app, "desk"))  # noqa: B009 - the app's type would be a circular import


def key_of(node: DOMNode, action: str, usual: str) -> str:
    """The key to name in a text: the learner's own for `action`, else the usual one."""
    named = getattr(node.app, "key_of")  # noqa: B009
    return cast(str, named(action, usual))


def said(words: Words) -> str:
    """What they say with the keys that are in force now."""
    return words if isinstance(words, str) else words()
