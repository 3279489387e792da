"""The author's checks of one exercise: does its grader tell right from wrong?"""

from __future__ import annotations

from typing import Any

import torch

from grader.catalog import ExerciseFiles
from grader.compare import Expected, compare
from grader.expectation import Values, draw
from grader.grade import Options, Submission
from grader.guards import INTEGER_POISON
from grader.judge import Judge
from grader.mistake_models import model_of
from grader.problem import Case, Problem

Row = dict[str, Any]
# Bytes a thread that a solution may spill: a few words around a loop cost nothing that shows. A kernel that loads
# element by element, because a size is ragged, may spill its addresses: the loads cost far more.
SPILLED = 64


def audit(judge: Judge, files: ExerciseFiles, options: Options) -> dict[str, Any]:
    """Grade stub and solution, and try the null answers and the mistake models on the cases' own bounds."""
    checks: list[Row] = []
    backend = judge._backend(options.backend)
    problem = judge.problem(files)
    checks.append(_graded(judge, files, options, files.stub, "not_started", "the untouched stub"))
    checks += _solution(judge, files, options)
    drawn = [(case, draw(problem, case, options.seed)) for case in problem.cases]
    checks += null_answers(problem, drawn)
    checks += mistake_models(problem, drawn)
    checks.append(_stated(problem))
    return {"exercise": problem.slug, "backend": backend, "checks": checks}


def _row(name: str, ok: bool, message: str = "") -> Row:
    return {"name": name, "status": "passed" if ok else "failed", "message": message}


def _graded(judge: Judge, files: ExerciseFiles, options: Options, path: Any, wanted: str, what: str) -> Row:
    if not path.exists():
        return _row(f"{what} is {wanted}", False, f"{path} is missing")
    verdict = judge.grade(Submission(files, str(path), path.read_bytes()), options, lambda event: None, lambda: False)
    reason = "" if verdict["status"] == wanted else f"{path}: {verdict['status']}: {explained(verdict)}"
    return _row(f"{what} is {wanted}", verdict["status"] == wanted, reason)


def _solution(judge: Judge, files: ExerciseFiles, options: Options) -> list[Row]:
    options = Options(backend=options.backend, target=options.target, seed=options.seed, time=False, keep_going=True)
    path = files.solution
    if not path.exists():
        return [_row("the solution passes", False, f"{path} is missing")]
    verdict = judge.grade(Submission(files, str(path), path.read_bytes()), options, lambda event: None, lambda: False)
    rows = [
        _row(
            "the solution passes",
            verdict["status"] == "passed",
            "" if verdict["status"] == "passed" else explained(verdict),
        )
    ]
    for case in verdict["cases"]:
        if case["status"] == "skipped":
            rows.append({"name": f"case {case['name']}", "status": "skipped", "message": case["message"]})
    compiled = verdict["compile"]
    rows.append(_row("the solution compiles", bool(compiled), "" if compiled else "no kernel was compiled"))
    for row in compiled or []:
        if (row["spill_bytes"] or 0) > SPILLED and (row["vector_loads"] or row["async_copies"]):
            rows.append(
                _row(
                    "the solution spills no registers in its loops",
                    False,
                    f"{row['kernel']}: {row['spill_bytes']} bytes",
                )
            )
    return rows


def explained(verdict: Row) -> str:
    diagnosis = verdict["diagnosis"] or {}
    failing = next((c for c in verdict["cases"] if c["status"] not in ("passed", "skipped", "not_run")), None)
    where = f"case {failing['name']}: {failing['message']}" if failing else ""
    printed = (verdict.get("output") or {}).get("text", "")[-300:]
    return " ".join(
        filter(None, [where, f"[{diagnosis.get('cause')}] {diagnosis.get('message', '')}", printed])
    ).strip()


def null_answers(problem: Problem, drawn: list[tuple[Case, Values]]) -> list[Row]:
    """Answers that do no work must fail at least one case each."""
    answers = {
        "zeros": lambda values, e: torch.zeros_like(e.native),
        "ones": lambda values, e: torch.ones_like(e.native),
        "the mean": lambda values, e: torch.full_like(e.native, _mean(e.truth)),
        "stale memory": lambda values, e: _stale(e.native),
        "half the rows": lambda values, e: _half(e.native),
        "the answer of a smaller shape": lambda values, e: _smaller(e.native),
    }
    rows = []
    for name, answer in answers.items():
        caught = any(_fails(values, [answer(values, e) for e in values.expected]) for _, values in drawn)
        rows.append(
            _row(
                f"{name} fails", caught, "" if caught else "every case accepts it: add a case or tighten the tolerance"
            )
        )
    for position, parameter in enumerate(problem.parameters):
        if parameter in problem.copies:
            continue  # no case can refuse the right value; the kernel-must-matter run does
        returned = [_as_output(values, position) for _, values in drawn]
        if all(r is None for r in returned):
            continue
        caught = any(
            r is None or _fails(values, r) for (_, values), r in zip(drawn, returned, strict=True) if values.size
        )
        rows.append(_row(f"returning {parameter} fails", caught, "" if caught else "every case accepts it"))
    return rows


def mistake_models(problem: Problem, drawn: list[tuple[Case, Values]]) -> list[Row]:
    """Each model must give a wrong answer in some case, and no model the right one everywhere it applies."""
    rows = []
    for mistake in problem.mistakes:
        differs, applied, trouble = False, False, ""
        for case, values in drawn:
            try:
                modelled = model_of(mistake, values)
                if modelled is None:
                    continue
                applied = True
                if callable(modelled):
                    right = tuple(e.native for e in values.expected)
                    differs |= not modelled(right if len(right) > 1 else right[0])
                    continue
                differs |= _fails(
                    values, [m.to(e.native.dtype) for m, e in zip(modelled, values.expected, strict=True)]
                )
            except Exception as error:  # reported as the author's mistake
                trouble = f"case {case.name}: {type(error).__name__}: {error}"
        ok = differs and not trouble
        reason = trouble or ("" if differs else "it equals the reference" if applied else "it applies to no case")
        rows.append(_row(f"mistake {mistake.cause} differs", ok, "" if ok else reason))
    return rows


def _stated(problem: Problem) -> Row:
    missing = []
    if len(problem.mistakes) < 2:
        missing.append("at least two mistakes")
    if len({case.name for case in problem.cases}) != len(problem.cases):
        missing.append("case names that differ")
    if len(problem.hints) != 3:
        missing.append("three hints")
    if problem.timing is None:
        missing.append("timing inputs")
    return _row("the problem states what it must", not missing, "; ".join(missing))


def _fails(values: Values, outputs: list[torch.Tensor]) -> bool:
    for out, expected in zip(outputs, values.expected, strict=True):
        if out.shape != expected.native.shape or out.dtype != expected.native.dtype:
            return True
        if not compare(out, expected).right:
            return True
    return False


def _mean(truth: torch.Tensor) -> float:
    finite = truth[torch.isfinite(truth)]
    return float(finite.mean()) if finite.numel() else 0.0


def _stale(native: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(native)
    raw = torch.full((out.numel() * out.element_size(),), INTEGER_POISON, dtype=torch.uint8)
    return raw.view(native.dtype).reshape(native.shape)


def _half(native: torch.Tensor) -> torch.Tensor:
    out = native.clone()
    if out.ndim:
        out[out.shape[0] // 2 :] = 0
    return out


def _smaller(native: torch.Tensor) -> torch.Tensor:
    if native.ndim == 0 or native.shape[0] < 2:
        return native
    return native[:-1]


def _as_output(values: Values, position: int) -> list[torch.Tensor] | None:
    """The argument itself, returned in place of every output; None where shape or dtype already rule it out."""
    if position >= len(values.args) or not isinstance(values.args[position], torch.Tensor):
        return None
    value: torch.Tensor = values.args[position]
    expected: tuple[Expected, ...] = values.expected
    if any(value.shape != e.native.shape or value.dtype != e.native.dtype for e in expected):
        return None
    return [value for _ in expected]
