from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.catalog import UnknownExercise
from tutor.workspace import Workspace, WorkspaceError, stub_doc


@pytest.fixture
def workspace(small_course: Path, tmp_path: Path) -> Workspace:
    return Workspace.open(tmp_path / "work")


def change_stub(course: Path, slug: str, text: str) -> None:
    (course / "exercises" / "01-tiny" / slug / "stub.py").write_text(text)


def test_the_first_use_writes_every_stub(workspace: Workspace, small_course: Path) -> None:
    file = workspace.file("vector_add")
    assert file == workspace.folder / "01-tiny" / "vector_add.py"
    assert file.read_bytes() == (small_course / "exercises/01-tiny/vector_add/stub.py").read_bytes()
    assert workspace.untouched("vector_add")
    assert workspace.file("row_sum").is_file()


def test_an_edited_file_is_never_overwritten(workspace: Workspace, small_course: Path) -> None:
    workspace.file("vector_add").write_text("my work")
    change_stub(small_course, "vector_add", "# a newer stub\n")
    again = Workspace.open(workspace.folder)
    assert again.file("vector_add").read_text() == "my work"
    assert not again.untouched("vector_add")
    assert again.file("vector_add") in again.populate().kept


def test_an_untouched_older_stub_is_brought_up_to_date(workspace: Workspace, small_course: Path) -> None:
    change_stub(small_course, "vector_add", "# a newer stub\n")
    result = workspace.populate()
    assert result.updated == (workspace.file("vector_add"),)
    assert workspace.file("vector_add").read_text() == "# a newer stub\n"
    assert workspace.populate().updated == ()


def test_a_deleted_file_comes_back_as_a_stub(workspace: Workspace) -> None:
    workspace.file("row_sum").unlink()
    assert workspace.populate().written == (workspace.file("row_sum"),)


def test_reset_keeps_the_learners_version_and_says_where(workspace: Workspace) -> None:
    file = workspace.file("vector_add")
    backups = set()
    for text in ("first", "second"):
        file.write_text(text)
        backup = workspace.reset("vector_add")
        assert backup is not None
        assert backup.read_text() == text
        assert backup.parent == workspace.folder / ".triton-prep" / "backups"
        assert workspace.untouched("vector_add")
        backups.add(backup)
    assert len(backups) == 2
    file.unlink()
    assert workspace.reset("vector_add") is None
    assert file.is_file()


def test_reset_without_room_for_a_backup_resets_nothing(workspace: Workspace) -> None:
    workspace.file("vector_add").write_text("my work")
    (workspace.folder / ".triton-prep" / "backups").write_text("in the way")
    with pytest.raises(WorkspaceError, match="nothing was reset"):
        workspace.reset("vector_add")
    assert workspace.file("vector_add").read_text() == "my work"


def test_a_folder_where_the_file_belongs_is_left_alone(workspace: Workspace) -> None:
    workspace.file("vector_add").unlink()
    workspace.file("vector_add").mkdir()
    Workspace.open(workspace.folder)
    with pytest.raises(WorkspaceError, match="folder"):
        workspace.reset("vector_add")
    assert workspace.file("vector_add").is_dir()


def test_a_read_only_place_gives_a_notice(small_course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tutor.workspace.tempfile.TemporaryFile", refuse)
    workspace = Workspace.open(tmp_path / "work")
    assert not workspace.writable
    assert workspace.progress_file is None
    assert "Read-only file system" in workspace.notices[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_gives_a_notice(small_course: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        assert not Workspace.open(tmp_path / "work").writable
    finally:
        tmp_path.chmod(0o755)


def test_a_file_as_workspace_is_refused(small_course: Path, tmp_path: Path) -> None:
    (tmp_path / "work").write_text("a file")
    with pytest.raises(WorkspaceError, match="--workspace"):
        Workspace.open(tmp_path / "work")


def test_an_unknown_exercise_suggests_the_nearest(workspace: Workspace) -> None:
    with pytest.raises(UnknownExercise, match="vector_add"):
        workspace.file("vector_ad")


def test_the_task_is_the_stubs_docstring(small_course: Path) -> None:
    assert stub_doc("row_sum") == "Task: out[i] = x[i] for row_sum."


def test_a_sentence_of_the_task_is_not_broken_where_the_files_line_was_full(small_course: Path) -> None:
    full = f"{'word ' * 20}and"
    stub = next(small_course.rglob("row_sum/stub.py"))
    stub.write_text(f'"""{full}\nthe rest.\nshort\n\nx    {full}\n     {full}.\n{full}.\nNext\n1. {full}\n2. b\n"""\n')
    assert stub_doc("row_sum").split("\n") == [
        f"{full} the rest.",
        "short",
        "",
        f"x    {full}",
        f"     {full}.",
        f"{full}.",
        "Next",
        f"1. {full}",
        "2. b",
    ]
