"""`pytest --triton-prep` in a learner's folder: one test a case of each exercise, the diagnosis as the failure's text.

Without the option, or `triton_prep = true` in pytest's ini file, it does nothing and loads nothing. One grader serves
the whole session; under xdist each worker has its own, and what one has graded the others read.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import asyncio

    from grader.catalog import ExerciseFiles
    from tutor.grading import Event

WHOLE = "the whole"  # what no single case shows: the file's import, its compile, whether the kernel matters
NOT_JUDGED = ("skipped", "not_run")
OPTION, SHARED = "triton_prep", "triton_prep_shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "grade the exercises of triton-prep found here, one test a case"
    parser.getgroup("triton-prep").addoption("--triton-prep", action="store_true", default=False, help=text)
    parser.addini(OPTION, text, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption(OPTION) or config.getini(OPTION):
        config.pluginmanager.register(Grading(config), "triton-prep-grading")


class Shortfall(Exception):
    """What is wrong, in words, and at which line."""


class Grading:
    """What the option switches on."""

    def __init__(self, config: pytest.Config) -> None:
        from grader.catalog import exercises

        self.exercises = {one.slug: one for one in exercises()}
        self._runner: asyncio.Runner | None = None
        self._grader: Any = None
        self._verdicts: dict[str, dict[str, Any]] = {}
        given = getattr(config, "workerinput", {}).get(SHARED)
        self._owned = given is None
        self._shared = Path(given or tempfile.mkdtemp(prefix="triton-prep-pytest-"))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[SHARED] = str(self._shared)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        exercise = self._exercise(file_path)
        return ExerciseFile.from_parent(parent, path=file_path, exercise=exercise, grading=self) if exercise else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """A learner's file that is named on the command line must not be imported into this process."""
        return Nothing.from_parent(parent, path=module_path) if self._exercise(module_path) else None

    def pytest_unconfigure(self) -> None:
        if self._runner is not None:
            self._runner.run(self._grader.close())
            self._runner.close()
        if self._owned:
            shutil.rmtree(self._shared, ignore_errors=True)

    def _exercise(self, path: Path) -> ExerciseFiles | None:
        return self.exercises.get(path.stem) if path.suffix == ".py" else None

    def cases(self, exercise: ExerciseFiles) -> list[str]:
        """Raises Shortfall."""
        return self._last("ask", "cases", exercise.slug, exercise.stub).data["cases"]

    def verdict(self, exercise: ExerciseFiles, path: Path) -> dict[str, Any]:
        """Graded once, whoever asks. Raises Shortfall."""
        name = f"{exercise.slug}-{os.fsencode(path).hex()[-80:]}"
        if name not in self._verdicts:
            kept = self._shared / f"{name}.json"
            with open(self._shared / f"{name}.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not kept.exists():
                    kept.write_text(json.dumps(self._graded(exercise, path)), encoding="utf-8")
                self._verdicts[name] = json.loads(kept.read_text(encoding="utf-8"))
        return self._verdicts[name]

    def _graded(self, exercise: ExerciseFiles, path: Path) -> dict[str, Any]:
        from tutor.grading import GradeRequest

        return self._last("grade", GradeRequest(exercise.slug, path, time=False, keep_going=True)).verdict

    def _last(self, operation: str, *arguments: Any) -> Any:
        """The event that ends a request. Raises Shortfall."""
        import asyncio

        from tutor.grading import LAST_EVENTS, Failed, Grader

        if self._runner is None:
            self._runner, self._grader = asyncio.Runner(), Grader()

        async def listen() -> Event | None:
            last = None
            async for event in getattr(self._grader, operation)(*arguments):
                last = event if isinstance(event, LAST_EVENTS) else last
            return last

        last = self._runner.run(listen())
        if last is None or isinstance(last, Failed):
            raise Shortfall(last.message if last else "the grader gave no answer")
        return last


class Nothing(pytest.File):
    def collect(self) -> Iterable[pytest.Item]:
        return []


class ExerciseFile(pytest.File):
    def __init__(self, *, exercise: ExerciseFiles, grading: Grading, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.exercise, self.grading = exercise, grading

    def collect(self) -> Iterator[pytest.Item]:
        names = [] if self.untouched else self._cases()
        for name in (*names, WHOLE):
            yield CaseItem.from_parent(self, name=name)

    def _cases(self) -> list[str]:
        try:
            return self.grading.cases(self.exercise)
        except Shortfall as error:
            raise self.CollectError(str(error)) from error

    @property
    def untouched(self) -> bool:
        return self.path.read_bytes() == self.exercise.stub.read_bytes()


class CaseItem(pytest.Item):
    parent: ExerciseFile

    def runtest(self) -> None:
        """Raises Shortfall."""
        from tutor.verdict_text import remark_lines, status_words

        if self.parent.untouched:
            pytest.skip(status_words("not_started"))
        verdict = self.parent.grading.verdict(self.parent.exercise, self.path)
        status, cases = str(verdict["status"]), {case["name"]: case for case in verdict.get("cases") or ()}
        failed = [case for case in cases.values() if case["status"] not in ("passed", *NOT_JUDGED)]
        if status == "not_started":
            pytest.skip(status_words(status))
        if status == "infrastructure_error":
            raise Shortfall("\n".join([status_words(status), *map(str, verdict.get("notes") or ())]))
        if self.name != WHOLE:
            self._one(cases.get(self.name), verdict)
        elif status != "passed" and failed:
            pytest.skip("a case failed")
        elif status != "passed":
            raise Shortfall(self._text(verdict))
        elif remark := "\n".join(line.text for line in remark_lines(verdict, self._source())):
            self.add_report_section("call", "remark", remark)  # pytest shows it with -rP

    def _one(self, case: dict[str, Any] | None, verdict: dict[str, Any]) -> None:
        from tutor.verdict_text import status_words

        if case is None or case["status"] == "not_run":
            pytest.skip(f"not judged: {status_words(str(verdict['status']))}")
        if case["status"] == "skipped":
            pytest.skip(str(case.get("message") or "skipped"))
        if case["status"] != "passed":
            raise Shortfall(self._case_text(case, verdict))

    def _case_text(self, case: dict[str, Any], verdict: dict[str, Any]) -> str:
        """With the diagnosis where it belongs: it is about the first case that failed."""
        from tutor.verdict_text import case_facts, status_words

        first = next(one for one in verdict["cases"] if one["status"] not in ("passed", *NOT_JUDGED))
        if first is case or first["name"] == case["name"]:
            return self._text({**verdict, "status": case["status"], "cases": [case]})
        facts = [f"  {text}" for text in case_facts(case)]
        return "\n".join([status_words(str(case["status"])), *facts, f"Why: see the case {first['name']}"])

    def _text(self, verdict: dict[str, Any]) -> str:
        from tutor.verdict_text import shortfall_lines

        return "\n".join(line.text for line in shortfall_lines(verdict, self._source()))

    def _source(self) -> str:
        return self.path.read_text(encoding="utf-8", errors="replace")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, Shortfall) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.parent.exercise.slug}: {self.name}"
