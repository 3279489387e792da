"""Ways a grade can end without the learner's work being judged. No torch here."""

from __future__ import annotations

from typing import Any


class Unavailable(Exception):
    """The machine lacks what was asked for: exit code 3."""


class Cancelled(Exception):
    """The learner stopped the grade."""


class RunnerGone(Exception):
    """The runner ended before it answered; `status` is the verdict's status, the text says how it ended."""

    def __init__(self, status: str, message: str) -> None:
        self.status = status
        self.printed: dict[str, Any] | None = None  # what it had printed, where nobody else can tell any more
        super().__init__(message)


class NotStarted(RunnerGone):
    """It ended before it came to the learner's file."""


class BadSubmission(Exception):
    """What was asked cannot be shown for this file: the text says where and why."""


class Refused(Exception):
    """The learner's file could not be imported."""

    def __init__(self, reply: dict[str, Any], printed: dict[str, Any]) -> None:
        self.reply, self.printed = reply, printed
        super().__init__(reply.get("message"))
