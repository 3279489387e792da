"""Launchers that Triton 3.5 and 3.6 build with the C compiler: kept between grades, and never taken from a runner."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader import triton_c_launchers as launchers


class Driver(SimpleNamespace):
    """Triton's two functions: a module is Python text here, and each build is counted."""

    def __init__(self) -> None:
        super().__init__(builds=[], include_dirs=[], libraries=[], library_dirs=list)
        self.make_launcher: Callable[..., str] = lambda constants, signature, meta: f"SIGNATURE = {signature!r}"
        self.compile_module_from_src: Callable[..., Any] = self._build

    def _build(self, *, src: str, name: str, **places: Any) -> Any:
        self.builds.append(src)
        if "TRITON_CACHE_DIR" in os.environ:
            (Path(os.environ["TRITON_CACHE_DIR"]) / f"{name}.so").write_text(src)
        return f"built {name}"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path / "scratch")
    return launchers.folder()


def built(driver: Driver, *types: Any) -> Any:
    """As Triton does for a kernel with these arguments."""
    source = driver.make_launcher({}, dict(enumerate(types)), None)
    return driver.compile_module_from_src(src=source, name=launchers.NAME, library_dirs=[])


def test_a_signature_is_built_by_one_runner_and_kept_for_the_next(
    kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver = Driver()
    assert launchers.use_kept(driver) == kept
    assert built(driver, "*fp32", "i32", ("i64", "constexpr")) == "built __triton_launcher"
    assert list(kept.iterdir()) == []  # the runner's own binary is not what is kept
    signatures = launchers.noted(tmp_path / "scratch")
    assert signatures == [("*fp32", "i32", ("i64", "constexpr"))]

    monkeypatch.setattr(launchers, "_loaded", lambda path: f"loaded {path.parent == kept}")
    monkeypatch.setenv("TRITON_CACHE_DIR", "")
    launchers.keep(signatures, kept, Driver())
    monkeypatch.delenv("TRITON_CACHE_DIR")
    assert built(driver, "*fp32", "i32", ("i64", "constexpr")) == "loaded True"
    assert built(driver, "*fp16", "i32") == "built __triton_launcher"
    assert len(driver.builds) == 2


def test_other_modules_and_descriptors_are_left_to_triton(kept: Path, tmp_path: Path) -> None:
    driver = Driver()
    launchers.use_kept(driver)
    assert driver.compile_module_from_src(src="x", name="cuda_utils") == "built cuda_utils"
    source = driver.make_launcher({}, {0: "tensordesc<fp16[64,64]>"}, [{"swizzle": 3}])
    driver.compile_module_from_src(src=source, name=launchers.NAME)
    assert launchers.noted(tmp_path / "scratch") == []


def test_a_triton_that_builds_none_is_left_alone(kept: Path) -> None:
    assert launchers.use_kept(SimpleNamespace()) is None
    assert not kept.exists()


@pytest.mark.parametrize(
    "text",
    ['["*fp32", "i32); system(\\"x\\")"]\n', '{"0": "i32"}\n', "[" * 5000 + "\n", '["i32"', '["' + "a" * 99 + '"]\n'],
)
def test_notes_that_make_no_sense_are_ignored(kept: Path, tmp_path: Path, text: str) -> None:
    notes = tmp_path / "scratch" / launchers.NOTES
    notes.write_text(text)
    assert launchers.noted(notes.parent) == []


def test_notes_that_are_no_plain_file_are_ignored(kept: Path, tmp_path: Path) -> None:
    notes = tmp_path / "scratch" / launchers.NOTES
    (tmp_path / "elsewhere").write_text('["i32"]\n')
    for make in (notes.mkdir, lambda: os.mkfifo(notes), lambda: notes.symlink_to(tmp_path / "elsewhere")):
        make()
        assert launchers.noted(notes.parent) == []
        notes.rmdir() if notes.is_dir() and not notes.is_symlink() else notes.unlink()


def test_the_folder_does_not_grow_without_end(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "MOST_KEPT", 3)
    monkeypatch.setenv("TRITON_CACHE_DIR", "")
    kept.mkdir(parents=True)
    launchers.keep([(f"i{n}",) for n in range(10, 20)], kept, Driver())
    assert len(list(kept.iterdir())) == 3
