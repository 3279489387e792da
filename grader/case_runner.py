"""The judge's buffers for one grade, and one call of the learner's function on them, judged."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any

import torch

from grader import guards
from grader.compare import Comparison, compare
from grader.expectation import Values
from grader.problem import Problem
from grader.runner_process import RunnerProcess, SharedMemory

CPU_GUARD = 8192  # bytes; the interpreter's bounds check is exact, the band is a second line
CUDA_GUARD = 65536
OPCHECK_LIMIT = 120.0  # seconds


@dataclass(frozen=True)
class Outcome:
    """How one call ended. `status` is "passed" or the verdict's status; the rest explains."""

    status: str
    message: str | None = None
    comparison: Comparison | None = None
    output: int = 0  # which output was wrong
    outputs: tuple[torch.Tensor, ...] = ()  # copies of what came back, for the diagnosis
    cause: str | None = None
    line: int | None = None
    program_id: tuple[int, ...] | None = None
    index: int | None = None  # element index of an access out of bounds
    traffic: tuple[int, int] | None = None
    launches: int = 0
    undefined: int = 0  # masked-off lanes that a load without `other` left undefined
    programs: int = 0  # of the largest launch, in the interpreter
    conflicts: dict[str, Any] = field(default_factory=dict)  # of a trace of accesses: grader/races.py describes them
    tuned: int = 0  # launches of autotuned kernels
    seconds: float | None = None  # of the call, in the runner
    whole: str = ""  # a compiler's whole text


@dataclass
class Buffers:
    """The arena of one grade: on the CPU a shared mapping, on CUDA a memory pool of its own."""

    device: str
    drawn: InitVar[Sequence[Values]]  # what will lie in it, one after another
    least: InitVar[int] = 0  # bytes, if that is more
    guard: int = field(init=False)
    size: int = field(init=False)
    shared: SharedMemory | None = None
    arena: torch.Tensor = field(init=False)
    pool: Any = None

    def __post_init__(self, drawn: Sequence[Values], least: int) -> None:
        self.guard = CPU_GUARD if self.device == "cpu" else CUDA_GUARD
        self.size = max((layout_of(values, self.guard)[0].size for values in drawn), default=self.guard)
        self.size = max(self.size, least)
        if self.device == "cpu":
            self.shared = SharedMemory(self.size)
            self.arena = self.shared.tensor
        else:
            # an IPC handle opens the whole segment: nothing else of the judge's may share it
            self.pool = torch.cuda.MemPool()
            with torch.cuda.use_mem_pool(self.pool):
                self.arena = torch.empty(self.size, dtype=torch.uint8, device="cuda")

    def handle(self) -> dict[str, Any]:
        """The message that lets a runner open the CUDA arena."""
        parts = self.arena.untyped_storage()._share_cuda_()
        coded = [{"bytes": base64.b64encode(p).decode()} if isinstance(p, bytes) else p for p in parts]
        return {"op": "memory", "handle": coded, "start": self.arena.storage_offset(), "size": self.size}

    def close(self) -> None:
        if self.shared is not None:
            self.shared.close()


def layout_of(values: Values, guard: int) -> tuple[guards.Layout, list[guards.Region | None], list[guards.Region]]:
    """Places for the tensor arguments (None for other arguments) and for the outputs."""
    layout = guards.Layout(guard)
    arguments = [
        layout.place(tuple(a.shape), tuple(a.stride()), a.dtype) if isinstance(a, torch.Tensor) else None
        for a in values.args
    ]
    outputs = [
        layout.place(tuple(e.native.shape), tuple(_contiguous(e.native.shape)), e.native.dtype) for e in values.expected
    ]
    return layout, arguments, outputs


def _contiguous(shape: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return strides[::-1]


class CaseRunner:
    """Puts values into the buffers, asks the runner to call the entry, and judges what is in the buffers after."""

    def __init__(self, problem: Problem, process: RunnerProcess, buffers: Buffers, limit: float) -> None:
        self.problem, self.process, self.buffers, self.limit = problem, process, buffers, limit

    def run(
        self,
        values: Values,
        *,
        filler: str = "poison",
        noop: bool = False,
        trace: str | None = None,
        order: str = "forward",
        configuration: tuple[int, int] | None = None,
        elsewhere: str | None = None,
        gradients_of: tuple[str, ...] = (),
        backwards: int = 1,
    ) -> Outcome:
        """One call, judged. Raises RunnerGone; an answer that makes no sense counts as a crash.

        Only in the interpreter: `trace` records "stores" or "accesses"; `order` of the programs: "forward", "reversed"
        or "shuffled". `configuration`: which autotuned kernel must run with which of its configurations. Only on CUDA:
        `elsewhere` makes another "stream" the current one, or puts the tensors on the second GPU while the first one
        ("device") or that one ("second GPU") is current. Of a gradient: only the inputs `gradients_of` require one
        (none named: all that may), and the backward runs `backwards` times.
        """
        arena = self.buffers.arena
        layout, arguments, outputs = self.write_inputs(values)
        for region in outputs:
            guards.poison(arena, region)
        before = [None if r is None else arena[r.offset : r.offset + r.nbytes].clone() for r in arguments]
        if self.buffers.device == "cuda":
            torch.cuda.synchronize()
        mutated = len(self.problem.mutates)
        returned = outputs[: len(outputs) - mutated]
        reply = self.process.ask(
            {
                "op": "call",
                "args": arguments_of(values, arguments),
                "outputs": [r.described() for r in returned],
                "filler": filler,
                "noop": noop,
                "trace": trace,
                "order": order,
                "configuration": configuration,
                "elsewhere": elsewhere,
                "gradients_of": gradients_of,
                "backwards": backwards,
            },
            self.limit,
        )
        try:  # the answer comes from a process that runs the learner's code: it may be anything
            if reply.get("event") == "error":
                return error_outcome(reply)
            known = _known(reply)
            malformed = self._wrong_form(reply, returned, known)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            return Outcome("crashed", f"the process answered nonsense ({type(error).__name__})", cause="crashed")
        for described in layout_breaches(arena, layout, reply):
            return Outcome("out_of_bounds", described, cause="out_of_range_store", **known)
        problem = self._inputs_changed(arena, arguments, before)
        if problem:
            return Outcome("input_mutated", problem, cause="input_mutated", **known)
        if malformed is not None:
            return malformed
        # what is judged is what lies in the judge's memory, not what the runner says
        places = [*returned, *self._mutated_regions(arguments)]
        out = tuple(guards.view(arena, region).cpu().clone() for region in places)
        outcome = self._judge(values, out, known)
        if outcome.status == "passed" and self.problem.contiguous and not _contiguous_result(reply):
            text = "a tensor that is not contiguous came back; the task asks for a contiguous one"
            return Outcome("wrong_shape", text, cause="not_contiguous", **known)
        return outcome

    def opcheck(self, values: Values) -> dict[str, str | None]:
        """torch.library.opcheck on the entry with these inputs: a test's name to what it found, None where all is well.

        Raises RunnerGone.
        """
        arguments = self.write_inputs(values)[1]
        reply = self.process.ask({"op": "opcheck", "args": arguments_of(values, arguments)[:-1]}, OPCHECK_LIMIT)
        results = reply.get("results")
        return results if isinstance(results, dict) else {"opcheck": "the process answered nonsense"}

    def owner(self, output: int, index: tuple[int, ...]) -> tuple[int, ...] | None:
        """After a traced call: the program that stored this element, by the runner's own account."""
        reply = self.process.ask({"op": "owner", "output": output, "index": list(index)}, self.limit)
        program = reply.get("program")
        return tuple(int(i) for i in program) if isinstance(program, list) else None

    def places(self, values: Values) -> tuple[guards.Layout, list[guards.Region | None], list[guards.Region]]:
        """Where each tensor argument lies, and what the call may write beside them."""
        return layout_of(values, self.buffers.guard)

    def write_inputs(self, values: Values) -> tuple[guards.Layout, list[guards.Region | None], list[guards.Region]]:
        """Guard bytes everywhere, then each tensor argument in its place."""
        layout, arguments, outputs = self.places(values)
        guards.fill(self.buffers.arena[: layout.size])
        for value, region in zip(values.args, arguments, strict=True):
            if region is not None:
                _write(guards.view(self.buffers.arena, region), value)
        if self.buffers.device == "cuda":
            torch.cuda.synchronize()
        return layout, arguments, outputs

    def _mutated_regions(self, arguments: list[guards.Region | None]) -> list[guards.Region]:
        named = dict(zip(self.problem.parameters, arguments, strict=False))
        return [region for name in self.problem.mutates if (region := named[name]) is not None]

    def _inputs_changed(
        self, arena: torch.Tensor, arguments: list[guards.Region | None], before: list[torch.Tensor | None]
    ) -> str | None:
        for name, region, old in zip(self.problem.parameters, arguments, before, strict=False):
            if region is None or old is None or not region.nbytes:
                continue
            new = arena[region.offset : region.offset + region.nbytes]
            if name in self.problem.mutates:
                expected = old.clone()
                _write(
                    guards.view(expected, guards.Region(0, region.shape, region.stride, region.dtype)),
                    guards.view(arena, region),
                )
                if not torch.equal(expected, new):
                    return f"{name}: memory between its elements was written (a store ignored the strides)"
            elif not torch.equal(old, new):
                return f"the input {name} was changed: write to a tensor of your own"
        return None

    def _wrong_form(
        self, reply: dict[str, Any], returned: list[guards.Region], known: dict[str, Any]
    ) -> Outcome | None:
        got = reply.get("outputs", [])
        if len(got) != len(returned) and returned:
            return Outcome(
                "wrong_shape",
                f"{len(got)} results came back, {len(returned)} are expected",
                cause="wrong_count",
                **known,
            )
        for position, (region, meta) in enumerate(zip(returned, got, strict=False)):
            if "type" in meta:
                return Outcome(
                    "wrong_shape",
                    f"the function returned {meta['type']}, not a tensor",
                    cause="no_tensor",
                    output=position,
                    **known,
                )
            if tuple(meta["shape"]) != region.shape:
                return Outcome(
                    "wrong_shape", f"shape {tuple(meta['shape'])} came back, {region.shape} is expected",
                    cause="wrong_shape", output=position, **known,
                )  # fmt: skip
            want = str(region.dtype).removeprefix("torch.")
            if meta["dtype"] != want:
                return Outcome(
                    "wrong_dtype", f"dtype {meta['dtype']} came back, {want} is expected",
                    cause="wrong_dtype", output=position, **known,
                )  # fmt: skip
            if not meta.get("copied"):
                return Outcome(
                    "wrong_shape", f"the result lies on {meta.get('device')}, not on {self.buffers.device}",
                    cause="wrong_device", output=position, **known,
                )  # fmt: skip
        return None

    def _judge(self, values: Values, out: tuple[torch.Tensor, ...], known: dict[str, Any]) -> Outcome:
        worst: Comparison | None = None
        for position, (tensor, expected) in enumerate(zip(out, values.expected, strict=True)):
            result = compare(tensor, expected)
            if not result.right:
                unwritten = guards.poisoned(tensor) & result.wrong
                if bool(unwritten.any()) and position < len(out) - len(self.problem.mutates):
                    count, total = int(unwritten.sum()), tensor.numel()
                    first = tuple(int(i) for i in unwritten.nonzero()[0])
                    text = f"{count} of {total} elements were never written, the first at {list(first)}"
                    bad = Comparison(False, result.max_error, result.tolerance, result.wrong, first)
                    return Outcome("not_written", text, bad, position, out, **known)
                bad_count = int(result.wrong.sum())
                got, want = tensor[result.first_bad_index], expected.truth[result.first_bad_index]  # type: ignore[index]
                text = (
                    f"{bad_count} of {tensor.numel()} elements are wrong; at {list(result.first_bad_index or ())} "
                    f"{float(got):.7g} came back, {float(want):.7g} is right"
                )
                return Outcome("wrong_answer", text, result, position, out, **known)
            if worst is None or result.max_error > worst.max_error:
                worst = result
        return Outcome("passed", None, worst, 0, out, **known)


def arguments_of(values: Values, arguments: list[guards.Region | None]) -> list[dict[str, Any]]:
    """The arguments as the runner is told of them: places of tensors, values of everything else."""
    return [
        {"value": v} if r is None else {"tensor": r.described()} for v, r in zip(values.args, arguments, strict=True)
    ]


def placed(value: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, in memory of its own whose gaps hold guard bytes, as the runner sees it."""
    region = guards.Region(0, tuple(value.shape), tuple(value.stride()), value.dtype)
    memory = torch.full((max(region.nbytes, 1),), guards.GUARD_BYTE, dtype=torch.uint8)
    view = guards.view(memory, region)
    _write(view, value)
    return view


def layout_breaches(arena: torch.Tensor, layout: guards.Layout, reply: dict[str, Any]) -> list[str]:
    """What a store past a tensor's end left behind, in words; empty when nothing did."""
    found = []
    if guards.breached(arena, layout) is not None:
        found.append("memory beside an input was overwritten: a store ran past a tensor's end")
    if reply.get("breached"):
        found.append("memory beside the output was overwritten: a store ran past the tensor's end")
    return found


def _write(target: torch.Tensor, value: torch.Tensor) -> None:
    """Copy into a view whose elements may share memory (an expanded argument)."""
    for dimension, stride in enumerate(target.stride()):
        if stride == 0 and target.shape[dimension] > 1:
            target = target.narrow(dimension, 0, 1)
            value = value.narrow(dimension, 0, 1)
    if target.numel():
        target.copy_(value)


def _contiguous_result(reply: dict[str, Any]) -> bool:
    """Whether the first result was contiguous, by the runner's account."""
    outputs = reply["outputs"]
    return not outputs or bool(outputs[0].get("contiguous", True))


def _known(reply: dict[str, Any]) -> dict[str, Any]:
    """What a runner says of its call, by the names of Outcome's fields."""
    traffic = reply.get("traffic")
    return {
        "traffic": (int(traffic[0]), int(traffic[1])) if traffic else None,
        "launches": int(reply.get("launches", 0)),
        "undefined": int(reply.get("undefined", 0)),
        "programs": int(reply.get("programs", 0)),
        "conflicts": dict(reply.get("conflicts") or {}),
        "tuned": int(reply.get("tuned", 0)),
        "seconds": float(reply.get("seconds", 0.0)),
    }


def error_outcome(reply: dict[str, Any]) -> Outcome:
    """What a runner's error message says. Raises TypeError or ValueError where it makes no sense."""
    program = reply.get("program")
    return Outcome(
        str(reply.get("status", "runtime_error")),
        str(reply.get("message", "")),
        cause=reply.get("cause"),
        line=reply.get("line"),
        program_id=tuple(program) if program else None,
        index=reply.get("index"),
        whole=str(reply.get("whole", "")),
    )
