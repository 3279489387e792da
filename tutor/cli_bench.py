"""The command line of `bench`; `tutor.cli` takes it in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer


def bench(
    exercises: Annotated[Optional[list[str]], typer.Argument(metavar="[EXERCISE]…", show_default=False)] = None,  # noqa: UP045
    mine: Annotated[bool, typer.Option("--mine", help="Your files instead of the reference solutions.")] = False,
    model: Annotated[bool, typer.Option("--model", help="The modelled table: needs no GPU, measures nothing.")] = False,
    device: Annotated[str, typer.Option(help="Of the model: a100, h100, h200, rtx4090, mi300x.")] = "",
    compiled: Annotated[bool, typer.Option("--compiled/--no-compiled", help="With torch.compile, or without.")] = True,
    out: Annotated[Optional[Path], typer.Option(metavar="DIR", help="Write JSON, Markdown and HTML there.")] = None,  # noqa: UP045
    compare: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="OLD.json", help="Say what got slower since this run. Exit code 1 if anything did."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    workspace: Annotated[Optional[Path], typer.Option("--workspace", metavar="DIR", help="Your folder.")] = None,  # noqa: UP045
) -> None:
    """Time every size of an exercise beside PyTorch. Also beside torch.compile and the reference solution."""
    from tutor.commands import benching

    options = benching.Options(mine, model, device, compiled, out, compare, json)
    raise typer.Exit(benching.bench(tuple(exercises or ()), options, workspace))
