from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY


def loaded(statement: str, names: str) -> str:
    """Which of the packages a fresh Python has loaded after the statement."""
    source = f"import sys\n{statement}\nprint(*[name for name in {names.split()!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", source], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def imports_in(folder: str) -> dict[str, set[str]]:
    """Each top-level package that a module of the folder imports, anywhere in it, with the modules that do."""
    found: dict[str, set[str]] = {}
    for file in sorted((REPOSITORY / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in names:
                found.setdefault(name.partition(".")[0], set()).add(str(file.relative_to(REPOSITORY)))
    return found


def test_no_module_of_the_tutor_imports_torch_or_triton_and_none_of_the_grader_imports_textual_or_the_tutor() -> None:
    tutor, grader = imports_in("tutor"), imports_in("grader")
    assert "msgspec" in tutor and "torch" in grader
    assert [tutor.get(name) for name in ("torch", "triton", "numpy")] == [None] * 3
    assert [grader.get(name) for name in ("textual", "tutor")] == [None] * 2


def test_the_tutor_loads_neither_torch_nor_triton() -> None:
    """With all of its modules but two that draw plots, with numpy."""
    every = (
        "import pkgutil, importlib, tutor\n"
        "for one in pkgutil.walk_packages(tutor.__path__, 'tutor.'):\n"
        "    if one.name not in ('tutor.__main__', 'tutor.screens.result_plots', 'tutor.widgets.log_plot'):\n"
        "        importlib.import_module(one.name)"
    )
    assert loaded(every, "torch triton numpy ray tutor.web.server tutor.homework.cluster") == (
        "tutor.web.server tutor.homework.cluster"
    )


def test_the_pytest_plugin_costs_other_projects_nothing() -> None:
    assert loaded("import tutor.pytest_plugin", "asyncio msgspec yaml typer textual grader ray") == ""


@pytest.mark.parametrize("module", ["grader", "grader.server", "grader.catalog"])
def test_the_grader_loads_no_textual(module: str) -> None:
    assert loaded(f"import {module}", "textual tutor") == ""


def test_home_is_painted_without_the_scheduler() -> None:
    assert loaded("import tutor.app, tutor.screens.terminal, tutor.screens.home", "fsrs genanki markdown_it") == ""


def test_home_is_painted_without_the_drills() -> None:
    assert loaded("import tutor.app, tutor.screens.terminal, tutor.screens.home", "tutor.drill pygal") == ""


def test_the_catalog_loads_no_torch() -> None:
    assert loaded("import grader.catalog", "torch triton") == ""


def test_the_command_line_starts_without_the_app_and_without_yaml() -> None:
    assert loaded("import tutor.cli", "textual yaml watchfiles asyncio fsrs") == ""
