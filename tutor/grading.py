"""The client of `python -m grader serve`: JSON lines over pipes, one warm process, events as frozen dataclasses."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from grader.process_tree import descendants

COMMAND_VARIABLE = "TRITON_PREP_GRADER"
LONGEST_LINE = 64 * 2**20  # a verdict carries the learner's printed output, which the grader cuts well below this
START_SECONDS = 120.0
POLITE_SECONDS = 2.0
STDERR_KEPT = 4000


@dataclass(frozen=True)
class Ready:
    versions: dict[str, str]
    backend: str  # interpreter, cuda, or none
    device: str
    reason: str = ""  # why the backend is none, and what to do


@dataclass(frozen=True)
class Stage:
    id: str
    name: str
    state: str  # started, done
    seconds: float | None = None


@dataclass(frozen=True)
class CaseDone:
    id: str
    index: int
    total: int
    case: dict[str, Any]


@dataclass(frozen=True)
class VerdictReady:
    id: str
    verdict: dict[str, Any]


@dataclass(frozen=True)
class Failed:
    id: str
    kind: str  # usage, infrastructure, cancelled
    message: str


@dataclass(frozen=True)
class Inspected:
    id: str
    kernels: list[dict[str, Any]]


@dataclass(frozen=True)
class Audited:
    id: str
    report: dict[str, Any]


@dataclass(frozen=True)
class DoctorReport:
    id: str
    report: dict[str, Any]


@dataclass(frozen=True)
class Progressed:
    id: str
    done: int
    total: int
    words: str = ""


@dataclass(frozen=True)
class Answer:
    """What an operation of `grader.server.ANSWERS` gives."""

    id: str
    data: dict[str, Any]


Event = Stage | CaseDone | VerdictReady | Failed | Inspected | Audited | DoctorReport | Progressed | Answer
LAST_EVENTS = (VerdictReady, Failed, Inspected, Audited, DoctorReport, Answer)


@dataclass(frozen=True)
class GradeRequest:
    exercise: str
    file: Path
    backend: str = "auto"  # auto, cuda, interpreter
    target: str = "sm_90"
    time: bool | None = None  # None: when there is a GPU
    sanitize: bool = False
    seed: int = 0
    verified: bool = False
    keep_going: bool = False
    call_limit: float | None = None  # seconds of one call; None: the grader's own

    def message(self) -> dict[str, Any]:
        return {"op": "grade", **vars(self), "file": os.path.abspath(self.file)}


class GraderLost(Exception):
    """The grader cannot be started or has gone. The message says what it last wrote."""


@dataclass
class _Session:
    """One server process and what belongs to it; a lost process leaves nothing behind for the next one."""

    process: asyncio.subprocess.Process
    streams: dict[str, asyncio.Queue[Event]] = field(default_factory=dict)
    said: bytearray = field(default_factory=bytearray)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    closing: bool = False


class Grader:
    """One grader process. Start it early: it imports torch (about 3 s). The next request replaces a lost one."""

    def __init__(self, command: Sequence[str] | None = None, environment: Mapping[str, str] | None = None) -> None:
        self._environment = dict(environment or {})
        given = os.environ.get(COMMAND_VARIABLE)
        # `-m` puts the working folder first on sys.path: a learner's torch.py there must not be taken for torch.
        self._folder: str | None = None
        if command is not None:
            self.command = list(command)
        elif given:
            self.command = shlex.split(given)
        else:
            self.command = [sys.executable, "-m", "grader", "serve"]
            self._folder = str(Path(__file__).resolve().parent.parent)
        self.ready: Ready | None = None
        self._session: _Session | None = None
        self._number = 0
        self._starting: asyncio.Lock | None = None

    @property
    def running(self) -> bool:
        return self._session is not None and self._session.process.returncode is None

    @property
    def pid(self) -> int | None:
        return self._session.process.pid if self._session is not None and self.running else None

    async def start(self) -> Ready:
        """Starts the process when there is none. Raises GraderLost."""
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self.running and self.ready is not None:
                return self.ready
            return await self._launch()

    async def _launch(self) -> Ready:
        self.ready = None
        pipe = asyncio.subprocess.PIPE
        try:
            with self._inherited() as inherited:
                process = await asyncio.create_subprocess_exec(
                    *self.command, stdin=pipe, stdout=pipe, stderr=pipe,
                    start_new_session=True, limit=LONGEST_LINE, cwd=self._folder, **inherited,
                )  # fmt: skip
        except OSError as error:
            raise GraderLost(f"The grader cannot be started: {shlex.join(self.command)}: {error.strerror}") from error
        session = self._session = _Session(process)
        first: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        session.tasks = [
            asyncio.create_task(self._read(session, first)),
            asyncio.create_task(_keep_stderr(session)),
        ]
        try:
            self.ready = await asyncio.wait_for(asyncio.shield(first), START_SECONDS)
        except TimeoutError as error:
            await self.close()
            raise GraderLost(f"The grader did not answer within {START_SECONDS:.0f} s.") from error
        except asyncio.CancelledError:
            self.kill()
            raise
        return self.ready

    @contextlib.contextmanager
    def _inherited(self) -> Iterator[dict[str, Any]]:
        """What a process that starts is given of this one."""
        yield {"env": {**os.environ, **self._environment}}

    async def _read(self, session: _Session, first: asyncio.Future[Ready]) -> None:
        assert session.process.stdout is not None
        problem = ""
        while True:
            try:
                line = await session.process.stdout.readline()
            except ValueError:
                problem = "It sent a line that is too long."
                break
            if not line:
                break
            try:
                message = msgspec.json.decode(line)
                if message["event"] == "ready":
                    if not first.done():
                        first.set_result(_ready(message))
                    continue
                event = _event(message)
            except (msgspec.DecodeError, KeyError, TypeError):
                continue  # a stray line, or an event of a newer grader
            if event is not None and event.id in session.streams:
                session.streams[event.id].put_nowait(event)
            await asyncio.sleep(0)  # a burst of lines must not hold up the screen
        if problem:
            _kill_tree(session.process.pid)
        await session.process.wait()
        await asyncio.wait(session.tasks[1:], timeout=0.5)
        reason = _loss(session, problem)
        if not first.done():
            first.set_exception(GraderLost(reason))
            first.exception()  # nobody may be left to take it
        kind = "cancelled" if session.closing else "infrastructure"
        for name, queue in session.streams.items():
            queue.put_nowait(Failed(name, kind, reason))

    async def _request(self, message: dict[str, Any]) -> AsyncIterator[Event]:
        self._number += 1
        name = f"{message['op'][0]}{self._number}"
        try:
            await self.start()
        except GraderLost as error:
            yield Failed(name, "infrastructure", str(error))
            return
        session = self._session
        assert session is not None
        queue: asyncio.Queue[Event] = asyncio.Queue()
        session.streams[name] = queue
        finished = False
        try:
            if not await _send(session, {**message, "id": name}):
                await asyncio.wait(session.tasks[:1], timeout=POLITE_SECONDS)
            while not finished:
                if queue.empty() and session.tasks[0].done():
                    yield Failed(name, "infrastructure", _loss(session, ""))
                    return
                event = await queue.get()
                finished = isinstance(event, LAST_EVENTS)
                yield event
        finally:
            session.streams.pop(name, None)
            if not finished and session.process.returncode is None:
                _send_now(session, {"op": "cancel", "id": name})

    def grade(self, request: GradeRequest) -> AsyncIterator[Event]:
        """Stages and cases as they come, then exactly one VerdictReady or Failed."""
        return self._request(request.message())

    def audit(self, exercise: str, backend: str = "auto") -> AsyncIterator[Event]:
        return self._request({"op": "audit", "exercise": exercise, "backend": backend})

    def inspect(self, exercise: str, file: Path, stage: str = "ptx", target: str = "sm_90") -> AsyncIterator[Event]:
        return self.ask("inspect", exercise, file, stage=stage, target=target)

    def ask(self, operation: str, exercise: str, file: Path, **fields: Any) -> AsyncIterator[Event]:
        """One of `grader.server.ANSWERS`: Stage and Progressed as they come, then exactly one Answer or Failed."""
        return self._request({"op": operation, "exercise": exercise, "file": os.path.abspath(file), **fields})

    def doctor(self) -> AsyncIterator[Event]:
        return self._request({"op": "doctor"})

    async def cancel(self) -> None:
        """Ends every request in flight; their streams end with Failed("cancelled")."""
        session = self._session
        if session is None or not self.running:
            return
        for name in list(session.streams):
            await _send(session, {"op": "cancel", "id": name})

    async def close(self) -> None:
        """Asks the process to end, then ends its whole tree."""
        session = self._session
        if session is None:
            return
        session.closing = True
        if session.process.returncode is None:
            family = [session.process.pid, *descendants(session.process.pid)]
            await _send(session, {"op": "shutdown"})
            with contextlib.suppress(Exception):
                assert session.process.stdin is not None
                session.process.stdin.close()
            try:
                await asyncio.wait_for(session.process.wait(), POLITE_SECONDS)
            except TimeoutError:
                _kill_tree(session.process.pid)
            _kill(family[1:])
            await session.process.wait()
        await asyncio.wait(session.tasks, timeout=1.0)
        for task in session.tasks:
            task.cancel()
        self._session, self.ready = None, None

    def kill(self) -> None:
        """At once, without an event loop."""
        session = self._session
        if session is not None:
            session.closing = True
            if session.process.returncode is None:
                _kill_tree(session.process.pid)


async def _send(session: _Session, message: dict[str, Any]) -> bool:
    _send_now(session, message)
    try:
        assert session.process.stdin is not None
        await session.process.stdin.drain()
    except (ConnectionError, RuntimeError):
        return False
    return True


def _send_now(session: _Session, message: dict[str, Any]) -> None:
    assert session.process.stdin is not None
    with contextlib.suppress(ConnectionError, RuntimeError):
        session.process.stdin.write(msgspec.json.encode(message) + b"\n")


async def _keep_stderr(session: _Session) -> None:
    assert session.process.stderr is not None
    while chunk := await session.process.stderr.read(65536):
        session.said += chunk
        del session.said[:-STDERR_KEPT]


def _loss(session: _Session, problem: str) -> str:
    code = session.process.returncode
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            problem = f"{problem} It was ended by {signal.Signals(-code).name}.".strip()
    elif code:
        problem = f"{problem} It ended with exit code {code}.".strip()
    text = f"The grader process is gone. {problem}".strip()
    said = session.said.decode(errors="replace").strip()
    return f"{text} It last wrote:\n{said}" if said else text


def _ready(message: dict[str, Any]) -> Ready:
    return Ready(
        message.get("versions") or {},
        message.get("backend", "none"),
        message.get("device") or "",
        message.get("reason") or "",
    )


def _event(message: dict[str, Any]) -> Event | None:
    name = message["id"]
    match message["event"]:
        case "stage":
            return Stage(name, message["name"], message["state"], message.get("seconds"))
        case "case":
            return CaseDone(name, message["index"], message["total"], message["case"])
        case "verdict":
            return VerdictReady(name, message["verdict"])
        case "failed":
            return Failed(name, message.get("kind", "infrastructure"), message.get("message", ""))
        case "inspected":
            return Inspected(name, message["kernels"])
        case "audited":
            return Audited(name, message["report"])
        case "doctor":
            return DoctorReport(name, message["report"])
        case "progress":
            return Progressed(name, message["done"], message["total"], message.get("words", ""))
        case "answer":
            return Answer(name, message["data"])
    return None


def _kill_tree(pid: int) -> None:
    """Runners sit in process groups of their own, so killing the server's group would leave them running."""
    _kill([pid, *descendants(pid)])


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
