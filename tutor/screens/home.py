"""Home: the modules with progress, and always one next thing to do."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import Screen
from textual.widgets import OptionList, Static

from tutor.course.course import kind_of
from tutor.course.model import Item, Module
from tutor.review import Agenda, agenda, due_by_module
from tutor.screens.outline import OutlineScreen, number_of
from tutor.standing import ModuleStanding, Standing, standing
from tutor.widgets.content import DIM_STYLE, Content, bar, inline, plain, stack
from tutor.widgets.desk import desk, key_of
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList

FIRST_WORDS = """\
Lessons, quizzes, bugs to mend and kernels to write; the kernels are graded on this machine, with or without a GPU. \
{select} opens what is highlighted, {next} goes on from item to item, {back} comes back, {help} explains the keys. \
Every answer is kept at once, so leave whenever you like."""


class HomeScreen(Screen[None]):
    BINDINGS = [
        Binding("c", "carry_on", "Continue", id="home.carry-on"),
        Binding("r", "review", "Review", tooltip="What is due again, across modules", id="home.review"),
        Binding("d", "app.drill", "Drill", tooltip="A timed mock interview", id="home.drill"),
        Binding("t", "app.stats", "Stats", id="home.stats"),
        Binding("comma", "app.settings", "Settings", key_display=",", id="home.settings"),
        Binding("f1,question_mark", "app.help", "Help", key_display="?", id="home.help"),
        Binding("q", "app.quit", "Quit", id="home.quit"),
        *[Binding(str(number), f"module({number})", f"Module {number}", show=False) for number in range(1, 10)],
    ]

    def __init__(self) -> None:
        super().__init__()
        self.standing: Standing | None = None
        self.agenda: Agenda | None = None
        self.due: dict[str, int] = {}  # by module

    def _look(self) -> None:
        course, progress = desk(self).course, desk(self).progress
        self.standing = standing(course, progress)
        self.agenda = agenda(course, progress)
        self.due = due_by_module(course, progress) if self.agenda.due else {}

    def compose(self) -> ComposeResult:
        self._look()
        yield Static(self._title(), id="where")
        with Vertical(id="home"):
            yield AnswerList(self._rows(), id="modules", classes="rows")
            with VerticalScroll(id="about", can_focus=False):
                yield Static(Content(""), id="about-text")
        yield Static(Content(""), id="grader-state")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#modules").focus()
        self._describe()

    def on_screen_resume(self) -> None:
        self.refresh_standing()

    def refresh_standing(self) -> None:
        if not self.query("#modules"):
            return
        self._look()
        modules = self.query_one("#modules", AnswerList)
        for index, row in enumerate(self._rows()):
            modules.replace_option_prompt_at_index(index, row)
        self.query_one("#where", Static).update(self._title())
        self._describe()

    def say_grader(self, text: str) -> None:
        self.query_one("#grader-state", Static).update(plain(text, DIM_STYLE))

    def _title(self) -> Content:
        assert self.standing is not None
        done, total = self.standing.done, self.standing.total
        return Content.assemble(plain("triton-prep", "bold"), plain(f"  {done} of {total} items done", DIM_STYLE))

    def _rows(self) -> list[Content]:
        assert self.standing is not None
        rows = [self._review_row() if self._review_first else self._next_row(self.standing.next_item)]
        rows += [self._module_row(part) for part in self.standing.modules]
        return rows

    @property
    def _review_first(self) -> bool:
        """What is due comes before what is new: `tutor.review.next_best`."""
        return self.agenda is not None and bool(self.agenda.due)

    def _review_row(self) -> Content:
        assert self.agenda is not None
        return Content.assemble(plain("▶ Review: ", "bold $text-success"), plain(self.agenda.words))

    def _next_row(self, item: Item | None) -> Content:
        if item is None:
            return Content.assemble(plain("▶ All done: ", "bold $text-success"), plain("a timed mock interview"))
        word = "Continue" if self.standing is not None and desk(self).progress.resume() else "Start here"
        number = number_of(desk(self).course.module_of(item.id))
        return Content.assemble(
            plain(f"▶ {word}: ", "bold $text-success"),
            inline(item.title),
            plain(f"  ({number}, {kind_of(item)})", DIM_STYLE),
        )

    def _module_row(self, part: ModuleStanding) -> Content:
        module = part.module
        share = plain(f" {part.done:>2}/{part.total:<2} ")
        count = self.due.get(module.id)
        due = plain(f"due {count:<2} " if count else " " * 7 if self.due else "", "$text-warning")
        return Content.assemble(
            plain(f"{number_of(module)} ", "bold"), bar(part.done, part.total), share, due, inline(module.title)
        )

    def name_keys(self) -> None:
        if self.query("#about-text"):
            self._describe()

    @on(OptionList.OptionHighlighted, "#modules")
    def _describe(self) -> None:
        index = self.query_one("#modules", AnswerList).highlighted
        if index is None or self.standing is None:
            return
        if index == 0 and self._review_first:
            text = self._about_review()
        elif index:
            text = self._about(self.standing.modules[index - 1].module)
        else:
            text = self._about_next(self.standing.next_item)
        self.query_one("#about-text", Static).update(text)

    def _about_review(self) -> Content:
        assert self.agenda is not None
        review, go_on = key_of(self, "home.review", "r"), key_of(self, "home.carry-on", "c")
        select = key_of(self, "list.select", "enter")
        why = (
            f"Answered before, and by now about to be forgotten. {review} or {select} begins; leave whenever you like."
        )
        parts = [plain(f"Due today: {self.agenda.words}", "bold"), plain(""), plain(why)]
        item = self.standing.next_item if self.standing else None
        if item is not None:
            course = plain(f"{go_on} goes on with the course: ", DIM_STYLE)
            parts += [plain(""), Content.assemble(course, inline(item.title))]
        return stack(parts)

    def _about_next(self, item: Item | None) -> Content:
        if item is None:
            return plain("Every item is done. A drill mixes them against the clock; any module can be gone over again.")
        module = desk(self).course.module_of(item.id)
        where = plain(
            f"{kind_of(item).capitalize()} in module {number_of(module)}, about {item.minutes} min: ", DIM_STYLE
        )
        parts = [Content.assemble(where, inline(item.title, "bold"))]
        parts += [plain(""), inline(module.blurb) if desk(self).progress.resume() else self._first_words()]
        return stack(parts)

    def _first_words(self) -> Content:
        keys = {
            "select": key_of(self, "list.select", "enter"),
            "next": key_of(self, "item.next", "n"),
            "back": key_of(self, "item.back", "escape"),
            "help": key_of(self, "home.help", "question_mark"),
        }
        return plain(FIRST_WORDS.format(**keys))

    def _about(self, module: Module) -> Content:
        kinds: dict[str, int] = {}
        for item in module.items:
            kinds[kind_of(item)] = kinds.get(kind_of(item), 0) + 1
        minutes = sum(item.minutes for item in module.items)
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        return stack(
            [
                inline(module.title, "bold"),
                plain(""),
                inline(module.blurb),
                plain(""),
                plain(f"{counts}. About {minutes} minutes.", DIM_STYLE),
            ]
        )

    @on(OptionList.OptionSelected, "#modules")
    def _picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_index == 0 and self._review_first:
            self.action_review()
        elif event.option_index == 0:
            self.action_carry_on()
        else:
            self.action_module(event.option_index)

    def action_module(self, number: int) -> None:
        modules = desk(self).course.modules
        if number <= len(modules):
            self.app.push_screen(OutlineScreen(modules[number - 1]))

    def action_review(self) -> None:
        from tutor.screens.review import ReviewScreen

        day = agenda(desk(self).course, desk(self).progress)
        if day.due:
            self.app.push_screen(ReviewScreen(day))
        elif day.next_due:
            self.notify(f"Nothing is due. The next review is {day.next_words}.", markup=False)
        else:
            self.notify("Nothing is due yet. What you answer comes back here after a day or more.", markup=False)

    def action_carry_on(self) -> None:
        from tutor.screens.item import ItemScreen

        item = self.standing.next_item if self.standing else None
        if item is not None:
            self.app.push_screen(ItemScreen(item))
        else:
            self.app.call_later(self.app.run_action, "drill")
