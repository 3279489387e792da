"""A grader on a node of a cluster. It takes and gives plain data; what starts it lies in `tutor.homework.cluster`."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tutor.homework.places import Local
from tutor.homework.submissions import Content
from tutor.homework.work import CannotGrade, Work, course_digest


class NodeGrader:
    """One grader process, kept warm from one piece of work to the next. Every call blocks."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._place = Local(1, alone=True)

    def facts(self) -> dict[str, Any]:
        """Raises CannotGrade."""
        facts = self._runner.run(self._place.facts())
        return {**asdict(facts), "host": socket.gethostname(), "course": course_digest()}

    def grade(self, work: Mapping[str, Any], source: bytes) -> dict[str, Any]:
        """`work`: the fields of a Work but its content. Raises CannotGrade."""
        sha256 = hashlib.sha256(source).hexdigest()
        # a folder for this file alone: no later submission can find it
        with tempfile.TemporaryDirectory(prefix="triton-prep-homework-") as folder:
            path = Path(folder) / f"{sha256}.py"
            path.write_bytes(source)
            graded = self._runner.run(self._place.grade(Work(content=Content(sha256, path.name, path), **work)))
        return asdict(graded)

    def close(self) -> None:
        self._runner.run(self._place.close())
        self._runner.close()


def start() -> tuple[NodeGrader, dict[str, Any]]:
    """Raises CannotGrade."""
    grader = NodeGrader()
    try:
        return grader, grader.facts()
    except CannotGrade:
        grader.close()
        raise
