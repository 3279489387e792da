"""In the runner: the learner's file as a module, and what must be in it."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from grader import errors

NAME = "submission"  # of the module


def module_of(path: Path) -> ModuleType:
    """Import the file. Raises whatever the file raises."""
    spec = importlib.util.spec_from_file_location(NAME, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    return module


def refusal(module: ModuleType, spec: dict[str, Any]) -> dict[str, Any] | None:
    """Why the file cannot be graded: no entry, another signature, a name that is missing. None when it can."""
    entry = getattr(module, spec["entry"], None)
    if entry is None:
        return errors.plain("import_error", f"the file defines no function {spec['entry']!r}", "no_entry")
    if not callable(entry):
        return errors.plain("import_error", f"{spec['entry']!r} is not a function", "no_entry")
    for name, why in spec["fixed"].items():
        if not hasattr(module, name):
            return errors.plain("import_error", f"the file must define {name!r}: {why}", "no_entry")
    problem = _signature_problem(entry, spec["parameters"])
    if problem:
        return errors.plain("import_error", f"{spec['entry']}: {problem}", "wrong_signature", _line(entry))
    return None


def _signature_problem(entry: Any, parameters: list[str]) -> str | None:
    try:
        signature = inspect.signature(entry)
    except (TypeError, ValueError):
        return None  # an operator: PyTorch checks its schema itself
    try:
        signature.bind(*parameters)
    except TypeError as error:
        return f"cannot be called as {entry.__name__}({', '.join(parameters)}): {error}"
    return None


def _line(entry: Any) -> int | None:
    code = getattr(inspect.unwrap(entry), "__code__", None)
    return code.co_firstlineno if code else None
