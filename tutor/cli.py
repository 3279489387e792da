"""The command line. Each command imports what it needs when it runs, so that the light ones start fast."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Optional

import typer

from tutor.cli_bench import bench
from tutor.cli_homework import homework
from tutor.commands import terminal
from tutor.commands.terminal import CANNOT, FELL_SHORT, USAGE, Stop, note

app = typer.Typer(
    name="triton-prep",
    help="An interview-prep course for OpenAI Triton. Without a command: the terminal app.",
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
PLAIN = "list, show, glossary, quiz, review, grade, watch, hint, solution, inspect, map, progress, drill --plain"

Workspace = Annotated[
    Optional[Path],  # noqa: UP045 – typer reads the annotation at run time
    typer.Option(
        "--workspace", metavar="DIR", help="Your folder. Default: $TRITON_PREP_WORKSPACE, else ~/triton-prep."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Name = Annotated[str, typer.Argument(metavar="EXERCISE", help="An exercise, such as vector_add.")]
Target = Annotated[str, typer.Option(help="The GPU to compile for: sm_80, sm_90, sm_100, gfx942.")]


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    workspace: Workspace = None,
    course: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(metavar="DIR", help="Add a course directory, or one module file, to the built-in course."),
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        try:
            terminal.say(f"triton-prep {metadata.version('triton-prep')}")
        except metadata.PackageNotFoundError:
            terminal.say("triton-prep (not installed)")
        raise typer.Exit
    if workspace is not None:
        os.environ["TRITON_PREP_WORKSPACE"] = str(workspace)
    for added in course or ():
        _add_course(added)
    if context.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Stop(f"The app needs a terminal. These commands work without one: {PLAIN}.", USAGE)
    from tutor.app import run
    from tutor.workspace import default_workspace

    code = run(workspace=default_workspace())
    raise typer.Exit(code or 0)


@app.command()
def init(
    folder: Annotated[Optional[Path], typer.Argument(metavar="[DIR]", show_default=False)] = None,  # noqa: UP045
    workspace: Workspace = None,
) -> None:
    """Make a workspace that holds the stubs. Your own edits are never overwritten."""
    from tutor.commands import files

    _leave(files.init(folder or workspace))


@app.command("list")
def list_(
    module: Annotated[Optional[str], typer.Argument(metavar="[MODULE]", show_default=False)] = None,  # noqa: UP045
    workspace: Workspace = None,
) -> None:
    """List modules and items with their ids, and what is done."""
    from tutor.commands import reading

    _leave(reading.list_items(module, workspace))


@app.command()
def show(
    item: Annotated[str, typer.Argument(metavar="ID", help="An item, a module or an exercise.")],
    answer: Annotated[bool, typer.Option("--answer", help="With the answer and why.")] = False,
    workspace: Workspace = None,
) -> None:
    """Print a lesson, a question, a walkthrough, a task."""
    from tutor.commands import reading

    _leave(reading.show(item, answer, workspace))


@app.command()
def glossary(
    term: Annotated[Optional[str], typer.Argument(metavar="[TERM]", show_default=False)] = None,  # noqa: UP045
) -> None:
    """Explain a term, and name the item that teaches it. Without one: list all."""
    from tutor.commands import reading

    _leave(reading.glossary(term))


@app.command()
def quiz(
    item: Annotated[
        str, typer.Argument(metavar="ID", help="A question, a bug item, or a module for all of its questions.")
    ],
    workspace: Workspace = None,
) -> None:
    """Ask a question, and say whether the answer on stdin is right."""
    from tutor.commands import asking

    _leave(asking.quiz(item, workspace))


@app.command()
def hint(
    exercise: Name,
    level: Annotated[Optional[int], typer.Option(min=1, max=3, help="1 a nudge, 2 the idea, 3 the line.")] = None,  # noqa: UP045
    workspace: Workspace = None,
) -> None:
    """Show the next hint."""
    from tutor.commands import files

    _leave(files.hint(exercise, level, workspace))


@app.command()
def solution(
    exercise: Name,
    give_up: Annotated[bool, typer.Option("--give-up", help="Show it although the exercise is not passed.")] = False,
    workspace: Workspace = None,
) -> None:
    """Show the reference solution, after a pass or with --give-up."""
    from tutor.commands import files

    _leave(files.solution(exercise, give_up, workspace))


@app.command()
def reset(exercise: Name, workspace: Workspace = None) -> None:
    """Put the stub back; your version is kept as a backup."""
    from tutor.commands import files

    _leave(files.reset(exercise, workspace))


@app.command()
def grade(
    exercises: Annotated[Optional[list[str]], typer.Argument(metavar="[EXERCISE]…", show_default=False)] = None,  # noqa: UP045
    every: Annotated[bool, typer.Option("--all", help="Every exercise.")] = False,
    file: Annotated[Optional[Path], typer.Option(help="Grade this file instead of the workspace's.")] = None,  # noqa: UP045
    solutions: Annotated[bool, typer.Option("--solutions", help="Grade the course's own solutions.")] = False,
    backend: Annotated[str, typer.Option(help="auto, cuda or interpreter.")] = "auto",
    target: Target = "sm_90",
    time: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option("--time/--no-time", help="Without a GPU, an estimate. Default: with one."),
    ] = None,
    sanitize: Annotated[bool, typer.Option("--sanitize", help="Run again under compute-sanitizer.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the inputs.")] = 0,
    verified: Annotated[bool, typer.Option("--verified", help="Replay the launches outside your process.")] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Run every case, also after one has failed.")
    ] = False,
    json: Json = False,
    workspace: Workspace = None,
) -> None:
    """Run your kernel, compare it with PyTorch, say what is wrong."""
    from tutor.commands import grading

    if backend not in ("auto", "cuda", "interpreter"):
        raise Stop(f"--backend {backend!r}: write auto, cuda or interpreter.", USAGE)
    options = grading.Options(backend, target, time, sanitize, seed, verified, keep_going)
    _leave(grading.grade(tuple(exercises or ()), every, file, solutions, options, json, workspace))


@app.command()
def watch(
    exercise: Annotated[Optional[str], typer.Argument(metavar="[EXERCISE]", show_default=False)] = None,  # noqa: UP045
    target: Target = "sm_90",
    workspace: Workspace = None,
) -> None:
    """Grade again on every save. Ctrl-C leaves."""
    from tutor.commands import watching

    _leave(watching.watch(exercise, target, workspace))


@app.command()
def inspect(
    exercise: Name,
    stage: Annotated[str, typer.Option(help="ttir, ttgir, llir, ptx, sass, or all with line numbers.")] = "ptx",
    target: Target = "sm_90",
    file: Annotated[Optional[Path], typer.Option(help="This file instead of the workspace's.")] = None,  # noqa: UP045
    solutions: Annotated[bool, typer.Option("--solutions", help="The course's own solution.")] = False,
    json: Json = False,
    workspace: Workspace = None,
) -> None:
    """Print what the compiler makes of your kernel. The GPU need not be here."""
    from tutor.commands import inspecting

    if stage not in inspecting.STAGES:
        raise Stop(f"--stage {stage!r}: write ttir, ttgir, llir, ptx, sass or all.", USAGE)
    _leave(inspecting.inspect(exercise, stage, target, file, solutions, json, workspace))


@app.command("map")
def map_(
    exercise: Name,
    case: Annotated[Optional[str], typer.Option(metavar="NAME", help="A case by its name, or enough of it.")] = None,  # noqa: UP045
    program: Annotated[Optional[int], typer.Option(metavar="N", min=0, help="What this program alone touches.")] = None,  # noqa: UP045
    file: Annotated[Optional[Path], typer.Option(help="This file instead of the workspace's.")] = None,  # noqa: UP045
    solutions: Annotated[bool, typer.Option("--solutions", help="The course's own solution.")] = False,
    json: Json = False,
    workspace: Workspace = None,
) -> None:
    """Print which program loads and stores which elements. Taken on a small case."""
    from tutor.commands import mapping

    _leave(mapping.show_map(exercise, case, program, file, solutions, json, workspace))


@app.command()
def progress(json: Json = False, workspace: Workspace = None) -> None:
    """What is done, by module, and what comes next."""
    from tutor.commands import standing

    _leave(standing.progress(json, workspace))


@app.command()
def review(
    limit: Annotated[Optional[int], typer.Option(min=1, help="At most so many, the most endangered ones.")] = None,  # noqa: UP045
    only_list: Annotated[bool, typer.Option("--list", help="Say what is due, and ask nothing.")] = False,
    json: Json = False,
    plain: Annotated[bool, typer.Option("--plain", help="Ask on the terminal; it always does.")] = False,
    workspace: Workspace = None,
) -> None:
    """Ask what is due for review, across modules."""
    from tutor.commands import reviewing

    _leave(reviewing.review(limit, only_list, json, workspace))


@app.command()
def export(
    what: Annotated[str, typer.Argument(metavar="progress|anki", help="Your progress as JSON, or an Anki deck.")],
    file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(metavar="[FILE]", help="Where to; progress without a file goes to stdout.", show_default=False),
    ] = None,
    workspace: Workspace = None,
) -> None:
    """Write your progress as JSON, or an Anki deck. The deck holds quizzes and bugs."""
    from tutor.commands import exchanging

    _leave(exchanging.export(what, file, workspace))


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `export progress` wrote; - for stdin.")],
    workspace: Workspace = None,
) -> None:
    """Merge exported progress into yours. Nothing is lost, and doing it twice changes nothing."""
    from tutor.commands import exchanging

    _leave(exchanging.import_(file, workspace))


@app.command()
def drill(
    plan: Annotated[Optional[str], typer.Option(metavar="NAME", help="--list names them. Default: bug-blitz.")] = None,  # noqa: UP045
    seed: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            min=0, help="The same seed asks the same questions. Default: a new one, weighted by your weak topics."
        ),
    ] = None,
    module: Annotated[Optional[str], typer.Option(metavar="mNN|begun", help="Draw from this, or those begun.")] = None,  # noqa: UP045
    plain: Annotated[bool, typer.Option("--plain", help="On stdin and stdout, without the app.")] = False,
    strict: Annotated[Optional[bool], typer.Option("--strict/--no-strict", help="Default: as the plan says.")] = None,  # noqa: UP045
    interviewer: Annotated[
        bool, typer.Option("--interviewer", help="Print the sheet for a human interviewer.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the unfinished drill.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the plans and your earlier mocks.")] = False,
    workspace: Workspace = None,
) -> None:
    """A timed mock interview, with a scorecard."""
    from tutor.commands import drilling

    _leave(
        drilling.drill(
            plan, seed, module, strict,
            plain=plain, interviewer=interviewer, resume=resume, listed=listed, folder=workspace,
        )
    )  # fmt: skip


app.command()(homework)
app.command()(bench)


@app.command()
def check(
    path: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Argument(metavar="[PATH]", help="A module file or a course directory of yours: only it is checked."),
    ] = None,
    json: Json = False,
    evidence: Annotated[bool, typer.Option("--evidence/--no-evidence", help="Run the tests that items cite.")] = True,
) -> None:
    """For course authors: prove the course. Schema, stubs, solutions, bugs, evidence."""
    from tutor import check as checks

    if path is not None:  # a file in modules/ belongs to the course around it
        _add_course(path.resolve().parents[1] if path.resolve().parent.name == "modules" else path)
    _leave(checks.run(json, evidence, path.resolve() if path is not None else None))


@app.command()
def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8000,
    host: Annotated[str, typer.Option(help="Another address than this machine's own, such as 0.0.0.0.")] = "127.0.0.1",
    token: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(envvar="TRITON_PREP_TOKEN", help="What the link carries. Default: a new one at each start."),
    ] = None,
    no_token: Annotated[bool, typer.Option("--no-token", help="Let in every user of this machine.")] = False,
    workspace: Workspace = None,
) -> None:
    """The same app as a web page; the link is printed."""
    from tutor.commands import serving

    _leave(serving.serve(port, host, token, no_token, workspace))


@app.command()
def doctor(json: Json = False, workspace: Workspace = None) -> None:
    """What works on this machine, and what to do about what does not."""
    from tutor.commands import diagnosing

    _leave(diagnosing.doctor(json, workspace))


def _add_course(path: Path) -> None:
    """For this process and the grader it starts."""
    known = os.environ.get("TRITON_PREP_COURSES", "")
    os.environ["TRITON_PREP_COURSES"] = os.pathsep.join([*filter(None, [known]), str(path.resolve())])


def _leave(code: int) -> None:
    raise typer.Exit(code)


def main() -> None:
    """The entry point: every expected failure becomes one message on stderr and an exit code."""
    from grader.catalog import BrokenProblem, NoCourse, UnknownExercise
    from tutor.course.course import UnknownItem
    from tutor.course.loader import CourseErrors
    from tutor.workspace import WorkspaceError

    terminal.prepare()
    try:
        code = app(standalone_mode=True)
    except Stop as stop:
        note(str(stop))
        code = stop.code
    except (UnknownItem, UnknownExercise, NoCourse, WorkspaceError) as error:
        note(str(error))
        code = USAGE
    except (CourseErrors, BrokenProblem, FileNotFoundError) as error:
        note(str(error) if isinstance(error, OSError) else f"The course files are not in order:\n{error}")
        code = CANNOT
    except EOFError:
        note("The input ended before the answer.")
        code = FELL_SHORT
    except BrokenPipeError:
        # The reader has left (`| head`): nothing more to say, and Python's own flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
