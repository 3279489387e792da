"""Matching: pick on the left, then what belongs to it on the right."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.visual import Visual
from textual.widgets import Button, OptionList, Static

from tutor.answers import mark_match, shuffled_right
from tutor.course.model import Match
from tutor.widgets.content import (
    DIM_STYLE,
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
from tutor.widgets.lists import AnswerList
from tutor.widgets.pane import Answered, ItemPane
from tutor.widgets.prose import Prose, Reading

LETTERS = "abcdefgh"


class MatchPane(ItemPane):
    BINDINGS = [
        Binding("u", "undo", "Undo", id="match.undo"),
        Binding("c", "check", "Check", id="match.check"),
        Binding("r", "again", "Again", id="match.again"),
    ]

    def __init__(self, item: Match, position: int = 0) -> None:
        super().__init__(item, position)
        self.match = item
        self.order = shuffled_right(item)
        self.paired: dict[int, int] = {}  # left index -> right index, both into match.pairs; in the order made
        self.left = 0
        self.answered = False

    def compose(self) -> ComposeResult:
        with Reading(id="question"):
            yield Prose(self.match.prompt)
        with Vertical(id="answering"):
            yield Static(Content(""), classes="cue")
            with Horizontal(id="match-lists"):
                yield AnswerList(self._lefts(), id="left", classes="answer")
                yield AnswerList(self._rights(), id="right")
            yield Button(plain("Check"), id="check", compact=True)
        with Reading(id="feedback"):
            yield Static(Content(""))

    def on_mount(self) -> None:
        self.query_one("#feedback").display = False
        self._refresh_lists()

    def _lefts(self) -> list[Visual]:
        rows: list[Visual] = []
        for index, pair in enumerate(self.match.pairs):
            right = self.paired.get(index)
            letter = LETTERS[self.order.index(right)] if right is not None else " "
            rows.append(Hanging(plain(f"{index + 1} {letter:<2}", "bold"), inline(pair.left)))
        return rows

    def _rights(self) -> list[Visual]:
        used = set(self.paired.values())
        return [
            Hanging(
                plain(f"{LETTERS[place]} ", "bold"),
                inline(self.match.pairs[index].right, DIM_STYLE if index in used else ""),
            )
            for place, index in enumerate(self.order)
        ]

    def _refresh_lists(self) -> None:
        for name, prompts in (("#left", self._lefts()), ("#right", self._rights())):
            options = self.query_one(name, AnswerList)
            for index, prompt in enumerate(prompts):
                options.replace_option_prompt_at_index(index, prompt)
        complete = len(self.paired) == len(self.match.pairs)
        cue = (
            f"All paired: Enter checks, {key_of(self, 'match.undo', 'u')} takes the last pair back."
            if complete
            else "Pick on the left, then on the right."
        )
        self.query_one(".cue", Static).update(plain(cue, DIM_STYLE))
        self.query_one("#check", Button).disabled = not complete
        self.refresh_bindings()

    @on(OptionList.OptionSelected, "#left")
    def _left_picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.left = event.option_index
        rights = self.query_one("#right", AnswerList)
        used = set(self.paired.values())
        rights.highlighted = next((place for place, index in enumerate(self.order) if index not in used), 0)
        rights.focus()
        cue = f"What belongs to {self.left + 1}? Tab goes back to the left."
        self.query_one(".cue", Static).update(plain(cue, DIM_STYLE))

    @on(OptionList.OptionHighlighted, "#left")
    def _left_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.left = event.option_index

    @on(OptionList.OptionSelected, "#right")
    def _right_picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        right = self.order[event.option_index]
        for left in [left for left, taken in self.paired.items() if taken == right]:
            del self.paired[left]
        self.paired.pop(self.left, None)
        self.paired[self.left] = right
        self._refresh_lists()
        open_lefts = [index for index in range(len(self.match.pairs)) if index not in self.paired]
        if not open_lefts:
            self.query_one("#check").focus()
            return
        lefts = self.query_one("#left", AnswerList)
        lefts.highlighted = self.left = next((index for index in open_lefts if index > self.left), open_lefts[0])
        lefts.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "again":
            return self.answered
        if action == "undo":
            return bool(self.paired) and not self.answered
        if action == "check":
            return len(self.paired) == len(self.match.pairs) and not self.answered
        return True

    def action_undo(self) -> None:
        left, _ = self.paired.popitem()
        self._refresh_lists()
        lefts = self.query_one("#left", AnswerList)
        lefts.highlighted = left
        lefts.focus()

    @on(Button.Pressed, "#check")
    def action_check(self) -> None:
        mark = mark_match(self.match, self.paired)
        self.answered = True
        detail = {"pairs": {str(left): right for left, right in self.paired.items()}}
        self.post_message(Answered(self.item, mark.correct, mark.score, {**mark.detail, **detail}))
        self.query_one("#answering").display = False
        feedback = self.query_one("#feedback", Reading)
        feedback.query_one(Static).update(self._feedback(mark.correct))
        feedback.display = True
        feedback.scroll_home(animate=False)
        feedback.focus()
        self.refresh_bindings()

    @property
    def finished(self) -> bool:
        return self.answered

    def _feedback(self, correct: bool) -> Column:
        pairs = self.match.pairs
        hits = sum(pairs[right].right == pairs[left].right for left, right in self.paired.items())
        verdict = f"{RIGHT} All right." if correct else f"{WRONG} {hits} of {len(pairs)} right."
        parts: list[Visual] = [plain(verdict, RIGHT_STYLE if correct else WRONG_STYLE)]
        for left, pair in enumerate(pairs):
            chosen = pairs[self.paired[left]]
            good = chosen.right == pair.right
            sign = plain(f"{RIGHT} " if good else f"{WRONG} ", RIGHT_STYLE if good else WRONG_STYLE)
            name = Content.assemble(inline(pair.left, "bold"), plain(" – "))
            if good:
                parts += [plain(""), Hanging(sign, Content.assemble(name, inline(pair.right)))]
            else:
                wrong = Content.assemble(name, plain("not: ", DIM_STYLE), inline(chosen.right, DIM_STYLE))
                mend = Content.assemble(plain("but: ", DIM_STYLE), inline(pair.right))
                parts += [plain(""), Hanging(sign, wrong), Hanging(plain("  "), mend)]
            if pair.why:
                parts.append(Hanging(plain("  "), inline(pair.why)))
        return Column(parts)

    def action_again(self) -> None:
        self.paired.clear()
        self.answered = False
        self.query_one("#feedback").display = False
        self.query_one("#answering").display = True
        self._refresh_lists()
        lefts = self.query_one("#left", AnswerList)
        lefts.highlighted = 0
        lefts.focus()
