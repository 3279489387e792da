"""Two compiles side by side: the figures first, then a stage line by line."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Static

from tutor.compiler.comparison import Pair, pairs, summary
from tutor.compiler.compilation import TARGETS, Compilation, Kernel, StageText, Version, parse, stage_text
from tutor.grading import Answer, Failed
from tutor.screens.choice import Choice
from tutor.widgets.content import DIM_STYLE, Content, plain
from tutor.widgets.desk import Desk, desk
from tutor.widgets.keys import KeyLine
from tutor.widgets.linked_lines import LinkedLines, Row

WARPS = (1, 2, 4, 8, 16)


def other_versions(of: Desk, slug: str, mine: Version, *, in_drill: bool) -> list[Choice[Version]]:
    """What the learner's file may be compared with. The solution follows the rule of the exercise's own `s`."""
    from grader import catalog

    files = catalog.find(slug)
    item = of.course.exercise_item(slug)
    state = of.progress.state(item.id) if item else None
    earned = state is not None and (state.passed or state.gave_up)
    choices = []
    if not in_drill:
        backup = of.workspace.newest_backup(slug)
        hidden = "" if earned else "after a pass, or when you give up"
        choices.append(
            Choice("the course's solution", replace(mine, title="the solution", file=files.solution), hidden)
        )
        none = "" if backup else "there is none yet"
        choices.append(Choice("your newest backup", replace(mine, title="your backup", file=backup or Path()), none))
    choices.append(Choice("the stub", replace(mine, title="the stub", file=files.stub)))
    for warps in WARPS:
        choices.append(Choice(f"yours with num_warps={warps}", replace(mine, num_warps=warps)))
    for target, chip in TARGETS.items():
        if target != mine.target:
            choices.append(Choice(f"yours for {target}  {chip}", replace(mine, target=target)))
    return choices


class CompareScreen(Screen[None]):
    CSS_PATH = "compiler.tcss"
    BINDINGS = [
        Binding("tab,shift+tab", "other_side", "Other side", show=False, priority=True, id="compiles.other-side"),
        *[Binding(str(n), f"stage({n - 1})", f"Stage {n}", show=False) for n in range(1, 6)],
        Binding("right", "step(1)", "Stage", key_display="1-5", id="compiles.next-step"),
        Binding("left", "step(-1)", "Stage before", show=False, id="compiles.step-back"),
        Binding("n", "change(1)", "Next change", id="compiles.next-change"),
        Binding("N", "change(-1)", "Change before", id="compiles.change-before"),
        Binding("escape,q,c", "dismiss", "Back", key_display="Esc", id="compiles.back"),
    ]

    def __init__(self, slug: str, left: Version, right: Version, number: int, stage: str) -> None:
        """`number` of the kernel on the left; on the right the one of the same place, or the last."""
        super().__init__()
        self.slug, self.versions, self.number, self.stage_name = slug, (left, right), number, stage
        self.found: list[Compilation] = []
        self.machine_code: dict[int, StageText | None] = {}  # by side

    def compose(self) -> ComposeResult:
        yield Static(Content(""), id="where")
        yield Static(Content(""), id="stopped")
        with Horizontal(id="sides"):
            yield LinkedLines(id="left")
            yield LinkedLines(id="right")
            yield LinkedLines(id="both")
        yield Static(plain("Compiling both …"), id="said")
        yield KeyLine()

    def on_mount(self) -> None:
        left, right = (self.query_one(name, LinkedLines) for name in ("#left", "#right"))
        self.watch(left, "scroll_y", lambda y: right.scroll_to(y=y, animate=False, force=True), init=False)
        self.watch(right, "scroll_y", lambda y: left.scroll_to(y=y, animate=False, force=True), init=False)
        self._focus()
        self._say_where()
        self._compile()

    def _focus(self) -> None:
        self.query_one("#left" if self.has_class("-wide") else "#both").focus()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._focus)

    def _say_where(self) -> None:
        left, right = (_title(version) for version in self.versions)
        stage = f"  {self.stage_name}"
        self.query_one("#where", Static).update(
            Content.assemble(plain(f"{left} | {right}", "bold"), plain(stage, DIM_STYLE))
        )

    @work(group="compile", exclusive=True, exit_on_error=False)
    async def _compile(self) -> None:
        for version in self.versions:
            ask = desk(self).grader.ask("stages", self.slug, version.file, **version.fields)
            async for event in ask:
                if isinstance(event, Answer):
                    self.found.append(parse(event.data))
                elif isinstance(event, Failed):
                    self._say(event.message)
                    return
        for version, found in zip(self.versions, self.found, strict=True):
            if not found.kernels:
                where = f"line {found.error_line}: " if found.error_line else ""
                self._say(f"{_title(version)} compiles to nothing: {where}{found.error or 'no kernel is launched'}")
                return
        await self._show()

    def _kernels(self) -> tuple[Kernel, Kernel]:
        left, right = (found.kernels[min(self.number, len(found.kernels) - 1)] for found in self.found)
        return left, right

    async def _stages(self) -> list[StageText | None]:
        """The stage of both sides; the machine code has to be asked for, AMD's assembly stands for PTX and SASS."""
        found = []
        for side, kernel in enumerate(self._kernels()):
            name = self.stage_name
            if name not in kernel.stages:
                name = list(kernel.stages)[-1]
            if kernel.stages[name] is None and side not in self.machine_code:
                self.machine_code[side] = await self._machine_code(side)
            found.append(kernel.stages[name] or self.machine_code.get(side))
        return found

    async def _machine_code(self, side: int) -> StageText | None:
        version = self.versions[side]
        number = min(self.number, len(self.found[side].kernels) - 1)
        ask = desk(self).grader.ask("stages", self.slug, version.file, sass=number, **version.fields)
        async for event in ask:
            if isinstance(event, Answer) and event.data.get("sass"):
                return stage_text(event.data["sass"])
        return None

    async def _show(self) -> None:
        self._say_where()
        left, right = await self._stages()
        if left is None or right is None:
            self._say("There is no machine code to compare.")
            return
        self._say("Comparing …")
        titles = (_title(self.versions[0]), _title(self.versions[1]))
        self._fill(await asyncio.to_thread(pairs, titles, self._kernels(), (left, right)))

    def _fill(self, rows: Sequence[Pair]) -> None:
        sides: dict[str, list[tuple[Row, str]]] = {"#left": [], "#right": [], "#both": []}
        for pair in rows:
            in_left = "less" if pair.sort in ("changed", "less") else ""
            in_right = "more" if pair.sort in ("changed", "more") else ""
            sides["#left"].append((_row(pair.sort, pair.left), in_left if not pair.joined else ""))
            sides["#right"].append((_row(pair.sort, pair.right), in_right if not pair.joined else ""))
            sides["#both"] += _one_column(pair)
        changed = {n for n, pair in enumerate(rows) if pair.differs}
        for name, side in sides.items():
            view = self.query_one(name, LinkedLines)
            view.tones = {n: tone for n, (_, tone) in enumerate(side) if tone}
            marked = {n for n, (row, tone) in enumerate(side) if tone or " → " in str(row.text)} - {0}
            view.show_rows([row for row, _ in side], marked if name == "#both" else changed)
        both = zip(self.versions, self.found, strict=True)
        stopped = [f"{_title(version)}: {found.stopped}" for version, found in both if found.stopped]
        self.query_one("#stopped", Static).update(plain("\n".join(stopped), "$text-warning"))
        self.query_one("#stopped").display = bool(stopped)
        self._say(summary(rows))

    def _say(self, text: str) -> None:
        self.query_one("#said", Static).update(plain(text))

    # keys

    def _view(self) -> LinkedLines:
        name = "#both" if self.has_class("-narrow") else "#right" if self.query_one("#right").has_focus else "#left"
        return self.query_one(name, LinkedLines)

    @on(LinkedLines.Moved)
    def _moved(self, event: LinkedLines.Moved) -> None:
        event.stop()
        self._same_row(event.lines)

    def _same_row(self, leader: LinkedLines) -> None:
        for name in ("#left", "#right"):
            view = self.query_one(name, LinkedLines)
            if leader.id != "both" and view is not leader:
                view.put_cursor(leader.cursor)

    def action_other_side(self) -> None:
        if self.has_class("-wide"):
            self.query_one("#left" if self.query_one("#right").has_focus else "#right").focus()

    def action_change(self, direction: int) -> None:
        """To the next row where something differs and did not in the row before it."""
        view = self._view()
        starts = [row for row in sorted(view.marked) if row - 1 not in view.marked]
        ahead = [row for row in starts if (row - view.cursor) * direction > 0]
        if starts:
            to = (ahead[0] if direction > 0 else ahead[-1]) if ahead else starts[0 if direction > 0 else -1]
            view.put_cursor(to)
            self._same_row(view)

    def _names(self) -> list[str]:
        return list(self._kernels()[0].stages) if len(self.found) == 2 and self.found[0].kernels else []

    def action_stage(self, number: int) -> None:
        names = self._names()
        if number < len(names) and names[number] != self.stage_name:
            self.stage_name = names[number]
            self._restage()

    def action_step(self, step: int) -> None:
        names = self._names()
        if self.stage_name in names:
            self.action_stage(max(0, min(len(names) - 1, names.index(self.stage_name) + step)))

    @work(group="restage", exclusive=True, exit_on_error=False)
    async def _restage(self) -> None:
        await self._show()


def _row(sort: str, text: str) -> Row:
    return Row("", plain(text, "bold") if sort == "title" else text)


def _one_column(pair: Pair) -> list[tuple[Row, str]]:
    if pair.joined or pair.sort == "title":
        return [(_row(pair.sort, pair.joined or pair.left), "")]
    if pair.sort == "same":
        return [(Row("", f"  {pair.right}"), "")]
    less = [(Row("", f"- {pair.left}"), "less")] if pair.sort in ("changed", "less") else []
    more = [(Row("", f"+ {pair.right}"), "more")] if pair.sort in ("changed", "more") else []
    return [*less, *more]


def _title(version: Version) -> str:
    warps = f", num_warps={version.num_warps}" if version.num_warps else ""
    return f"{version.title} for {version.target}{warps}"
