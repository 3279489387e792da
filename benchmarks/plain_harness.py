"""How much gets past a harness of the usual kind, and how much past this grader: known mistakes, exploits, one table.

    python benchmarks/plain_harness.py [--out DIR] [--only TEXT] [--limit SECONDS]

The plain harness imports the file into its own process, beside the reference; one usual size; five trials on normal
values after `torch.manual_seed(0 … 4)`; shapes equal and `torch.allclose` with rtol = atol = 1e-4 for float32, 1e-2 for
half precision; all five must agree. A process of its own for each submission, with a time limit; a crash is a failure.
Without a GPU it runs in Triton's interpreter. Runs every submission through both; writes plain-harness.md.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

GPU = Path("/dev/nvidiactl").exists()
if not GPU:
    os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402

from benchmarks.server import GraderServer  # noqa: E402
from grader.catalog import exercises, find  # noqa: E402
from grader.expectation import outputs_of  # noqa: E402
from grader.grade import load_problem  # noqa: E402
from grader.problem import Draw, Problem  # noqa: E402
from tests.exploits import all_exploits  # noqa: E402
from tests.grader.mistakes import KnownMistake, all_mistakes  # noqa: E402

DEVICE = "cuda" if GPU else "cpu"
TRIALS = 5
HALF = (torch.float16, torch.bfloat16)
# One usual size each: powers of two, several tiles of the usual width, what a benchmark of such a kernel would take
# (smaller where the interpreter would take minutes). "n" stands for a float32 tensor of normal values, "h" for float16.
SIZES: dict[str, tuple[Any, ...]] = {
    "program_ids": (("i", 4096),),
    "tile_copy": (("n", 4096), 256),
    "grid_2d": (("n", 64), ("n", 256)),
    "iota_strided": (("n", 64, 64), 3),
    "vector_add": (("n", 16384), ("n", 16384)),
    "affine_relu": (("n", 16384), 1.5, 0.5),
    "swiglu": (("n", 64, 512),),
    "gelu": (("n", 16384), "none"),
    "block_copy_2d": (("n", 256, 512),),
    "transpose": (("n", 256, 512),),
    "row_max": (("n", 128, 1024),),
    "row_scale": (("n", 128, 1024), ("n", 128)),
    "row_sum": (("n", 128, 1024),),
    "softmax": (("n", 128, 1024),),
    "online_softmax": (("n", 64, 2048),),
    "heuristic_softmax": (("n", 128, 1024),),
    "layer_norm": (("n", 128, 1024), ("n", 1024), ("n", 1024), 1e-5),
    "rms_norm": (("n", 128, 1024), ("n", 1024), 1e-6),
    "accumulate_rows": (("n", 512, 512),),
    "autotuned_add": (("n", 16384), ("n", 16384)),
    "scale_in_place": (("n", 16384), 3.0),
    "matmul": (("h", 256, 256), ("h", 256, 256)),
    "grouped_matmul": (("h", 256, 256), ("h", 256, 256)),
    "matmul_bias_relu": (("h", 256, 256), ("h", 256, 256), ("h", 256)),
    "batched_matmul": (("h", 4, 128, 128), ("h", 4, 128, 128)),
    "attention": tuple(("h", 1, 2, 256, 64) for _ in range(3)),
    "causal_attention": tuple(("h", 1, 2, 256, 64) for _ in range(3)),
    "compiled_add": (("n", 16384), ("n", 16384)),
    "silu_op": (("n", 16384), ("n", 16384)),
    "square_autograd": (("n", 16384), ("n", 16384)),
    "layer_norm_backward": (("n", 64, 512), ("n", 512), ("n", 512), 1e-5, ("n", 64, 512)),
    "debug_me": (("n", 128, 128),),
}
GROUPS = (  # of the list of mistakes, by its numbers
    ("masks, padding, other", 1, 10),
    ("offsets, strides, layout", 11, 20),
    ("numbers", 21, 34),
    ("constexpr, JIT, cache", 35, 43),
    ("autotuning", 45, 49),
    ("concurrency and launch", 51, 57),
    ("PyTorch integration", 58, 99),
)


@dataclass(frozen=True)
class Submission:
    name: str
    kind: str  # the class in the table
    exercise: str
    path: Path
    wanted: str
    limit: float | None = None


# -- the plain harness ------------------------------------------------------------------------------------------------


def inputs(problem: Problem, trial: int) -> list[Any]:
    torch.manual_seed(trial)
    sizes = SIZES.get(problem.slug)
    if sizes is None:  # an exercise whose inputs are no normal values: the largest case that is no trouble
        case = max((c for c in problem.cases if not c.needs_gpu), key=lambda c: _elements(c.make(Draw(0))))
        return [a.to(DEVICE) if isinstance(a, torch.Tensor) else a for a in case.make(Draw(trial))]
    return [_made(size) if isinstance(size, tuple) else size for size in sizes]


def _made(size: tuple[Any, ...]) -> torch.Tensor:
    kind, *shape = size
    if kind == "i":
        return torch.randint(-100, 100, shape, dtype=torch.int32, device=DEVICE)
    return torch.randn(shape, device=DEVICE).to(torch.float16 if kind == "h" else torch.float32)


def _elements(args: Any) -> int:
    return sum(a.numel() for a in args if isinstance(a, torch.Tensor))


def size_of(problem: Problem) -> str:
    parts = [
        f"{' × '.join(map(str, a.shape))} {str(a.dtype).removeprefix('torch.')}"
        if isinstance(a, torch.Tensor)
        else str(a)
        for a in inputs(problem, 0)
    ]
    return ", ".join(parts)


def trials(problem: Problem, entry: Callable[..., Any]) -> bool:
    for trial in range(TRIALS):
        args = inputs(problem, trial)
        expected = outputs_of(problem, args)
        got = performed(problem, entry, args)
        if len(got) != len(expected):
            return False
        for out, want in zip(got, expected, strict=True):
            tolerance = 1e-2 if want.dtype in HALF else 1e-4
            if out.shape != want.shape or not torch.allclose(out, want, rtol=tolerance, atol=tolerance):
                return False
    return True


def performed(problem: Problem, entry: Callable[..., Any], args: list[Any]) -> list[torch.Tensor]:
    """What comes back, then what was to be changed in place; for a differentiable task, the gradients."""
    if problem.call in ("gradient", "operator"):
        *given, incoming = args
        for position, name in enumerate(problem.parameters[: len(given)]):
            if name in problem.differentiable:
                given[position].requires_grad_()
        out = entry(*given)
        out.backward(incoming)
        named = zip(problem.parameters, given, strict=False)
        return [out.detach(), *(value.grad for name, value in named if name in problem.differentiable)]
    out = entry(*args)
    changed = [a for name, a in zip(problem.parameters, args, strict=False) if name in problem.mutates]
    if changed and len(problem.mutates) == len(outputs_of(problem, inputs(problem, 0))):
        return changed
    return [*(out if isinstance(out, (tuple, list)) else (out,)), *changed]


def passes(problem: Problem, submission: Submission, limit: float) -> bool:
    """The verdict of the plain harness: the last line printed, and exit code 0."""
    scratch = Path(tempfile.mkdtemp(prefix="plain-"))
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _child(problem, submission.path, scratch)
    until = time.monotonic() + limit
    status = None
    while status is None and time.monotonic() < until:
        done, status_now = os.waitpid(pid, os.WNOHANG)
        status = status_now if done else None
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if status is None:
        os.waitpid(pid, 0)
    printed = (scratch / "stdout").read_text(errors="replace").strip().splitlines() if status == 0 else []
    shutil.rmtree(scratch, ignore_errors=True)
    return bool(printed) and printed[-1] == "PASS"


def _child(problem: Problem, path: Path, scratch: Path) -> None:
    import importlib.util

    os.setsid()
    os.closerange(3, 256)
    out = os.open(scratch / "stdout", os.O_CREAT | os.O_WRONLY)
    for fd in (1, 2):
        os.dup2(out, fd)
    os.chdir(scratch)
    os.environ["HOME"] = os.environ["TMPDIR"] = str(scratch)
    os.environ["TRITON_CACHE_DIR"] = str(scratch / "triton")
    code = 1
    try:
        torch.set_num_threads(1)
        if not GPU:
            _as_on_a_gpu()
        spec = importlib.util.spec_from_file_location("submission", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["submission"] = module
        spec.loader.exec_module(module)
        print("PASS" if trials(problem, getattr(module, problem.entry)) else "FAIL", flush=True)
        code = 0
    except BaseException as error:
        print(f"FAIL {type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(code)


def _as_on_a_gpu() -> None:
    """What keeps right files from running in the interpreter at all is no merit of a harness."""
    from grader import triton_adapter

    triton_adapter.use_own_benchmark(runs=2)  # an autotuner cannot time here
    triton_adapter.mend_index()
    triton_adapter.allow_interpreted_in_torch_library()


# -- the submissions --------------------------------------------------------------------------------------------------


def submissions(folder: Path, only: str) -> tuple[list[Submission], list[str]]:
    """What is run, and what is not, with the reason."""
    found, left_out = [], []
    for files in exercises():
        found.append(
            Submission(f"{files.slug} (solution)", "solutions, which must pass", files.slug, files.solution, "passed")
        )
    for number, mistake in enumerate(all_mistakes()):
        name = f"{mistake.exercise}: {mistake.title}"
        if mistake.why_not_run is not None:
            left_out.append(f"{name}: {mistake.why_not_run}")
            continue
        if (mistake.needs_cuda and not GPU) or (mistake.right_on_cuda and GPU) or mistake.gpus > 1:
            why = f"needs {mistake.gpus} GPUs" if mistake.gpus > 1 else "no mistake on a GPU" if GPU else "needs a GPU"
            left_out.append(f"{name}: {why}")
            continue
        path = folder / f"mistake-{number:03}.py"
        path.write_text(mistake.text(find(mistake.exercise).solution.read_text()))
        found.append(Submission(name, f"mistakes: {group(mistake)}", mistake.exercise, path, mistake.status))
    for exploit in all_exploits():
        name = f"{exploit.name}: {exploit.form}"
        if exploit.needs and not GPU:
            left_out.append(f"{name}: needs a GPU")
        elif exploit.own_grader:
            left_out.append(f"{name}: goes for the processes around it, and the plain harness has nothing to stop it")
        elif exploit.timing is None:
            kind = "exploits"
            found.append(
                Submission(name, kind, exploit.exercise, exploit.path, "|".join(exploit.statuses), exploit.limit)
            )
    return [s for s in found if only in s.name], left_out


def group(mistake: KnownMistake) -> str:
    numbers = [int(n) for n in mistake.numbers if n.isdigit()]
    return next(
        (name for name, low, high in GROUPS if numbers and low <= numbers[0] <= high), "interpreter and compiler differ"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--only", default="", help="submissions whose name holds this text; nothing is written")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one submission in the plain harness")
    options = parser.parse_args()
    import triton  # noqa: F401  every child inherits it

    with tempfile.TemporaryDirectory() as folder:
        chosen, left_out = submissions(Path(folder), options.only)
        problems = {s.exercise: load_problem(find(s.exercise)) for s in chosen}
        # the plain harness first: it forks, and a process that has talked to CUDA must not
        plain = {s: passes(problems[s.exercise], s, s.limit or options.limit) for s in _told(chosen, "plain harness")}
        server = GraderServer(TMPDIR=folder)
        ours: dict[Submission, str] = {}
        for submission in _told(chosen, "this grader"):
            how = {"backend": "auto", "time": False}
            if submission.limit is not None:
                how["call_limit"] = submission.limit
            event, _ = server.grade(submission.exercise, submission.path, **how)
            ours[submission] = (
                event["verdict"]["status"] if event["event"] == "verdict" else f"failed: {event['message']}"
            )
        ready = server.ready
        server.close()
    text = table(chosen, plain, ours, left_out, problems, ready)
    print(text)
    if not options.only:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "plain-harness.md").write_text(text)
    return 1 if any(ours[s] == "passed" and s.wanted != "passed" for s in chosen) else 0


def _told(chosen: list[Submission], what: str) -> Any:
    for number, submission in enumerate(chosen):
        if number % 20 == 0:
            print(f"{what}: {number} of {len(chosen)}", file=sys.stderr, flush=True)
        yield submission


def table(
    chosen: list[Submission],
    plain: dict[Submission, bool],
    ours: dict[Submission, str],
    left_out: list[str],
    problems: dict[str, Problem],
    ready: dict[str, Any],
) -> str:
    versions = ready["versions"]
    where = ready["device"] if GPU else "Triton's interpreter on a CPU"
    kinds: dict[str, list[Submission]] = defaultdict(list)
    for submission in chosen:
        kinds[submission.kind].append(submission)
    lines = [
        "# A plain harness beside this grader",
        "",
        f"{datetime.date.today().isoformat()}, {where}, torch {versions['torch']}, triton {versions['triton']}, "
        f"Python {versions['python']}. Written by `python benchmarks/plain_harness.py`.",
        "",
        "The plain harness: the file is imported into the process that holds the reference; one usual size for each",
        "exercise (below); five trials on normal values, `torch.manual_seed(0 … 4)`; equal shapes, `torch.allclose`",
        "with rtol = atol = 1e-4 for float32, 1e-2 for half precision. A crash or a time-out is a failure.",
        "",
        "| submissions | how many | the plain harness passes | this grader passes |",
        "|---|---:|---:|---:|",
    ]
    totals = [0, 0, 0]
    for kind, members in kinds.items():
        row = [len(members), sum(plain[s] for s in members), sum(ours[s] == "passed" for s in members)]
        lines.append(f"| {kind} | {row[0]} | {row[1]} | {row[2]} |")
        if not kind.startswith("solutions"):
            totals = [a + b for a, b in zip(totals, row, strict=True)]
    lines.append(f"| **all mistakes and exploits** | **{totals[0]}** | **{totals[1]}** | **{totals[2]}** |")
    lines += ["", "## What the plain harness lets through", "", "| submission | this grader says |", "|---|---|"]
    for submission in chosen:
        if plain[submission] and submission.wanted != "passed":
            lines.append(f"| {_cell(submission.name)} | {ours[submission]} |")
    refused = [s.name for s in chosen if not plain[s] and s.wanted == "passed"]
    lines += ["", f"Solutions that the plain harness refuses: {', '.join(refused) or 'none'}.", ""]
    passed = [s.name for s in chosen if ours[s] == "passed" and s.wanted != "passed"]
    lines += [f"Mistakes and exploits that this grader passes: {', '.join(passed) or 'none'}.", ""]
    lines += ["## The one size", "", "| exercise | arguments |", "|---|---|"]
    lines += [f"| {slug} | {size_of(problem)} |" for slug, problem in problems.items()]
    lines += ["", "## Not run", "", *(f"- {_cell(reason)}" for reason in left_out)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
