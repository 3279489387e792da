"""A lesson: one page at a time, one Markdown widget reused."""

from __future__ import annotations

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from tutor.course.model import Lesson
from tutor.course.pictures import has_picture, pictures
from tutor.widgets.content import Content, plain
from tutor.widgets.pane import ItemPane, PageShown
from tutor.widgets.prose import Prose, Reading


class LessonPane(ItemPane):
    BINDINGS = [
        Binding("space", "onward", "Read on", key_display="Space", id="lesson.onward"),
        Binding("right", "page(1)", "Next page", show=False, id="lesson.next-page"),
        Binding("left", "page(-1)", "Page back", show=False, id="lesson.previous-page"),
        Binding("m", "map", "Map", tooltip="The picture of this page as a live map", id="lesson.map"),
    ]

    def __init__(self, item: Lesson, position: int = 0) -> None:
        super().__init__(item, min(position, len(item.pages) - 1))
        self.lesson = item
        self._laying_out = False

    def compose(self) -> ComposeResult:
        yield Static(self._heading(), classes="page-title")
        with Reading(classes="answer", id="page"):
            yield Prose(self.lesson.pages[self.position].text)

    def on_mount(self) -> None:
        self._tell()

    def _heading(self) -> Content:
        page, count = self.lesson.pages[self.position], len(self.lesson.pages)
        number = f"   page {self.position + 1} of {count}" if count > 1 else ""
        return Content.assemble(plain(page.title, "bold"), plain(number, "$foreground 72%"))

    def page_text(self) -> str:
        page = self.lesson.pages[self.position]
        return f"{page.title}\n{page.text}"

    def _tell(self) -> None:
        last = self.position == len(self.lesson.pages) - 1
        self.post_message(PageShown(self.item, self.position, last))

    def turn(self, direction: int) -> bool:
        position = self.position + direction
        if not 0 <= position < len(self.lesson.pages):
            return False
        self.position = position
        self.query_one(".page-title", Static).update(self._heading())
        self._laying_out = True
        self.refresh_bindings()
        self._lay_out()
        self._tell()
        return True

    @work(group="page", exclusive=True)
    async def _lay_out(self) -> None:
        """Until the new page has its height, a held space bar must not skip it."""
        if not self.query(Prose):
            return
        await self.query_one(Prose).update(self.lesson.pages[self.position].text)
        if self.query(Reading):  # the next item may have taken this one's place meanwhile
            self.query_one(Reading).scroll_home(animate=False)
        self.call_after_refresh(self._laid_out)

    def _laid_out(self) -> None:
        self._laying_out = False

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return has_picture(self.lesson.pages[self.position].text) if action == "map" else True

    def action_map(self) -> None:
        from tutor.screens.access_map import AccessMapScreen

        found = pictures(self.lesson.pages[self.position].text)[0]
        self.app.push_screen(AccessMapScreen(found.exercise, found.file, case=found.case, demo=True))

    def action_page(self, direction: int) -> None:
        self.turn(direction)

    def action_onward(self) -> None:
        """Down a screenful, at the foot of a page the next page, at the end the next item."""
        if self._laying_out:
            return
        reading = self.query_one(Reading)
        if reading.scroll_offset.y < reading.max_scroll_y:
            reading.scroll_page_down(animate=False)
        elif not self.turn(1):
            self.call_later(self.run_action, "screen.next_item")
