"""The command line of `homework`; `tutor.cli` takes it in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer


def homework(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of submissions, an archive or a file.")],
    assignment: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="A.yaml", help="What is asked. Default: every exercise found, one point each."),
    ] = None,
    out: Annotated[Optional[Path], typer.Option(metavar="DIR", help="Default: homework-results.")] = None,  # noqa: UP045
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            help="Some of csv,json,junit,gradescope,classroom,feedback,class,similarity.",
        ),
    ] = "all",
    workers: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, max=256, help="Graders at once, or on each GPU. Default: by cores; on a GPU 4 at most."),
    ] = None,
    cluster: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="ADDRESS", help="Grade on a Ray cluster: auto, or host:port. Needs the extra `cluster`."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Grade a class, or yourself. Points, feedback for each learner, tables; interrupted, it goes on where it was."""
    from tutor.commands import homework as command

    raise typer.Exit(command.homework(folder, assignment, out, formats, workers, json, cluster))
