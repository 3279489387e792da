"""A pane whose answer is a file: opened in the learner's editor or the built-in one, and compared with others."""

from __future__ import annotations

import os
import shlex
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from textual import on
from textual.app import SuspendNotSupported
from textual.widgets import Static

from tutor.editing.differences import Version
from tutor.editing.edited_file import CannotEdit, EditedFile, Places
from tutor.widgets.content import DIM_STYLE, plain
from tutor.widgets.desk import desk, key_of
from tutor.widgets.editor import EditorView
from tutor.widgets.pane import ItemPane
from tutor.widgets.prose import CodeView
from tutor.widgets.result import ResultView

BUILT_IN = "built-in"  # as the setting: the built-in editor although $EDITOR is set


def named_editor(setting: str) -> list[str] | None:
    """The command of the learner's editor; None for the built-in one."""
    chosen = setting or os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not chosen or chosen == BUILT_IN:
        return None
    try:
        return shlex.split(chosen)
    except ValueError:  # an unclosed quote
        return [chosen]


class FilePane(ItemPane):
    slug: str
    editor: EditorView | None = None
    cursor: tuple[int, int] | None = None  # where editing goes on

    @property
    def file(self) -> Path:
        raise NotImplementedError

    @property
    def kept_as(self) -> str:
        """The name of its backups and of its draft."""
        return self.slug

    def follow_file(self) -> None:
        """The file may have changed."""
        raise NotImplementedError

    def action_view(self, name: str) -> None:
        raise NotImplementedError

    # --- editing

    async def action_edit(self) -> None:
        command = named_editor(desk(self).progress.setting("editor"))
        if command is None:
            await self.action_edit_here()
            return
        if self.editor is not None:
            self.editor.flush()
        failed = ""
        try:
            with self.app.suspend():
                try:  # an exception out of `suspend` would leave the screen dark
                    subprocess.run([*command, str(self.file)], check=False)
                except OSError as error:
                    failed = f"{shlex.join(command)} cannot be started ({error.strerror})"
        except SuspendNotSupported:
            failed = "No other program can take over this terminal"
        self.app.refresh(layout=True)
        self.follow_file()
        if failed:
            await self.action_edit_here()
            words = f"{failed}: this is the built-in editor."
            if self.editor is not None:
                self.editor.tell(words)
            else:
                self.notify(words, markup=False)

    async def action_edit_here(self) -> None:
        if self.editor is None:
            places = Places(
                desk(self).workspace.draft(self.kept_as),
                lambda content: desk(self).workspace.keep_backup(self.kept_as, content),
            )
            try:
                edited = EditedFile(self.file, places)
            except CannotEdit as error:
                self.query_one(ResultView).say(partial(self._cannot_edit_words, str(error)), "bad")
                self.action_view("result")
                return
            moves = self.app.animation_level != "none" and desk(self).progress.setting("motion") != "reduced"
            self.editor = EditorView(edited, blink=moves, cursor=self.cursor)
            await self.query_one("#exercise").mount(self.editor, before="#result")
            self.query_one("#exercise").add_class("-editing")
        self.action_view("code")

    def _cannot_edit_words(self, why: str) -> str:
        return f"{why} {key_of(self, 'exercise.reset', 'x')} (reset) puts the stub back."

    @on(EditorView.Left)
    async def _left_editor(self, event: EditorView.Left) -> None:
        event.stop()
        if self.editor is None:
            return
        self.cursor = self.editor.editor.cursor_location
        view, self.editor = self.editor, None
        self.query_one("#exercise").remove_class("-editing")
        self._say_state("")
        await view.remove()
        self.follow_file()
        self.action_view("code")

    @on(EditorView.State)
    def _editor_state(self, event: EditorView.State) -> None:
        event.stop()
        self._say_state(event.words if self.editor is not None else "")

    def _say_state(self, words: str) -> None:
        self.query_one("#watch-state", Static).update(plain(words, DIM_STYLE))

    def keep_typed(self, *, ask: bool = False) -> bool:
        """Puts what is typed here into the file. False when that does not work: then it was said why."""
        kept = self.editor is None or not self.editor.is_mounted or self.editor.flush(ask=ask)
        self.follow_file()
        return kept

    def tell_editor(self, verdict: dict[str, Any]) -> None:
        """Marks the line that the diagnosis names."""
        diagnosis = verdict.get("diagnosis") or {}
        if self.editor is not None:
            self.editor.diagnosed(diagnosis.get("line"), str(diagnosis.get("message") or ""))

    # --- comparing

    def versions(self) -> tuple[list[Version], str]:
        """What the file may be compared with, and what is missing there and why."""
        from grader import catalog

        files, found, note = catalog.find(self.slug), [], ""
        found.append(Version("stub", "the stub", files.stub.read_text(encoding="utf-8")))
        backup = desk(self).workspace.newest_backup(self.kept_as)
        if backup is not None:
            found.append(Version("backup", f"the backup {backup.name}", backup.read_text(encoding="utf-8")))
        state = desk(self).progress.state(self.item.id)
        if state.passed or state.gave_up:
            found.append(Version("solution", "the course's solution", files.solution.read_text(encoding="utf-8")))
        else:
            note = f"The solution: after a pass, or after giving up with {key_of(self, 'item.solution', 's')}."
        return found, note

    def action_diff(self) -> None:
        from tutor.screens.diff import DiffScreen

        self.keep_typed()
        try:
            versions, note = self.versions()
        except (OSError, UnicodeDecodeError) as error:
            self.notify(f"A version cannot be read: {error}", severity="error", markup=False)
            return
        if any(version.name == "solution" for version in versions):
            desk(self).progress.record_solution_seen(self.item.id)
        mine = self.query_one(CodeView).code
        self.app.push_screen(DiffScreen(self.file.name, mine, versions, note))
