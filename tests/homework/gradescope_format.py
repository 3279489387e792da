"""Gradescope's results.json as its documentation has it: gradescope-autograders.readthedocs.io/en/latest/specs, "Output
format", read in 2026. Keys that it does not name are refused, so that a misspelt one is found."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Visibility = Literal["hidden", "after_due_date", "after_published", "visible"]
Format = Literal["text", "html", "simple_format", "md", "ansi"]


class Test(msgspec.Struct, forbid_unknown_fields=True):
    __test__ = False  # no test class of pytest's

    score: float | msgspec.UnsetType = msgspec.UNSET
    max_score: float | msgspec.UnsetType = msgspec.UNSET
    status: Literal["passed", "failed"] | msgspec.UnsetType = msgspec.UNSET
    name: str = ""
    name_format: Format = "text"
    number: str = ""
    output: str = ""
    output_format: Format = "text"
    tags: list[str] = []
    visibility: Visibility = "visible"
    extra_data: dict[str, Any] = {}


class Results(msgspec.Struct, forbid_unknown_fields=True):
    score: float | msgspec.UnsetType = msgspec.UNSET
    execution_time: float = 0
    output: str = ""
    output_format: Format = "text"
    test_output_format: Format = "text"
    test_name_format: Format = "text"
    visibility: Visibility = "visible"
    stdout_visibility: Visibility = "hidden"
    extra_data: dict[str, Any] = {}
    tests: list[Test] = []
    leaderboard: list[dict[str, Any]] = []


def parsed(text: bytes | str) -> Results:
    """Raises msgspec.ValidationError for another format."""
    found = msgspec.json.decode(text, type=Results)
    if found.score is msgspec.UNSET and all(test.score is msgspec.UNSET for test in found.tests):
        raise msgspec.ValidationError("a score is required, of the whole or of the tests")
    return found
