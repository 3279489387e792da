"""A drill in the app: the clock above, one task at a time, and afterwards the scoring of what was spoken."""

from __future__ import annotations

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Horizontal
from textual.widgets import OptionList, Static

from tutor.drill import judging
from tutor.drill.draw import Task
from tutor.drill.kernel_files import KERNELS
from tutor.drill.notices import Notice
from tutor.drill.opening import record_results
from tutor.drill.sitting import Sitting
from tutor.screens.drill_words import end_of_phase, handed_in, next_words, start_of_phase, where
from tutor.screens.item import ItemScreen
from tutor.widgets.content import DIM_STYLE, Content, inline, plain
from tutor.widgets.desk import desk, key_of
from tutor.widgets.drill_panes import DrillExercisePane, DrillOpenPane, HandedIn, Scored, WaitPane, drill_pane
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList
from tutor.widgets.pane import Answered, HintTaken, ItemPane

NOTICE_SECONDS = 8
OVER = -2  # as the number of a phase


class DrillScreen(ItemScreen, inherit_bindings=False):
    CSS_PATH = ["item.tcss", "drill.tcss"]  # type: ignore[assignment]
    BINDINGS = [
        Binding("n,ctrl+n", "next_item", "Next", key_display="n", tooltip="The next task or phase", id="drill.next"),
        Binding("p", "previous_item", "Prev", id="drill.previous"),
        Binding("h", "hint", "Hint", id="drill.hint"),
        Binding("f8", "flag", "Flag", key_display="F8", tooltip="Mark this task, to come back to it", id="drill.flag"),
        Binding("f9", "finish", "Finish", key_display="F9", tooltip="End the whole drill", id="drill.finish"),
        Binding("ctrl+t", "pause", "Pause", key_display="^t", id="drill.pause"),
        Binding("f2", "outline", "List", key_display="F2", tooltip="The tasks of this phase", id="drill.outline"),
        Binding("escape", "back", "Leave", key_display="Esc", id="drill.back"),
    ]

    def __init__(self, sitting: Sitting, notices: tuple[Notice, ...] = ()) -> None:
        self.sitting = sitting
        self.asked: Task | None = None  # None: between tasks
        self.notices = notices
        self.phase_shown = -1
        self.ended = False
        first = next((task.item for task in sitting.state.tasks if task.item), "")
        super().__init__(sitting.course.item(first) if first else sitting.item(sitting.state.tasks[0]))

    def compose(self) -> ComposeResult:
        with Horizontal(id="drill-head"):
            yield Static(Content(""), id="drill-where")
            yield Static(Content(""), id="clock")
        with Horizontal(id="body"):
            yield AnswerList([], id="outline")
            yield Container(id="stage")
        yield KeyLine()

    async def on_mount(self, event: events.Mount | None = None) -> None:
        if event is not None:
            event.prevent_default()  # the item screen would open its item
        self.query_one("#outline").display = False
        for notice in self.notices:
            self._say(notice)
        here = [task for task in self.sitting.tasks() if task.id == self.sitting.state.current]
        if here and self.sitting.state.stage == "running":  # back at the task that was left
            self.phase_shown = self.sitting.state.phase
            await self.show_task(here[0])
        else:
            await self._enter()
        self.query_one("#stage").disabled = self.sitting.state.paused
        self.set_interval(1.0, self._tick)

    def on_unmount(self) -> None:
        self._save_draft()
        self.sitting.close()

    @property
    def closed_book(self) -> bool:
        return self.sitting.state.strict and self.sitting.state.stage == "running"

    # the clock

    async def _tick(self) -> None:
        if self.ended:
            return
        self._save_draft()
        for notice in self.sitting.tick():
            self._say(notice)
        if self._phase_now != self.phase_shown:
            await self._enter()
        self._show_clock()

    def _say(self, notice: Notice) -> None:
        severity = "information" if notice.kind == "away" else "warning"
        self.notify(notice.text, severity=severity, timeout=NOTICE_SECONDS, markup=False)  # type: ignore[arg-type]

    def _show_clock(self) -> None:
        if self.sitting.state.stage != "running":
            self.query_one("#clock", Static).update(plain("stopped"))
            return
        near = self.sitting.phase.name in self.sitting.state.warned or "all" in self.sitting.state.warned
        clock = self.query_one("#clock", Static)
        clock.set_class(near, "-near")
        clock.update(plain(self.sitting.now().header(narrow=self.app.size.width < 60, near=near)))

    # what is on the stage

    @property
    def _phase_now(self) -> int:
        return self.sitting.state.phase if self.sitting.state.stage == "running" else OVER

    async def _enter(self) -> None:
        """The beginning of a phase, or of the debrief."""
        self.phase_shown = self._phase_now
        if self.phase_shown == OVER:
            await self._debrief()
            return
        page = WaitPane(lambda: start_of_phase(self.sitting, self._next_key, key_of(self, "drill.pause", "ctrl+t")))
        await self._stage(None, page)

    async def show_task(self, task: Task) -> None:
        self.sitting.show(task)
        if task.id in self.sitting.state.answers:
            await self._stage(task, WaitPane(lambda: handed_in(self._next_key)))
        else:
            self.item = self.sitting.item(task)
            await self._stage(task, drill_pane(self.sitting, task))

    async def _stage(self, task: Task | None, pane: ItemPane | WaitPane) -> None:
        self._save_draft()
        self.asked = task
        stage = self.query_one("#stage")
        with self.app.batch_update():
            await stage.remove_children()
            await stage.mount(pane)
        self._say_where()
        self._show_clock()
        self._refresh_outline()
        focus = pane.answer_focus() if isinstance(pane, ItemPane) else pane.query_one(".answer")
        if focus is not None:
            focus.focus(scroll_visible=False)
        self.refresh_bindings()

    def _say_where(self) -> None:
        self.query_one("#drill-where", Static).update(where(self.sitting, self.asked))

    def on_resize(self) -> None:
        if self.is_mounted and self.query("#clock"):
            self._say_where()
            self._show_clock()

    def leading_action(self) -> str:
        waiting = bool(self.query(WaitPane))
        return "next_item" if waiting or (self.query(ItemPane) and self.pane.finished) else ""

    @property
    def _next_key(self) -> str:
        return key_of(self, "drill.next", "n")

    def name_keys(self) -> None:
        super().name_keys()
        for page in self.query(WaitPane):
            page.name_keys()

    def words_of_key(self, action: str) -> str:
        """For the footer: what the key does here, where that is not what it usually does."""
        between = action == "next_item" and self.asked is None and self.sitting.state.stage == "running"
        return next_words(self.sitting) if between else ""

    def _save_draft(self) -> None:
        for kernel in self.query(DrillExercisePane):
            kernel.keep_typed()  # what is typed when the time runs out counts
        for pane in self.query(DrillOpenPane):
            if not pane.debrief and self.asked is not None and pane.is_mounted:
                self.sitting.draft(self.asked, pane.text)

    # what the panes tell

    async def on_answered(self, message: Answered) -> None:  # type: ignore[override]
        message.prevent_default()  # it is recorded once the drill is over
        message.stop()
        if self.asked is not None and self.asked.kind not in KERNELS:
            receipt = self.sitting.hand_in(self.asked, message.detail, message.score)
            await self._handed_in(receipt.counted, receipt.text)

    async def on_handed_in(self, message: HandedIn) -> None:
        message.stop()
        receipt = self.sitting.hand_in(message.task, message.detail)
        await self._handed_in(receipt.counted, receipt.text, go_on=True)

    async def _handed_in(self, counted: bool, words: str, *, go_on: bool = False) -> None:
        if not counted:
            self.notify(words, severity="warning", markup=False)
        self._refresh_outline()
        if self._phase_now != self.phase_shown:
            await self._tick()
        elif go_on or self.sitting.state.strict:
            await self._next_open()
        self.refresh_bindings()

    async def _next_open(self) -> None:
        tasks = self.sitting.tasks()
        start = tasks.index(self.asked) + 1 if self.asked in tasks else 0
        for task in (*tasks[start:], *tasks[:start]):
            if task.id not in self.sitting.state.answers:
                await self.show_task(task)
                return
        await self._stage(None, WaitPane(lambda: end_of_phase(self.sitting, self._next_key)))

    def on_hint_taken(self, message: HintTaken) -> None:
        message.prevent_default()
        if self.asked is not None:
            self.sitting.hint(self.asked, message.level)

    # ways on

    async def action_next_item(self) -> None:
        if self.sitting.state.stage != "running":
            return
        tasks = self.sitting.tasks()
        if self.asked is None:
            waiting = [task for task in tasks if task.id not in self.sitting.state.answers]
            if waiting:
                await self.show_task(waiting[0])
            else:
                await self._end_phase()
            return
        index = tasks.index(self.asked) + 1
        if index < len(tasks):
            await self.show_task(tasks[index])
        elif all(task.id in self.sitting.state.answers for task in tasks):
            await self._end_phase()
        else:
            self._ask_end_of_phase()

    def _ask_end_of_phase(self) -> None:
        from tutor.screens.confirm import ConfirmScreen

        tasks, answers = self.sitting.tasks(), self.sitting.state.answers
        kernels = [task for task in tasks if task.kind in KERNELS]
        left = [task for task in tasks if task.id not in answers and task not in kernels]
        file = " Your file is handed in as it is." if kernels else ""
        open_words = f" {len(left)} not answered." if left else ""
        question = f"End the phase {self.sitting.phase.name!r}?{file}{open_words} What is in it locks."
        phase = self.sitting.state.phase

        async def ended(wanted: bool | None) -> None:
            if wanted and self.sitting.state.phase == phase:
                await self._end_phase()

        self.app.push_screen(ConfirmScreen(question, "End the phase"), ended)

    async def _end_phase(self) -> None:
        self._save_draft()
        self.sitting.next_phase()
        await self._enter()

    async def action_previous_item(self) -> None:
        tasks = self.sitting.tasks()
        index = tasks.index(self.asked) - 1 if self.asked in tasks else -1
        if index >= 0:
            await self.show_task(tasks[index])

    def action_finish(self) -> None:
        from tutor.screens.confirm import ConfirmScreen

        async def ended(wanted: bool | None) -> None:
            if wanted and self.sitting.state.stage == "running":
                self._save_draft()
                self.sitting.finish()
                await self._enter()

        question = "End the whole drill now? What is not handed in stays empty."
        self.app.push_screen(ConfirmScreen(question, "End it"), ended)

    def action_flag(self) -> None:
        if self.asked is not None:
            self.sitting.flag(self.asked)
            self._say_where()
            self._refresh_outline()

    def action_pause(self) -> None:
        receipt = self.sitting.go_on() if self.sitting.state.paused else self.sitting.pause()
        self.notify(receipt.text, markup=False)
        self.query_one("#stage").disabled = self.sitting.state.paused
        self._show_clock()
        self.refresh_bindings()

    def action_back(self) -> None:
        from tutor.screens.confirm import ConfirmScreen

        if self.query_one("#outline").has_focus:
            self.action_outline()
            return
        if self.sitting.state.stage != "running" or self.sitting.state.paused:
            self.dismiss()
            return

        def leave(wanted: bool | None) -> None:
            if wanted:
                self.dismiss()

        question = f"Leave the drill? The clock goes on; {key_of(self, 'home.drill', 'd')} on Home comes back to it."
        self.app.push_screen(ConfirmScreen(question, "Leave"), leave)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        running, strict = self.sitting.state.stage == "running", self.sitting.state.strict
        if action == "hint":
            return running and not strict and bool(self.query(ItemPane)) and bool(self.pane.hints())
        if action == "pause":
            return running and not strict
        if action in ("previous_item", "flag") and self.asked is None:
            return False
        if action in ("next_item", "previous_item", "flag", "outline"):
            return running and not self.sitting.state.paused
        return running if action == "finish" else True

    def action_hint(self) -> None:
        from tutor.screens.answer import HintScreen

        hints, task = self.pane.hints(), self.asked
        assert task is not None
        taken = min(max(1, self.sitting.state.hints.get(task.id, 0)), len(hints))
        self.sitting.hint(task, taken)
        self.app.push_screen(HintScreen(hints, taken, lambda level: self.sitting.hint(task, level)))

    # the list of the phase's tasks

    def _refresh_outline(self) -> None:
        outline = self.query_one("#outline", AnswerList)
        if not outline.display:
            return
        outline.clear_options()
        for number, task in enumerate(self.sitting.tasks(), 1):
            status = plain(f"{self.sitting.status(task)}: ", DIM_STYLE)
            outline.add_option(Content.assemble(plain(f"{number} "), status, inline(self.sitting.item(task).title)))
        outline.highlighted = self.sitting.tasks().index(self.asked) if self.asked in self.sitting.tasks() else 0

    def action_outline(self) -> None:
        outline = self.query_one("#outline")
        outline.display = not outline.display
        self._refresh_outline()
        if outline.display:
            outline.focus()
        elif self.query(ItemPane) and (focus := self.pane.answer_focus()) is not None:
            focus.focus()

    @on(OptionList.OptionSelected, "#outline")
    async def _task_picked(self, event: OptionList.OptionSelected) -> None:
        event.prevent_default()
        event.stop()
        self.query_one("#outline").display = False
        await self.show_task(self.sitting.tasks()[event.option_index])

    # after the clock

    async def _debrief(self) -> None:
        waiting = judging.to_score(self.sitting)
        if waiting:
            task = waiting[0]
            draft = str(self.sitting.state.answers[task.id].detail.get("draft") or "")
            item = self.sitting.item(task)
            await self._stage(task, DrillOpenPane(item, task, draft, debrief=True))  # type: ignore[arg-type]
            return
        if self.ended:
            return
        self.ended = True
        jobs = judging.jobs(self.sitting)
        await self._stage(None, WaitPane("**The clock has stopped.**\n\nWriting the scorecard …"))
        self._judge(jobs)

    async def on_scored(self, message: Scored) -> None:
        message.stop()
        judging.score_spoken(self.sitting, message.task, message.claimed)
        await self._debrief()

    @work(group="judge", exit_on_error=False)
    async def _judge(self, jobs: tuple[judging.Job, ...]) -> None:
        from tutor.drill.report import write_report
        from tutor.screens.drill_report import DrillReportScreen

        for number, job in enumerate(jobs, 1):
            words = f"Grading answer {number} of {len(jobs)}, on inputs you have not seen …"
            await self.query_one(WaitPane).say(f"**The clock has stopped.**\n\n{words}")
            await judging.judge(self.sitting, job, desk(self).grader)
        try:
            report = write_report(self.sitting)
        except OSError as error:
            await self.query_one(WaitPane).say(
                f"**The clock has stopped.**\n\nThe scorecard cannot be written: {error}"
            )
            return
        record_results(self.sitting, desk(self).progress)
        self.app.switch_screen(DrillReportScreen(report))
