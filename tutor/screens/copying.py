"""Copies that arrive: through the terminal (OSC 52), which many terminals ignore, and as a file as well."""

from __future__ import annotations

from pathlib import Path

from textual.app import App

COPIED = "copied.txt"
SCREEN_TEXT, SCREEN_PICTURE = "screen.txt", "screen.svg"


def copy(app: App[int], folder: Path, text: str, what: str) -> None:
    """To the clipboard and to `folder`, with a word on both. A folder that cannot be written leaves the clipboard."""
    app.copy_to_clipboard(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / COPIED).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    except OSError as error:
        app.notify(f"{what} sent to the clipboard; {folder / COPIED}: {error.strerror}.", markup=False)
    else:
        app.notify(f"{what} copied. Where the clipboard does not get it: {folder / COPIED}", markup=False)


def screen_text(app: App[int]) -> str:
    """The screen as it is drawn, without colours."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def save_screen(app: App[int], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SCREEN_TEXT).write_text(screen_text(app), encoding="utf-8")
        (folder / SCREEN_PICTURE).write_text(app.export_screenshot(title=app.title), encoding="utf-8")
    except OSError as error:
        app.notify(f"The screen is not saved: {error}", severity="error", markup=False)
    else:
        app.notify(f"Saved as {folder / SCREEN_TEXT} and {SCREEN_PICTURE}", markup=False)
