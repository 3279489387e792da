"""The rungs in Gluon: no submissions, so compiled and read instead of graded. Their values need a GPU of sm_90."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from benchmarks.ladders.settings import rungs
from benchmarks.ladders.timed import submission
from grader.kernels_alone.plain import NotPlain, kernels_of
from tests.evidence.ladder_source import CALLS, WATCH
from tests.evidence.run import compiled
from tests.evidence.test_m05_resources import USAGE

GLUON = [rung for rung in rungs("attention") if rung.gluon]
EVERY = pytest.mark.parametrize("rung", GLUON, ids=[rung.path.stem for rung in GLUON])
# Of each kernel: usage, its ptxas's words, and what the machine code does between two waits for wgmma.
READ = r"""
BIN = os.path.dirname(TOOL)

def assembled(ptx):
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        for name in ("ptxas", "ptxas-blackwell"):  # the second knows newer PTX
            line = [os.path.join(BIN, name), "-v", "--gpu-name=sm_90a", file.name, "-o", "/dev/null"]
            done = subprocess.run(line, capture_output=True, text=True)
            if done.returncode == 0:
                return done.stderr
    raise SystemExit(done.stderr)

def between_waits(cubin):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        line = [os.path.join(BIN, "nvdisasm"), "-c", file.name]
        code = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    # a piece a wait for wgmma: what it waits for, then the exponentials until the next one
    pieces = re.split(r"WARPGROUP\.DEPBAR\.LE gsb0, (0x\d)", code)
    return [(wait, piece.count("MUFU.EX2")) for wait, piece in zip(pieces[1::2], pieces[2::2])]

for name, kernel in launched:
    told = assembled(kernel.asm["ptx"])
    print(json.dumps([*usage(kernel), "entry function" in told, told.count("serialized"), between_waits(kernel.asm["cubin"])]))
"""


def read(rung, *shape: int, bfloat16: bool = False) -> list:
    call = CALLS[rung.exercise].format(shape=", ".join(map(str, shape)))
    if bfloat16:
        call = "half = lambda *shape: torch.empty(shape, dtype=torch.bfloat16)\n" + call
    (line,) = compiled(USAGE + rung.path.read_text() + WATCH + call + READ).splitlines()
    return json.loads(line)


def compilations() -> list:
    """Rung, N, D, whether bfloat16."""
    found = [(rung, *more) for rung in GLUON for more in ((4096, 64, False), (1000, 128, True))]
    return [*found, *((rung, 1000, 64, True) for rung in GLUON if rung.number == 10)]


@pytest.mark.parametrize(("rung", "n", "d", "bfloat16"), compilations(), ids=lambda p: getattr(p, "label", p))
def test_a_gluon_rung_compiles_and_its_softmax_runs_beside_a_product(rung, n, d, bfloat16):
    _, stack, _, heard, serialised, waits = read(rung, 2, 3, n, d, bfloat16=bfloat16)
    assert heard and serialised == 0
    # ragged, three consumers: column numbers that live across tiles, stored outside the loop over blocks
    assert stack <= (160 if (rung.number, n, d) == (10, 1000, 64) else 0)
    consumers = {9: 1, 10: 3 if d == 64 else 2, 11: 2}[rung.number]
    exps = 34 if (rung.number, d) == (9, 128) else 66  # 64 rows by 64 or 128 keys in 128 threads, and alpha's two
    # where one product is still wanted: all of a block's exponentials, before anything waits for it
    assert [count for wait, count in waits if wait == "0x1"] == [exps] * consumers


def test_where_the_wait_for_the_next_k_stands_decides_at_128(tmp_path):
    (rung,) = [rung for rung in GLUON if rung.number == 9]
    source = rung.path.read_text()
    first, then = [f"        {line}\n" for line in (
        "mbarrier.wait(k_full.index(k_slot), k_phase, pred=i + 1 < n)", "acc = warpgroup_mma_wait(0, (acc,))"
    )]  # fmt: skip
    assert source.count(first + then) == 1
    (tmp_path / "late.py").write_text(source.replace(first + then, then + first))
    waits = read(replace(rung, path=tmp_path / "late.py"), 2, 3, 4096, 128)[-1]
    assert ["0x1", 0] in waits and all(count in (0, 34) for _, count in waits)


@EVERY
def test_a_gluon_rung_refuses_what_it_cannot_do(rung):
    good = torch.zeros(1, 2, 64, 64, dtype=torch.float16)
    shifted = torch.zeros(8193, dtype=torch.float16)[1:].view(good.shape)
    for bad in (good[..., :32].contiguous(), good.float(), good.transpose(1, 2), shifted):
        with pytest.raises(ValueError, match="wants"):
            submission(rung, [bad] * 3, 1)()
    with pytest.raises(ValueError, match="wants"):
        submission(rung, [good, good, good.bfloat16()], 1)()
    with pytest.raises(ValueError, match="wants"):
        submission(rung, [good, good[:, :, :0].contiguous(), good[:, :, :0].contiguous()], 1)()
    nothing = [good[:, :, :0].contiguous()] + [
        good if rung.exercise == "attention" else good[:, :, :0].contiguous()
    ] * 2
    assert submission(rung, nothing, 1)().shape == (1, 2, 0, 64)


@EVERY
def test_a_gluon_rung_is_no_submission(rung):
    with pytest.raises(NotPlain):
        kernels_of(rung.path.read_text())


def test_a_gluon_rung_does_not_pass(grader):
    verdict = grader.grade("attention", GLUON[0].path)
    assert verdict["status"] == "runtime_error" and "wants D = 64 or 128" in json.dumps(verdict["diagnosis"])
