"""The compiler's stages of a submission's kernels, for any target, without its device."""

from __future__ import annotations

from typing import Any

from grader import offline
from grader.case_runner import Buffers, CaseRunner, layout_of
from grader.failures import BadSubmission, Refused, RunnerGone, Unavailable
from grader.grade import CALL_LIMIT, Grade, Options, Submission
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
    grade = Grade(submission, problem, options, "offline", lambda event: None, lambda: False, verdict)
    case = max((c for c in problem.cases if c.offline), key=lambda c: grade.values(c).size)
    buffers = Buffers("cpu", layout_of(grade.values(case), 8192)[0].size)
    process = None
    try:
        process = judge.start(grade, "offline", buffers, stage=stage)
        outcome = CaseRunner(problem, process, buffers, CALL_LIMIT["offline"]).run(grade.values(case), noop=True)
        if outcome.status in ("compile_error", "runtime_error"):
            where = f"{submission.file}:{outcome.line}" if outcome.line else submission.file
            raise BadSubmission(f"{where}: {outcome.message}")
        rows = process.ask({"op": "compiled"}, 30).get("kernels", [])
        kernels = []
        for row in rows:
            if stage == "sass":
                text = offline.sass(process.scratch / row["binary"]) if row.get("binary") else ""
            else:
                text = (process.scratch / row["stage"]).read_text() if row.get("stage") else ""
            kernels.append(
                {
                    "kernel": row["kernel"],
                    "target": options.target,
                    "stage": stage,
                    "text": text.replace(f"{process.scratch}/", ""),
                }
            )
        return kernels
    except Refused as refused:
        line = refused.reply.get("line")
        where = f"{submission.file}:{line}" if line else submission.file
        raise BadSubmission(f"{where}: {refused.reply.get('message')}") from refused
    except RunnerGone as gone:
        raise BadSubmission(f"{submission.file}: {gone}") from gone
    finally:
        if process is not None:
            process.end()
        buffers.close()
