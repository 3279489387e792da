"""Quiz and prediction: choose, then read why for every option."""

from __future__ import annotations

from collections.abc import Collection

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.visual import Visual
from textual.widgets import Button, OptionList, Static

from tutor.answers import Mark, mark_quiz
from tutor.course.model import Predict, Quiz
from tutor.widgets.content import (
    DIM_STYLE,
    OPEN,
    RIGHT,
    RIGHT_STYLE,
    WRONG,
    WRONG_STYLE,
    Content,
    inline,
    plain,
)
from tutor.widgets.desk import key_of
from tutor.widgets.hanging import Column, Hanging
from tutor.widgets.lists import AnswerList, TickList
from tutor.widgets.pane import Answered, ItemPane
from tutor.widgets.prose import CodeView, Prose, Reading

MISSED = "right, you did not tick it"


class QuizPane(ItemPane):
    BINDINGS = [
        Binding("r", "again", "Again", id="quiz.again"),
        *[Binding(str(number), f"pick({number})", f"Option {number}", show=False) for number in range(1, 9)],
    ]

    def __init__(self, item: Quiz | Predict, position: int = 0) -> None:
        super().__init__(item, position)
        self.quiz = item
        self.several = isinstance(item, Quiz) and item.several
        self.answered = False

    def compose(self) -> ComposeResult:
        with Reading(id="question"):
            yield Prose(self.quiz.question)
            if self.quiz.code:
                yield CodeView(self.quiz.code, focusable=False, classes="inset")
        prompts = [
            Hanging(plain(f"{number} ", DIM_STYLE), inline(option.text))
            for number, option in enumerate(self.quiz.options, 1)
        ]
        with Vertical(id="answering"):
            if isinstance(self.quiz, Predict):
                yield Static(plain(f"A recorded run has the answer: {self._record()}.", DIM_STYLE), classes="cue")
            if self.several:
                yield Static(plain(self._cue(), DIM_STYLE), classes="cue", id="ticking")
                yield TickList(prompts, classes="answer choices")
                yield Button(plain("Answer"), id="hand-in", compact=True)
            else:
                yield AnswerList(prompts, classes="answer choices")
        with Reading(id="feedback"):
            yield Static(Content(""))

    def _cue(self) -> str:
        return f"Tick every right one, then {key_of(self, 'ticks.hand-in', 'enter')}."

    def name_keys(self) -> None:
        for cue in self.query("#ticking").results(Static):
            cue.update(plain(self._cue(), DIM_STYLE))

    def on_mount(self) -> None:
        self.query_one("#feedback").display = False

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "again":
            return self.answered
        return True

    def action_pick(self, number: int) -> None:
        options = self.query_one(".choices", OptionList)
        if not self.answered and number <= options.option_count:
            options.highlighted = number - 1
            options.action_select()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if isinstance(event.option_list, AnswerList):
            self.submit({event.option_index})

    @on(TickList.HandedIn)
    @on(Button.Pressed, "#hand-in")
    def _handed_in(self) -> None:
        ticks = self.query_one(TickList).ticked
        if ticks:
            self.submit(set(ticks))
        else:
            tick, hand_in = key_of(self, "ticks.select", "space"), key_of(self, "ticks.hand-in", "enter")
            self.notify(f"Tick at least one option ({tick}), then {hand_in}.", markup=False)

    def submit(self, chosen: Collection[int]) -> None:
        mark = mark_quiz(self.quiz, chosen)
        self.answered = True
        self.post_message(Answered(self.item, mark.correct, mark.score, {**mark.detail, "chosen": sorted(chosen)}))
        feedback = self.query_one("#feedback", Reading)
        feedback.query_one(Static).update(self._feedback(mark, chosen))
        self.query_one("#answering").display = False
        feedback.display = True
        feedback.scroll_home(animate=False)
        feedback.focus()
        self.refresh_bindings()

    @property
    def finished(self) -> bool:
        return self.answered

    def _record(self) -> str:
        measured = self.quiz.measured  # type: ignore[union-attr]
        return f"{measured.device}, {measured.versions}, {measured.date}"

    def _feedback(self, mark: Mark, chosen: Collection[int]) -> Column:
        parts: list[Visual] = [
            plain(f"{RIGHT} Right.", RIGHT_STYLE) if mark.correct else plain(f"{WRONG} {mark.message}", WRONG_STYLE)
        ]
        if isinstance(self.quiz, Predict):
            parts.append(inline(f"Measured: **{self.quiz.measured.figure}**"))
            parts.append(plain(f"on {self._record()}", DIM_STYLE))
        elif mark.correct and self.quiz.remember:
            parts.append(inline(f"**Remember:** {self.quiz.remember}"))
        for index, option in enumerate(self.quiz.options):
            picked = index in chosen
            sign, style = (RIGHT, RIGHT_STYLE) if option.correct else (WRONG, WRONG_STYLE) if picked else (OPEN, "")
            unpicked = MISSED if self.several else "right"
            said = {(True, True): "right, your choice", (True, False): unpicked, (False, True): "your choice"}
            note = said.get((option.correct, picked), "")
            parts.append(plain(""))
            body = Content.assemble(inline(option.text, "bold"), plain(f"  ({note})" if note else "", DIM_STYLE))
            parts.append(Hanging(plain(f"{sign} {index + 1} ", style), body))
            parts.append(Hanging(plain("    "), inline(option.why)))
        if isinstance(self.quiz, Quiz) and not mark.correct and self.quiz.remember:
            parts += [plain(""), inline(f"**Remember:** {self.quiz.remember}")]
        return Column(parts)

    def action_again(self) -> None:
        self.answered = False
        self.query_one("#feedback").display = False
        self.query_one("#answering").display = True
        for ticks in self.query(TickList):
            ticks.clear_ticks()
        choices = self.query_one(".choices", OptionList)
        choices.highlighted = 0
        choices.focus()
        self.refresh_bindings()
