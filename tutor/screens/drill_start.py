"""From what is wanted to the screen of a drill, or to a sentence that says why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutor.course.course import UnknownItem
from tutor.drill.clock import SystemClock
from tutor.drill.draw import CannotDraw
from tutor.drill.opening import Wanted, drawn, strictness
from tutor.drill.sitting import Sitting
from tutor.drill.store import DrillBusy, DrillUnreadable, drills_folder, unfinished
from tutor.screens.drill import DrillScreen
from tutor.widgets.desk import desk

if TYPE_CHECKING:
    from textual.app import App


def start_drill(app: App[int], wanted: Wanted | str | None) -> None:
    """`wanted`: a new drill, the id of one to go on with, or "resume" for the newest; None does nothing."""
    if wanted is None:
        return
    here = desk(app)
    try:
        if isinstance(wanted, Wanted):
            drill = drawn(wanted, here.course, here.progress, here.workspace)
            folder, strict = here.workspace.folder, strictness(wanted)
            sitting = Sitting.begin(drill, folder, SystemClock(), here.course, strict=strict)
            app.push_screen(DrillScreen(sitting))
            return
        left = unfinished(here.workspace.folder)
        name = (left.id if left else "") if wanted == "resume" else wanted
        if not name:
            app.notify("No drill is unfinished.", markup=False)
            return
        sitting, notices = Sitting.resume(drills_folder(here.workspace.folder) / name, SystemClock(), here.course)
        app.push_screen(DrillScreen(sitting, notices))
    except (CannotDraw, UnknownItem, DrillBusy, DrillUnreadable) as error:
        app.notify(str(error), severity="error", timeout=15, markup=False)
    except OSError as error:
        app.notify(f"The drill cannot be kept: {error}", severity="error", timeout=15, markup=False)
