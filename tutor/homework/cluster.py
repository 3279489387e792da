"""Grades on the nodes of a Ray cluster: the same as on this machine, wherever each of them runs.

Each slot (a GPU, or a share of the processors) is an actor with one warm grader. Work goes there by content. Nothing is
kept on the nodes: who collects the grades writes them down.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tutor.homework.work import CannotGrade, Facts, Graded, Work, course_digest

GOES = 2  # tries of a piece of work whose node or worker was lost
PATIENCE = 300.0  # seconds without any node at work
INSTALL = "pip install 'triton-prep[cluster]'"
TOLD = "versions", "backend", "device"  # what must be equal for grades to be equal


class Lost(Exception):
    """The worker, or its node, is gone."""


@dataclass(frozen=True)
class Slots:
    """How many graders the cluster has room for, and what each of them holds."""

    count: int
    gpus: int  # each


class Cluster:
    """A Place."""

    def __init__(self, address: str, workers: int | None, *, with_gpus: bool, tell: Callable[[str], None]) -> None:
        """`tell` is given a line for each piece of work that was lost with its worker or node."""
        self._tell = tell
        self._address, self._workers, self._with_gpus = address, workers, with_gpus
        self._ray: Any = None
        self._actor: Any = None  # the class
        self._slots = Slots(0, 0)
        self._facts: dict[str, Any] | None = None
        self._first: Any = None
        self._waiting: asyncio.Queue[Work] = asyncio.Queue()
        self._ended: asyncio.Queue[Graded] = asyncio.Queue()
        self._goes: dict[str, int] = {}
        self._open = 0
        self._serving = 0
        self._loss = ""  # the last one
        self._tasks: list[asyncio.Task[None]] = []
        self._actors: list[Any] = []

    def _connect(self) -> None:
        """Raises CannotGrade."""
        self._ray = _connected(self._address)
        self._slots = slots(self._ray.nodes(), self._workers, with_gpus=self._with_gpus)
        if not self._slots.count:
            raise CannotGrade(
                f"The cluster at {self._address} has no node with a processor for this: see `ray status`."
            )
        options = {"num_cpus": 1, "num_gpus": self._slots.gpus, "scheduling_strategy": "SPREAD"}
        self._actor = self._ray.remote(**options, max_restarts=0)(_actor_class())

    async def facts(self) -> Facts:
        self._connect()
        until = time.monotonic() + PATIENCE
        while self._first is None:
            with contextlib.suppress(Lost):
                self._first = await self._start(until - time.monotonic())
        assert self._facts is not None
        return Facts(*(self._facts[name] for name in ("backend", "device", "versions")))

    def submit(self, work: Work) -> None:
        self._open += 1
        self._waiting.put_nowait(work)

    async def collect(self) -> AsyncIterator[Graded]:
        count = max(1, min(self._slots.count, self._open))
        first, self._first = self._first, None
        self._tasks = [asyncio.create_task(self._serve(None if number else first)) for number in range(count)]
        while self._open:
            graded = await self._next()
            self._open -= 1
            yield graded

    async def _next(self) -> Graded:
        """Raises CannotGrade when the nodes cannot be used, or all are gone for long."""
        waiting = asyncio.ensure_future(self._ended.get())
        idle_since = time.monotonic()
        while True:
            done, _ = await asyncio.wait([waiting, *self._tasks], timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            if waiting in done:
                return waiting.result()
            if done:
                waiting.cancel()
                for task in done:
                    task.result()
            idle_since = time.monotonic() if self._serving else idle_since
            if time.monotonic() - idle_since > PATIENCE:
                waiting.cancel()
                raise self._no_node()

    async def _serve(self, actor: Any) -> None:
        """One slot: work as long as there is any; a new actor, wherever there is room, when this one is lost."""
        while True:
            try:
                actor = actor or await self._start(None)
                self._serving += 1
                try:
                    while True:
                        await self._one(actor)
                finally:
                    self._serving -= 1
            except Lost:
                self._drop(actor)
                actor = None
                await asyncio.sleep(1.0)  # a node that takes actors and loses them at once must not spin

    async def _one(self, actor: Any) -> None:
        """Raises Lost, with the work given back to whoever comes next."""
        work = await self._waiting.get()
        fields = {"key": work.key, "exercise": work.exercise, "options": dict(work.options)}
        try:
            # an object of its own in the store of this node, which the other fetches
            source = self._ray.put(work.content.path.read_bytes())
            answer = await self._answer(actor.grade.remote({**fields, "total_limit": work.total_limit}, source))
        except Lost as lost:
            self._goes[work.key] = self._goes.get(work.key, 0) + 1
            again = self._goes[work.key] < GOES
            self._tell(f"The node that graded {work.exercise}, or its worker, was lost{'' if again else ' once more'}.")
            if again:
                self._waiting.put_nowait(work)
            else:
                self._ended.put_nowait(Graded(work.key, None, str(lost)))
            raise
        self._ended.put_nowait(Graded(**answer))

    async def _start(self, limit: float | None) -> Any:
        """An actor that answers, and grades as the others do. Raises Lost, CannotGrade."""
        actor = self._actor.remote(course_digest())
        self._actors.append(actor)
        try:
            found = await asyncio.wait_for(self._answer(actor.facts.remote()), limit)
        except TimeoutError as error:
            raise self._no_node() from error
        except Lost:
            self._drop(actor)
            raise
        if self._facts is None:
            self._facts = found
        different = [name for name in TOLD if found[name] != self._facts[name]]
        if different:
            one, other = (f"{facts['host']}: {_listed(facts[different[0]])}" for facts in (self._facts, found))
            raise CannotGrade(f"The nodes are not alike, and grades would not be: {one}; {other}.")
        return actor

    async def _answer(self, reference: Any) -> Any:
        """Raises Lost, and CannotGrade for what the node says of itself."""
        errors = self._ray.exceptions
        try:
            answer = await asyncio.wrap_future(reference.future())
        except (errors.RayTaskError, errors.RayError) as error:
            text = " ".join(str(error).split())
            self._loss = f"a node of the cluster was lost ({type(error).__name__}: {text[:300]})"
            raise Lost(self._loss) from error
        if "cannot" in answer:
            raise CannotGrade(": ".join(part for part in (answer["host"], answer["cannot"]) if part))
        return answer

    def _no_node(self) -> CannotGrade:
        text = f"No node of the cluster took up work for {PATIENCE:.0f} s: see `ray status`."
        return CannotGrade(f"{text} The same command goes on from here. {self._loss}".strip())

    def _drop(self, actor: Any) -> None:
        if actor in self._actors:
            self._actors.remove(actor)
            with contextlib.suppress(Exception):  # it may be gone, or the connection to it
                self._ray.kill(actor)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for actor in list(self._actors):
            self._drop(actor)
        if self._ray is not None:
            self._ray.shutdown()


def slots(nodes: list[Mapping[str, Any]], workers: int | None, *, with_gpus: bool) -> Slots:
    """One for each GPU where there are any; else, as on one machine, one for two processors."""
    resources = [node["Resources"] for node in nodes if node["Alive"]]
    gpus = sum(int(one.get("GPU", 0)) for one in resources) if with_gpus else 0
    processors = sum(int(one.get("CPU", 0)) for one in resources)
    most = gpus or processors
    return Slots(min(most, workers or gpus or max(1, processors // 2)), 1 if gpus else 0)


def _connected(address: str) -> Any:
    try:
        import ray
    except ImportError as error:
        raise CannotGrade(f"--cluster needs Ray: {INSTALL}") from error
    host, _, port = address.rpartition(":")
    try:
        if host and port.isdigit() and "/" not in host:  # Ray itself tries for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=20).close()
        # Ray lets the workers import from where its user stands, and learners' files may lie there
        with contextlib.chdir("/"):
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (OSError, RuntimeError, ValueError, AssertionError) as error:
        text = " ".join(str(error).split())
        raise CannotGrade(f"--cluster {address}: {text[:400]}") from error
    return ray


def _actor_class() -> type:
    """Made in a function, so that it travels by value: a node without triton-prep can then say what it lacks."""

    class HomeworkGrader:
        def __init__(self, course: str) -> None:
            self._course = course
            self._grader: Any = None

        def facts(self) -> dict[str, Any]:
            import socket

            host = socket.gethostname()
            try:
                from tutor.homework.on_node import start
                from tutor.homework.work import CannotGrade
            except ImportError as error:
                advice = "install triton-prep there, in the environment that Ray runs in"
                return {"host": host, "cannot": f"no triton-prep of this version ({error}): {advice}"}
            try:
                self._grader, facts = start()
            except CannotGrade as error:
                return {"host": host, "cannot": str(error)}
            if facts["course"] != self._course:
                what = "triton-prep or the course is another version than here: install the same"
                return {"host": host, "cannot": what}
            return facts

        def grade(self, work: dict[str, Any], source: bytes) -> dict[str, Any]:
            from tutor.homework.work import CannotGrade

            try:
                return self._grader.grade(work, source)
            except CannotGrade as error:
                return {"host": "", "cannot": str(error)}

    return HomeworkGrader


def _listed(value: Any) -> str:
    return ", ".join(f"{name} {what}" for name, what in value.items()) if isinstance(value, Mapping) else str(value)
