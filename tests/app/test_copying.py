"""What is copied goes to the terminal and to a file, and a screen can be saved."""

from __future__ import annotations

from collections.abc import Callable

from tests.app.driver import Session, drive
from tests.app.sample_course import BUG, EXERCISE

New = Callable[..., Session]


def test_code_and_results_are_copied_to_the_clipboard_and_to_a_file(session: New) -> None:
    async def story() -> None:
        async with session(size=(100, 30)) as s:
            copied = s.desk.workspace.folder / ".triton-prep" / "copied.txt"
            await s.open(BUG.id)
            await s.keys("y")
            await s.until_shown("Code copied.")
            assert s.app.clipboard == BUG.code and copied.read_text() == BUG.code
            s.desk.workspace.file("vector_add").write_text("# fake: wrong_answer\n# cause: x\n")
            await s.open(EXERCISE.id)
            await s.keys("g")
            await s.until_shown("n=1001")
            await s.until(lambda: bool(s.desk.progress.state(EXERCISE.id).attempts))
            await s.keys("y")
            await s.until_shown("Result copied.")
            text = copied.read_text()
            assert text.startswith(str(s.desk.workspace.file("vector_add"))) and "n=1001" in text
            assert s.app.clipboard.strip() == text.strip()

    drive(story)


def test_a_folder_that_cannot_be_written_leaves_the_clipboard(session: New) -> None:
    async def story() -> None:
        async with session(size=(100, 30)) as s:
            (s.desk.workspace.folder / ".triton-prep" / "copied.txt").mkdir()
            await s.open(BUG.id)
            await s.keys("y")
            await s.until_shown("sent to the clipboard")
            assert s.app.clipboard == BUG.code

    drive(story)


def test_the_palette_saves_the_screen_as_text_and_picture(session: New) -> None:
    async def story() -> None:
        async with session(size=(100, 30)) as s:
            await s.keys("ctrl+p")
            await s.type("save this")
            await s.until_shown("Save this screen")
            await s.keys("down", "enter")
            await s.until_shown("Saved as")
            folder = s.desk.workspace.folder / ".triton-prep"
            assert "Start here: The launch kernel[grid](x)" in (folder / "screen.txt").read_text()
            assert "<svg" in (folder / "screen.svg").read_text()

    drive(story)
