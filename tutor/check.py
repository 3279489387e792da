"""`triton-prep check`: the course proves itself. One line a group, failures in full, skips by name."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from grader import catalog
from tutor import batch
from tutor.answers import bug_source, mended_source, submission_line
from tutor.check_evidence import run_evidence
from tutor.commands.terminal import FELL_SHORT, PASSED, Ticker, note, say, say_json
from tutor.course.course import Course
from tutor.course.loader import CourseErrors, load, modules_folder
from tutor.course.model import Bug, Module
from tutor.course.rules import tests_root
from tutor.course.schema import schema_file, schema_text
from tutor.grading import Audited, Event, Failed, Grader, GradeRequest, VerdictReady
from tutor.verdict_text import NOT_JUDGED

SERVERS = min(6, max(2, (os.cpu_count() or 2) // 2))  # a grade keeps about two cores busy


@dataclass
class Group:
    """One kind of claim: how often it was checked, what failed, what could not be checked here."""

    name: str
    checked: int = 0
    failures: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)  # name, reason

    def line(self) -> str:
        glyph = "✗ FAIL" if self.failures else "✓ pass"
        parts = [f"{self.checked} checked"]
        if self.failures:
            parts.append(f"{len(self.failures)} failed")
        if self.skipped:
            parts.append(f"{len(self.skipped)} skipped")
        return f"{glyph}  {self.name}: {', '.join(parts)}"


def run(as_json: bool, evidence: bool, only: Path | None = None) -> int:
    """`only`: an added module file or course directory; the rest of the course is taken as checked."""
    groups: list[Group] = []
    course = _course(groups, only)
    if course is not None:
        exercises = [files for files in catalog.exercises() if _concerns(files.problem, only)]
        modules = [m for m, file in zip(course.modules, course.files, strict=True) if _concerns(file, only)]
        groups.append(_exercises_taught(course, exercises))
        groups += _graded(modules, exercises)
        if evidence:
            groups.append(_evidence(course, modules))
    if as_json:
        say_json({"schema": 1, "groups": [msgspec.to_builtins(group) for group in groups]})
    else:
        _report(groups)
    return FELL_SHORT if any(group.failures for group in groups) else PASSED


def _report(groups: list[Group]) -> None:
    for group in groups:
        say(group.line())
        for failure in group.failures:
            say("    " + failure.replace("\n", "\n    "))
    skipped = [(group.name, *skip) for group in groups for skip in group.skipped]
    if skipped:
        say(f"Skipped ({len(skipped)}):")
        for group_name, name, reason in skipped:
            say(f"    {group_name}: {name}: {reason}")
    failed = sum(len(group.failures) for group in groups)
    say(f"{failed} failures." if failed else "The course holds.")


def _concerns(file: Path, only: Path | None) -> bool:
    if only is None or file.resolve().is_relative_to(only):
        return True
    # the exercises of one module file
    return only.is_file() and file.resolve().is_relative_to(only.parents[1] / "exercises" / only.stem)


def _course(groups: list[Group], only: Path | None) -> Course | None:
    schema = Group("schema, ids, pages, code width, evidence names")
    groups.append(schema)
    course = None
    try:
        course = load(cache=False, thorough=True)
    except CourseErrors as errors:
        schema.failures += [_relative(str(error)) for error in errors.errors if _concerns(Path(error.file), only)]
        try:
            course = load(cache=False)  # without the authors' rules: the rest can still be checked
        except CourseErrors:
            note("The modules cannot be read: exercises, bugs and evidence were not checked.")
    if course is not None:
        read = zip(course.modules, course.files, strict=True)
        schema.checked = sum(len(module.items) for module, file in read if _concerns(file, only))
    if only is not None:
        return course
    generated = Group("modules/schema.json is what the types give", checked=1)
    if not schema_file().is_file() or schema_file().read_text(encoding="utf-8") != schema_text():
        generated.failures.append(f"{schema_file()}: out of date; run: python -m tutor.course.schema")
    groups.append(generated)
    if course is not None:
        groups.append(_drill_plans(course))
        groups.append(_glossary(course))
    return course


def _drill_plans(course: Course) -> Group:
    from tutor.drill import plan

    group = Group("drill plans load, and the course fills them")
    if not plan.plans_file().is_file():
        group.skipped.append((plan.plans_file().name, "this course has no drill plans"))
        return group
    try:
        plans = plan.load_plans()
        group.checked = len(plans)
        group.failures += [_relative(str(error)) for error in plan.pool_errors(plans, course)]
    except CourseErrors as errors:
        group.failures += [_relative(str(error)) for error in errors.errors]
    if not plan.schema_file().is_file() or plan.schema_file().read_text(encoding="utf-8") != plan.schema_text():
        group.failures.append(f"{plan.schema_file()}: out of date; run: python -m tutor.drill.plan")
    return group


def _glossary(course: Course) -> Group:
    from tutor.course import glossary

    group = Group("the glossary loads, and its items exist")
    if not glossary.glossary_file().is_file():
        group.skipped.append((glossary.glossary_file().name, "this course has no glossary"))
        return group
    try:
        terms = glossary.load_glossary()
        group.checked = len(terms)
        group.failures += [_relative(str(error)) for error in glossary.item_errors(terms, course)]
    except CourseErrors as errors:
        group.failures += [_relative(str(error)) for error in errors.errors]
    if not glossary.schema_file().is_file() or glossary.schema_file().read_text("utf-8") != glossary.schema_text():
        group.failures.append(f"{glossary.schema_file()}: out of date; run: python -m tutor.course.glossary")
    return group


def _exercises_taught(course: Course, exercises: list[catalog.ExerciseFiles]) -> Group:
    group = Group("every exercise has an item")
    taught = set(course.exercise_slugs())
    for files in exercises:
        group.checked += 1
        if files.slug not in taught:
            group.failures.append(f"{files.problem.parent}: no module has an `exercise` item for it")
        if not files.solution.is_file():
            group.failures.append(f"{files.solution}: missing; write the solution")
    return group


@dataclass(frozen=True)
class _BugCheck:
    bug: Bug
    file: Path
    mended: bool
    where: str


def _graded(modules: list[Module], exercises: list[catalog.ExerciseFiles]) -> list[Group]:
    """Audits of every exercise, and every bug item before and after its mend, on several graders."""
    audits, bugs = Group("exercises prove themselves"), Group("bug items fail as declared, their mends pass")
    slugs = [files.slug for files in exercises]
    ticker = Ticker()
    with tempfile.TemporaryDirectory(prefix="triton-prep-check-") as folder:
        checks = list(_bug_checks(modules, Path(folder)))
        jobs = [_audit(slug) for slug in slugs] + [_grade(check) for check in checks]
        results = batch.run(
            jobs,
            servers=SERVERS,
            on_result=lambda index, _: ticker.show(f"graded {index + 1} of {len(jobs)}…"),
        )
        ticker.clear()
    for slug, event in zip(slugs, results, strict=False):
        _judge_audit(audits, slug, event)
    for check, event in zip(checks, results[len(slugs) :], strict=True):
        _judge_bug(bugs, check, event)
    return [audits, bugs]


def _audit(slug: str) -> batch.Job:
    return lambda grader: grader.audit(slug)


def _grade(check: _BugCheck) -> batch.Job:
    def job(grader: Grader) -> Any:
        return grader.grade(GradeRequest(check.bug.exercise, check.file, time=False))

    return job


def _bug_checks(modules: list[Module], folder: Path) -> Iterator[_BugCheck]:
    slugs = {files.slug for files in catalog.exercises()}
    for module in modules:
        for item in module.items:
            if not isinstance(item, Bug) or item.exercise not in slugs:
                continue
            for mended in (False, True):
                file = folder / f"{item.id}.{'mended' if mended else 'bug'}.py"
                file.write_text(mended_source(item) if mended else bug_source(item), encoding="utf-8")
                yield _BugCheck(item, file, mended, f"modules/…, {item.id}")


def _judge_audit(group: Group, slug: str, event: Event) -> None:
    if not isinstance(event, Audited):
        group.checked += 1
        group.failures.append(f"{slug}: {_why(event)}")
        return
    for check in event.report.get("checks") or []:
        name = f"{slug}: {check['name']}"
        if check["status"] == "skipped":
            group.skipped.append((name, check.get("message") or "no reason given"))
            continue
        group.checked += 1
        if check["status"] != "passed":
            group.failures.append(f"{name}: {check.get('message')}")


def _judge_bug(group: Group, check: _BugCheck, event: Event) -> None:
    bug = check.bug
    name = f"{bug.id} ({'mended' if check.mended else 'as given'}, {bug.exercise})"
    on_gpu = isinstance(event, VerdictReady) and event.verdict.get("backend") == "cuda"
    if bug.needs_gpu and not check.mended and not on_gpu:
        group.skipped.append((name, bug.needs_gpu))
        return
    group.checked += 1
    if not isinstance(event, VerdictReady):
        group.failures.append(f"{name}: {_why(event)}")
        return
    verdict = event.verdict
    status = str(verdict.get("status"))
    diagnosis = verdict.get("diagnosis") or {}
    if check.mended:
        if status != "passed":
            group.failures.append(f"{name}: should pass, gives {_seen(verdict)}")
    elif (status, diagnosis.get("cause") or "") != (bug.status, bug.cause):
        group.failures.append(f"{name}: declares {bug.status} / {bug.cause}, gives {_seen(verdict)}")
    elif diagnosis.get("line") is not None:
        _judge_line(group, name, check, int(diagnosis["line"]))


def _judge_line(group: Group, name: str, check: _BugCheck, graded_line: int) -> None:
    line = submission_line(check.bug, graded_line)
    if line not in check.bug.faulty:
        lines = ", ".join(map(str, check.bug.faulty))
        group.failures.append(
            f"{name}: faulty is {lines}, the grader points at line {line}; add it, or mend the pattern"
        )


def _seen(verdict: dict[str, Any]) -> str:
    cause = (verdict.get("diagnosis") or {}).get("cause") or "no cause"
    settled = ("passed", *NOT_JUDGED)
    failing: dict[str, Any] = next(
        (case for case in verdict.get("cases") or [] if case.get("status") not in settled), {}
    )
    case = f" in case {failing.get('name')}: {failing.get('message') or ''}" if failing else ""
    return f"{verdict.get('status')} / {cause}{case}".strip()


def _why(event: Event) -> str:
    return event.message if isinstance(event, Failed) else f"unexpected answer {event!r}"


def _evidence(course: Course, modules: list[Module]) -> Group:
    group = Group("evidence tests pass")
    cited: dict[Path | None, dict[str, str]] = {}  # by the folder that holds the tests
    for module, file in zip(course.modules, course.files, strict=True):
        if module not in modules:
            continue
        here = cited.setdefault(tests_root(file), {})
        notes = [(f"{module.id} gotchas", note_.evidence) for note_ in module.gotchas]
        notes += [(f"{module.id} versions", note_.evidence) for note_ in module.versions]
        for owner, evidence in [(item.id, item.evidence) for item in module.items] + notes:
            for entry in evidence:
                if entry.startswith("test:"):
                    here.setdefault(entry.removeprefix("test:"), owner)
    for root, tests in cited.items():
        if root is None:
            group.skipped.append((f"{len(tests)} tests", "an installed course carries no tests: run this in a clone"))
            continue
        note(f"Running {len(tests)} evidence tests…")
        _run_evidence(group, root, tests)
    return group


def _run_evidence(group: Group, root: Path, tests: dict[str, str]) -> None:
    outcomes = run_evidence(tuple(tests), root)
    for test, owner in tests.items():
        outcome = outcomes.get(test)
        group.checked += 1
        if outcome is None:
            group.failures.append(f"{test} (cited by {owner}): did not run")
        elif outcome.status == "skipped":
            group.checked -= 1
            group.skipped.append((test, outcome.message))
        elif outcome.status == "failed":
            group.failures.append(f"{test} (cited by {owner}): {outcome.message}")


def _relative(text: str) -> str:
    return text.replace(f"{modules_folder().parent}/", "")
