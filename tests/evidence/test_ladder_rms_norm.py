"""What the rms_norm ladder says: registers, loads and hints compiled again, programs and bytes counted again."""

from __future__ import annotations

import json

import pytest

from benchmarks.ladders.settings import rungs
from tests.evidence.ladder_source import kernels
from tests.evidence.run import ROOT, compiled
from tests.evidence.test_ladders import KEEP, lesson, near, printed, programs_on_a_multiprocessor

WIDE = (16384, 8192)
#       rung: registers, warps, then loads: all, with evict_last, with evict_first
COMPILED = {1: (54, 8, 8, 0, 0), 2: (32, 16, 4, 0, 0), 3: (32, 16, 6, 0, 2), 4: (32, 16, 6, 4, 2), 5: (32, 16, 4, 4, 0)}
LAST, FIRST = "evict_last.L2::cache_hint", "evict_first.L2::cache_hint"


@pytest.mark.parametrize("number", COMPILED)
def test_rms_norm_rungs_compiled(number):
    (kernel,) = kernels("rms_norm", number, *WIDE)
    registers, warps, *loads = COMPILED[number]
    assert near(kernel.registers, registers) and kernel.stack == 0
    assert (kernel.warps, kernel.shared) == (warps, 4 * warps)
    assert [kernel.words[word] for word in ("ld.global", LAST, FIRST)] == loads
    assert printed(lesson("rms_norm")[number], kernel)
    if number > 2:
        (kept,) = kernels("rms_norm", 2, *WIDE)
        assert all(kernel.words[word] == kept.words[word] for word in ("shfl.sync", "bar.sync"))


def test_rung_1_is_the_solution():
    source = (ROOT / "solutions/04-softmax-and-reductions/rms_norm.py").read_text()
    call = "x = torch.empty(2, 8192, dtype=torch.bfloat16)\nrms_norm(x, x[0], 1e-6)\n"
    said = "print([line for line in launched[0].asm['ptx'].splitlines() if line.strip()[:4] not in ('.loc', '.fil')])"
    code = [
        compiled(KEEP + text + call + said).split("ret;")[0].split("reqntid")[1]
        for text in (source, rungs("rms_norm")[0].path.read_text())
    ]
    assert code[0] == code[1]


ONE_HINT = 'x_row, mask=mask, other=0.0, eviction_policy="evict_first"'


def test_of_two_equal_loads_the_compiler_makes_one():
    source = rungs("rms_norm")[2].path.read_text()
    equal = source.replace(ONE_HINT, "x_row, mask=mask, other=0.0")
    assert equal != source
    call = "x = torch.empty(2, 8192, dtype=torch.bfloat16)\nrms_norm(x, x[0], 1e-6)\n"
    counted = [
        int(compiled(KEEP + text + call + "print(launched[0].asm['ttir'].count('tt.load '))"))
        for text in (source, equal)
    ]
    assert counted == [3, 2]


MACHINE_CODE = """
import re, tempfile
from pathlib import Path
from grader.offline import sass

with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
    file.write(launched[0].asm["cubin"])
    file.flush()
    print(sorted(re.findall(r"(LDG[A-Z0-9.]*)", sass(Path(file.name)))))
"""


def test_hints_reach_both_caches():
    x = "x = torch.empty(2, 8192, dtype=torch.bfloat16)\nrms_norm(x, x[0], 1e-6)\n"
    again, hints = (
        json.loads(compiled(KEEP + rungs("rms_norm")[at].path.read_text() + x + MACHINE_CODE).replace("'", '"'))
        for at in (2, 3)
    )
    assert again == ["LDG.E.128"] * 4 + ["LDG.E.EF.128"] * 2
    assert hints == ["LDG.E.EF.128"] * 2 + ["LDG.E.EL.128"] * 4
    policies = "print(*re.findall(r'createpolicy.fractional.(\\S+)', launched[0].asm['ptx']))"
    asked = compiled(KEEP + rungs("rms_norm")[3].path.read_text() + x + MACHINE_CODE + policies).splitlines()[-1]
    assert set(asked.split()) == {"L2::evict_last.b64", "L2::evict_first.b64"}
    page = lesson("rms_norm")[4]
    assert "`LDG.E.EL.128`" in page and "`LDG.E.EF.128`" in page


def test_programs_and_bytes_of_rms_norm():
    (row,), (warps,) = kernels("rms_norm", 1, *WIDE), kernels("rms_norm", 2, *WIDE)
    for kernel, share in ((row, 1 / 2), (warps, 1)):
        assert programs_on_a_multiprocessor(kernel.registers, kernel.warps) == 4 and 4 * kernel.warps == 64 * share
    assert 4 * 8192 * 2 == 64 * 1024 and round(132 * 4 * 8192 * 2 / 2**20, 2) == 8.25
