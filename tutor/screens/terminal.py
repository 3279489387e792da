"""The app itself: its modes, the commands that every screen has, and the life of the grader process."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import SystemCommand
from textual.binding import Binding
from textual.command import Provider
from textual.screen import Screen

from tutor.screens.base_app import BaseApp
from tutor.widgets.desk import Desk

if TYPE_CHECKING:
    from tutor.drill.opening import Wanted

PARTING_SECONDS = 1.0


def _home() -> Screen[None]:
    from tutor.screens.home import HomeScreen

    return HomeScreen()


def _key_commands() -> type[Provider]:
    from tutor.screens.palette import KeyCommands

    return KeyCommands


def _item_commands() -> type[Provider]:
    from tutor.screens.palette import ItemCommands

    return ItemCommands


class TritonPrepApp(BaseApp):
    TITLE = "triton-prep"
    CSS_PATH = "app.tcss"
    MODES = {"home": _home}
    DEFAULT_MODE = "home"
    COMMANDS = {_key_commands, _item_commands}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (18, "-tall-enough")]
    BINDINGS = [
        Binding("f1,question_mark", "help", "Help", show=False, id="app.help"),
        Binding("G", "glossary", "Glossary", show=False, id="app.glossary"),
        Binding("ctrl+p", "command_palette", "More", key_display="^p", priority=True, id="app.command-palette"),
        Binding("ctrl+q", "quit", "Quit", show=False, priority=True, id="app.quit"),
    ]

    def __init__(self, desk: Desk, notices: Iterable[str] = (), *, warm_grader: bool = True) -> None:
        super().__init__()
        self.desk = desk
        self.notices = tuple(notices)
        self.warm_grader = warm_grader
        self.offers_tour = False  # the very first start only
        self.drill_wanted: Wanted | str | None = None  # what to open with: a drill, "resume", or "choose"

    def on_mount(self) -> None:
        if not self.is_headless:
            for number in (signal.SIGHUP, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, self._told_to_end, number)
        self.desk.progress.on_notice = self._progress_notice
        chosen = self.desk.progress.setting("theme")
        if chosen in self.available_themes and not self.no_color:
            self.theme = chosen
        self.read_keys()
        self.call_after_refresh(self._settled)

    @property
    def keys_path(self) -> Path:
        return self.desk.workspace.folder / ".triton-prep" / "keys.yaml"

    def _told_to_end(self, number: signal.Signals) -> None:
        """A closed terminal, a shutdown: what is typed is kept first, as the rest may fail without a terminal."""
        for screen in self.screen_stack:
            for editor in screen.query("EditorView"):
                editor.secure()  # type: ignore[attr-defined]
        last = threading.Timer(PARTING_SECONDS * 3, self._end_at_once, (number,))
        last.daemon = True
        last.start()
        self.exit(128 + number)

    def _end_at_once(self, number: signal.Signals) -> None:
        self.desk.grader.kill()
        os._exit(128 + number)

    def _settled(self) -> None:
        """After the first paint: what may be slow or chatty."""
        gc.enable()
        gc.freeze()
        for notice in self.notices:
            self.notify(notice, severity="warning", timeout=20, markup=False)
        self._populate()
        self.check_keys()
        if self.warm_grader:
            self._warm_up()
        if self.drill_wanted is None and self.offers_tour:
            self.run_worker(self._offer_tour(), group="tour", exclusive=True)
        elif self.drill_wanted is None:
            self._offer_drill()
        elif self.drill_wanted == "choose":
            self.action_drill()
        else:
            self._start_drill(self.drill_wanted)

    def _progress_notice(self, text: str) -> None:
        self.notify(text, severity="error", timeout=30, markup=False)

    @work(thread=True, group="populate", exit_on_error=False)
    def _populate(self) -> None:
        """Stubs that are missing or came with an update; an edited file is never touched."""
        if not self.desk.workspace.writable:
            return
        try:
            self.desk.workspace.populate()
        except OSError as error:
            self.notify(f"Not every stub could be written: {error}", severity="warning", markup=False)

    @work(group="warm-up", exit_on_error=False)
    async def _warm_up(self) -> None:
        from tutor.grading import GraderLost

        self._say_grader("The grader is starting …")
        try:
            ready = await self.desk.grader.start()
        except GraderLost as error:
            self._say_grader(f"No grader: {str(error).splitlines()[0]}")
            return
        if ready.backend == "none":
            self._say_grader(f"Lessons, quizzes and drills work; grading does not: {ready.reason}")
        elif ready.backend == "cuda":
            self._say_grader(f"Grading on {ready.device}.")
        else:
            self._say_grader("Grading on the CPU interpreter, with an offline compile; no GPU found.")

    def _say_grader(self, text: str) -> None:
        from tutor.screens.home import HomeScreen

        for screen in self.screen_stack:
            if isinstance(screen, HomeScreen):
                screen.say_grader(text)

    # commands that every screen has

    def get_system_commands(self, screen: Screen) -> Iterable[SystemCommand]:
        return ()  # the palette lists the keys of the screen and the items of the course instead

    def action_command_palette(self) -> None:
        from textual.command import CommandPalette

        from tutor.screens.palette import Palette

        if not CommandPalette.is_open(self):  # type: ignore[arg-type]
            self.push_screen(Palette(placeholder="A command, or an item by its name …", id="--command-palette"))

    def copy(self, text: str, what: str) -> None:
        from tutor.screens.copying import copy

        copy(self, self.keys_path.parent, text, what)

    def action_save_screen(self) -> None:
        from tutor.screens.copying import save_screen

        save_screen(self, self.keys_path.parent)

    def action_help(self) -> None:
        from tutor.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def action_notices(self) -> None:
        from tutor.screens.notices import NoticesScreen

        if not isinstance(self.screen, NoticesScreen):
            self.push_screen(NoticesScreen(self.said))

    def action_glossary(self) -> None:
        from tutor.course.glossary import load_glossary
        from tutor.course.loader import CourseErrors
        from tutor.screens.glossary import GlossaryScreen
        from tutor.widgets.pane import ItemPane

        if self._closed_book():
            return
        try:
            terms = load_glossary()
        except CourseErrors as errors:
            self.notify(f"The glossary is not in order: {errors.errors[0]}", severity="error", markup=False)
            return
        page = " ".join(pane.page_text() for pane in self.screen.query(ItemPane))
        self.push_screen(GlossaryScreen(terms, page), self._look_up_term)

    def _look_up_term(self, item_id: str | None) -> None:
        if item_id is not None:
            self.action_look_up(item_id)

    def action_settings(self) -> None:
        from tutor.screens.settings import SettingsScreen
        from tutor.themes import choices

        self.push_screen(SettingsScreen(choices(list(self.available_themes)), self.theme))

    async def _offer_tour(self) -> None:
        from tutor.screens.tour import SETTING, show_tour

        self.desk.progress.set_setting(SETTING, "offered")
        await show_tour(self, offer=True)

    def action_tour(self) -> None:
        from tutor.screens.tour import show_tour

        if not self._closed_book():
            self.run_worker(show_tour(self, offer=False), group="tour", exclusive=True)

    def action_keys(self) -> None:
        from tutor.screens.keys import KeysScreen

        self.push_screen(KeysScreen())

    def action_drill(self) -> None:
        from tutor.screens.drill_setup import DrillSetupScreen

        self.push_screen(DrillSetupScreen(), self._start_drill)

    def _start_drill(self, wanted: Wanted | str | None) -> None:
        from tutor.screens.drill_start import start_drill

        start_drill(self, wanted)

    def _offer_drill(self) -> None:
        """After a crash or a closed terminal: the clock has gone on, so it is said at once."""
        folder = self.desk.workspace.folder / ".triton-prep" / "drills"
        if not folder.is_dir():
            return
        from tutor.drill.store import unfinished
        from tutor.screens.confirm import ConfirmScreen

        left = unfinished(self.desk.workspace.folder)
        if left is not None:
            began = left.started.replace("T", " ")
            clock = "It is paused." if left.paused else "Its clock has gone on."
            clock = "Only its scoring is left." if left.stage == "debrief" else clock
            question = f"The drill {left.drill.plan.title!r} of {began} is not finished. {clock} Go on with it?"
            self.push_screen(
                ConfirmScreen(question, "Go on"), lambda wanted: self._start_drill("resume" if wanted else None)
            )

    def action_stats(self) -> None:
        from tutor.screens.stats import StatsScreen

        self.push_screen(StatsScreen())

    def action_home(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_look_up(self, item_id: str) -> None:
        """Another item on top of this one; Esc comes back."""
        from tutor.screens.item import ItemScreen

        if not self._closed_book():
            self.push_screen(ItemScreen(self.desk.course.item(item_id), visit=True))

    def _closed_book(self) -> bool:
        """A strict drill is under way: the palette must not lead to answers."""
        closed = any(getattr(screen, "closed_book", False) for screen in self.screen_stack)
        if closed:
            self.notify("Not during a strict drill.", severity="warning", markup=False)
        return closed

    async def action_open_item(self, item_id: str) -> None:
        from tutor.screens.item import ItemScreen

        if self._closed_book():
            return
        item = self.desk.course.item(item_id)
        if isinstance(self.screen, ItemScreen):
            await self.screen.show_item(item)
        else:
            self.push_screen(ItemScreen(item))

    async def action_quit(self) -> None:
        self.exit(0)

    async def on_unmount(self) -> None:
        """The grader is asked to end, so that it can put its scratch folders away; then it is made to."""
        try:
            await asyncio.wait_for(self.desk.grader.close(), PARTING_SECONDS)
        except TimeoutError:
            self.desk.grader.kill()
