"""Keys of one's own in the running app: footer, help and palette follow; the screen that changes them; faults said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.widgets import TextArea

from tests.app.driver import Session, drive
from tests.app.sample_course import EXERCISE, LESSON, MATCH
from tutor.keymap import MODIFIERS, NAMED, KeyFile, clash, together
from tutor.screens.actions import actions, owners
from tutor.screens.terminal import TritonPrepApp

New = Callable[..., Session]


def keys_file(s: Session) -> Path:
    return s.app.keys_path


@pytest.fixture
def with_keys(tmp_path: Path) -> Callable[[str], None]:
    def write(text: str) -> None:
        file = tmp_path / "workspace" / ".triton-prep" / "keys.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return write


def test_every_key_can_be_changed_and_no_two_actions_share_an_id() -> None:
    for owner in owners():
        seen: dict[str, str] = {}
        for binding in owner.__dict__.get("BINDINGS", ()):
            assert isinstance(binding, Binding), f"{owner}: write Binding(…, id=…)"
            keys = binding.key.replace("+", ",").split(",")
            if binding in TextArea.BINDINGS:
                continue  # what textual's editor has of its own
            if binding.key.isdigit() or (not binding.id and {*NAMED, *MODIFIERS}.issuperset(keys)):
                continue  # numbers choose by place, arrows and the like are nobody's to change
            assert binding.id, f"{owner.__name__}: {binding.key} has no id"
            assert seen.setdefault(binding.id, binding.action) == binding.action, f"{owner}: {binding.id} twice"


def test_footer_help_and_palette_follow(
    session: New, with_keys: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_keys("item.next: ctrl+n\nexercise.grade: [v2, x]\nitem.hint: H\n")
    told: list[str] = []  # on a machine that is held up, what is shown for 20 s may be gone when somebody looks
    monkeypatch.setattr(TritonPrepApp, "notify", lambda self, message, **how: told.append(message))

    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await s.until(lambda: any("v2 is no key" in message for message in told))
            await s.open(LESSON.id)
            footer = s.text().split("\n")[-1]
            assert "^n Next" in footer and "n Next" not in footer.replace("^n Next", "")
            await s.keys("n")
            assert "page 1 of" in s.text()
            await s.keys("ctrl+n")
            assert "page 2 of" in s.text()
            await s.keys("f1")
            await s.until_shown("Keys here")
            assert "^n" in s.text()
            await s.keys("escape")
            await s.until(lambda: "Keys here" not in s.text())
            await s.keys("ctrl+p")
            await s.until_shown("Next (^n)")

    drive(story)


def test_what_is_said_of_a_key_follows(session: New, with_keys: Callable[[str], None]) -> None:
    with_keys("exercise.grade: K\nmatch.undo: z\n")

    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await s.open(EXERCISE.id)
            assert "K grades the file" in s.text()
            await s.open(MATCH.id)
            for _ in MATCH.pairs:
                await s.keys("enter", "enter")
            assert "z takes the last pair back" in s.text()

    drive(story)


def test_a_key_is_changed_kept_and_given_back(session: New) -> None:
    async def story() -> None:
        async with session(size=(110, 40)) as s:
            await s.app.run_action("keys")
            await s.until_shown("Enter changes a key")
            listed = s.app.screen.query_one("#actions")
            listed.highlighted = listed.get_option_index("exercise.grade")  # type: ignore[attr-defined]
            await s.keys("enter", "n")  # taken: item.next
            await s.until_shown("n is Every item: Next already")
            await s.keys("enter", "ctrl+z")
            await s.until_shown("it suspends programs")
            assert not keys_file(s).exists()
            await s.keys("enter", "G")
            await s.until_shown("G is Everywhere: Glossary already")
            await s.keys("enter", "z")
            await s.until_shown("changed; usually g")
            assert "exercise.grade" in keys_file(s).read_text()
            await s.keys("escape")
            await s.open(EXERCISE.id)
            await s.until_shown("z Grade")
            await s.app.run_action("keys")
            await s.pilot.pause()
            listed = s.app.screen.query_one("#actions")
            listed.highlighted = listed.get_option_index("exercise.grade")  # type: ignore[attr-defined]
            await s.keys("enter", "backspace", "escape")
            await s.until_shown("g Grade")
            assert "exercise.grade" not in keys_file(s).read_text()

    drive(story)


def test_as_delivered_no_two_actions_of_one_screen_share_a_key() -> None:
    file = KeyFile(Path("none"))
    for action in actions():
        others = [other for other in actions() if other.area == action.area and together(action, other)]
        assert clash(action, [f"{key} " for key in action.keys], file, others) is None
        shared = [other.id for other in others if other.id != action.id and set(other.keys) & set(action.keys)]
        assert not shared or action.area in ("app", "bug", "open"), (action, shared)
