"""drill: a mock interview on stdin and stdout. Works in a pipe: one line an answer, and `:` before a command."""

from __future__ import annotations

import sys
from pathlib import Path

from tutor.commands.session import Session, open_session
from tutor.commands.terminal import CANNOT, FELL_SHORT, PASSED, USAGE, Stop, note, say, width
from tutor.course.text import wrapped
from tutor.drill.clock import SystemClock
from tutor.drill.draw import CannotDraw
from tutor.drill.opening import HOW_DRAWN, Wanted, drawn, strictness
from tutor.drill.plan import Plan, find_plan, load_plans
from tutor.drill.report import Report, earlier_mocks
from tutor.drill.sitting import Sitting
from tutor.drill.store import DrillBusy, DrillUnreadable, drills_folder, unfinished

BEGUN = "begun"  # as --module: those that the learner has begun


def drill(
    plan: str | None,
    seed: int | None,
    module: str | None,
    strict: bool | None,
    *,
    plain: bool,
    interviewer: bool,
    resume: bool,
    listed: bool,
    folder: Path | None,
) -> int:
    if listed:
        return _list(open_session(folder, create=False))
    if not (plain or interviewer) and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Stop("The app needs a terminal. `triton-prep drill --plain` works without one.", USAGE)
    session = open_session(folder, create=not interviewer)
    if interviewer:
        return _sheet(session, _wanted(plan, seed, module, strict))
    if not plain:
        return _in_app(session, plan, seed, module, strict, resume)
    if not session.workspace.writable:
        raise Stop(f"{session.workspace.folder} cannot be written, so no drill can be kept.", CANNOT)
    try:
        sitting = _resumed(session) if resume else _begun(session, _wanted(plan, seed, module, strict))
    except (DrillBusy, DrillUnreadable) as error:
        raise Stop(str(error), CANNOT) from error
    except OSError as error:
        raise Stop(f"The drill cannot be kept: {error}", CANNOT) from error
    from tutor.commands.interview import run

    try:
        report = run(session, sitting)
    except EOFError:
        note("The input ended. The clock goes on; `triton-prep drill --plain --resume` comes back to it.")
        return FELL_SHORT
    finally:
        sitting.close()
    return exit_code(report)


def exit_code(report: Report) -> int:
    if report.card.signal == "hire":
        return PASSED
    ungraded = any(task.result == "not graded" for task in report.card.tasks)
    return CANNOT if report.card.overall is None and ungraded else FELL_SHORT


def _wanted(plan: str | None, seed: int | None, module: str | None, strict: bool | None) -> Wanted:
    """Raises Stop."""
    begun = module == BEGUN
    if begun and seed is not None:
        raise Stop(f"A seed draws the same for everyone: it does not go with --module {BEGUN}.", USAGE)
    return Wanted(_plan(plan or "bug-blitz"), seed, "" if begun else module or "", strict, begun)


def _plan(name: str) -> Plan:
    plans = load_plans()
    found = find_plan(plans, name)
    if found is None:
        raise Stop(f"There is no plan {name!r}. Plans: {', '.join(plan.name for plan in plans)}.", USAGE)
    return found


def _begun(session: Session, wanted: Wanted) -> Sitting:
    before = unfinished(session.workspace.folder)
    if before is not None:
        note(f"The drill {before.id} is not finished; a new one takes its place (--resume would go on with it).")
    try:
        drill = drawn(wanted, session.course, session.progress, session.workspace)
    except CannotDraw as error:
        raise Stop(str(error), USAGE) from error
    strict = strictness(wanted)
    plan = drill.plan
    module = f", module {drill.module}" if drill.module else ""
    module = module or (f", only from {', '.join(drill.modules)}" if drill.modules else "")
    say(f"{plan.title}: {plan.minutes} minutes, seed {drill.seed}, course {drill.course_version}{module}")
    say(wrapped(HOW_DRAWN[drill.shared], width()))
    rules = (
        "Strict: no pause, no hints, nothing is revealed before the end." if strict else "Not strict: :pause and :hint."
    )
    say(wrapped(f"{rules} :help lists the commands. The clock runs, also when you leave.\n", width()))
    return Sitting.begin(drill, session.workspace.folder, SystemClock(), session.course, strict=strict)


def _resumed(session: Session) -> Sitting:
    state = unfinished(session.workspace.folder)
    if state is None:
        raise Stop("No drill is unfinished. `triton-prep drill --list` shows the plans.", USAGE)
    sitting, notices = Sitting.resume(drills_folder(session.workspace.folder) / state.id, SystemClock(), session.course)
    say(f"Back in {state.drill.plan.title}, seed {state.drill.seed}.")
    for notice in notices:
        say(notice.text)
    return sitting


def _sheet(session: Session, wanted: Wanted) -> int:
    from tutor.drill.draw import draw, fresh_seed
    from tutor.drill.interviewer import interviewer_sheet

    if wanted.begun_only:
        raise Stop(f"The sheet is drawn without your history: it does not go with --module {BEGUN}.", USAGE)
    # it is for a partner, who must get the same
    seed = fresh_seed() if wanted.seed is None else wanted.seed
    try:
        drill = draw(wanted.plan, session.course, seed, module=wanted.module, shared=True)
    except CannotDraw as error:
        raise Stop(str(error), USAGE) from error
    say(interviewer_sheet(drill, session.course, width()))
    return PASSED


def _list(session: Session) -> int:
    plans = load_plans()
    longest = max(len(plan.name) for plan in plans)
    for plan in plans:
        strict = "strict" if plan.strict else "not strict"
        say(f"{plan.name:{longest}}  {plan.minutes:3} min  {strict:10}  {plan.title}")
        phases = ", ".join(f"{phase.name} {phase.minutes}" for phase in plan.phases)
        say(f"{'':{longest}}  {phases}")
    state = unfinished(session.workspace.folder)
    if state is not None:
        say(f"\nNot finished: {state.id} (triton-prep drill --resume)")
    mocks = earlier_mocks(session.workspace.folder)
    if mocks:
        say("\nEarlier mocks")
    for mock in mocks:
        overall = "  – " if mock.overall is None else f"{mock.overall:4.1f}"
        say(f"{mock.started.replace('T', ' ')}  {mock.plan:{longest}}  {overall}  {mock.signal}")
    return PASSED


def _in_app(
    session: Session, plan: str | None, seed: int | None, module: str | None, strict: bool | None, resume: bool
) -> int:
    from tutor.app import run

    if resume and unfinished(session.workspace.folder) is None:
        raise Stop("No drill is unfinished. `triton-prep drill --list` shows the plans.", USAGE)
    chosen = plan is not None or seed is not None or module or strict is not None
    wanted = _wanted(plan, seed, module, strict) if chosen and not resume else None
    if module and module != BEGUN:
        session.course.module(module)
    folder = session.workspace.folder
    session.progress.close()
    return run(folder, drill=wanted if wanted else "resume" if resume else "choose")
