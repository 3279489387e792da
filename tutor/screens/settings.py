"""Settings: theme, keys, editor, motion. Each is kept as soon as it is changed."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from tutor.themes import words_of
from tutor.widgets.content import DIM_STYLE, Content, plain
from tutor.widgets.desk import desk, key_of
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList
from tutor.widgets.prose import Reading

SWITCHES = (  # setting, value when on, value when off, words
    ("motion", "reduced", "full", "Reduced motion"),
    ("watch", "on", "off", "Watch: grade on every save"),
)


class SettingsScreen(ModalScreen[None]):
    BINDINGS = [Binding("escape", "dismiss", "Close", key_display="Esc", id="settings.dismiss")]

    def __init__(self, themes: list[str], current: str) -> None:
        super().__init__()
        self.themes, self.current = themes, current

    def compose(self) -> ComposeResult:
        progress = desk(self.app).progress
        with Vertical(classes="dialog -tall"):
            with Reading(can_focus=False):
                yield Static(plain("Editor (empty: $VISUAL, $EDITOR, or else the built-in one)", "bold"))
                yield Input(
                    progress.setting("editor"), id="editor", compact=True, placeholder="code --wait, or: built-in"
                )
                yield AnswerList(self._switch_rows(), id="switches")
                yield AnswerList([plain("Keys: see and change them …")], id="to-keys")
                yield Static(plain(self._theme_words(), "bold"), id="theme-in-use")
                yield AnswerList([plain(words_of(name)) for name in self.themes], id="themes")
                yield Static(self._foot(), id="closing")
        yield KeyLine()

    def _foot(self) -> Content:
        return plain(f"Changes are kept at once. {key_of(self, 'settings.dismiss', 'escape')} closes.", DIM_STYLE)

    def name_keys(self) -> None:
        self.query_one("#closing", Static).update(self._foot())

    def _theme_words(self) -> str:
        return "Theme (NO_COLOR is set: no colours)" if self.app.no_color else f"Theme: {words_of(self.current)}"

    @on(OptionList.OptionSelected, "#to-keys")
    def _to_keys(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.app.call_later(self.app.run_action, "keys")

    def on_mount(self) -> None:
        themes = self.query_one("#themes", AnswerList)
        if self.current in self.themes:
            themes.highlighted = self.themes.index(self.current)
        themes.focus(scroll_visible=False)
        self.call_after_refresh(self.query_one(Reading).scroll_home, animate=False)

    @on(OptionList.OptionSelected, "#themes")
    def _theme_picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.app.theme = self.current = self.themes[event.option_index]
        self.query_one("#theme-in-use", Static).update(plain(self._theme_words(), "bold"))
        desk(self.app).progress.set_setting("theme", self.app.theme)

    @on(Input.Changed, "#editor")
    def _editor_typed(self, event: Input.Changed) -> None:
        desk(self.app).progress.set_setting("editor", event.value.strip())

    def _switch_rows(self) -> list[Content]:
        progress = desk(self.app).progress
        return [plain(f"[{'x' if progress.setting(name) == on else ' '}] {words}") for name, on, _, words in SWITCHES]

    @on(OptionList.OptionSelected, "#switches")
    def _switched(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        progress = desk(self.app).progress
        name, on, off, _ = SWITCHES[event.option_index]
        progress.set_setting(name, off if progress.setting(name) == on else on)
        if name == "motion":
            self.app.animation_level = "none" if progress.setting(name) == on else "full"
        event.option_list.replace_option_prompt_at_index(event.option_index, self._switch_rows()[event.option_index])
