"""The judge's side of a replay: memory for a record, its steps carried out there by another process, the judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from grader import guards
from grader.case_runner import CaseRunner, Outcome, layout_breaches, layout_of
from grader.expectation import Values
from grader.failures import RunnerGone
from grader.runner_process import RunnerProcess
from grader.verified import record as form

COMPILE_LIMIT = 120.0  # seconds for all kernels of one record
PART = 200_000  # characters of a record in one message


def layout_for(
    record: form.Record, values: Values, guard: int
) -> tuple[guards.Layout, list[guards.Region | None], list[guards.Region]]:
    """Places for the tensor arguments, as in any call, and for the scratch tensors after them."""
    layout, arguments, _ = layout_of(Values(values.args, ()), guard)
    scratch = []
    for buffer in record.buffers:
        if isinstance(buffer, form.Scratch):
            dtype = form.DTYPES[buffer.dtype]
            scratch.append(layout.place((-(-buffer.nbytes // dtype.itemsize),), (1,), dtype))
    return layout, arguments, scratch


def sizes_of(values: Values, guard: int) -> list[int | None]:
    """Bytes of each argument that is a tensor, from its first to its last element."""
    return [None if region is None else region.nbytes for region in layout_of(values, guard)[1]]


def hand_over(process: RunnerProcess, record: form.Record) -> int:
    """Its number there; its kernels are compiled from then on, and what is wrong with it is said where it is used.

    Raises RunnerGone.
    """
    text, reply = form.dump(record), {}
    for start in range(0, len(text), PART):
        message = {"op": "record", "text": text[start : start + PART], "last": start + PART >= len(text)}
        reply = process.ask(message, COMPILE_LIMIT)
    number = reply.get("number")
    if not isinstance(number, int):  # the judge has parsed it, so the replayer can
        raise RunnerGone("crashed", f"the replayer did not take the record: {reply.get('message')}")
    return number


class Replay(CaseRunner):
    """A CaseRunner whose calls are replays of one record after another, in a replayer process."""

    record: form.Record

    def use(self, number: int, record: form.Record) -> Outcome | None:
        """From now on the record that was handed over with this number; what is wrong with it. Raises RunnerGone."""
        self.record = record
        reply = self.process.ask({"op": "use", "number": number}, COMPILE_LIMIT)
        return _failed(reply) if reply.get("event") == "error" else None

    def places(self, values: Values) -> tuple[guards.Layout, list[guards.Region | None], list[guards.Region]]:
        return layout_for(self.record, values, self.buffers.guard)

    def run(self, values: Values, *, noop: bool = False, **_: Any) -> Outcome:
        """Replay the record on these values, its launches left out if `noop`. Raises RunnerGone."""
        arena = self.buffers.arena
        layout, arguments, regions = self.prepare(values)
        before = [None if r is None else arena[r.offset : r.offset + r.nbytes].clone() for r in arguments]
        message = {"op": "replay", "places": [r.described() for r in regions], "launches": not noop}
        reply = self.process.ask(message, self.limit)
        if reply.get("event") == "error":
            return _failed(reply)
        known: dict[str, Any] = {
            "launches": 0 if noop else self.record.launches,
            "seconds": float(reply.get("seconds", 0.0)),
        }
        for breach in layout_breaches(arena, layout, {}):
            return Outcome("out_of_bounds", breach, cause="out_of_range_store", **known)
        changed = self._inputs_changed(arena, arguments, before)
        if changed:
            return Outcome("input_mutated", changed, cause="input_mutated", **known)
        returned = self._returned(values)
        described = {"outputs": [self._meta(output, regions) for output in self.record.outputs]}
        malformed = self._wrong_form(described, returned, known)
        if malformed is not None:
            return malformed
        outcome = self._judge(values, self.outputs(values), known)
        if outcome.status == "passed" and self.problem.contiguous and not described["outputs"][0]["contiguous"]:
            text = "a tensor that is not contiguous came back; the task asks for a contiguous one"
            return Outcome("wrong_shape", text, cause="not_contiguous", **known)
        return outcome

    def prepare(self, values: Values) -> tuple[guards.Layout, list[guards.Region | None], list[guards.Region]]:
        """Inputs in their places, scratch poisoned. Returns the layout, the arguments' places and the buffers'."""
        layout, arguments, scratch = self.write_inputs(values)
        for region in scratch:
            guards.poison(self.buffers.arena, region)
        if self.buffers.device == "cuda":
            torch.cuda.synchronize()
        return layout, arguments, [*(r for r in arguments if r is not None), *scratch]

    def outputs(self, values: Values) -> tuple[torch.Tensor, ...]:
        """Copies on the CPU of what the call returned and then of what it changed in place."""
        return tuple(view.cpu().clone() for view in self.output_views(values))

    def output_views(self, values: Values) -> list[torch.Tensor]:
        _, arguments, scratch = self.places(values)
        regions = [*(r for r in arguments if r is not None), *scratch]
        places = [o.region(regions) for o in self.record.outputs if isinstance(o, form.View)]
        wanted = len(values.expected) - len(self.problem.mutates)
        return [guards.view(self.buffers.arena, r) for r in [*places[:wanted], *self._mutated_regions(arguments)]]

    def _returned(self, values: Values) -> list[guards.Region]:
        """Shapes and dtypes that must come back."""
        count = len(values.expected) - len(self.problem.mutates)
        natives = [expected.native for expected in values.expected[:count]]
        return [guards.Region(0, tuple(n.shape), tuple(n.stride()), n.dtype) for n in natives]

    def _meta(self, output: form.View | str, regions: Sequence[guards.Region]) -> dict[str, Any]:
        if isinstance(output, str):
            return {"type": output}
        contiguous = guards.view(self.buffers.arena, output.region(regions)).is_contiguous()
        return {"shape": list(output.shape), "dtype": output.dtype, "copied": True, "contiguous": contiguous}


def _failed(reply: dict[str, Any]) -> Outcome:
    return Outcome(str(reply["status"]), str(reply["message"]), cause=reply.get("cause"))
