"""The built-in editor: a text that saves itself, notices when another program writes its file, and finds words."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input, Static, TextArea
from textual.widgets.text_area import Selection

from tutor.editing.edited_file import (
    CannotEdit,
    Conflict,
    EditedFile,
    Joined,
    Missing,
    Outcome,
    Reloaded,
    Same,
    Saved,
    Unsaved,
)
from tutor.editing.indenting import indent_of, matches
from tutor.widgets.code_editor import CodeEditor
from tutor.widgets.content import DIM_STYLE, Content, plain
from tutor.widgets.desk import key_of

SAVE_SECONDS = 1.0  # after the first key that is not saved: the most that a crash can cost
RETRY_SECONDS = 5.0
POLL_SECONDS = 0.3
NEWS_SECONDS = 20.0
TO_WRITE = re.compile(r"\s*(pass|\.\.\.|raise NotImplementedError.*)\s*(#.*)?")


class FindInput(Input):
    BINDINGS = [
        Binding("down", "find(1)", "Next match", show=False, id="editor.next-match"),
        Binding("up", "find(-1)", "Match before", show=False, id="editor.match-before"),
    ]

    def action_find(self, direction: int) -> None:
        self.query_ancestor(EditorView).find(direction)


class EditorView(Vertical):
    """Shows an `EditedFile`. What it has to say goes above the text, and in a word to its pane."""

    BINDINGS = [
        Binding(
            "escape",
            "leave",
            "Leave",
            key_display="Esc",
            priority=True,
            tooltip="Stop editing; all is saved",
            id="editor.leave",
        ),
        Binding("ctrl+f", "find", "Find", key_display="^f", id="editor.find"),
        Binding("ctrl+underscore,ctrl+slash", "comment", "Comment", key_display="^/", id="editor.comment"),
        Binding(
            "ctrl+g",
            "go_to_mark",
            "Marked line",
            key_display="^g",
            tooltip="To the line of the last diagnosis",
            id="editor.go-to-mark",
        ),
    ]
    DEFAULT_CSS = """
    EditorView { height: 1fr; }
    #editor-says { height: auto; max-height: 3; padding: 0 1; background: $panel; }
    #editor-says.-trouble { background: $error 20%; }
    #find-bar { height: 1; }
    #find-bar Static { width: auto; padding: 0 1; }
    #find-bar Input { width: 1fr; }
    """

    @dataclass
    class Left(Message):
        """The learner is done editing; everything is saved, or kept as a draft."""

    @dataclass
    class State(Message):
        """saved, unsaved, NOT SAVED."""

        words: str

    def __init__(self, edited: EditedFile, *, blink: bool, cursor: tuple[int, int] | None = None) -> None:
        super().__init__(id="editor-view")
        self.edited = edited
        self.editor = CodeEditor(edited.text, blink=blink, id="editor")
        self._cursor = cursor
        self._due = self._saving = self._asking = self._postponed = False
        self._trouble = self._diagnosis = self._news = ""
        self._news_goes: Timer | None = None
        self._said: tuple[str, str] | None = None
        self._hits: list[tuple[int, int]] = []

    def compose(self) -> ComposeResult:
        yield Static(Content(""), id="editor-says")
        yield self.editor
        with Horizontal(id="find-bar"):
            yield Static(plain("Find"))
            yield FindInput(id="find", compact=True)
            yield Static(plain(self._find_words(), DIM_STYLE), id="found")

    def _find_words(self) -> str:
        return f"Enter next, {key_of(self, 'editor.leave', 'escape')} closes"

    @property
    def _grade_key(self) -> str:
        return key_of(self, "exercise.grade-while-typing", "f6")

    def on_mount(self) -> None:
        self.query_one("#find-bar").display = False
        self.call_after_refresh(self._begin)  # moving scrolls, and needs the size
        if self.edited.from_draft:
            self.tell("What could not be saved last time is back.")
        self._say()
        self._save_soon(0 if self.unsaved else None)
        self.set_interval(POLL_SECONDS, self._poll)

    def on_unmount(self) -> None:
        self.edited.part(self.editor.source)

    def secure(self) -> None:
        """The app is about to end: the text goes into the file or, where that cannot be, into a draft."""
        if not self.flush(ask=False):
            self.edited.keep_draft(self.editor.source)

    def _begin(self) -> None:
        """Where editing ended; else at what the stub leaves open, selected; else past the task in the docstring."""
        if not self.is_attached:
            return
        lines = self.editor.document.lines
        to_write = next((row for row, line in enumerate(lines) if TO_WRITE.fullmatch(line)), None)
        imports = next((row for row, line in enumerate(lines) if line.startswith(("import ", "from "))), 0)
        self.editor.move_cursor(self._cursor or (to_write or imports, 0), center=True)
        if to_write is not None and self._cursor is None:
            self.editor.selection = Selection((to_write, indent_of(lines[to_write])), (to_write, len(lines[to_write])))

    # --- saving

    @property
    def unsaved(self) -> bool:
        return self.editor.source != self.edited.base

    @on(TextArea.Changed)
    def _typed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.editor.follow_mark()
        self._say()
        if self.unsaved:
            self._save_soon(SAVE_SECONDS)

    def _save_soon(self, seconds: float | None) -> None:
        """Later keys do not put it off: a second of typing at most is unsaved."""
        if seconds is not None and not self._due:
            self._due = True
            self.set_timer(max(seconds, 0.01), self._save)

    @work(group="save", exit_on_error=False)
    async def _save(self) -> None:
        """The disk may be slow: the writing itself is left to a thread."""
        self._due = False
        text = self.editor.source
        if self._asking or self._saving or self._postponed:
            self._save_soon(SAVE_SECONDS if self.unsaved and not self._postponed else None)
            await asyncio.to_thread(self.edited.keep_draft, text)
            return
        found = self.edited.look(text)
        if not isinstance(found, Same | Missing):
            self._took(found)
            self._save_soon(RETRY_SECONDS if isinstance(found, Unsaved) else SAVE_SECONDS if self.unsaved else None)
            return
        self._saving = True
        try:
            outcome = await asyncio.to_thread(self.edited.write, text)
        finally:
            self._saving = False
        self._took(outcome)
        if self.unsaved and not self._asking:
            self._save_soon(RETRY_SECONDS if isinstance(outcome, Unsaved) else SAVE_SECONDS)

    def flush(self, *, ask: bool = True) -> bool:
        """Saves at once. False when the text is not in the file: then it is said why, or asked (`ask`)."""
        for _ in range(3):  # what another program wrote meanwhile is joined first
            outcome = self.edited.save(self.editor.source)
            if isinstance(outcome, Conflict) and not ask:
                break
            self._postponed = False
            self._took(outcome)
            if isinstance(outcome, Saved | Unsaved | Conflict):
                break
        return not self.unsaved

    def _poll(self) -> None:
        if not (self._saving or self._asking or self._postponed):
            self._took(self.edited.look(self.editor.source))

    def _took(self, outcome: Outcome) -> None:
        name = self.edited.path.name
        match outcome:
            case Same() if not self.unsaved:
                self._trouble = ""
            case Saved():
                self._trouble = ""
            case Unsaved(reason, draft):
                kept = f"Your text is kept in {draft}" if draft else "Your text is only here: copy it elsewhere"
                self._trouble = f"NOT SAVED: {reason}. {kept}. It is tried again every few seconds."
            case Missing():
                self._trouble = (
                    f"{name} was taken away. Your text is here; the next change or {self._grade_key} writes it again."
                )
            case Reloaded(text):
                self._show(text)
                self.diagnosed(None, "")  # it was about another text
                self.tell(f"Another program saved {name}: its text is shown. ^z brings back what was here.")
            case Joined(text, backup):
                self._show(text)
                self.tell(f"Another program saved {name} too. Both changes are in it now; its version: {backup}")
                self._save_soon(0)
            case Conflict():
                self._ask(outcome)
        self._say()

    def _show(self, text: str) -> None:
        self._trouble = ""
        self.editor.show(text)

    # --- a conflict

    def _ask(self, conflict: Conflict) -> None:
        from tutor.screens.conflict import ConflictScreen

        self.edited.keep_draft(conflict.mine)
        if self._asking:
            return
        self._asking = True

        def decided(choice: str | None) -> None:
            self._asking = False
            if self.is_attached:
                self._decided(conflict, choice)

        self.app.push_screen(ConflictScreen(self.edited.path.name, conflict), decided)

    def _decided(self, conflict: Conflict, choice: str | None) -> None:
        try:
            if choice is None:
                again = f"{self._grade_key} or {key_of(self, 'editor.leave', 'escape')} asks again"
                raise CannotEdit(f"Another program changed the same lines: {again}.")
            text, backups = self.edited.decide(conflict, choice)
        except CannotEdit as error:
            self._postponed = True
            self._trouble = f"NOT SAVED: {error}"
            self._say()
            return
        self._postponed = False
        self._show(text)
        kept = " and ".join(str(backup) for backup in backups)
        self.tell(f"Kept as a backup: {kept}")
        self.flush()
        self.editor.focus()

    # --- words

    def tell(self, words: str) -> None:
        """For a while above the text, where it covers nothing; also among the notices."""
        self.app.note(words)  # type: ignore[attr-defined]
        self._news = words
        if self._news_goes is not None:
            self._news_goes.stop()
        self._news_goes = self.set_timer(NEWS_SECONDS, self._no_news)
        self._say()

    def _no_news(self) -> None:
        self._news = ""
        self._say()

    def diagnosed(self, line: int | None, message: str) -> None:
        """`line` (from 1) of the last verdict, and what it says; None when there is none."""
        self.editor.mark(line - 1 if line else None)
        self._diagnosis = message if self.editor.marked is not None else ""
        self._news = ""
        self._say()
        self.refresh_bindings()

    def _say(self) -> None:
        if not self.is_attached:
            return
        words = self._trouble or self._news
        if not words and self._diagnosis and self.editor.marked is not None:
            words = f"▶ Line {self.editor.marked + 1}: {self._diagnosis}"
        state = "NOT SAVED" if self._trouble else "unsaved" if self.unsaved else "saved"
        if self._said == (words, state):  # nothing goes to the terminal while nothing happens
            return
        self._said = (words, state)
        says = self.query_one("#editor-says", Static)
        says.update(plain(words))
        says.display = bool(words)
        says.set_class(bool(self._trouble), "-trouble")
        self.post_message(self.State(state))

    # --- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.editor.marked is not None if action == "go_to_mark" else True

    def action_leave(self) -> None:
        if self.query_one("#find-bar").display:
            self.query_one("#find-bar").display = False
            self.editor.focus()
        elif self.flush():
            self.post_message(self.Left())
        elif not self._asking and self.edited.keep_draft(self.editor.source) is not None:
            self.notify(
                f"{self._trouble} {key_of(self, 'exercise.edit-here', 'E')} brings it back.",
                severity="error",
                markup=False,
            )
            self.post_message(self.Left())

    def action_comment(self) -> None:
        self.editor.action_comment()

    def action_go_to_mark(self) -> None:
        if self.editor.marked is not None:
            self.editor.move_cursor((self.editor.marked, 0), center=True)
            self.editor.focus()

    def action_find(self) -> None:
        self.query_one("#find-bar").display = True
        field = self.query_one(FindInput)
        if self.editor.selected_text and "\n" not in self.editor.selected_text:
            field.value = self.editor.selected_text
        field.focus()

    @on(Input.Changed, "#find")
    def _wanted(self, event: Input.Changed) -> None:
        event.stop()
        self.find(0)

    @on(Input.Submitted, "#find")
    def _next(self, event: Input.Submitted) -> None:
        event.stop()
        self.find(1)

    def find(self, direction: int) -> None:
        """The first match from the selection on (0), the next (1) or the one before (-1), round the end."""
        wanted = self.query_one(FindInput).value
        hits = matches(self.editor.document.lines, wanted)
        here = min(self.editor.selection)
        later = [index for index, hit in enumerate(hits) if hit >= here]
        index = later[0] if later else 0
        if direction and hits:
            index = index + 1 if direction > 0 and hits[index] == here else index if direction > 0 else index - 1
        said = "not found" if wanted else self._find_words()
        if hits:
            row, column = hits[index % len(hits)]
            self.editor.selection = Selection((row, column), (row, column + len(wanted)))
            self.editor.scroll_cursor_visible(center=True)
            said = f"{index % len(hits) + 1} of {len(hits)}"
        self.query_one("#found", Static).update(plain(said, DIM_STYLE))
