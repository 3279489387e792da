"""Before a drill: which plan, which seed, how strict; or back to the one that runs."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static

from tutor.course.loader import CourseErrors
from tutor.drill.draw import CannotDraw
from tutor.drill.opening import HOW_DRAWN, Wanted, modules_for
from tutor.drill.plan import Plan, load_plans
from tutor.drill.state import State
from tutor.drill.store import unfinished
from tutor.widgets.content import DIM_STYLE, Content, inline, plain, stack
from tutor.widgets.desk import desk, key_of
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList


class DrillSetupScreen(Screen[Wanted | str | None]):
    """Gives what is wanted, the id of the drill to go on with, or None."""

    CSS_PATH = "drill.tcss"
    BINDINGS = [
        Binding("s", "strict", "Strict on/off", id="drill-setup.strict"),
        Binding("b", "begun", "Begun on/off", id="drill-setup.begun"),
        Binding("escape", "dismiss", "Back", key_display="Esc", id="drill-setup.dismiss"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.plans: tuple[Plan, ...] = ()
        self.left: State | None = None  # a drill that is not finished
        self.problem = ""
        self.strict: bool | None = None  # None: as the plan says
        self.begun_only = False

    def compose(self) -> ComposeResult:
        try:
            self.plans = load_plans()
        except CourseErrors as error:
            self.problem = str(error)
        self.left = unfinished(desk(self.app).workspace.folder)
        yield Static(plain("A timed mock interview", "bold"), id="where")
        with Vertical(id="drill-setup"):
            yield AnswerList(self._rows(), id="plans")
            yield Static(Content(""), id="plan-about")
            with Horizontal(classes="field"):
                yield Static(plain("Seed"))
                yield Input(
                    id="seed", compact=True, type="integer", placeholder="empty: drawn for you, by your weak topics"
                )
            with Horizontal(classes="field"):
                yield Static(plain("Module"))
                yield Input(id="module", compact=True, placeholder="empty: all, or m03 for that one only")
            yield Static(Content(""), id="drill-switches")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#plans").focus()
        self._describe()

    def _rows(self) -> list[Content]:
        rows = []
        if self.left is not None:
            title = self.left.drill.plan.title
            rows.append(plain(f"▶ Go on with {title}, begun {self.left.started[11:16]}", "bold $text-success"))
        for plan in self.plans:
            minutes = plain(f"  {plan.minutes} min", DIM_STYLE)
            rows.append(Content.assemble(inline(plan.title, "bold"), minutes))
        return rows

    def _picked(self) -> Plan | None:
        """None: the drill that is not finished."""
        index = (self.query_one("#plans", AnswerList).highlighted or 0) - (self.left is not None)
        return self.plans[index] if 0 <= index < len(self.plans) else None

    @on(OptionList.OptionHighlighted, "#plans")
    def _describe(self) -> None:
        plan = self._picked()
        about = self.query_one("#plan-about", Static)
        switches = self.query_one("#drill-switches", Static)
        if self.problem:
            about.update(plain(self.problem, "$text-error"))
            about.display = True  # on a low terminal too
            switches.update(Content(""))
            return
        if plan is None:
            runs = self.left is not None and self.left.stage == "running" and not self.left.paused
            about.update(plain("Its clock has gone on." if runs else "", DIM_STYLE))
            switches.update(Content(""))
            return
        phases = ", ".join(f"{phase.name} {phase.minutes}" for phase in plan.phases)
        shared = bool(self.query_one("#seed", Input).value)
        how = plain(HOW_DRAWN[shared], DIM_STYLE)
        about.update(stack([inline(plan.about), plain(f"Minutes: {phases}.", DIM_STYLE), how]))
        strict = plan.strict if self.strict is None else self.strict
        words = "no pause, no hints, answers only at the end" if strict else "pause and hints allowed"
        key = key_of(self, "drill-setup.strict", "s")
        rules = plain(f"Strict   [{'x' if strict else ' '}] {words} ({key} switches)")
        switches.update(stack([rules, self._whence(plan)]))

    def name_keys(self) -> None:
        self._describe()

    def _whence(self, plan: Plan) -> Content:
        """From which modules."""
        key = key_of(self, "drill-setup.begun", "b")
        if self.query_one("#seed", Input).value:
            return plain("Begun    [ ] a seed draws from any module, for everyone the same")
        if module := self.query_one("#module", Input).value.strip():
            return plain(f"Begun    [ ] only from {module}")
        if not self.begun_only:
            return plain(f"Begun    [ ] from any module, begun or not ({key} switches)")
        here = desk(self.app)
        try:
            modules = modules_for(Wanted(plan, begun_only=True), here.course, here.progress)
        except CannotDraw as error:
            return plain(f"Begun    [x] {error} ({key} switches)", "$text-warning")
        return plain(f"Begun    [x] only from {', '.join(modules)} ({key} switches)")

    @on(Input.Changed)
    def _typed(self) -> None:
        self._describe()

    def action_strict(self) -> None:
        plan = self._picked()
        if plan is not None:
            self.strict = not (plan.strict if self.strict is None else self.strict)
            self._describe()

    def action_begun(self) -> None:
        if self._picked() is not None:
            self.begun_only = not self.begun_only
            self._describe()

    @on(OptionList.OptionSelected, "#plans")
    @on(Input.Submitted)
    def _begin(self) -> None:
        plan = self._picked()
        if plan is None:
            if self.left is not None:
                self.dismiss(self.left.id)
            return
        seed = self.query_one("#seed", Input).value.strip()
        if seed.startswith("-") or (seed and not seed.isdecimal()):
            self.notify("A seed is a number from 0 up.", severity="warning", markup=False)
            return
        module = self.query_one("#module", Input).value.strip()
        if module and module not in [known.id for known in desk(self.app).course.modules]:
            self.notify(f"There is no module {module!r}.", severity="warning", markup=False)
            return
        self.dismiss(Wanted(plan, int(seed) if seed else None, module, self.strict, self.begun_only))
