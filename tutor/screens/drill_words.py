"""What a drill says between two tasks, on the stage and in the footer."""

from __future__ import annotations

from tutor.drill.draw import Task
from tutor.drill.judging import place_of_spoken
from tutor.drill.kernel_files import KERNELS
from tutor.drill.sitting import Sitting
from tutor.screens.item import KIND_WORDS
from tutor.widgets.content import DIM_STYLE, Content, inline, plain

WORDS = {**KIND_WORDS, "talk": "Talk", "optimise": "Optimise", "exercise": "Kernel"}
RUNS = {None: "as often as you like", 0: "at the end only", 1: "once before the end"}


def start_of_phase(sitting: Sitting, begin: str, go_on: str) -> str:
    """Markdown. `begin` and `go_on` are the keys that begin the phase and end a pause."""
    state, phase = sitting.state, sitting.phase
    runs = RUNS.get(phase.grading_runs, f"{phase.grading_runs} times")
    kernels = any(task.kind in KERNELS for task in sitting.tasks())
    graded = f"\n\nYour file is graded {runs}." if kernels else ""
    paused = f"\n\nPaused: `{go_on}` goes on." if state.paused else ""
    count = len(state.drill.plan.phases)
    head = f"**Phase {state.phase + 1} of {count}: {phase.name}, {phase.minutes} min**"
    return f"{head}\n\n{phase.script}{graded}\n\n`{begin}` begins; the clock runs already.{paused}"


def handed_in(go_on: str) -> str:
    """Markdown, in place of a task that has its answer. `go_on` is the key to the next one."""
    return f"Handed in: the first answer counts.\n\n`{go_on}` goes on."


def end_of_phase(sitting: Sitting, end: str) -> str:
    """Markdown. `end` is the key that ends it."""
    what = "ends the drill" if _last(sitting) else "ends the phase; the time that is left is not carried over"
    return f"All of this phase is handed in.\n\n`{end}` {what}."


def next_words(sitting: Sitting) -> str:
    """For the footer: what the key that goes on does between tasks."""
    if any(task.id not in sitting.state.answers for task in sitting.tasks()):
        return "Begin"
    return "End the drill" if _last(sitting) else "End the phase"


def where(sitting: Sitting, asked: Task | None) -> Content:
    """The line above: which task this is, or whose answer is scored."""
    state = sitting.state
    if asked is None:
        return Content.assemble(inline(state.drill.plan.title, "bold"), plain(" strict" if state.strict else ""))
    title = inline(sitting.item(asked).title)
    if state.stage != "running":
        number, count = place_of_spoken(sitting, asked)
        return Content.assemble(plain(f"Score your answer {number} of {count}: ", DIM_STYLE), title)
    tasks = state.drill.of_phase(asked.phase)
    flag = "⚑ " if asked.id in state.flags else ""
    place = f"{flag}{tasks.index(asked) + 1}/{len(tasks)} {WORDS[asked.kind]}: "
    return Content.assemble(plain(place, DIM_STYLE), title)


def _last(sitting: Sitting) -> bool:
    return sitting.state.phase == len(sitting.state.drill.plan.phases) - 1
