"""The compiler's stages of a submission's kernels, for any target, without its device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grader import offline
from grader.failures import BadSubmission, Refused, RunnerGone, Unavailable
from grader.grade import Grade, Options, Submission
from grader.judge import Judge
from grader.verdict import Verdict

STAGES = ("ttir", "ttgir", "llir", "ptx", "sass", "amdgcn")


def inspect_kernel(judge: Judge, submission: Submission, options: Options, stage: str) -> list[dict[str, Any]]:
    """One entry a kernel: kernel, target, text. Raises Unavailable or BadSubmission."""
    if "offline" not in judge.warm:
        raise Unavailable("triton cannot be imported here: `triton-prep doctor` says more")
    if options.target.startswith("gfx") and stage in ("ptx", "sass"):
        stage = "amdgcn"
    problem = judge.problem(submission.exercise)
    verdict = Verdict(problem.slug, problem.title, submission.file, "", options.seed, "offline", "", {})
    grade = Grade(submission, problem, options, "offline", lambda event: None, lambda: False, verdict, judge.drawings)
    case = max((c for c in problem.cases if c.offline), key=lambda c: grade.values(c).size)
    values = grade.values(case)
    try:
        with judge.runner(grade, "offline", [values], stage=stage) as runner:
            outcome = runner.run(values, noop=True)
            if outcome.status in ("compile_error", "runtime_error"):
                where = f"{submission.file}:{outcome.line}" if outcome.line else submission.file
                raise BadSubmission(f"{where}: {outcome.message}")
            rows = runner.process.ask({"op": "compiled"}, 30).get("kernels", [])
            return [_shown(row, runner.process.scratch, stage, options.target) for row in rows]
    except Refused as refused:
        line = refused.reply.get("line")
        where = f"{submission.file}:{line}" if line else submission.file
        raise BadSubmission(f"{where}: {refused.reply.get('message')}") from refused
    except RunnerGone as gone:
        raise BadSubmission(f"{submission.file}: {gone}") from gone


def _shown(row: dict[str, Any], folder: Path, stage: str, target: str) -> dict[str, Any]:
    """One kernel's text at a stage, without the scratch folder's path."""
    if stage == "sass":
        text = offline.sass(folder / row["binary"]) if row.get("binary") else ""
    else:
        text = (folder / row["stage"]).read_text() if row.get("stage") else ""
    return {"kernel": row["kernel"], "target": target, "stage": stage, "text": text.replace(f"{folder}/", "")}
