"""modules/schema.json, for editors: `python -m tutor.course.schema` writes it anew from the types."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from tutor.course.loader import modules_folder
from tutor.course.model import Module


def schema_text() -> str:
    schema = msgspec.json.schema(Module)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A triton-prep module", **schema}
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def schema_file() -> Path:
    return modules_folder() / "schema.json"


if __name__ == "__main__":
    schema_file().write_text(schema_text(), encoding="utf-8")
