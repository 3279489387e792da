"""Several graders at work at once, one for each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from benchmarks.server import GraderServer

Item = TypeVar("Item")
Result = TypeVar("Result")


class Graders:
    """A grader for each thread that asks for one. Use it as a context manager."""

    def __init__(self, count: int, **environment: str) -> None:
        self.count, self.environment = count, environment
        self._servers: dict[int, GraderServer] = {}

    def __enter__(self) -> Graders:
        return self

    def __exit__(self, *error: object) -> None:
        for server in self._servers.values():
            server.close()

    def fresh(self) -> GraderServer:
        """One that nobody else uses, to be closed by who asks for it."""
        return GraderServer(**self.environment)

    def mine(self) -> GraderServer:
        """The calling thread's, started anew where it has ended."""
        me = threading.get_ident()
        server = self._servers.get(me)
        if server is not None and server.process.poll() is not None:
            server.close()
            server = None
        if server is None:
            server = self._servers[me] = self.fresh()
        return server

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """The place of an item and what `work` made of it, as they come."""
        with ThreadPoolExecutor(self.count) as threads:
            futures = {threads.submit(work, item): place for place, item in enumerate(items)}
            for future in as_completed(futures):
                yield futures[future], future.result()
