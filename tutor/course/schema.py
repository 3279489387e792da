"""modules/schema.json, for editors: `python -m tutor.course.schema` writes it anew from the types."""

from __future__ import annotations

from pathlib import Path

from tutor.course.loader import modules_folder
from tutor.course.model import Module
from tutor.course.typed_yaml import json_schema


def schema_text() -> str:
    return json_schema(Module, "A triton-prep module")


def schema_file() -> Path:
    return modules_folder() / "schema.json"


if __name__ == "__main__":
    schema_file().write_text(schema_text(), encoding="utf-8")
