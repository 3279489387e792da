"""The course travels in the wheel: built, installed in an empty environment, used from another folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.xdist_group("wheel")  # one worker: the wheel is built once
SOURCES = ("grader", "tutor", "modules", "exercises", "solutions", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build", reason="needs the dev extra")
    pytest.importorskip("hatchling", reason="needs the dev extra")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in SOURCES:  # a copy: building leaves nothing behind in the repository
        path = REPOSITORY / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.is_file():
            shutil.copy(path, source)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)],
        check=True,
        capture_output=True,
        text=True,
    )
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_course(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("modules", "exercises", "solutions"):
        for file in (REPOSITORY / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert f"grader/course/{file.relative_to(REPOSITORY)}" in names
    for package in ("grader", "tutor"):
        for file in (REPOSITORY / package).rglob("*"):
            if file.suffix in (".py", ".tcss"):
                assert str(file.relative_to(REPOSITORY)) in names
    assert not any(name.startswith("tests/") for name in names)


def test_the_installed_command_works_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            str(wheel),
        ],
        check=True,
        capture_output=True,
    )
    # The dependencies are taken from here, so that the test fetches nothing; this repository itself is not on the path.
    packages = next((environment / "lib").glob("python*")) / "site-packages"
    kept = [path for path in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")} if path]
    (packages / "dependencies.pth").write_text("\n".join(kept) + "\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("TRITON", "PYTHONPATH"))}
    clean |= {"TRITON_PREP_WORKSPACE": str(tmp_path / "work"), "TRITON_PREP_CACHE": str(tmp_path / "cache")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(environment / "bin" / "triton-prep"), *arguments]
        return subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=60, check=False)

    where = subprocess.run(
        [str(python), "-c", "import tutor, grader.catalog; print(tutor.__file__, grader.catalog.course_root())"],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert all(str(packages) in path for path in where), where
    listed = run("list")
    assert listed.returncode == 0, listed.stderr
    assert "m01.lesson" in listed.stdout
    assert run("init").returncode == 0
    assert (tmp_path / "work" / "02-first-kernel" / "vector_add.py").is_file()
    assert run("show", "vector_add").returncode == 0
