"""The untrusted side: one fresh process for one grade. Runs the learner's file on the buffers it is given.

Nothing decided here counts: the judge looks at its own memory. What this process says about itself (lines, kernels,
traffic) only explains.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch

from grader import errors
from grader.allocations import GuardedAllocations
from grader.memory_views import RunnerMemory
from grader.protocol import Channel, Lost

SUBMISSION = "submission"


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
        self.compiled_entry: Any = None
        self.returned: list[Any] = []  # of the last call

    def prepare(self) -> None:
        """Set the mode's hooks before the learner's file is imported."""
        from grader import triton_adapter

        torch.set_num_threads(1)
        if self.mode == "interpreter":
            triton_adapter.use_own_benchmark(runs=2)
            self.watch = triton_adapter.watch_interpreter(str(self.path))
            triton_adapter.allow_interpreted_in_torch_library()
        else:
            if self.mode == "offline":
                triton_adapter.use_stand_in_driver(self.spec["target"])
                triton_adapter.use_own_benchmark(runs=1, every_key=False)
            self.launches = triton_adapter.watch_launches("compile" if self.mode == "offline" else "run")
        if self.mode != "cuda":
            torch.compile = _not_compiled

    def load(self) -> dict[str, Any]:
        started = time.perf_counter()
        try:
            spec = importlib.util.spec_from_file_location(SUBMISSION, self.path)
            assert spec is not None and spec.loader is not None
            self.module = importlib.util.module_from_spec(spec)
            sys.modules[SUBMISSION] = self.module
            spec.loader.exec_module(self.module)
        except BaseException as error:
            return errors.described(error, self.path, "import")
        entry = getattr(self.module, self.spec["entry"], None)
        if entry is None:
            return errors.plain("import_error", f"the file defines no function {self.spec['entry']!r}", "no_entry")
        if not callable(entry):
            return errors.plain("import_error", f"{self.spec['entry']!r} is not a function", "no_entry")
        for name, why in self.spec["fixed"].items():
            if not hasattr(self.module, name):
                return errors.plain("import_error", f"the file must define {name!r}: {why}", "no_entry")
        problem = _signature_problem(entry, self.spec["parameters"])
        if problem:
            return errors.plain("import_error", f"{self.spec['entry']}: {problem}", "wrong_signature", _line(entry))
        self.entry = entry
        return {"event": "loaded", "seconds": time.perf_counter() - started}

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        """Run the entry once on the judge's buffers, then copy what it returned into the judge's output buffers."""
        args = [self.memory.tensor(a["tensor"]) if "tensor" in a else a["value"] for a in message["args"]]
        if self.watch is not None:
            self.watch.stores = [] if message.get("trace") else None
            self.watch.filler, self.watch.noop = message.get("filler", "poison"), bool(message.get("noop"))
            self.watch.traffic, self.watch.undefined = type(self.watch.traffic)(), 0
        if self.launches is not None:
            self.launches.count = 0
        guards = GuardedAllocations(self.device) if self.guarded else None
        started = time.perf_counter()
        try:
            with ExitStack() as stack:
                if self.launches is not None and message.get("noop") and self.mode == "cuda":
                    from grader.triton_adapter import skipping

                    stack.enter_context(skipping(self.launches))
                with guards or nullcontext():
                    returned = self.perform(args, bool(message.get("noop")))
                if self.device == "cuda":
                    torch.cuda.synchronize()
        except BaseException as error:
            return errors.described(error, self.path, "call", self.module)
        seconds = time.perf_counter() - started
        values = returned if isinstance(returned, (tuple, list)) else (returned,)
        self.returned = list(values)
        outputs: list[dict[str, Any]] = []
        for position, value in enumerate(values):
            if not isinstance(value, torch.Tensor):
                outputs.append({"type": type(value).__name__})
                continue
            # a subclass could compute when it is looked at: copy the plain tensor now
            plain = value.detach().as_subclass(torch.Tensor)
            places = message["outputs"]
            copied = False
            if position < len(places):
                try:
                    copied = self.memory.store(plain, places[position])
                except (RuntimeError, NotImplementedError):
                    copied = False
            outputs.append(
                {
                    "shape": list(plain.shape),
                    "dtype": str(plain.dtype).removeprefix("torch."),
                    "device": plain.device.type,
                    "copied": copied,
                    "contiguous": plain.is_contiguous(),
                }
            )
        if self.device == "cuda":
            torch.cuda.synchronize()
        reply: dict[str, Any] = {"event": "result", "outputs": outputs[:16], "seconds": seconds}
        if guards is not None:
            reply["breached"] = guards.breached()
        if self.watch is not None:
            traffic = self.watch.traffic
            reply["traffic"] = [traffic.loaded_bytes, traffic.stored_bytes]
            reply["launches"] = traffic.launches
            reply["undefined"] = self.watch.undefined
        if self.launches is not None:
            reply["launches"] = self.launches.count
        return reply

    def owner(self, message: dict[str, Any]) -> dict[str, Any]:
        """Which program stored an element of the last call's output: the last one that did."""
        tensor = self.returned[int(message["output"])]
        offset = sum(i * s for i, s in zip(message["index"], tensor.stride(), strict=True))
        address = tensor.data_ptr() + offset * tensor.element_size()
        for program, addresses in reversed(self.watch.stores or []):
            if bool((addresses == address).any()):
                return {"event": "owner", "program": list(program)}
        return {"event": "owner", "program": None}

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
                    self.compiled_entry = torch.compile(entry, fullgraph=True)
                return self.compiled_entry(*args)
            return _inner(entry)(*args) if noop else entry(*args)
        *inputs, incoming = args
        names = self.spec["parameters"][: len(inputs)]
        inputs = [
            value.detach().requires_grad_() if name in self.spec["differentiable"] else value
            for name, value in zip(names, inputs, strict=True)
        ]
        wanted = [v for n, v in zip(names, inputs, strict=True) if n in self.spec["differentiable"]]
        out = entry(*inputs)
        if not out.requires_grad:
            raise errors.NoGradient(
                f"{self.spec['entry']} returned a tensor without a grad_fn: PyTorch has no gradient for it"
            )
        gradients = torch.autograd.grad(out, wanted, incoming, allow_unused=True)
        missing = [name for name, g in zip(self.spec["differentiable"], gradients, strict=True) if g is None]
        if missing:
            raise errors.NoGradient(f"no gradient came back for {', '.join(missing)}")
        return (out, *gradients)

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

    def compiled(self) -> dict[str, Any]:
        """What was compiled: one row a kernel, with its binary in the scratch folder."""
        rows = []
        for number, kernel in enumerate(self.launches.kernels[:64]):
            data, metadata = kernel.asm, kernel.metadata
            extension = next((e for e in ("cubin", "hsaco") if e in data), None)
            row: dict[str, Any] = {
                "kernel": metadata.name,
                "num_warps": metadata.num_warps,
                "num_stages": getattr(metadata, "num_stages", None),
                "shared_bytes": metadata.shared,
                "signature": ", ".join(str(t) for t in kernel.src.signature.values() if t != "constexpr"),
                "constexprs": _constexprs(kernel),
            }
            if extension:
                name = f"kernel-{number}.{extension}"
                Path(name).write_bytes(data[extension])
                row["binary"] = name
            assembly = next((e for e in ("ptx", "amdgcn") if e in data), None)
            if assembly:
                row["assembly"] = f"kernel-{number}.{assembly}"
                Path(row["assembly"]).write_text(data[assembly])
            stage = self.spec.get("stage")
            if stage in data and stage not in ("cubin",):
                Path(f"kernel-{number}.{stage}").write_text(data[stage])
                row["stage"] = f"kernel-{number}.{stage}"
            rows.append(row)
        return {"event": "compiled", "kernels": rows}


def _constexprs(kernel: Any) -> dict[str, Any]:
    names = list(kernel.src.signature)
    found = {}
    for path, value in (getattr(kernel.src, "constants", None) or {}).items():
        index = path[0] if isinstance(path, tuple) else path
        name = names[index] if isinstance(index, int) else str(index)
        found[name] = value if isinstance(value, (int, float, str, bool, type(None))) else str(value)
    return found


def _not_compiled(model: Any = None, **_: Any) -> Any:
    """torch.compile where it cannot work: the function as it is."""
    if model is None:
        return lambda function: function
    return model


def _inner(entry: Any) -> Any:
    return getattr(entry, "_torchdynamo_orig_callable", entry)


def _signature_problem(entry: Any, parameters: list[str]) -> str | None:
    try:
        signature = inspect.signature(entry)
    except (TypeError, ValueError):
        return None  # an operator: PyTorch checks its schema itself
    try:
        signature.bind(*parameters)
    except TypeError as error:
        return f"cannot be called as {entry.__name__}({', '.join(parameters)}): {error}"
    return None


def _line(entry: Any) -> int | None:
    code = getattr(inspect.unwrap(entry), "__code__", None)
    return code.co_firstlineno if code else None


def serve(mode: str, spec: dict[str, Any], sock: Any, memory_fd: int | None) -> None:
    """Answer the judge's messages until it closes."""
    channel = Channel(sock)
    runner = Runner(mode, spec, memory_fd)
    runner.prepare()
    os.environ.pop("TRITON_PREP_GRADER", None)
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
            channel.send(runner.call(message))
        elif operation == "owner":
            channel.send(runner.owner(message))
        elif operation == "opcheck":
            channel.send(runner.opcheck(message))
        elif operation == "compiled":
            channel.send(runner.compiled())
        elif operation == "time":
            from grader import timing

            channel.send(timing.timed(runner, message))
        else:
            return
