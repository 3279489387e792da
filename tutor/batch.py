"""Many grades, one after another or on several grader processes; the blocking form that commands use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from tutor.grading import LAST_EVENTS, Event, Failed, Grader

Job = Callable[[Grader], AsyncIterator[Event]]


def run(
    jobs: Sequence[Job],
    *,
    servers: int = 1,
    on_event: Callable[[int, Event], None] | None = None,
    on_result: Callable[[int, Event], None] | None = None,
) -> list[Event]:
    """The last event of every job, in the jobs' order. `on_event` hears events as they come; `on_result` hears the last
    event of each job, in order. KeyboardInterrupt ends the graders and is passed on."""
    return asyncio.run(_run(jobs, servers, on_event, on_result))


def run_one(job: Job, on_event: Callable[[Event], None] | None = None) -> Event:
    return run([job], on_event=(lambda _, event: on_event(event)) if on_event else None)[0]


async def _run(
    jobs: Sequence[Job],
    servers: int,
    on_event: Callable[[int, Event], None] | None,
    on_result: Callable[[int, Event], None] | None,
) -> list[Event]:
    results: dict[int, Event] = {}
    pending = iter(enumerate(jobs))
    shown = 0

    async def work(grader: Grader) -> None:
        nonlocal shown
        for index, job in pending:
            last: Event = Failed("", "infrastructure", "The grader gave no answer.")
            async for event in job(grader):
                if on_event:
                    on_event(index, event)
                if isinstance(event, LAST_EVENTS):
                    last = event
            results[index] = last
            while shown in results:
                if on_result:
                    on_result(shown, results[shown])
                shown += 1

    graders = [Grader() for _ in range(max(1, min(servers, len(jobs))))]
    try:
        async with asyncio.TaskGroup() as group:
            for grader in graders:
                group.create_task(work(grader))
    except BaseExceptionGroup as group:  # one fault is enough to tell
        raise group.exceptions[0] from None
    finally:
        await asyncio.gather(*(grader.close() for grader in graders))
    return [results[index] for index in range(len(jobs))]
