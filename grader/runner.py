"""The untrusted side: one fresh process for one grade. Runs the learner's file on the buffers it is given.

Nothing decided here counts: the judge looks at its own memory. What this process says about itself (lines, kernels,
traffic) only explains.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch

from grader import compiled_kernels, elsewhere, errors, footprint, learner_file, races, timing
from grader.allocations import GuardedAllocations
from grader.memory_views import RunnerMemory
from grader.protocol import Channel, Lost
from grader.watch import TUNING

MOST_OUTPUTS = 16
COMPILES = 128  # of one function: each size, dtype and alignment of the cases may cost one, PyTorch stops after 8


class Runner:
    def __init__(self, mode: str, spec: dict[str, Any], memory_fd: int | None) -> None:
        self.mode, self.spec = mode, spec
        self.path = Path(spec["file"])
        self.device = "cuda" if mode == "cuda" else "cpu"
        self.memory = RunnerMemory(self.device, memory_fd)
        self.module: Any = None
        self.entry: Any = None
        self.watch: Any = None
        self.launches: Any = None
        self.tuners: Any = None
        self.compiled_entry: Any = None
        self.recording: Any = None
        self.arguments: list[Any] = []  # of the last call, as the other two
        self.returned: list[Any] = []
        self.map_text = ""  # its access map
        self.gradients_of: list[str] = []  # only these inputs require gradients; empty: all differentiable ones
        self.backwards = 1  # how often the backward runs

    def prepare(self) -> None:
        """Set the mode's hooks before the learner's file is imported."""
        from grader import triton_adapter

        torch.set_num_threads(1)
        self.tuners = triton_adapter.watch_tuners()
        if self.mode == "interpreter":
            triton_adapter.use_own_benchmark(runs=2)
            self.watch = triton_adapter.watch_interpreter(str(self.path))
            triton_adapter.allow_interpreted_in_torch_library()
            if self.spec.get("stand_in_cuda"):
                from grader import stand_in_cuda

                stand_in_cuda.use(str(self.path), self.spec["stand_in_cuda"])
        else:
            if self.mode == "offline":
                triton_adapter.use_stand_in_driver(self.spec["target"])
                triton_adapter.use_own_benchmark(runs=1, every_key=False)
                if self.spec.get("options"):
                    from grader.triton_forced_options import force_options

                    force_options(self.spec["options"])
            self.launches = triton_adapter.watch_launches("compile" if self.mode == "offline" else "run")
        if self.spec.get("record"):
            from grader.verified.recorder import Recording

            self.recording = Recording(self)
        if self.mode != "cuda":
            torch.compile = _not_compiled

    def load(self) -> dict[str, Any]:
        started = time.perf_counter()
        try:
            self.module = learner_file.module_of(self.path)
        except BaseException as error:
            return errors.described(error, self.path, "import")
        refused = learner_file.refusal(self.module, self.spec)
        if refused is not None:
            return refused
        self.entry = getattr(self.module, self.spec["entry"])
        return {"event": "loaded", "seconds": time.perf_counter() - started}

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        """Run the entry once on the judge's buffers, then copy what it returned into the judge's output buffers."""
        args = [self.memory.argument(a["tensor"]) if "tensor" in a else a["value"] for a in message["args"]]
        self._new_call(message)
        self.arguments, self.returned, self.map_text = args, [], ""
        guards = GuardedAllocations(self.device) if self.guarded else None
        started = time.perf_counter()
        try:
            with ExitStack() as stack:
                if self.launches is not None and message.get("noop") and self.mode == "cuda":
                    from grader.triton_adapter import skipping

                    stack.enter_context(skipping(self.launches))
                if message.get("elsewhere"):
                    stack.enter_context(elsewhere.current(message["elsewhere"]))
                with guards or nullcontext():
                    returned = self.perform(args, bool(message.get("noop")))
                self._wait(message)
                seconds = time.perf_counter() - started
                values = returned if isinstance(returned, (tuple, list)) else (returned,)
                self.returned = list(values)
                outputs = [
                    self._handed_over(value, message["outputs"][position : position + 1])
                    for position, value in enumerate(values[:MOST_OUTPUTS])
                ]
                self._wait(message)
        except BaseException as error:
            reply = errors.described(error, self.path, "call", self.module)
            if TUNING.configuration is not None:
                reply["message"] = f"{reply['message']} (configuration {TUNING.configuration})"
            return reply
        if self.device == "cuda":
            torch.cuda.synchronize()
        reply = {"event": "result", "outputs": outputs, "seconds": seconds, "tuned": self.tuners.ran}
        if guards is not None:
            reply["breached"] = guards.breached()
        if self.watch is not None:
            reply |= self._watched()
        if self.launches is not None:
            reply["launches"] = self.launches.count
        return reply

    def _wait(self, message: dict[str, Any]) -> None:
        """For the whole device; on a side stream only for that: work that went elsewhere must show."""
        if self.device == "cuda" and message.get("elsewhere") == "stream":
            torch.cuda.current_stream().synchronize()
        elif self.device == "cuda":
            torch.cuda.synchronize()

    def _new_call(self, message: dict[str, Any]) -> None:
        """Forget what was seen of the last call, and set the hooks for this one."""
        TUNING.configuration = None
        self.gradients_of, self.backwards = message.get("gradients_of") or [], int(message.get("backwards", 1))
        forced = message.get("configuration")
        self.tuners.new_call(tuple(forced) if forced else None)
        if self.watch is not None:
            self.watch.new_call(
                filler=message.get("filler", "poison"),
                noop=bool(message.get("noop")),
                order=message.get("order", "forward"),
                trace=message.get("trace"),
            )
        if self.launches is not None:
            self.launches.count = 0

    def _handed_over(self, value: Any, places: list[dict[str, Any]]) -> dict[str, Any]:
        """Copy one result into its place, if it fits there; what it is, for the judge."""
        if not isinstance(value, torch.Tensor):
            return {"type": type(value).__name__}
        # a subclass could compute when it is looked at: copy the plain tensor now
        plain = value.detach().as_subclass(torch.Tensor)
        copied = False
        if places:
            try:
                copied = self.memory.store(plain, places[0])
            except (RuntimeError, NotImplementedError):
                copied = False
        return {
            "shape": list(plain.shape),
            "dtype": str(plain.dtype).removeprefix("torch."),
            "device": plain.device.type,
            "copied": copied,
            "contiguous": plain.is_contiguous(),
        }

    def _watched(self) -> dict[str, Any]:
        """What the interpreter's hooks saw of the call."""
        traffic = self.watch.traffic
        seen: dict[str, Any] = {
            "traffic": [traffic.loaded_bytes, traffic.stored_bytes],
            "launches": traffic.launches,
            "programs": traffic.programs,
            "undefined": self.watch.undefined,
        }
        if self.watch.launches is not None:
            seen["conflicts"] = races.described(self.watch.launches)
        return seen

    def owner(self, message: dict[str, Any]) -> dict[str, Any]:
        """Which program stored an element of the last call's output: the last one that did."""
        tensor = self.returned[int(message["output"])]
        offset = sum(i * s for i, s in zip(message["index"], tensor.stride(), strict=True))
        address = tensor.data_ptr() + offset * tensor.element_size()
        for program, addresses in reversed(self.watch.stores or []):
            if bool((addresses == address).any()):
                return {"event": "owner", "program": list(program)}
        return {"event": "owner", "program": None}

    def constexprs(self) -> list[dict[str, Any]]:
        """How many values each constexpr of each kernel has had in the launches of this process."""
        known = self.watch.constexprs if self.watch is not None else {}
        return [{"kernel": kernel, "name": name, "values": sorted(v)} for (kernel, name), v in known.items()]

    @property
    def guarded(self) -> bool:
        # torch.compile traces through no dispatch mode of ours
        return not (self.mode == "cuda" and self.spec["call"] == "compiled")

    def perform(self, args: list[Any], noop: bool = False, entry: Any = None) -> Any:
        """One call as the problem's `call` says, of the learner's entry or of another function in its place."""
        call = self.spec["call"]
        learners = entry is None
        entry = self.entry if learners else entry
        if call == "forward":
            return entry(*args)
        if call == "compiled":
            if learners and self.mode == "cuda" and not noop:
                if self.compiled_entry is None:
                    from torch._dynamo import config

                    config.recompile_limit = COMPILES
                    self.compiled_entry = torch.compile(entry, fullgraph=True)
                return self.compiled_entry(*args)
            return _inner(entry)(*args) if noop else entry(*args)
        *inputs, incoming = args
        names = self.spec["parameters"][: len(inputs)]
        differentiable = self.gradients_of or self.spec["differentiable"]
        inputs = [
            value.detach().requires_grad_() if name in differentiable else value
            for name, value in zip(names, inputs, strict=True)
        ]
        wanted = [v for n, v in zip(names, inputs, strict=True) if n in differentiable]
        out = entry(*inputs)
        if not out.requires_grad:
            raise errors.NoGradient(
                f"{self.spec['entry']} returned a tensor without a grad_fn: PyTorch has no gradient for it"
            )
        for _ in range(self.backwards - 1):
            torch.autograd.grad(out, wanted, incoming, allow_unused=True, retain_graph=True)
        gradients = torch.autograd.grad(out, wanted, incoming, allow_unused=True)
        missing = [name for name, g in zip(differentiable, gradients, strict=True) if g is None]
        if missing:
            raise errors.NoGradient(f"no gradient came back for {', '.join(missing)}")
        return (out, *gradients)

    def recorded(self, message: dict[str, Any]) -> dict[str, Any]:
        """A call's launches, or a part of what came of it. Behind judged calls, whose hooks it must not change."""
        if self.recording is None:
            from grader.verified.recorder import Recording

            self.recording = Recording(self)
        if message["op"] == "record":
            self._new_call({})
            return dict(self.recording.record(message))
        return dict(self.recording.part(message))

    def opcheck(self, message: dict[str, Any]) -> dict[str, Any]:
        """torch.library.opcheck on the entry; without a GPU only the tests that run no fake tensors."""
        args = [self.memory.tensor(a["tensor"]).clone() if "tensor" in a else a["value"] for a in message["args"]]
        names = self.spec["parameters"]
        for position, name in enumerate(names[: len(args)]):
            if name in self.spec["differentiable"]:
                args[position].requires_grad_()
        tests = ["test_schema", "test_autograd_registration"]
        if self.mode == "cuda":
            tests += ["test_faketensor", "test_aot_dispatch_dynamic"]
        results: dict[str, str | None] = {}
        for test in tests:
            try:
                torch.library.opcheck(self.entry, tuple(args), test_utils=test)
                results[test] = None
            except BaseException as error:
                results[test] = errors.first_line(error)
        return {"event": "opchecked", "results": results}


def _not_compiled(model: Any = None, **_: Any) -> Any:
    """torch.compile where it cannot work: the function as it is."""
    if model is None:
        return lambda function: function
    return model


def _inner(entry: Any) -> Any:
    return getattr(entry, "_torchdynamo_orig_callable", entry)


def serve(mode: str, spec: dict[str, Any], sock: Any, memory_fd: int | None) -> None:
    """Answer the judge's messages until it closes."""
    channel = Channel(sock)
    runner = Runner(mode, spec, memory_fd)
    runner.prepare()
    os.environ.pop("TRITON_PREP_GRADER", None)
    recording: Any = None
    while True:
        try:
            message = channel.receive()
        except Lost:
            return  # the judge is done with this runner
        operation = message.get("op")
        if operation == "load":
            channel.send(runner.load())
        elif operation == "memory":
            runner.memory.open(message)
            channel.send({"event": "memory"})
        elif operation == "call":
            with elsewhere.tensors(message.get("elsewhere"), runner.memory):
                reply = runner.call(message)
            channel.send(reply)
        elif operation == "owner":
            channel.send(runner.owner(message))
        elif operation == "tuners":
            channel.send({"event": "tuners", "kernels": runner.tuners.described(), "constexprs": runner.constexprs()})
        elif operation == "opcheck":
            channel.send(runner.opcheck(message))
        elif operation == "footprint":
            channel.send(
                {"event": "footprint", "lanes": runner.watch.lanes, **footprint.of_call(runner.watch.launches)}
            )
        elif operation == "sketch":
            from grader import sketch

            channel.send(sketch.sketched(runner, message))
        elif operation == "compiled":
            rows = compiled_kernels.rows(runner.launches.kernels, spec.get("stage"))
            channel.send({"event": "compiled", "kernels": rows})
        elif operation in ("record", "part"):
            channel.send(runner.recorded(message))
        elif operation == "access map":
            from grader.access_map import sending

            channel.send(sending.part(runner, message))
        elif operation == "record kernels":
            from grader.kernels_alone.recorder import Recording

            recording = recording or Recording(runner)
            channel.send(recording.record(message))
        elif operation == "replay kernels":
            from grader.kernels_alone import replay

            channel.send(replay.load(runner, message))
        elif operation == "time":
            channel.send(timing.timed(runner, message))
        else:
            return
