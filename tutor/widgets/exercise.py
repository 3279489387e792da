"""An exercise: the task, the learner's file, and the live result."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Horizontal
from textual.widgets import Button, Static

from tutor.course.model import Exercise
from tutor.grading import CaseDone, Failed, GradeRequest, Stage, VerdictReady
from tutor.widgets.content import DIM_STYLE, plain
from tutor.widgets.desk import Words, desk, key_of, said
from tutor.widgets.file_pane import FilePane
from tutor.widgets.hanging import hanging_lines
from tutor.widgets.pane import Answered
from tutor.widgets.prose import CodeView, Prose, Reading
from tutor.widgets.result import ResultView

POLL_SECONDS = 0.3  # polling sees every way an editor saves, on network file systems too
VIEWS = {"task": ("f3", "Task"), "code": ("f4", "Code"), "result": ("f5", "Result"), "after": ("f8", "After")}


class ExercisePane(FilePane):
    BINDINGS = [
        Binding("e", "edit", "Edit", tooltip="In the editor of Settings or $EDITOR, else here", id="exercise.edit"),
        Binding("E", "edit_here", "Edit here", tooltip="In the built-in editor", id="exercise.edit-here"),
        Binding("D", "diff", "Diff", tooltip="Your file against the stub, a backup, the solution", id="exercise.diff"),
        Binding("g", "grade", "Grade", id="exercise.grade"),
        Binding("f6", "grade", "Grade", key_display="F6", id="exercise.grade-while-typing"),
        Binding(
            "a",
            "grade_all",
            "All cases",
            tooltip="Run also the cases after the first that failed",
            id="exercise.grade-all",
        ),
        Binding("l", "see", "Look up", tooltip="The item that explains this mistake", id="exercise.see"),
        Binding("f7,escape", "cancel", "Cancel", key_display="F7", id="exercise.cancel"),
        Binding("w", "watch", "Watch", id="exercise.watch"),
        Binding("m", "map", "Map", tooltip="Which program loads and stores which element", id="exercise.map"),
        Binding("v", "compiler", "Compiler", tooltip="What the compiler makes of it", id="exercise.compiler"),
        Binding("b", "plots", "Bars", tooltip="Cases, times, roofline, sizes, in pictures", id="exercise.plots"),
        Binding("x", "reset", "Reset", id="exercise.reset"),
        Binding("y", "copy", "Copy", show=False, tooltip="The result and your file's path", id="exercise.copy"),
        Binding("f3", "view('task')", "Task", show=False, id="exercise.view-task"),
        Binding("f4", "view('code')", "Code", show=False, id="exercise.view-code"),
        Binding("f5", "view('result')", "Result", show=False, id="exercise.view-result"),
        Binding("f8", "view('after')", "After", show=False, id="exercise.view-after"),
    ]

    def __init__(self, item: Exercise, position: int = 0) -> None:
        super().__init__(item, position)
        self.exercise = item
        self.slug = item.exercise
        self.watching = self.grading = False
        self.passed = self.code_seen = False
        self.not_run = False  # the last verdict left out cases, as the first failure ends a grade
        self.see = ""  # the item that explains the last verdict
        self.verdict: dict[str, Any] | None = None  # the last one since the pane was opened
        self.graded: str | None = None  # the text that the result is about
        self.stamp: tuple[int, int] | None = None
        self.advice: Words = ""

    def compose(self) -> ComposeResult:
        with Horizontal(id="views"):
            for name in VIEWS:
                yield Button(plain(self._view_label(name)), id=f"show-{name}", compact=True)
            yield Static(plain(""), id="watch-state")
        with Container(id="exercise", classes="-task"):
            with Reading(id="after"):  # takes the task's place on a wide screen
                yield Prose(self.exercise.after)
            with Reading(id="task", classes="answer"):
                yield Static(plain(""), id="advice")
                yield Prose(self.exercise.brief)
                yield Static(hanging_lines(self._task_text()), id="stub-doc")
                yield Static(plain(f"Your file: {self.file}", DIM_STYLE))
            yield CodeView(id="code")
            yield ResultView(id="result")

    def on_mount(self) -> None:
        if desk(self).workspace.writable:
            desk(self).workspace.restore_missing(self.slug)
        self._reload()
        self._show_after(desk(self).progress.state(self.item.id).passed)
        self.set_interval(POLL_SECONDS, self._poll)
        if desk(self).progress.setting("watch") == "on":
            self.action_watch()
        self._show_tabs("task")
        self.query_one("#advice").display = False
        self.query_one(ResultView).say(self._last_result, "dim")

    def _view_label(self, name: str) -> str:
        usual, label = VIEWS[name]
        return f"{key_of(self, f'exercise.view-{name}', usual)} {label}"

    def name_keys(self) -> None:
        for name in VIEWS:
            button = self.query_one(f"#show-{name}", Button)
            button.label = plain(self._view_label(name))
            button.refresh(layout=True)  # a new label does not widen a button by itself
        self.query_one("#advice", Static).update(plain(said(self.advice), "bold"))
        if self.stamp is None:  # instead of the code it says which key puts the stub back
            self._reload()
        self.query_one(ResultView).name_keys()

    @property
    def file(self) -> Path:
        return desk(self).workspace.file(self.slug)

    def advise(self, words: Words) -> None:
        """Above the task."""
        self.advice = words
        advice = self.query_one("#advice", Static)
        advice.update(plain(said(words), "bold"))
        advice.display = True

    def _task_text(self) -> str:
        from tutor.workspace import stub_doc

        return stub_doc(self.slug)

    def _last_result(self) -> str:
        edit, grade = key_of(self, "exercise.edit", "e"), key_of(self, "exercise.grade", "g")
        graded = desk(self).progress.attempts(self.item.id, limit=1)
        if not graded:
            return f"Not graded yet: {edit} opens an editor, {grade} grades the file."
        status = graded[0].detail.get("status", "passed" if graded[0].correct else "not passed")
        return f"Last result: {str(status).replace('_', ' ')}. {grade} grades again."

    # the learner's file

    def _poll(self) -> None:
        if self._stamp() == self.stamp:
            return
        self._reload()
        if self.watching and self.editor is None:  # the built-in editor saves half a line too
            self.action_grade()

    def follow_file(self) -> None:
        self._poll()

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self.file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _reload(self) -> None:
        self.stamp = self._stamp()
        try:
            text = self.file.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = f"# The file is not there. {key_of(self, 'exercise.reset', 'x')} (reset) puts the stub back."
        except (OSError, UnicodeDecodeError) as error:
            text = f"# The file cannot be read: {error}"
        self.query_one(CodeView).show(text)
        changed = self.graded is not None and text != self.graded
        self.query_one(ResultView).say_above(self._changed_words if changed else "")

    def _changed_words(self) -> str:
        return f"The file has changed since: {key_of(self, 'exercise.grade', 'g')} grades it again."

    def _skip_task(self) -> None:
        """The code starts at its imports: the docstring above them is the task, which has a view of its own."""
        view = self.query_one(CodeView)
        lines = view.code.split("\n")
        first = next((index for index, line in enumerate(lines) if line.startswith(("import ", "from "))), 0)
        view.scroll_to(y=first, animate=False)

    def action_watch(self) -> None:
        self.watching = not self.watching
        desk(self).progress.set_setting("watch", "on" if self.watching else "off")
        self._say_state("")

    def _say_state(self, words: str) -> None:
        if self.watching and self.editor is None:
            words = "watching: a save grades" if self.app.size.width >= 60 else "watching"
        super()._say_state(words)

    def action_reset(self) -> None:
        from tutor.screens.confirm import ConfirmScreen

        backups = desk(self).workspace.folder / ".triton-prep" / "backups"
        question = f"Put the stub of {self.slug} back? Your version is kept as a backup in {backups}"
        self.app.push_screen(ConfirmScreen(question, "Reset"), self._reset)

    def _reset(self, wanted: bool | None) -> None:
        from tutor.workspace import WorkspaceError

        if not wanted:
            return
        self.keep_typed()
        try:
            backup = desk(self).workspace.reset(self.slug)
        except WorkspaceError as error:
            self.query_one(ResultView).say(str(error), "bad")
            self.action_view("result")
            return
        self.graded = None
        self._reload()
        self.query_one("#advice").display = False
        self.passed, self.see = False, ""
        kept = f"\n\nYour version is kept in\n{backup}" if backup else ""
        self.query_one(ResultView).say(f"The stub is back.{kept}")
        self.action_view("result")
        self.refresh_bindings()

    # views

    def action_view(self, name: str) -> None:
        self._show_tabs(name)
        if name == "code" and self.editor is not None:
            self.editor.editor.focus()
            return
        self.query_one(f"#{name}").focus()
        if name == "code" and not self.code_seen:
            self.code_seen = True
            self.call_after_refresh(self._skip_task)

    @on(Button.Pressed)
    def _view_pressed(self, event: Button.Pressed) -> None:
        if event.button.id and event.button.id.startswith("show-"):
            event.stop()
            self.action_view(event.button.id.removeprefix("show-"))

    def _show_tabs(self, name: str) -> None:
        for other in VIEWS:
            self.query_one("#exercise").set_class(other == name, f"-{other}")
            self.query_one(f"#show-{other}", Button).set_class(other == name, "-shown")

    # grading

    def _show_after(self, passed: bool) -> None:
        """What is asked next would give the answer away before the exercise has passed."""
        self.query_one("#show-after").display = passed and bool(self.exercise.after)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "view" and parameters == ("after",):
            return bool(self.query_one("#show-after").display)
        if action == "cancel":
            return self.grading
        if action == "see":
            return bool(self.see)
        if action == "grade_all":
            return self.not_run and not self.grading
        return not (action == "grade" and self.grading)

    @property
    def finished(self) -> bool:
        return self.passed and not self.grading

    def action_copy(self) -> None:
        self.app.copy(f"{self.file}\n\n{self.query_one(ResultView).text()}", "Result")  # type: ignore[attr-defined]

    def action_see(self) -> None:
        self.app.call_later(self.app.run_action, f"look_up({self.see!r})")

    def action_grade_all(self) -> None:
        self.action_grade(keep_going=True)

    def action_grade(self, keep_going: bool = False) -> None:
        if not self.keep_typed(ask=True):
            return
        self.grading = True
        self.refresh_bindings()
        if (
            self.screen.focused is not None
            and self.screen.focused.id in ("after", "task", "code", "editor")
            and self.screen.has_class("-narrow")
        ):
            self.action_view("result")
        self.graded = None
        self.query_one(ResultView).say_above("")
        ready = desk(self).grader.ready is not None
        start = "Grading …" if ready else "Starting the grader: it imports torch, a few seconds the first time …"
        self.query_one(ResultView).begin(start)
        self._grade(keep_going)

    def action_cancel(self) -> None:
        self.workers.cancel_node(self)
        self._ended()
        self.query_one(ResultView).say("Cancelled.")

    def action_map(self) -> None:
        from tutor.screens.access_map import AccessMapScreen

        self.keep_typed()
        self.app.push_screen(AccessMapScreen(self.slug, self.file))

    def action_compiler(self) -> None:
        from tutor.screens.compiler import CompilerScreen

        self.keep_typed()
        in_drill = self.file != desk(self).workspace.file(self.slug)
        self.app.push_screen(CompilerScreen(self.slug, self.file, in_drill))

    def action_plots(self) -> None:
        from grader import catalog
        from tutor.screens.result_plots import ResultPlotsScreen

        self.keep_typed()
        timed = [a.detail["timing"] for a in desk(self).progress.attempts(self.item.id) if a.detail.get("timing")]
        solution = catalog.find(self.slug).solution
        self.app.push_screen(ResultPlotsScreen(self.slug, self.file, solution, self.verdict, tuple(timed)))

    def _ended(self) -> None:
        self.grading = False
        self.refresh_bindings()

    @work(group="grade", exclusive=True, exit_on_error=False)
    async def _grade(self, keep_going: bool) -> None:
        result = self.query_one(ResultView)
        source = self.query_one(CodeView).code
        async for event in desk(self).grader.grade(GradeRequest(self.slug, self.file, keep_going=keep_going)):
            if isinstance(event, Stage):
                result.add_stage(event)
            elif isinstance(event, CaseDone):
                result.add_case(event)
            elif isinstance(event, VerdictReady):
                self.graded = source
                self._judged(event.verdict, source)
            elif isinstance(event, Failed):
                result.say(partial(self._failed_words, event), "bad")
        self._ended()

    def _failed_words(self, event: Failed) -> str:
        key = key_of(self, "exercise.grade", "g")
        again = f"\n\n{key} starts it again." if event.kind == "infrastructure" else ""
        return "Cancelled." if event.kind == "cancelled" else f"{event.message}{again}"

    def _judged(self, verdict: dict[str, Any], source: str) -> None:
        cases = verdict.get("cases") or []
        good = verdict["status"] == "passed"
        passed = sum(case.get("status") == "passed" for case in cases)
        score = 1.0 if good else 0.9 * passed / max(1, len(cases))
        kept = {key: verdict.get(key) for key in ("status", "backend", "sha256", "diagnosis", "timing")}
        self.passed, self.verdict = good, verdict
        self.not_run = any(case.get("status") == "not_run" for case in cases)
        course = desk(self).course
        self.see = course.current_id(str((verdict.get("diagnosis") or {}).get("see") or "")) or ""
        typing = self.editor is not None and self.editor.has_focus_within  # where n is a letter
        self.query_one(ResultView).show_verdict(verdict, source, partial(self._onward, typing))
        self.tell_editor(verdict)
        if good:
            self._show_after(True)
        if verdict["status"] not in ("not_started", "infrastructure_error"):
            self.post_message(Answered(self.item, good, score, kept))

    def _onward(self, typing: bool) -> str:
        """What may come after a pass."""
        following = desk(self).course.after(self.item.id)
        leave = f"{key_of(self, 'editor.leave', 'escape')} ends editing; then " if typing else ""
        go_on, solution = key_of(self, "item.next", "n"), key_of(self, "item.solution", "s")
        onward = f"  {leave}{go_on} goes on: {following.title}" if following else "  That was the course's last item"
        asked_next = (
            f"\n  {key_of(self, 'exercise.view-after', 'f8')} says what an interviewer asks next, and what it costs."
        )
        return f"{onward}. {solution} shows the course's own solution.{asked_next if self.exercise.after else ''}"

    # help and answers

    def hints(self) -> tuple[str, ...]:
        from grader import catalog

        return tuple(catalog.find(self.slug).hints)

    def reveal(self) -> None:
        from grader import catalog
        from tutor.screens.answer import SolutionScreen

        try:
            code = catalog.find(self.slug).solution.read_text(encoding="utf-8")
        except OSError as error:
            self.notify(f"The solution cannot be read: {error}", severity="error", markup=False)
            return
        self.app.push_screen(SolutionScreen(self.slug, code))
