"""The compiler's view of the learner's kernel: source and stage side by side, linked line by line."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Button, Static

from tutor.compiler.compilation import (
    TARGETS,
    Compilation,
    Kernel,
    StageText,
    Version,
    numbers_words,
    parse,
    stage_text,
)
from tutor.grading import Answer, Failed
from tutor.screens.choice import Choice, ChoiceScreen
from tutor.widgets.content import DIM_STYLE, Content, code_lines, plain
from tutor.widgets.desk import desk, key_of
from tutor.widgets.keys import KeyLine
from tutor.widgets.linked_lines import LinkedLines, Row
from tutor.widgets.prose import Reading
from tutor.widgets.stage_words import said_of_line, said_of_row

LOOK_SECONDS = 1.0
WIDE = 110  # columns from which both sides are shown
MOST_STAGES = 5
LAST = {"PTX": "AMDGCN", "SASS": "AMDGCN", "AMDGCN": "PTX"}  # the stage that takes its place on the other maker's GPUs


class CompilerScreen(Screen[None]):
    CSS_PATH = "compiler.tcss"
    BINDINGS = [
        Binding("tab,shift+tab", "other_side", "Side", key_display="Tab", priority=True, id="compiler.other-side"),
        *[Binding(str(n), f"stage({n - 1})", f"Stage {n}", show=False) for n in range(1, MOST_STAGES + 1)],
        Binding("right", "step(1)", "Stage", key_display="1-5", id="compiler.next-step"),
        Binding("left", "step(-1)", "Stage before", show=False, id="compiler.step-back"),
        Binding("n", "mark(1)", "Next mark", id="compiler.next-marked"),
        Binding("N", "mark(-1)", "Marked before", show=False, id="compiler.marked-before"),
        Binding("c", "compare", "Compare", id="compiler.compare"),
        Binding("t", "target", "Target", id="compiler.target"),
        Binding("s", "sizes", "Sizes", tooltip="As timed on a GPU, or as in the largest case", id="compiler.sizes"),
        Binding("k", "kernel", "Kernel", id="compiler.kernel"),
        Binding("f1,question_mark", "legend", "Help", key_display="?", id="compiler.help"),
        Binding("escape,q,v", "dismiss", "Back", key_display="Esc", id="compiler.back"),
    ]

    def __init__(self, slug: str, file: Path, in_drill: bool = False) -> None:
        """`in_drill`: the solution and older versions of the learner's are not to be seen."""
        super().__init__()
        self.slug, self.file, self.in_drill = slug, file, in_drill
        self.version = Version("yours", file, "sm_90")
        self.compilation: Compilation | None = None
        self.number = 0  # of the kernel
        self.stage_name = ""
        self.machine_code: dict[int, StageText | None] = {}
        self.stamp: tuple[int, int] | None = None
        self.waiting = ""  # what is under way

    def compose(self) -> ComposeResult:
        yield Static(Content(""), id="where")
        with Horizontal(id="stage-keys"):
            for number in range(1, MOST_STAGES + 1):
                yield Button(plain(""), id=f"stage-{number}", compact=True)
            yield Static(Content(""), id="side-name")
        yield Static(Content(""), id="numbers")
        yield Static(Content(""), id="stopped")
        with Horizontal(id="sides", classes="-stage"):
            yield LinkedLines(id="source")
            yield LinkedLines(id="stage-lines")
            with Reading(id="problem"):
                yield Static(Content(""), id="problem-text")
        yield Static(Content(""), id="said")
        yield KeyLine()

    def on_mount(self) -> None:
        progress = desk(self).progress
        chosen = progress.setting("compiler target")
        self.version = replace(self.version, target=chosen if chosen in TARGETS else "sm_90")
        self.stage_name = progress.setting("compiler stage") or "TTIR"
        self._set_side(self.lines if self.app.size.width < WIDE else self.source)
        self.set_interval(LOOK_SECONDS, self._look)
        self._start()

    @property
    def source(self) -> LinkedLines:
        return self.query_one("#source", LinkedLines)

    @property
    def lines(self) -> LinkedLines:
        return self.query_one("#stage-lines", LinkedLines)

    @property
    def kernel_shown(self) -> Kernel | None:
        kernels = self.compilation.kernels if self.compilation else ()
        return kernels[self.number] if self.number < len(kernels) else None

    @property
    def stage(self) -> StageText | None:
        """The stage that is shown; None while it has to be asked for."""
        kernel = self.kernel_shown
        return (kernel.stages.get(self.stage_name) or self.machine_code.get(self.number)) if kernel else None

    @property
    def target(self) -> str:
        return self.version.target

    # compiling

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self.file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _look(self) -> None:
        """A save in the editor compiles again."""
        if self._stamp() != self.stamp:
            self._start()

    def _start(self) -> None:
        self.stamp = self._stamp()
        ready = desk(self).grader.ready is not None
        first = "" if ready else " The grader starts first, which takes a few seconds."
        self.waiting = f"Compiling for {self.target} …{first}"
        if self.compilation is None:  # something to read meanwhile
            with contextlib.suppress(OSError, UnicodeDecodeError):
                self._show_source(self.file.read_text(encoding="utf-8"))
        self._say_where()
        self._say()
        self._compile()

    @work(group="compile", exclusive=True, exit_on_error=False)
    async def _compile(self) -> None:
        async for event in desk(self).grader.ask("stages", self.slug, self.file, **self.version.fields):
            if isinstance(event, Answer):
                self.waiting = ""
                self._compiled(parse(event.data))
            elif isinstance(event, Failed):
                self.waiting = ""
                self._problem(event.message)

    def _compiled(self, compilation: Compilation) -> None:
        before = self.compilation
        self.compilation, self.machine_code = compilation, {}
        self.number = min(self.number, max(0, len(compilation.kernels) - 1))
        if before is None or before.source != compilation.source:
            self._show_source(compilation.source)
        if not compilation.kernels:
            self._problem(compilation.error or "No kernel is launched here yet: there is nothing to compile.")
            return
        self._show_kernel()

    def _problem(self, text: str) -> None:
        line = self.compilation.error_line if self.compilation else None
        where = plain(f"Line {line}: ", "bold") if line else plain("")
        self.query_one("#problem-text", Static).update(Content.assemble(where, plain(text)))
        self.query_one("#sides").set_class(True, "-problem")
        if line:
            self.source.put_cursor(line - 1)
            self.source.link([line - 1])
        self._set_side(self.source)
        self._say_where()
        self._say()

    def _show_source(self, source: str) -> None:
        rows = [Row(str(n), text) for n, text in enumerate(code_lines(source), 1)]
        self.source.show_rows(rows, cursor=self.source.cursor)

    def _show_kernel(self) -> None:
        kernel = self.kernel_shown
        if kernel is None:
            return
        if self.stage_name not in kernel.stages:
            self.stage_name = LAST.get(self.stage_name, "TTIR")
        self.query_one("#sides").set_class(False, "-problem")
        self._say_where()
        if self.stage is None:
            self.waiting = "Disassembling …"
            self._say()
            self._disassemble(self.number)
        else:
            self._show_stage(self.stage)

    @work(group="disassemble", exclusive=True, exit_on_error=False)
    async def _disassemble(self, number: int) -> None:
        ask = desk(self).grader.ask("stages", self.slug, self.file, sass=number, **self.version.fields)
        async for event in ask:
            if isinstance(event, Answer):
                self.waiting = ""
                found = event.data.get("sass")
                self.machine_code[number] = stage_text(found) if found else None
                if found and self.stage_name == "SASS" and number == self.number and self.stage is not None:
                    self._show_stage(self.stage)
                elif not found:
                    self._problem("The disassembler gave nothing: nvdisasm belongs to Triton's wheel.")
            elif isinstance(event, Failed):
                self.waiting = ""
                self._problem(event.message)

    def _show_stage(self, stage: StageText) -> None:
        rows = [Row(",".join(map(str, lines[:1])), text) for text, lines in zip(stage.rows, stage.lines, strict=True)]
        self.lines.show_rows(rows, stage.marks)
        self.source.marked = frozenset(line - 1 for row in stage.marks for line in stage.lines[row])
        if self.source.cursor == 0 and stage.rows_of:  # just opened: at what matters first
            first = next((stage.lines[row][0] for row in sorted(stage.marks) if stage.lines[row]), min(stage.rows_of))
            self.source.put_cursor(first - 1)
        self.call_after_refresh(self._follow, self.source)  # the line stays, whatever the stage

    # what is said above and below

    def _say_where(self) -> None:
        kernel, compilation = self.kernel_shown, self.compilation
        head = plain(f"Compiler: {kernel.name if kernel else self.slug}", "bold")
        chip = f" for {self.target} ({TARGETS[self.target]})"
        rest = ""
        if compilation is not None and len(compilation.kernels) > 1 and kernel:
            more = f" of {compilation.total}" if compilation.total > len(compilation.kernels) else ""
            rest += f", kernel {self.number + 1}/{len(compilation.kernels)}{more}: {kernel.label}"
        if compilation is not None:
            rest += f", {compilation.called}"
        if head.cell_length + len(chip) + len(rest) > self.app.size.width - 2:  # the maker's name can be spared first
            chip = f" for {self.target}"
        self.query_one("#where", Static).update(Content.assemble(head, plain(chip + rest, DIM_STYLE)))
        numbers = plain("")
        if kernel is not None:
            note = plain(f"Would not load: {kernel.note}. ", "bold $text-error") if kernel.note else plain("")
            numbers = Content.assemble(note, plain(numbers_words(kernel)))
        self.query_one("#numbers", Static).update(numbers)
        self.query_one("#stopped", Static).update(plain(compilation.stopped if compilation else "", "$text-warning"))
        self.query_one("#stopped").display = bool(compilation and compilation.stopped)
        names = list(kernel.stages) if kernel else []
        for number in range(MOST_STAGES):
            button = self.query_one(f"#stage-{number + 1}", Button)
            button.display = number < len(names)
            if number < len(names):
                button.label = plain(f"{number + 1} {names[number]}")
                button.refresh(layout=True)  # a new label does not widen a button by itself
                button.set_class(names[number] == self.stage_name, "-shown")
        self._say_side()
        self.refresh_bindings()

    def _say_side(self) -> None:
        narrow = self.has_class("-narrow")
        words = "your file" if self.source.has_focus else f"the compiler's {self.stage_name}"
        self.query_one("#side-name", Static).update(plain(f"shown: {words}" if narrow else f"cursor in {words}"))

    def _say(self) -> None:
        if self.waiting:
            text = plain(self.waiting)
        elif self.stage is None or self.compilation is None:
            text = plain(f"{key_of(self, 'compiler.help', 'question_mark')} explains the stages and the signs.")
        elif self.source.has_focus:
            text = said_of_line(self.stage, self.source.cursor + 1)
        else:
            text = said_of_row(self.stage, self.lines.cursor)
        self.query_one("#said", Static).update(text)

    # the link

    @on(LinkedLines.Moved)
    def _moved(self, event: LinkedLines.Moved) -> None:
        event.stop()
        self._follow(event.lines)

    def _follow(self, leader: LinkedLines) -> None:
        """The other side shows what belongs to the leader's cursor."""
        stage = self.stage
        if stage is None:
            return
        if leader is self.source:
            rows = stage.rows_of.get(self.source.cursor + 1, ())
            self.source.link(())
            self.lines.link(rows)
            if rows and self.lines.cursor not in rows:
                self.lines.put_cursor(next((row for row in rows if row in stage.marks), rows[0]))
        else:
            lines = stage.lines[self.lines.cursor]
            self.lines.link(())
            self.source.link([line - 1 for line in lines])
            if lines and self.source.cursor + 1 not in lines:
                self.source.put_cursor(lines[0] - 1)
        self._say()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, LinkedLines):
            for name in ("source", "stage"):
                shown = (event.widget is self.source) == (name == "source")
                self.query_one("#sides").set_class(shown, f"-{name}")
            self._say_side()
            self._follow(event.widget)

    def _set_side(self, side: LinkedLines) -> None:
        """A side that is not displayed yet cannot take the focus."""
        self.query_one("#sides").set_class(side is self.source, "-source").set_class(side is self.lines, "-stage")
        side.focus()

    # keys

    def action_other_side(self) -> None:
        self._set_side(self.lines if self.source.has_focus and self.kernel_shown else self.source)

    def action_stage(self, number: int) -> None:
        kernel = self.kernel_shown
        names = list(kernel.stages) if kernel else []
        if number < len(names) and names[number] != self.stage_name:
            self.stage_name = names[number]
            desk(self).progress.set_setting("compiler stage", self.stage_name)
            self._show_kernel()
            if self.has_class("-narrow"):
                self._set_side(self.lines)

    def action_step(self, step: int) -> None:
        names = list(self.kernel_shown.stages) if self.kernel_shown else []
        if self.stage_name in names:
            self.action_stage(max(0, min(len(names) - 1, names.index(self.stage_name) + step)))

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.action_stage(int((event.button.id or "stage-1").removeprefix("stage-")) - 1)
        self._set_side(self.lines)

    def action_mark(self, direction: int) -> None:
        stage = self.stage
        if stage is None or not stage.marks:
            self.notify("No line of this stage is marked.", markup=False)
            return
        rows = sorted(stage.marks, reverse=direction < 0)
        ahead = [row for row in rows if (row - self.lines.cursor) * direction > 0]
        self.lines.put_cursor(ahead[0] if ahead else rows[0])
        self._set_side(self.lines)
        self._follow(self.lines)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        kernels = self.compilation.kernels if self.compilation else ()
        if action == "kernel":
            return len(kernels) > 1
        if action in ("mark", "compare", "step"):
            return bool(kernels)
        return True

    def action_target(self) -> None:
        choices = [Choice(f"{target}  {chip}", target) for target, chip in TARGETS.items()]
        screen = ChoiceScreen("Compile for which GPU? It need not be here.", choices, list(TARGETS).index(self.target))
        self.app.push_screen(screen, self._retarget)

    def _retarget(self, target: str | None) -> None:
        if target and target != self.target:
            self.version = replace(self.version, target=target)
            desk(self).progress.set_setting("compiler target", target)
            self._start()

    def action_sizes(self) -> None:
        self.version = replace(self.version, sizes="case" if self.version.sizes == "timed" else "timed")
        self._start()

    def action_kernel(self) -> None:
        kernels = self.compilation.kernels if self.compilation else ()
        choices = [Choice(f"{kernel.name}  {kernel.label}", number) for number, kernel in enumerate(kernels)]
        self.app.push_screen(ChoiceScreen("Which kernel?", choices, self.number), self._pick_kernel)

    def _pick_kernel(self, number: int | None) -> None:
        if number is not None:
            self.number = number
            self._show_kernel()

    def action_compare(self) -> None:
        from tutor.screens.compiler_compare import other_versions

        mine = self.version
        choices = other_versions(desk(self), self.slug, mine, in_drill=self.in_drill)
        self.app.push_screen(ChoiceScreen("Compare with what?", choices), lambda other: self._compare(mine, other))

    def _compare(self, mine: Version, other: Version | None) -> None:
        from tutor.screens.compiler_compare import CompareScreen

        if other is not None:
            self.app.push_screen(CompareScreen(self.slug, mine, other, self.number, self.stage_name))

    def action_legend(self) -> None:
        from tutor.screens.compiler_legend import LegendScreen

        self.app.push_screen(LegendScreen())
