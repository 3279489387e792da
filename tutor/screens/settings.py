"""Settings: theme, editor, motion. Each is kept as soon as it is changed."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Checkbox, Footer, Input, OptionList, Static

from tutor.widgets.content import DIM_STYLE, plain
from tutor.widgets.desk import desk
from tutor.widgets.lists import AnswerList
from tutor.widgets.prose import Reading


class SettingsScreen(ModalScreen[None]):
    BINDINGS = [Binding("escape", "dismiss", "Close")]

    def __init__(self, themes: list[str], current: str) -> None:
        super().__init__()
        self.themes, self.current = themes, current

    def compose(self) -> ComposeResult:
        progress = desk(self.app).progress
        with Vertical(classes="dialog -tall"):
            with Reading(can_focus=False):
                yield Static(plain("Editor (empty: $VISUAL, $EDITOR, nano, vi)", "bold"))
                yield Input(progress.setting("editor"), id="editor", compact=True, placeholder="code --wait")
                yield Checkbox(plain("Reduced motion"), progress.setting("motion") == "reduced",
                               id="motion", compact=True)  # fmt: skip
                yield Checkbox(plain("Watch: grade on every save"), progress.setting("watch") == "on",
                               id="watch", compact=True)  # fmt: skip
                yield Static(plain("Theme", "bold"))
                yield AnswerList([plain(name) for name in self.themes], id="themes")
                yield Static(plain("Changes are kept at once. Esc closes.", DIM_STYLE))
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        themes = self.query_one("#themes", AnswerList)
        if self.current in self.themes:
            themes.highlighted = self.themes.index(self.current)
        themes.focus()

    @on(OptionList.OptionSelected, "#themes")
    def _theme_picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.app.theme = self.themes[event.option_index]
        desk(self.app).progress.set_setting("theme", self.app.theme)

    @on(Input.Changed, "#editor")
    def _editor_typed(self, event: Input.Changed) -> None:
        desk(self.app).progress.set_setting("editor", event.value.strip())

    @on(Checkbox.Changed)
    def _ticked(self, event: Checkbox.Changed) -> None:
        if event.checkbox.id == "motion":
            desk(self.app).progress.set_setting("motion", "reduced" if event.value else "full")
            self.app.animation_level = "none" if event.value else "full"
        else:
            desk(self.app).progress.set_setting("watch", "on" if event.value else "off")
