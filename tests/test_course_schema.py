from __future__ import annotations

import json

from tests.conftest import REPOSITORY
from tutor.course.loader import module_files
from tutor.course.schema import schema_file, schema_text


def test_the_schema_in_the_repository_is_what_the_types_give() -> None:
    assert schema_file().read_text(encoding="utf-8") == schema_text(), "run: python -m tutor.course.schema"


def test_the_schema_knows_every_kind_of_item() -> None:
    kinds = json.loads(schema_text())["$defs"]["Module"]["properties"]["items"]["items"]["discriminator"]["mapping"]
    assert set(kinds) == {"lesson", "quiz", "bug", "match", "walkthrough", "predict", "open", "exercise"}


def test_every_module_names_the_schema_for_editors() -> None:
    for file in module_files(REPOSITORY / "modules"):
        assert file.read_text(encoding="utf-8").startswith("# yaml-language-server: $schema=schema.json\n"), file.name
