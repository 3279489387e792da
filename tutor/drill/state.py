"""What is kept of a drill while it runs: one value, written whole after every event."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tutor.drill.draw import Drill, Task

STATE_SCHEMA = 1
Stage = Literal["running", "debrief", "finished"]


class Anchor(msgspec.Struct, kw_only=True):
    """Where the clock stood at the last event: what a later process goes on from."""

    elapsed: float = 0.0  # seconds of the drill
    now: float = 0.0
    wall: float = 0.0
    boot: str = ""


class Answer(msgspec.Struct, kw_only=True):
    """Handed in, and not to be changed. `score` (0 to 1) is None until it is graded or scored in the debrief."""

    at: float  # seconds of the drill
    seconds: float  # spent on it
    score: float | None = None
    correct: bool | None = None
    detail: dict[str, Any] = {}
    hints: int = 0
    shares: dict[str, float] = {}  # by skill, where the parts of a grade speak for different skills
    note: str = ""  # what the scorecard says about it
    ungraded: str = ""  # why there is no grade: the grader's fault, never counted against the candidate


class PhaseTime(msgspec.Struct, kw_only=True):
    started: float
    ended: float | None = None
    how: str = ""  # time, done, finished
    away: float = 0.0  # seconds in it during which no program ran


class State(msgspec.Struct, kw_only=True):
    schema: int = STATE_SCHEMA
    id: str
    drill: Drill
    strict: bool
    started: str  # local date and time, ISO
    seq: int = 0
    stage: Stage = "running"
    phase: int = 0
    phases: list[PhaseTime] = []
    anchor: Anchor = msgspec.field(default_factory=Anchor)
    paused: bool = False
    answers: dict[str, Answer] = {}
    late: list[dict[str, Any]] = []  # handed in after the lock: recorded, not counted
    drafts: dict[str, str] = {}
    sources: dict[str, str] = {}  # task -> the kernel file as last seen in time
    runs: dict[str, int] = {}  # phase name -> grading runs used
    checks: dict[str, dict[str, Any]] = {}  # task -> the last visible grading run
    hints: dict[str, int] = {}
    flags: list[str] = []
    spent: dict[str, float] = {}  # task -> seconds
    warned: list[str] = []
    gone: list[str] = []  # tasks whose item an update took out of the course
    away: float = 0.0
    where: str = ""  # the folder of the kernel files and, at the end, of the scorecard
    current: str = ""  # the task on the screen

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.drill.tasks

    def task(self, task_id: str) -> Task:
        return next(task for task in self.drill.tasks if task.id == task_id)
