"""A sitting on stdin and stdout: asks, waits with an eye on the clock, and hands in."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import select
import sys

from tutor.answers import Mark, indented, mark_match, mark_quiz, shuffled_right
from tutor.commands.session import Session
from tutor.commands.terminal import say, say_lines, width
from tutor.course import text
from tutor.course.model import Bug, Exercise, Item, Match, Open, Predict, Quiz
from tutor.drill import judging
from tutor.drill.draw import Task
from tutor.drill.kernel_files import KERNELS
from tutor.drill.opening import record_results
from tutor.drill.report import Report, markdown, write_report
from tutor.drill.sitting import Sitting
from tutor.grading import Failed, GradeRequest, VerdictReady
from tutor.verdict_text import verdict_lines

HELP = """\
:time   the clock        :flag   mark this task       :skip    leave it for now
:next   end the phase    :finish end the drill        :pause   stop the clock (not when strict)
:hint   a hint (not when strict)"""
LOOK_SECONDS = 0.5


class Locked(Exception):
    """The phase is over: its time is up, or the candidate ended it."""


class Skipped(Exception):
    """The task is left for now."""


class Lines:
    """Lines of stdin, read without a buffer that would hide from `select` what has come."""

    def __init__(self) -> None:
        self._held = b""
        self._fd = sys.stdin.fileno()

    def next(self, seconds: float) -> str | None:
        """One line; None when none has come in time. Raises EOFError."""
        if b"\n" not in self._held:
            ready, _, _ = select.select([self._fd], [], [], seconds)
            if not ready:
                return None
            chunk = os.read(self._fd, 65536)
            if not chunk:
                if not self._held:
                    raise EOFError
                chunk = b"\n"
            self._held += chunk
            if b"\n" not in self._held:
                return None
        line, _, self._held = self._held.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    def forget_typed(self) -> None:
        """What was typed on a terminal for a question that is locked belongs to no other."""
        if sys.stdin.isatty():
            import termios

            with contextlib.suppress(termios.error):
                termios.tcflush(self._fd, termios.TCIFLUSH)
            self._held = b""


class Interview:
    def __init__(self, session: Session, sitting: Sitting) -> None:
        self.session, self.sitting, self.lines = session, sitting, Lines()

    # --- asking

    def ask(self, prompt: str, task: Task | None = None) -> str:
        """One line. Commands are dealt with here. Raises Locked, Skipped and EOFError."""
        phase = self.sitting.state.phase
        while True:
            sys.stdout.write(prompt)
            sys.stdout.flush()
            while (line := self.lines.next(LOOK_SECONDS)) is None:
                self._look(phase)
            if not sys.stdin.isatty():
                say()
            if not line.startswith(":"):
                return line  # whether it came in time is for the sitting to say
            self._look(phase)
            self._command(line.strip(), task)

    def _look(self, phase: int) -> None:
        """Says what the clock has to say."""
        notices = self.sitting.tick()
        for notice in notices:
            say(f"\n[{notice.text}]")
        if self.sitting.state.stage != "running" or self.sitting.state.phase != phase:
            self.lines.forget_typed()
            raise Locked

    def _command(self, line: str, task: Task | None) -> None:
        sitting = self.sitting
        match line.split()[0]:
            case ":time":
                say(self.clock())
            case ":flag" if task is not None:
                say("Flagged." if sitting.flag(task) else "No longer flagged.")
            case ":skip" if task is not None:
                raise Skipped
            case ":next":
                sitting.next_phase()
                raise Locked
            case ":finish":
                sitting.finish()
                raise Locked
            case ":pause":
                self._pause()
            case ":hint" if task is not None:
                self._hint(task)
            case _:
                say(HELP)

    def _pause(self) -> None:
        receipt = self.sitting.pause()
        say(receipt.text)
        if not receipt.counted:
            return
        sys.stdout.write("Enter goes on: ")
        sys.stdout.flush()
        while self.lines.next(60) is None:
            self.sitting.store.beat()
        say(self.sitting.go_on().text)

    def _hint(self, task: Task) -> None:
        if self.sitting.state.strict:
            say("A strict drill has no hints.")
            return
        hints = _hints(self.sitting.item(task))
        level = self.sitting.state.hints.get(task.id, 0) + 1
        if not hints:
            say("There is no hint for this one.")
            return
        level = min(level, len(hints))
        self.sitting.hint(task, level)
        say(text.wrapped(f"Hint {level} of {len(hints)}: {hints[level - 1]}", width()))

    def clock(self) -> str:
        return f"[{self.sitting.now().text(self.sitting.phase.name)}]"

    # --- phases and tasks

    def run(self) -> Report:
        if self.sitting.state.paused:
            say(self.sitting.go_on().text)
        while self.sitting.state.stage == "running":
            with contextlib.suppress(Locked):
                self._phase()
        return self._debrief()

    def _phase(self) -> None:
        sitting = self.sitting
        phase, plan = sitting.phase, sitting.state.drill.plan
        say(f"== Phase {sitting.state.phase + 1} of {len(plan.phases)}: {phase.name}  {self.clock()}\n")
        say(text.wrapped(phase.script, width()))
        tasks = sitting.tasks()
        waiting = [task for task in tasks if task.id not in sitting.state.answers]
        while True:
            for task in waiting:
                with contextlib.suppress(Skipped):
                    self._task(task, tasks.index(task) + 1, len(tasks))
            left = [task for task in tasks if task.id not in sitting.state.answers and task.kind not in KERNELS]
            if not left:
                break
            numbers = ", ".join(str(tasks.index(task) + 1) for task in left)
            picked = self.ask(f"\nNot answered: {numbers}. A number goes back to it, Enter ends the phase: ").strip()
            if not picked:
                break
            waiting = [task for task in left if str(tasks.index(task) + 1) == picked]
            if not waiting:
                say(f"{picked!r} is none of {numbers}.")
        sitting.next_phase()

    def _task(self, task: Task, number: int, count: int) -> None:
        self._look(self.sitting.state.phase)
        self.sitting.show(task)
        item = self.sitting.item(task)
        flagged = " (flagged)" if task.id in self.sitting.state.flags else ""
        name = f"  [{item.id}]" if task.kind != "talk" else ""
        say(f"\n-- {number} of {count}: {item.title}{name}{flagged}  {self.clock()}\n")
        match item:
            case Quiz() | Predict():
                self._marked(task, item, self._choice(task, item))
            case Match():
                self._marked(task, item, self._pairs(task, item))
            case Bug():
                self._bug(task, item)
            case Open():
                self._open(task, item)
            case Exercise():
                self._kernel(task, item)

    def _marked(self, task: Task, item: Item, mark: Mark) -> None:
        receipt = self.sitting.hand_in(task, mark.detail, mark.score)
        say(receipt.text)
        if receipt.counted and not self.sitting.state.strict:
            say(f"{'✓' if mark.correct else '✗'} {mark.message}\n")
            if isinstance(item, (Quiz, Predict)):
                say("\n\n".join(text.choice_whys(item, width(), frozenset(mark.detail["chosen"]))))
            elif isinstance(item, Match):
                say("\n".join(text.bullet("-", f"{pair.left} = {pair.right}", width()) for pair in item.pairs))

    def _choice(self, task: Task, item: Quiz | Predict) -> Mark:
        say("\n\n".join(text.question_parts(item, width())))
        several = isinstance(item, Quiz) and item.several
        prompt = "\nYour answers, such as 1,3: " if several else "\nYour answer: "
        while True:
            chosen = _numbers(self.ask(prompt, task), len(item.options))
            if chosen and (several or len(chosen) == 1):
                return mark_quiz(item, chosen)
            say(f"Write {'numbers' if several else 'one number'} from 1 to {len(item.options)}, or :skip.")

    def _pairs(self, task: Task, item: Match) -> Mark:
        say("\n\n".join(text.match_parts(item, width())))
        order = shuffled_right(item)
        last = chr(96 + len(order))
        while True:
            line = self.ask("\nYour pairs, such as 1b 2a: ", task)
            answer = {
                int(left) - 1: order[ord(right.lower()) - 97]
                for left, right in re.findall(r"(\d+)\s*[-:=]?\s*([a-zA-Z])", line)
                if 1 <= int(left) <= len(order) and "a" <= right.lower() <= last
            }
            if answer:
                return mark_match(item, answer)
            say(f"Write pairs of a number from 1 to {len(order)} and a letter from a to {last}, or :skip.")

    def _bug(self, task: Task, bug: Bug) -> None:
        say("\n\n".join(text.bug_parts(bug, width())))
        lines = bug.code.rstrip("\n").split("\n")
        first = 0
        edits: dict[int, str] = {}
        prompt = "\nWhich line is at fault? "
        while True:
            word = self.ask(prompt, task).strip()
            if not word and first:
                break
            if not word.isdecimal() or not 1 <= int(word) <= len(lines):
                say(f"Write a line number from 1 to {len(lines)}, or :skip.")
                continue
            line = int(word)
            first = first or line
            say(f"Line {line} is: {edits.get(line, lines[line - 1]).strip()}")
            typed = self.ask("It should say (Enter leaves it, - deletes it): ", task)
            if typed.strip():
                edits[line] = "" if typed.strip() == "-" else indented(bug, line, typed)
            prompt = "\nAnother line to change (Enter hands in): "
        detail = {"line": first, "edits": {str(line): new for line, new in edits.items()}}
        say(self.sitting.hand_in(task, detail).text)

    def _open(self, task: Task, item: Open) -> None:
        say(text.wrapped(item.question, width()))
        say("\nAnswer in writing, or aloud. An empty line hands it in.")
        written: list[str] = []
        while line := self.ask("> ", task):
            written.append(line)
            self.sitting.draft(task, "\n".join(written))
        say(self.sitting.hand_in(task, {"draft": "\n".join(written)}).text)

    def _kernel(self, task: Task, item: Exercise) -> None:
        sitting = self.sitting
        if task.kind == "optimise":
            bar = sitting.phase.optimise
            assert bar is not None
            say(
                text.wrapped(f"Make it faster: {bar.percent_of_limit:g} % of the hardware's limit is the bar.", width())
            )
            say(text.wrapped(NEEDS_GPU, width()))
        else:
            from tutor.workspace import stub_doc

            say(text.table(stub_doc(item.exercise), width()))
        say(f"\nYour file: {sitting.file(task)}\nWhat it holds when the phase ends is handed in.")
        while True:
            left = sitting.runs_left()
            grade = "g grades it, " if left is None else f"g grades it ({left} left), " if left else ""
            word = self.ask(f"\n{self.clock()} {grade}d is done: ", task).strip()
            if word == "d":
                return
            if word == "g":
                self._grade(task)

    def _grade(self, task: Task) -> None:
        from tutor import batch

        receipt = self.sitting.begin_run(task)
        say(receipt.text)
        if not receipt.counted:
            return
        file, slug = self.sitting.file(task), self.sitting.kernels.slug(task)
        event = batch.run_one(lambda grader: grader.grade(GradeRequest(slug, file)))
        if isinstance(event, VerdictReady):
            self.sitting.checked(task, {"status": event.verdict["status"], "backend": event.verdict["backend"]})
            source = file.read_text(encoding="utf-8", errors="replace")
            say_lines(
                verdict_lines(
                    judging.as_shown(event.verdict, strict=self.sitting.state.strict), width=width(), source=source
                )
            )
        else:
            self.sitting.give_run_back(task)
            why = event.message if isinstance(event, Failed) else "no verdict"
            say(f"Not graded, and the run does not count: {why}")

    # --- after the clock

    def _debrief(self) -> Report:
        sitting = self.sitting
        say("\n== The clock has stopped\n")
        spoken = judging.to_score(sitting)
        for number, task in enumerate(spoken, 1):
            item = sitting.item(task)
            assert isinstance(item, Open)
            say(f"-- Score your answer {number} of {len(spoken)}: {item.title}\n")
            say(text.wrapped(item.question, width()))
            draft = sitting.state.answers[task.id].detail.get("draft")
            say(f"\nYour answer:\n{text.wrapped(draft, width())}\n" if draft else "\nYou answered aloud.\n")
            say("\n\n".join(text.open_answer(item, width())))
            judging.score_spoken(sitting, task, self._claimed(item))
        pending = judging.jobs(sitting)
        if pending:
            say(f"Grading {len(pending)} of your answers, on inputs you have not seen …")
            asyncio.run(self._judge(pending))
        report = write_report(sitting)
        record_results(sitting, self.session.progress)
        say("\n" + markdown(report.card, for_terminal=True))
        for line in (*report.files, *([report.left_out] if report.left_out else [])):
            say(str(line))
        return report

    async def _judge(self, pending: tuple[judging.Job, ...]) -> None:
        from tutor.grading import Grader

        grader = Grader()
        try:
            for job in pending:
                await judging.judge(self.sitting, job, grader)
        finally:
            await grader.close()

    def _claimed(self, item: Open) -> set[int]:
        while True:
            sys.stdout.write("\nWhich points did you make? Numbers such as 1,3, or 0 for none: ")
            sys.stdout.flush()
            while (line := self.lines.next(60)) is None:
                self.sitting.store.beat()
            if not sys.stdin.isatty():
                say()
            claimed = _numbers(line, len(item.rubric))
            if claimed or line.strip() == "0":
                return claimed
            say(f"Write numbers from 1 to {len(item.rubric)}.")


NEEDS_GPU = (
    "The time needs a GPU. Without one, bytes moved, spills and vector loads are counted against the course's "
    "solution: a model, and the scorecard calls it one."
)


def run(session: Session, sitting: Sitting) -> Report:
    """Raises EOFError when the input ends first."""
    return Interview(session, sitting).run()


def _hints(item: Item) -> tuple[str, ...]:
    if isinstance(item, Bug):
        return (item.hint,) if item.hint else ()
    if isinstance(item, Exercise):
        from grader import catalog

        return tuple(catalog.find(item.exercise).hints)
    return ()


def _numbers(line: str, count: int) -> set[int]:
    """0-based indices from "1,3" or "1 3"; empty when anything in it is not a number in range."""
    words = re.split(r"[\s,;]+", line.strip())
    if not all(word.isdecimal() and 1 <= int(word) <= count for word in words):
        return set()
    return {int(word) - 1 for word in words}
