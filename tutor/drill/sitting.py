"""A drill being sat: the clock, the phases, the locks. No screen, no input, no grader."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tutor.course.course import Course
from tutor.course.model import Exercise, Item, Open
from tutor.drill.clock import Clock, time_left, time_taken
from tutor.drill.draw import Drill, Task, gone_tasks
from tutor.drill.kernel_files import KERNELS, KernelFiles
from tutor.drill.notices import Notice, Now, Receipt
from tutor.drill.plan import Phase
from tutor.drill.state import Anchor, Answer, PhaseTime, State
from tutor.drill.store import Store, new_folders

WARN_SECONDS, WARN_SHARE = 120.0, 0.1  # once near an end: at the later of the two
SELF_SCORED = ("open", "talk")
GRADED = ("bug", *KERNELS)


class Sitting:
    """Make with `begin` or `resume`. Every method that changes something has kept it when it returns."""

    def __init__(self, state: State, store: Store, clock: Clock, course: Course) -> None:
        self.state, self.store, self.clock, self.course = state, store, clock, course
        self.unsaved = ""  # why the last event could not be kept
        self._shown_at: float | None = None
        self._said: list[Notice] = []
        self.kernels = KernelFiles(state, course, self.folder)

    @classmethod
    def begin(cls, drill: Drill, workspace: Path, clock: Clock, course: Course, *, strict: bool) -> Sitting:
        """Raises OSError when nothing can be kept, DrillBusy."""
        wall = time.localtime(clock.wall())
        folder, where = new_folders(workspace, f"{drill.plan.name}-{drill.seed}", wall)
        where.mkdir(parents=True)
        store = Store(folder)
        store.hold()
        state = State(
            id=folder.name,
            drill=drill,
            strict=strict,
            started=time.strftime("%Y-%m-%dT%H:%M:%S", wall),
            phases=[PhaseTime(started=0.0)],
            anchor=Anchor(elapsed=0.0, now=clock.now(), wall=clock.wall(), boot=clock.boot()),
            where=str(where.relative_to(workspace)),
        )
        self = cls(state, store, clock, course)
        self.kernels.write_stubs()
        self._keep("begun", {"plan": drill.plan.name, "seed": drill.seed}, must=True)
        store.beat()
        return self

    @classmethod
    def resume(cls, folder: Path, clock: Clock, course: Course) -> tuple[Sitting, tuple[Notice, ...]]:
        """`folder` is the drill's own under .triton-prep/drills. Time has gone on; the notices say how much.

        Raises DrillBusy, DrillUnreadable and FileNotFoundError.
        """
        store = Store(folder)
        store.load()
        store.hold()
        state = store.load()  # again: whoever held it may have written in between
        store.mend_journal()
        self = cls(state, store, clock, course)
        notices: list[Notice] = []
        anchor, gap = state.anchor, 0.0
        if state.stage == "running" and not state.paused:
            same = bool(anchor.boot) and anchor.boot == clock.boot()
            gap = clock.now() - anchor.now if same else clock.wall() - anchor.wall
            if gap < 0:
                notices.append(Notice("clock", "The machine's clock was set back: the time away is not counted."))
                gap = 0.0
            beat = store.last_beat() or anchor.wall
            away = min(gap, max(0.0, clock.wall() - max(beat, anchor.wall)))
            state.away += away
            state.phases[state.phase].away += away
            if away >= 1:
                notices.append(Notice("away", f"You were away for {time_taken(away)}; the clock went on."))
        elif state.paused:
            notices.append(Notice("away", "The drill is paused: the time away is not counted."))
        self._anchor(anchor.elapsed + gap)
        if gone := gone_tasks(state.drill, course):
            state.gone = list(gone)
            notices.append(Notice("gone", f"No longer in the course, and not counted: {', '.join(gone)}."))
        self._keep("resumed", {"gap": round(gap, 3)})
        notices += self.tick()
        return self, tuple(notices)

    def close(self) -> None:
        """Leaves the drill to be resumed; its clock goes on."""
        if self.state.stage == "running":
            self._note_spent()
            self._keep("left", {})
        self.store.beat()
        self.store.release()

    # --- what there is

    @property
    def workspace(self) -> Path:
        return self.store.folder.parent.parent.parent

    @property
    def folder(self) -> Path:
        """Of the kernel files and the scorecard."""
        return self.workspace / self.state.where

    @property
    def phase(self) -> Phase:
        return self.state.drill.plan.phases[self.state.phase]

    def tasks(self) -> tuple[Task, ...]:
        """Of the phase that runs."""
        return tuple(task for task in self.state.drill.of_phase(self.state.phase) if task.id not in self.state.gone)

    def item(self, task: Task) -> Item:
        """What to show. A talk is an open question of the plan's own; optimise shows its exercise."""
        if task.kind != "talk":
            return self.course.item(task.item)
        phase = self.state.drill.plan.phases[task.phase]
        talk = phase.talk
        assert talk is not None
        question = talk.question
        if task.item:
            question = f"{question}\n\n{self._task_words(task)}"
        return Open(
            id=f"drills.talk.{phase.name}",
            title=talk.title,
            question=question,
            answer=talk.answer,
            rubric=talk.rubric,
            strong=talk.strong,
            weak=talk.weak,
            followups=phase.followups,
        )

    def _task_words(self, task: Task) -> str:
        from tutor.course.text import table
        from tutor.workspace import stub_doc

        item = self.course.item(task.item)
        assert isinstance(item, Exercise)
        return f"**{item.title}**\n\n```text\n{table(stub_doc(item.exercise), 72)}\n```"

    def file(self, task: Task) -> Path:
        return self.kernels.file(task)

    def elapsed(self) -> float:
        """Seconds of the drill that have gone by, time away included, pauses not."""
        if self.state.stage != "running" or self.state.paused:
            return self.state.anchor.elapsed
        return self.state.anchor.elapsed + max(0.0, self.clock.now() - self.state.anchor.now)

    def phase_deadline(self) -> float:
        phase = self.state.phases[self.state.phase]
        return phase.started + 60.0 * self.phase.minutes

    def whole_deadline(self) -> float:
        """Phases that ended early bring it forward."""
        later = self.state.drill.plan.phases[self.state.phase + 1 :]
        return self.phase_deadline() + 60.0 * sum(phase.minutes for phase in later)

    def now(self) -> Now:
        gone = self.elapsed()
        return Now(self.state.phase, self.phase_deadline() - gone, self.whole_deadline() - gone, self.state.paused)

    def status(self, task: Task) -> str:
        """handed in, drafted, open; flagged as well."""
        word = "handed in" if task.id in self.state.answers else "drafted" if self.state.drafts.get(task.id) else "open"
        return f"{word}, flagged" if task.id in self.state.flags else word

    def runs_left(self) -> int | None:
        """Grading runs of the phase; None: as many as wanted."""
        allowed = self.phase.grading_runs
        return None if allowed is None else max(0, allowed - self.state.runs.get(self.phase.name, 0))

    # --- time

    def tick(self) -> tuple[Notice, ...]:
        """Locks what has run out, and warns once near an end. Call it about once a second; a notice is given once."""
        self._advance()
        said, self._said = tuple(self._said), []
        return (*said, Notice("unsaved", self.unsaved)) if self.unsaved else said

    def _advance(self) -> None:
        while self.state.stage == "running" and self.elapsed() >= self.phase_deadline():
            name, last = self.phase.name, self.state.phase == len(self.state.drill.plan.phases) - 1
            self._end_phase("time", self.phase_deadline())
            words = "The time is up: answers are locked." if last else f"Time: the phase {name!r} is over and locked."
            self._said.append(Notice("time_up" if last else "phase_ended", words))
        self._note_files()
        if self.state.stage == "running" and not self.state.paused:
            self._said += self._warnings()
        self.store.beat()

    def _warnings(self) -> list[Notice]:
        now, plan = self.now(), self.state.drill.plan
        due = []
        if now.whole_left <= min(WARN_SECONDS, WARN_SHARE * 60.0 * plan.minutes):
            due.append(("all", f"{time_left(now.whole_left)} left of the whole drill."))
        last = self.state.phase == len(plan.phases) - 1
        if not last and now.phase_left <= min(WARN_SECONDS, WARN_SHARE * 60.0 * self.phase.minutes):
            due.append((self.phase.name, f"{time_left(now.phase_left)} left in {self.phase.name!r}."))
        fresh = [(key, text) for key, text in due if key not in self.state.warned]
        if fresh:
            self.state.warned += [key for key, _ in fresh]
            self._keep("warned", {"of": [key for key, _ in fresh]})
        return [Notice("near_end", text) for _, text in fresh]

    def pause(self) -> Receipt:
        if self.state.strict:
            return Receipt(False, "A strict drill cannot be paused.")
        if self.state.stage != "running" or self.state.paused:
            return Receipt(False, "Nothing runs that could be paused.")
        self._note_spent()
        self._anchor()
        self.state.paused = True
        self._keep("paused", {})
        return Receipt(True, "Paused.")

    def go_on(self) -> Receipt:
        if not self.state.paused:
            return Receipt(False, "It is not paused.")
        self._anchor(self.state.anchor.elapsed)
        self.state.paused = False
        self._shown_at = self.elapsed() if self.state.current else None
        self._keep("continued", {})
        return Receipt(True, "The clock runs again.")

    def next_phase(self) -> None:
        """The candidate is done with the phase; what it holds locks."""
        self._advance()
        if self.state.stage == "running":
            self._end_phase("done", self.elapsed())

    def finish(self) -> None:
        """The candidate is done with the drill; phases not reached stay empty."""
        self._advance()
        if self.state.stage == "running":
            self._end_phase("finished", self.elapsed(), whole=True)

    def _end_phase(self, how: str, at: float, *, whole: bool = False) -> None:
        self._note_spent(at)
        lock_wall = self.clock.wall() - max(0.0, self.elapsed() - at)
        self.kernels.look(self.tasks(), written_by=lock_wall)
        state, name = self.state, self.phase.name
        ended = state.phases[state.phase]
        ended.ended, ended.how = at, how
        for task in self.tasks():
            text = state.sources.get(task.id)
            if task.kind in KERNELS and text is not None:
                state.answers[task.id] = Answer(
                    at=at, seconds=state.spent.get(task.id, 0.0), hints=state.hints.get(task.id, 0)
                )
            elif task.kind in SELF_SCORED and state.drafts.get(task.id) and task.id not in state.answers:
                state.answers[task.id] = Answer(
                    at=at, seconds=state.spent.get(task.id, 0.0), detail={"draft": state.drafts[task.id]}
                )
        state.current, self._shown_at = "", None
        if whole or state.phase == len(state.drill.plan.phases) - 1:
            self._anchor(at)
            state.stage = "debrief"
        else:
            state.phase += 1
            state.phases.append(PhaseTime(started=at))
            self.kernels.carry_over(self.tasks())
        self._keep("phase ended", {"phase": name, "how": how})

    # --- the candidate

    def show(self, task: Task) -> None:
        """The task on the screen: its time runs. Not worth an event of its own."""
        self._note_spent()
        self.state.current, self._shown_at = task.id, self.elapsed()

    def _note_spent(self, at: float | None = None) -> None:
        if self._shown_at is not None and self.state.current:
            until = self.elapsed() if at is None else at
            spent = self.state.spent
            spent[self.state.current] = spent.get(self.state.current, 0.0) + max(0.0, until - self._shown_at)
            self._shown_at = until

    def draft(self, task: Task, text: str) -> None:
        """What is written so far; kept in case the time runs out, or the power."""
        self._advance()
        if self._open(task) and self.state.drafts.get(task.id, "") != text:
            self.state.drafts[task.id] = text
            self._keep("drafted", {"task": task.id})

    def hand_in(self, task: Task, detail: Mapping[str, Any], score: float | None = None) -> Receipt:
        """The first answer counts. After the lock it is recorded as late, and not counted."""
        self._advance()
        if task.id in self.state.answers and task.phase == self.state.phase:
            return Receipt(False, "Handed in already: the first answer counts.")
        if not self._open(task):
            if self.state.paused and self.state.stage == "running" and task.phase == self.state.phase:
                return Receipt(False, "The drill is paused: go on first.")
            self.state.late.append({"task": task.id, "at": self.clock.wall(), "detail": dict(detail), "score": score})
            self._keep("late", {"task": task.id})
            return Receipt(False, "Too late: the phase is locked. It is recorded as late and does not count.")
        self._note_spent()
        correct = None if score is None else score >= 1.0
        self.state.answers[task.id] = Answer(
            at=self.elapsed(),
            seconds=self.state.spent.get(task.id, 0.0),
            score=score,
            correct=correct,
            detail=dict(detail),
            hints=self.state.hints.get(task.id, 0),
        )
        self._keep("answered", {"task": task.id, "score": score})
        return Receipt(True, "Handed in.")

    def _open(self, task: Task) -> bool:
        running = self.state.stage == "running" and not self.state.paused
        return running and task.phase == self.state.phase and task.id not in self.state.answers

    def flag(self, task: Task) -> bool:
        """Marks a task to come back to. Returns whether it is marked now."""
        flags = self.state.flags
        flags.remove(task.id) if task.id in flags else flags.append(task.id)
        self._keep("flagged", {"task": task.id, "on": task.id in flags})
        return task.id in flags

    def hint(self, task: Task, level: int) -> None:
        self.state.hints[task.id] = max(level, self.state.hints.get(task.id, 0))
        self._keep("hint", {"task": task.id, "level": level})

    def begin_run(self, task: Task) -> Receipt:
        """Spends one of the phase's grading runs."""
        self._advance()
        if not self._open(task):
            return Receipt(False, "Paused." if self.state.paused else "The phase is locked.")
        left = self.runs_left()
        if left == 0:
            allowed = self.phase.grading_runs
            words = "No grading in this phase: it is judged at the end." if not allowed else "No grading run is left."
            return Receipt(False, words)
        self.state.runs[self.phase.name] = self.state.runs.get(self.phase.name, 0) + 1
        self._note_files()
        self._keep("grading run", {"task": task.id})
        return Receipt(True, "" if left is None else f"{left - 1} left after this one.")

    def checked(self, task: Task, facts: Mapping[str, Any]) -> None:
        """What a grading run said, for the scorecard."""
        self.state.checks[task.id] = dict(facts)
        self._keep("checked", {"task": task.id, "status": facts.get("status")})

    def give_run_back(self, task: Task) -> None:
        """The grader failed or was cancelled: the run does not count."""
        name = self.state.drill.plan.phases[task.phase].name
        self.state.runs[name] = max(0, self.state.runs.get(name, 0) - 1)
        self._keep("run given back", {"task": task.id})

    def _note_files(self) -> None:
        """After the deadline, `_end_phase` looks once more, and only at what was written in time."""
        if self.state.stage == "running" and self.elapsed() < self.phase_deadline():
            for task_id in self.kernels.look(self.tasks()):
                self._keep("file seen", {"task": task_id, "bytes": len(self.state.sources[task_id])})

    # --- after the clock

    def record(self, task_id: str, event: str, change: Mapping[str, Any]) -> None:
        """Sets fields of an answer in the debrief."""
        answer = self.state.answers[task_id]
        for name, value in change.items():
            setattr(answer, name, value)
        self._keep(event, {"task": task_id, **{k: v for k, v in change.items() if k in ("score", "note", "ungraded")}})

    def close_books(self) -> None:
        """The scorecard is written: nothing changes any more."""
        self.state.stage = "finished"
        self._keep("finished", {})

    # --- keeping

    def _anchor(self, at: float | None = None) -> None:
        self.state.anchor = Anchor(
            elapsed=self.elapsed() if at is None else at,
            now=self.clock.now(),
            wall=self.clock.wall(),
            boot=self.clock.boot(),
        )

    def _keep(self, event: str, facts: dict[str, Any], *, must: bool = False) -> None:
        if self.state.stage == "running" and not self.state.paused:
            self._anchor()
        self.state.seq += 1
        try:
            self.store.save(self.state, event, facts)
            self.unsaved = ""
        except OSError as error:
            if must:
                raise
            self.unsaved = f"The drill cannot be kept ({error.strerror}): {self.store.folder}. It goes on in memory."
