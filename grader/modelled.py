"""The judge's side of an estimate: count a small call, sketch the large one, put both into the model.

Answers the operation "estimate". Fields of the request: `device` (a key of grader.devices.DEVICES, default h200) and
`sizes` (true: every size of the sweep). Nothing here is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from grader import instruction_mix, offline
from grader.devices import DEFAULT, DEVICES, Device
from grader.estimate import Call, Estimate, Launch, estimate, tuned
from grader.expectation import Values, work_of
from grader.failures import BadSubmission, Refused, RunnerGone, Unavailable
from grader.grade import Emit, Grade, Options, Submission
from grader.judge import Judge
from grader.problem import Draw, Problem, Timing
from grader.verdict import Verdict
from grader.watch import MOST_LANES

SMALL = 65536  # elements of whole numbers that are drawn after all: a task may read them to know its work
TRACED = 300_000  # elements of the case that is counted, at most; its trace holds MOST_LANES lanes
TRIES = 4  # cases that may be too large for the trace, or fail
LIMIT = 120.0  # seconds of a sketch, which compiles every configuration of an autotuner


class NotModelled(Exception):
    """Why there is no estimate, for the learner."""


@dataclass(frozen=True)
class Counted:
    """Of one small call: its footprint (grader/footprint.py), over the least bytes of that call."""

    case: str
    read: float
    written: float
    again: float
    load_bytes: int
    loops: bool


class Shapes(Draw):
    """Draws tensors that have a shape and no memory; small ones of whole numbers are real."""

    def __init__(self) -> None:
        super().__init__(0, "cpu")
        self.device = torch.device("meta")

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device="meta")

    def uniform(
        self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device="meta")

    def integers(self, *shape: int, low: int, high: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        if torch.Size(shape).numel() > SMALL:
            return torch.empty(shape, dtype=dtype, device="meta")
        return torch.randint(low, high, shape, generator=self.generator).to(dtype)

    def full(self, *shape: int, value: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device="meta")


def answer(
    judge: Judge, submission: Submission, request: dict[str, Any], emit: Emit, cancelled: Callable[[], bool]
) -> dict[str, Any]:
    """`{"model": true, "device", "rows": [one a size], "notes"}`. Raises Unavailable, BadSubmission and Cancelled."""
    device = device_of(request)
    problem = judge.problem(submission.exercise)
    sizes = problem.timings if request.get("sizes") else problem.timings[:1]
    if not sizes:
        raise Unavailable(f"{problem.slug} has no size that is timed")
    rows = modelled(judge, submission, problem, sizes, device, emit, cancelled)
    return {"model": True, "device": device.name, "sources": list(device.sources), "rows": rows}


def of_grade(judge: Judge, grade: Grade) -> dict[str, Any] | None:
    """The verdict's estimate: of the size that is timed on a GPU. None where it has none or cannot be modelled."""
    sizes = grade.problem.timings[:1]
    if not sizes or grade.options.target.startswith("gfx") != DEVICES[DEFAULT].target.startswith("gfx"):
        return None
    row = modelled(judge, grade.submission, grade.problem, sizes, DEVICES[DEFAULT], lambda event: None, grade.cancelled)
    if "reason" in row[0]:
        grade.verdict.notes.append(f"no estimate: {row[0]['reason']}")
        return None
    return row[0]


def device_of(request: dict[str, Any]) -> Device:
    """Raises BadSubmission, a usage error, for a device that is not in the table."""
    name = str(request.get("device") or DEFAULT)
    if name not in DEVICES:
        raise BadSubmission(f"unknown device {name!r}: one of {', '.join(DEVICES)}")
    return DEVICES[name]


def modelled(
    judge: Judge,
    submission: Submission,
    problem: Problem,
    sizes: tuple[Timing, ...],
    device: Device,
    emit: Emit,
    cancelled: Callable[[], bool],
) -> list[dict[str, Any]]:
    """One row a size: its estimate, or why there is none."""
    grade = _grade(judge, submission, problem, device, cancelled)
    total = 1 + len(sizes)
    emit({"event": "progress", "done": 0, "total": total, "words": "counting the bytes of a small call"})
    counted: Counted | str
    try:
        counted = count(judge, grade)
    except NotModelled as reason:
        counted = str(reason)
    rows: list[dict[str, Any]] = []
    for done, timing in enumerate(sizes, 1):
        emit({"event": "progress", "done": done, "total": total, "words": timing.name})
        row: dict[str, Any] = {"case": timing.name, "limit_kind": timing.limit}
        try:
            if isinstance(counted, str):
                raise NotModelled(counted)
            found = _estimated(judge, grade, counted, timing, device)
            row |= found.as_dict() | {"counted": counted.case}
        except NotModelled as reason:
            row["reason"] = str(reason)
        rows.append(row)
    return rows


def _grade(
    judge: Judge, submission: Submission, problem: Problem, device: Device, cancelled: Callable[[], bool]
) -> Grade:
    for mode in ("interpreter", "offline"):
        if mode not in judge.warm:
            raise Unavailable("triton cannot be imported here: `triton-prep doctor` says more")
    options = Options(target=device.target)
    verdict = Verdict(problem.slug, problem.title, submission.file, "", 0, "interpreter", "", {})
    return Grade(submission, problem, options, "interpreter", lambda event: None, cancelled, verdict, judge.drawings)


def count(judge: Judge, grade: Grade) -> Counted:
    """The footprint of one small call in the interpreter. Raises NotModelled."""
    drawn = _countable(grade)
    try:
        with judge.runner(grade, "interpreter", [values for _, values in drawn]) as runner:
            why = "no case is small enough to be counted"
            for name, values in drawn:
                outcome = runner.run(values, trace="accesses")
                if outcome.status != "passed":
                    why = f"its call does not pass ({name}: {outcome.status.replace('_', ' ')})"
                    continue
                reply = runner.process.ask({"op": "footprint"}, LIMIT)
                least = work_of(grade.problem, values.args).bytes
                if int(reply.get("lanes", MOST_LANES)) >= MOST_LANES or not least or not reply.get("programs"):
                    continue
                return Counted(
                    name,
                    read=float(reply["read"]) / least,
                    written=float(reply["written"]) / least,
                    again=float(reply["again"]) / least,
                    load_bytes=int(reply["load_bytes"]),
                    loops=bool(reply["loops"]),
                )
    except (Refused, RunnerGone) as error:
        raise NotModelled(f"the file does not run: {error}") from error
    except (KeyError, TypeError, ValueError) as error:  # the process runs the learner's code: it may answer anything
        raise NotModelled(f"its process answered nonsense ({type(error).__name__})") from error
    raise NotModelled(why)


def _countable(grade: Grade) -> list[tuple[str, Values]]:
    """Cases most like the timed call, first: the same dtypes, no gaps between elements, then the larger ones."""
    wanted = _dtypes(shapes_of(grade.problem.timings[0]))
    found = []
    for case in grade.problem.cases:
        values = grade.values(case)
        if case.needs_gpu or not 0 < values.size <= TRACED:
            continue
        tensors = [a for a in values.args if isinstance(a, torch.Tensor)]
        rank = (_dtypes(values.args) == wanted, all(t.is_contiguous() for t in tensors), values.size)
        found.append((rank, case.name, values))
    found.sort(key=lambda entry: entry[0], reverse=True)
    return [(name, values) for _, name, values in found[:TRIES]]


def _dtypes(args: Any) -> list[str]:
    return [str(a.dtype) for a in args if isinstance(a, torch.Tensor)]


def shapes_of(timing: Timing) -> list[Any]:
    """The arguments of the timed call without their memory. Raises NotModelled."""
    try:
        return list(timing.make(Shapes()))
    except (RuntimeError, NotImplementedError, TypeError) as error:
        raise NotModelled("its inputs cannot be described without drawing them") from error


def described_shapes(args: list[Any]) -> list[dict[str, Any]]:
    """The arguments as a runner's sketch takes them."""
    return [
        {"shaped": {"shape": list(a.shape), "stride": list(a.stride()), "dtype": str(a.dtype).removeprefix("torch.")}}
        if isinstance(a, torch.Tensor)
        else {"value": a}
        for a in args
    ]


def _estimated(judge: Judge, grade: Grade, counted: Counted, timing: Timing, device: Device) -> Estimate:
    """Raises NotModelled and Cancelled."""
    args = shapes_of(timing)
    try:
        work = work_of(grade.problem, args)
    except (RuntimeError, NotImplementedError) as error:
        raise NotModelled("its work depends on the values") from error
    described = described_shapes(args)
    try:
        with judge.runner(grade, "offline", []) as runner:
            reply = runner.process.ask({"op": "sketch", "args": described}, LIMIT)
            if reply.get("event") != "sketched":
                raise NotModelled(f"the call cannot be sketched without values: {reply.get('message')}")
            folder = runner.process.scratch
            launches = tuned(device, _that_fit(_launches(reply, folder, device), device))
            launches = _with_issue(launches, folder)
    except (Refused, RunnerGone) as error:
        raise NotModelled(f"the file does not compile for {device.target}: {error}") from error
    if not launches:
        raise NotModelled("the call launches no kernel")
    call = Call(
        read_bytes=counted.read * work.bytes,
        again_bytes=counted.again * work.bytes,
        written_bytes=counted.written * work.bytes,
        flops=float(work.flops),
        launches=launches,
        least_bytes=float(work.bytes),
        in_flight_bytes=float(counted.load_bytes) if counted.loops else None,
        torch_bytes=float(reply.get("torch_bytes", 0)),
        torch_calls=int(reply.get("torch_calls", 0)),
    )
    return estimate(device, call)


def _that_fit(launches: tuple[Launch, ...], device: Device) -> tuple[Launch, ...]:
    """Without an autotuner's trials that would not load on the device. Raises NotModelled when a launch would not."""
    fit = tuple(launch for launch in launches if not (launch.trial and _too_large(launch, device)))
    for launch in fit:
        tried = any(other.trial and other.kernel == launch.kernel for other in fit)
        if not launch.trial and not tried and _too_large(launch, device):
            raise NotModelled(f"{launch.kernel} {_too_large(launch, device)}")
    return fit


def _too_large(launch: Launch, device: Device) -> str | None:
    if device.target.startswith("gfx") and launch.shared_bytes > device.shared_bytes:
        return f"needs {launch.shared_bytes} bytes of shared memory (LDS), {device.name} has {device.shared_bytes}"
    return offline.too_large(device.target, launch.shared_bytes)


def _launches(reply: dict[str, Any], folder: Path, device: Device) -> tuple[Launch, ...]:
    kernels = []
    for row in reply["kernels"]:
        found = offline.compile_row(row, folder, device.target)
        text = (folder / Path(row["assembly"]).name).read_text() if row.get("assembly") else ""
        stages = max(int(found["num_stages"] or 1) - 1, 1) if found["async_copies"] else 1
        binary = Path(row.get("binary", "")).name
        kernels.append((found, instruction_mix.of_assembly(text), stages, binary))
    launches = []
    for launch in reply["launches"]:
        found, mix, stages, binary = kernels[int(launch["kernel"])]
        programs = 1
        for n in launch["grid"]:
            programs *= int(n)
        launches.append(
            Launch(
                found["kernel"], programs, found["num_warps"], found["registers"], found["shared_bytes"],
                mix, None, stages, bool(launch["trial"]), binary,
            )
        )  # fmt: skip
    return tuple(launches)


def _with_issue(launches: tuple[Launch, ...], folder: Path) -> tuple[Launch, ...]:
    """What they issue outside loops. Only of those that count: a disassembly takes longer than all the rest."""
    found: dict[str, instruction_mix.Issue | None] = {}
    for launch in launches:
        if launch.mix is None and launch.binary.endswith(".cubin") and launch.binary not in found:
            found[launch.binary] = instruction_mix.outside_loops(offline.sass(folder / launch.binary), launch.kernel)
    return tuple(replace(launch, issue=found.get(launch.binary)) for launch in launches)
