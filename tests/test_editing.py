"""The editor's side of a file that others may write too: nothing is torn, nothing is lost."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tutor.editing import edited_file
from tutor.editing.edited_file import (
    CannotEdit,
    Conflict,
    EditedFile,
    Joined,
    Missing,
    Places,
    Reloaded,
    Same,
    Saved,
    Unsaved,
)
from tutor.editing.indenting import matches, next_indent, shifted, toggled
from tutor.editing.three_way import merged
from tutor.workspace import Workspace

BASE = "import torch\n\n\ndef f(x):\n    a = 1\n    b = 2\n    c = 3\n    return a\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text(BASE)
    return path


def places(tmp_path: Path) -> Places:
    workspace = Workspace(tmp_path / "work", writable=True)
    return Places(workspace.draft("kernel"), lambda content: workspace.keep_backup("kernel", content))


def opened(file: Path) -> EditedFile:
    return EditedFile(file, places(file.parent))


def backups(file: Path) -> set[str]:
    return {path.read_text() for path in (file.parent / "work" / ".triton-prep" / "backups").glob("*.py")}


def test_saving_keeps_permissions_and_the_link(file: Path) -> None:
    file.chmod(0o640)
    link = file.parent / "link.py"
    link.symlink_to(file.name)
    assert opened(link).save(BASE + "# é\n") == Saved()
    assert link.is_symlink() and file.read_text() == BASE + "# é\n"
    assert file.stat().st_mode & 0o777 == 0o640


def test_line_ends_and_a_byte_order_mark_stay(file: Path) -> None:
    odd = b"\xef\xbb\xbfa = 1\r\nb = 2\n"
    file.write_bytes(odd)
    edited = opened(file)
    assert edited.save(edited.text + "c = 3\r\n") == Saved()
    assert file.read_bytes() == odd + b"c = 3\r\n"


def test_a_read_only_file_is_not_written_and_the_text_is_kept_for_the_next_session(file: Path) -> None:
    file.chmod(0o444)
    found = opened(file).save("mine\n")
    assert isinstance(found, Unsaved) and "read-only" in found.reason
    assert found.draft is not None and found.draft.read_text() == "mine\n"
    assert file.read_text() == BASE
    file.chmod(0o644)
    again = opened(file)
    assert (again.text, again.from_draft) == ("mine\n", True)
    assert again.save(again.text) == Saved()
    assert file.read_text() == "mine\n" and not found.draft.exists()


def test_a_full_disk_is_told_and_the_next_try_saves(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    edited = opened(file)
    with monkeypatch.context() as change:
        change.setattr(edited_file, "write_atomically", full)
        found = edited.save("mine\n")
        assert isinstance(found, Unsaved) and found.reason == "No space left on device"
        assert found.draft is not None and found.draft.read_text() == "mine\n"  # elsewhere
        assert file.read_text() == BASE
    assert edited.save("mine\n") == Saved()


def test_in_a_folder_that_takes_no_new_file_the_file_itself_is_written(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = edited_file.write_atomically

    def beside_is_forbidden(path: Path, content: bytes, like: os.stat_result | None = None) -> None:
        if path == file:
            raise PermissionError(errno.EACCES, "Permission denied")
        write(path, content, like)

    monkeypatch.setattr(edited_file, "write_atomically", beside_is_forbidden)
    assert opened(file).save("short\n") == Saved()
    assert file.read_text() == "short\n"


def test_what_another_program_wrote_is_taken_over_when_nothing_is_unsaved(file: Path) -> None:
    edited = opened(file)
    assert edited.look(BASE) == Same()
    file.write_text("theirs\n")
    assert edited.look(BASE) == Reloaded("theirs\n")
    assert edited.look("theirs\n") == Same()


def test_a_change_of_equal_size_and_time_is_noticed(file: Path) -> None:
    edited = opened(file)
    assert edited.save("x = 1\n") == Saved()
    before = file.stat()
    with open(file, "r+b") as stream:  # the same inode
        stream.write(b"x = 2\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert edited.look("x = 1\n") == Reloaded("x = 2\n")


def test_changes_in_different_places_are_joined_and_the_other_version_is_kept(file: Path) -> None:
    edited = opened(file)
    theirs = BASE.replace("import torch", "import torch, triton")
    mine = BASE.replace("return a", "return c")
    file.write_text(theirs)
    found = edited.save(mine)
    assert isinstance(found, Joined)
    assert "import torch, triton" in found.text and "return c" in found.text
    assert file.read_text() == theirs and found.backup.read_text() == theirs
    assert edited.save(found.text) == Saved()
    assert file.read_text() == found.text


@pytest.mark.parametrize("choice", ["mine", "theirs", "both"])
def test_a_conflict_is_decided_and_the_loser_is_kept(file: Path, choice: str) -> None:
    edited = opened(file)
    mine, theirs = BASE.replace("b = 2", "b = 20"), BASE.replace("b = 2", "b = 200")
    file.write_text(theirs)
    found = edited.save(mine)
    assert found == Conflict(mine, theirs)
    assert file.read_text() == theirs  # nothing is written before the decision
    text, kept = edited.decide(found, choice)
    assert {path.read_text() for path in kept} == {"mine": {theirs}, "theirs": {mine}, "both": {mine, theirs}}[choice]
    assert edited.save(text) == Saved()
    shown = file.read_text()
    assert ("b = 20\n" in shown, "b = 200" in shown) == (choice != "theirs", choice != "mine")
    assert ("<<<<<<<" in shown) == (choice == "both")


def test_without_room_for_a_backup_a_conflict_stays_open(file: Path) -> None:
    edited = opened(file)
    (file.parent / "work" / ".triton-prep").mkdir(parents=True)
    (file.parent / "work" / ".triton-prep" / "backups").write_text("in the way")
    file.write_text("theirs\n")
    found = edited.look("mine\n")
    assert isinstance(found, Conflict)
    with pytest.raises(CannotEdit, match="nothing has changed"):
        edited.decide(found, "mine")
    assert file.read_text() == "theirs\n" and edited.look("mine\n") == found


def test_an_undecided_conflict_comes_back_in_the_next_session(file: Path) -> None:
    edited = opened(file)
    file.write_text(BASE.replace("b = 2", "b = 200"))
    mine = BASE.replace("b = 2", "b = 20")
    assert isinstance(edited.save(mine), Conflict)
    edited.keep_draft(mine)
    again = opened(file)
    assert again.text == mine
    assert isinstance(again.save(again.text), Conflict)


def test_a_file_that_was_taken_away_is_written_again(file: Path) -> None:
    edited = opened(file)
    file.unlink()
    assert edited.look(BASE) == Missing()
    assert edited.save(BASE) == Saved()
    assert file.read_text() == BASE


@pytest.mark.parametrize(
    ("mine", "left"), [(BASE, "# theirs\n" + BASE), (BASE + "# mine\n", "# theirs\n" + BASE + "# mine\n")]
)
def test_the_last_save_of_a_session_may_come_twice(file: Path, mine: str, left: str) -> None:
    edited = opened(file)
    file.write_text("# theirs\n" + BASE)
    assert edited.part(mine) and edited.part(mine)
    assert file.read_text() == left


def test_a_file_taken_away_does_not_come_back_when_nothing_was_unsaved(file: Path) -> None:
    edited = opened(file)
    file.unlink()
    assert edited.part(BASE) and not file.exists()


def test_what_is_not_text_is_not_opened(file: Path) -> None:
    file.write_bytes(b"a\xff")
    with pytest.raises(CannotEdit, match="byte 1"):
        opened(file)


def test_joining_loses_no_change_and_never_writes_over_one() -> None:
    draw = random.Random(5)
    joined = 0
    for _ in range(300):
        base = [f"line {number}\n" for number in range(12)]
        versions = []
        for name in ("mine", "theirs"):
            lines = list(base)
            at = draw.randrange(len(lines))
            lines[at : at + draw.randrange(3)] = [f"{name} {number}\n" for number in range(draw.randrange(1, 3))]
            versions.append("".join(lines))
        mine, theirs = versions
        both = merged("".join(base), mine, theirs)
        assert both == merged("".join(base), theirs, mine)
        if both is None:
            continue
        joined += 1
        kept = both.splitlines()
        assert [line for line in kept if line.startswith("mine")] == [x for x in mine.splitlines() if "mine" in x]
        assert [line for line in kept if line.startswith("theirs")] == [x for x in theirs.splitlines() if "theirs" in x]
        left = {line for line in base if line in mine and line in theirs}
        assert {f"{line}\n" for line in kept if line.startswith("line")} == left
    assert 50 < joined < 300


def test_neighbouring_changes_are_a_conflict_and_equal_ones_are_not() -> None:
    assert merged("a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n") is None
    assert merged("a\nb\nc\n", "A\nb\nc\n", "A\nb\nC\n") == "A\nb\nC\n"


def inserted(text: str, word: str, draw: random.Random) -> str:
    lines = text.splitlines()
    at = draw.randrange(len(lines) + 1)
    if at < len(lines) and draw.random() < 0.3:
        lines[at] += f" {word}"
    else:
        lines.insert(at, word)
    return "\n".join(lines) + "\n"


def test_whatever_two_writers_do_every_word_is_in_the_file_or_in_a_backup(tmp_path: Path) -> None:
    draw = random.Random(11)
    for sequence in range(40):
        folder = tmp_path / str(sequence)
        folder.mkdir()
        file = folder / "kernel.py"
        file.write_text("".join(f"line {row}\n" for row in range(8)))
        edited, words = opened(file), []
        text = edited.text

        def after(outcome: object, edited: EditedFile = edited, text: str = text) -> str:
            if isinstance(outcome, Conflict):
                return edited.decide(outcome, draw.choice(["mine", "theirs", "both"]))[0]
            return outcome.text if isinstance(outcome, Reloaded | Joined) else text

        for step in range(25):
            match draw.choice(["here", "here", "there", "look", "save", "end"]):
                case "here":
                    words.append(f"here{step}")
                    text = inserted(text, words[-1], draw)
                case "there":
                    words.append(f"there{step}")
                    file.write_text(inserted(file.read_text(), words[-1], draw))
                case "look":
                    text = after(edited.look(text), edited, text)
                case "save":
                    text = after(edited.save(text), edited, text)
                case "end":
                    edited.part(text)
                    edited = opened(file)
                    text = edited.text
        while not isinstance(outcome := edited.save(text), Saved):
            text = after(outcome, edited, text)
        kept = " ".join([file.read_text(), *backups(file)]).split()
        assert set(words) <= set(kept)


WRITER = """
import sys
from pathlib import Path
from tutor.editing.edited_file import EditedFile, Places, Saved
file = Path(sys.argv[1])
edited = EditedFile(file, Places(file.with_name("draft.py"), lambda content: file))
for number in range(10_000_000):
    assert edited.save(f"# version {number}\\n" * 5000) == Saved()
    print(number, flush=True)
"""


def test_a_killed_process_leaves_a_whole_version_that_is_no_older_than_the_last_save(tmp_path: Path) -> None:
    draw = random.Random(1)
    for trial in range(6):
        file = tmp_path / f"{trial}.py"
        file.write_text("")
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(file)], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            said = [writer.stdout.readline() for _ in range(draw.randrange(1, 30))]
            writer.kill()
            said += writer.stdout.readlines()
        last = max(int(line) for line in said if line.endswith("\n"))
        found = set(file.read_text().splitlines())
        assert len(found) == 1 and len(file.read_text().splitlines()) == 5000
        assert int(found.pop().split()[-1]) >= last


def test_enter_indents_after_a_colon_or_an_open_bracket_and_goes_back_after_return() -> None:
    assert next_indent("    if n > 0:  # some: more") == 8
    assert next_indent("    x = tl.load(") == 8
    assert next_indent("    note = '#:'") == 4
    assert next_indent("        return out") == 4
    assert next_indent("    returned = 1") == 4


def test_tab_and_the_comment_key_change_whole_lines_and_back() -> None:
    lines = ["    a = 1", "", "      b = 2"]
    assert shifted(lines, 1) == ["        a = 1", "", "        b = 2"]
    assert shifted(lines, -1) == ["a = 1", "", "    b = 2"]
    assert toggled(lines) == ["    # a = 1", "", "    #   b = 2"]
    assert toggled(toggled(lines)) == lines


def test_small_letters_find_capitals() -> None:
    lines = ["BLOCK = block", "x"]
    assert matches(lines, "block") == [(0, 0), (0, 8)]
    assert matches(lines, "BLOCK") == [(0, 0)]
    assert matches(lines, "x[") == []
