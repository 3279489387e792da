"""inspect: one stage as the compiler writes it, or all of them with the lines of the file that they come from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from grader import catalog
from tutor import batch
from tutor.commands import grading
from tutor.commands.session import open_session
from tutor.commands.terminal import FELL_SHORT, PASSED, Ticker, note, say, say_json
from tutor.compiler.compilation import Compilation, StageText, numbers_words, parse
from tutor.grading import Answer, Event, Failed, Grader

STAGES = ("ttir", "ttgir", "llir", "ptx", "sass", "all")


def inspect(
    name: str, stage: str, target: str, file: Path | None, solutions: bool, as_json: bool, folder: Path | None
) -> int:
    if stage != "all" and not as_json:
        return grading.inspect(name, stage, target, file, solutions, folder)
    session = open_session(folder, create=not solutions and file is None, course_needed=False)
    slug = session.slug(name)
    path = catalog.find(slug).solution if solutions else file or session.workspace.file(slug)
    ticker = Ticker()
    ticker.show(f"compiling for {target}…")
    event = batch.run_one(lambda grader: _everything(grader, slug, path, target, stage))
    ticker.clear()
    if not isinstance(event, Answer):
        note(event.message if isinstance(event, Failed) else "no answer")
        return grading.exit_code(event)
    if as_json:
        say_json({"schema": 1, "exercise": slug, "file": str(path), **event.data})
    else:
        _say_all(parse(event.data), path)
    return PASSED if event.data["kernels"] and not event.data["error"] else FELL_SHORT


async def _everything(grader: Grader, slug: str, file: Path, target: str, stage: str) -> AsyncIterator[Event]:
    """The answer with the wanted stages, the machine code among them."""
    async for event in grader.ask("stages", slug, file, target=target):
        if not isinstance(event, Answer):
            yield event
            continue
        for number, kernel in enumerate(event.data["kernels"]):
            wanted = [found for found in kernel["stages"] if stage in ("all", found["id"])]
            # AMD's assembly stands in the place of both
            wanted = wanted or [found for found in kernel["stages"] if found["id"] == "amdgcn"]
            kernel["stages"] = [
                (await _machine_code(grader, slug, file, target, number)) or found if found["text"] is None else found
                for found in wanted
            ]
        yield event


async def _machine_code(grader: Grader, slug: str, file: Path, target: str, number: int) -> dict[str, Any] | None:
    async for event in grader.ask("stages", slug, file, target=target, sass=number):
        if isinstance(event, Answer):
            found: dict[str, Any] | None = event.data["sass"]
            return found
    return None


def _say_all(compilation: Compilation, file: Path) -> None:
    if compilation.error:
        where = f"{file}:{compilation.error_line}" if compilation.error_line else str(file)
        note(f"{where}: {compilation.error}")
    for kernel in compilation.kernels:
        say(f"== {kernel.name} for {compilation.target}, {compilation.called}: {kernel.label}")
        say(numbers_words(kernel))
        for stage in kernel.stages.values():
            if stage is not None:
                _say_stage(stage)
    if not compilation.kernels:
        note("No kernel was compiled.")


def _say_stage(stage: StageText) -> None:
    """Each row after the line of the file that it comes from, with words where it matters for speed."""
    say(f"-- {stage.name}")
    for row, (text, lines) in enumerate(zip(stage.rows, stage.lines, strict=True)):
        mark = stage.marks.get(row)
        say(f"{lines[0] if lines else '':>4} {text}{f'    <- {mark.words}' if mark else ''}")
