"""The keys: what each does, and the learner's own in place of the usual ones."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tutor.keymap import Action, KeyFile, change, checked, clash, key_fault, read, shown
from tutor.screens.actions import actions, area_words
from tutor.widgets.content import DIM_STYLE, Content, plain, stack
from tutor.widgets.desk import desk, key_of
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList

TYPING = "While you type in a box, only F-keys and ctrl with a letter work."
KEY_COLUMN = 22


def keys_shown(keys: tuple[str, ...]) -> str:
    return ", ".join(map(shown, keys))


class PressScreen(ModalScreen[str | None]):
    """Takes the next key, whatever it is."""

    def __init__(self, action: Action) -> None:
        super().__init__()
        self.wanted = action

    def compose(self) -> ComposeResult:
        words = f"{area_words(self.wanted.area)}: {self.wanted.words}"
        with Vertical(classes="dialog"):
            yield Static(plain(words, "bold"))
            yield Static(plain("Press the new key. Esc leaves it as it is, Backspace gives the usual key back."))
            yield Static(plain(TYPING, DIM_STYLE))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        self.dismiss(None if event.key == "escape" else event.key)


class KeysScreen(ModalScreen[None]):
    BINDINGS = [
        Binding("x", "all_usual", "All as usual", id="keys.all-usual"),
        Binding("escape,q", "dismiss", "Close", key_display="Esc", id="keys.dismiss"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Action] = []  # one for each option that can be chosen

    @property
    def path(self) -> Path:
        return cast(Path, getattr(self.app, "keys_path"))  # noqa: B009 - the app's type would be a circular import

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -tall", id="keys"):
            yield Static(Content(""), id="keys-faults")
            yield AnswerList([], id="actions")
            yield Static(self._how(), id="keys-how")
        yield KeyLine()

    def _how(self) -> Content:
        select = key_of(self, "list.select", "enter")
        return plain(f"{select} changes a key; it is kept at once in {self.path}", DIM_STYLE)

    def name_keys(self) -> None:
        self.query_one("#keys-how", Static).update(self._how())

    def on_mount(self) -> None:
        self._show()
        self.query_one("#actions").focus()

    def _file(self) -> KeyFile:
        return checked(read(self.path), actions())

    def _show(self) -> None:
        file = self._file()
        listed = self.query_one("#actions", AnswerList)
        place = listed.highlighted
        options: list[Option] = []
        self.rows = []
        area = ""
        for action in actions():
            if action.area != area:
                area = action.area
                options.append(Option(plain(area_words(area), "bold"), disabled=True))
            options.append(Option(self._row(action, file), id=action.id))
            self.rows.append(action)
        listed.clear_options()
        listed.add_options(options)
        listed.highlighted = place or 1
        faults = [plain(fault, "$text-error") for fault in file.faults]
        self.query_one("#keys-faults", Static).update(stack(faults))
        self.query_one("#keys-faults").display = bool(faults)

    def _row(self, action: Action, file: KeyFile) -> Content:
        keys = file.keys_of(action)
        changed = f"  changed; usually {keys_shown(action.keys)}" if keys != action.keys else ""
        return Content.assemble(
            plain(f"  {keys_shown(keys):<{KEY_COLUMN}} ", "bold"), plain(action.words), plain(changed, "$text-warning")
        )

    @on(OptionList.OptionSelected, "#actions")
    def _picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        action = next(row for row in self.rows if row.id == event.option.id)
        self.app.push_screen(PressScreen(action), lambda key: self._pressed(action, key))

    def _pressed(self, action: Action, key: str | None) -> None:
        if key is None:
            return
        file = self._file()
        keys = () if key == "backspace" or (key,) == action.keys else (key,)
        wanted = keys or action.keys
        taken = clash(action, wanted, file, actions())
        if keys and (fault := key_fault(key)):
            self.notify(fault, severity="warning", markup=False)
        elif taken is not None:
            words = (
                f"{shown(taken[0])} is {area_words(taken[1].area)}: {taken[1].words} already. Change that one first."
            )
            self.notify(words, severity="warning", markup=False)
        else:
            self._keep(lambda: change(self.path, action.id, keys))

    def action_all_usual(self) -> None:
        from tutor.screens.confirm import ConfirmScreen

        question = f"All keys as usual? {self.path} is deleted."
        self.app.push_screen(ConfirmScreen(question, "Yes"), self._all_usual)

    def _all_usual(self, wanted: bool | None) -> None:
        if wanted:
            self._keep(lambda: self.path.unlink(missing_ok=True))

    def _keep(self, write: object) -> None:
        assert callable(write)
        if not desk(self.app).workspace.writable:
            self.notify("The workspace cannot be written, so keys are not kept.", severity="error", markup=False)
            return
        try:
            write()
        except OSError as error:
            self.notify(f"{self.path} cannot be written: {error}", severity="error", markup=False)
            return
        use_keys = getattr(self.app, "use_keys")  # noqa: B009
        use_keys(self._file())
        self._show()
