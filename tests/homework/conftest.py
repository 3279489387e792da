"""A class of three for the command, on the small course with the stand-in grader."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FILES = {
    "ana/vector_add.py": "# fine\n",
    "ana/row_sum.py": "# fine too\n",
    "ben/vector_add.py": "# fake: wrong_answer\n# cause: missing_mask\n",
    "cyd/hw/row_sum.py": "# hidden: out_of_bounds\n# cause: missing_mask\n",
}


@pytest.fixture
def class_folder(tmp_path: Path) -> Path:
    return fill(tmp_path / "class", FILES)


def fill(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_790_000_000, 1_790_000_000))
    return folder
