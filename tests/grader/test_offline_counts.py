"""The counts of the compile table are read from PTX: in the machine code they are the same."""

from __future__ import annotations

import re

import pytest

from grader import offline
from grader.catalog import find

SASS = (
    (offline.VECTOR_LOAD, re.compile(r"\bLDG\.E\S*\.128\b|\bLDGSTS\.E\S*\.128\b")),
    (offline.ASYNC_COPY, re.compile(r"\bLDGSTS\b|\bUTMALDG\b")),
    (offline.TENSOR_CORE, re.compile(r"\b(HGMMA|QGMMA|IGMMA|HMMA|IMMA|DMMA)\b")),
)


@pytest.mark.parametrize(("exercise", "target"), [("softmax", "sm_90"), ("matmul", "sm_90"), ("attention", "sm_80")])
def test_ptx_and_machine_code_agree(grader, exercise, target):
    texts = {}
    for stage in ("ptx", "sass"):
        file = str(find(exercise).solution)
        event, _ = grader.ask("inspect", exercise=exercise, file=file, stage=stage, target=target)
        texts[stage] = event["kernels"][0]["text"]
    counts = [len(ptx.findall(texts["ptx"])) for ptx, _ in SASS]
    assert counts == [len(sass.findall(texts["sass"])) for _, sass in SASS]
    assert any(counts)
