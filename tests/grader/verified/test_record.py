"""What the judge makes of a record that a hostile process could send: a refusal, or a plan that stays in its memory."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from grader.expectation import Values
from grader.guards import Region
from grader.verified import record as form
from grader.verified.replay import layout_for, sizes_of

TTIR = "module {\n  tt.func public @k(%x: !tt.ptr<f32>) attributes {noinline = false} {\n    tt.return\n  }\n}\n"
VALUES = Values((torch.zeros(10, 20), 3, torch.zeros(40, dtype=torch.float16)[::2]), ())
MUTATIONS = 4000
SEED = 20


def view(buffer: int, offset: int = 0, dtype: str = "float32", shape: Any = (10, 20), stride: Any = (20, 1)) -> dict:
    return {"buffer": buffer, "offset": offset, "dtype": dtype, "shape": list(shape), "stride": list(stride)}


def valid() -> dict[str, Any]:
    scalar = {"kind": "scalar", "type": "i32", "value": "200"}
    return {
        "buffers": [
            {"kind": "argument", "position": 0},
            {"kind": "argument", "position": 2},
            {"kind": "scratch", "nbytes": 800, "dtype": "float32"},
        ],
        "kernels": [{"name": "k", "ttir": TTIR, "options": {"num_warps": 4, "enable_fp_fusion": True}}],
        "steps": [
            {"kind": "fill", "to": view(2), "value": {"kind": "scalar", "type": "fp64", "value": (-1.5).hex()}},
            {"kind": "copy", "to": view(2, 400, shape=(5, 20)), "source": view(0, shape=(5, 20))},
            {
                "kind": "launch",
                "kernel": 0,
                "grid": [4, 1, 1],
                "arguments": [
                    {"kind": "pointer", "buffer": 0, "offset": 0},
                    {"kind": "pointer", "buffer": 2, "offset": 80},
                    {"kind": "pointer", "buffer": None},
                    scalar,
                ],
            },
        ],
        "outputs": [view(2), "int"],
    }


def accepted(text: str) -> form.Record:
    """Raises Malformed."""
    record = form.parse(text)
    form.check(record, sizes_of(VALUES, 256))
    return record


def stays_inside(record: form.Record) -> None:
    """Every address that the judge works out for itself lies in the buffer it names."""
    layout, arguments, scratch = layout_for(record, VALUES, 256)
    regions = [*(r for r in arguments if r is not None), *scratch]

    def inside(view: form.View) -> Region:
        region, buffer = view.region(regions), regions[view.buffer]
        assert buffer.offset <= region.offset
        assert region.offset + region.nbytes <= buffer.offset + buffer.nbytes <= layout.size
        return region

    for step in record.steps:
        if isinstance(step, form.Launch):
            assert step.kernel < len(record.kernels)
            for argument in step.arguments:
                if isinstance(argument, form.Scalar):
                    assert -(2**63) <= argument.number() < 2**64 or isinstance(argument.number(), float)
                elif argument.buffer is not None:
                    assert 0 <= argument.offset <= regions[argument.buffer].nbytes
        else:
            inside(step.to)
            if isinstance(step, form.Copy):
                inside(step.source)
    for output in record.outputs:
        if isinstance(output, form.View):
            inside(output)


def test_the_valid_record_is_accepted_as_it_is():
    record = accepted(json.dumps(valid()))
    stays_inside(record)
    assert record.launches == 1
    assert accepted(form.dump(record)) == record


JUNK: list[Any] = [
    None, True, -1, 0, 1, 7, 2**31, 2**63, 2**70, 1e300, "", "x", "float16", "-1", "nan", "1" * 5000, [], [0], {},
    [1] * 40, {"kind": "launch"}, {"kind": "pointer", "buffer": 9}, [[]], "\ud800",
]  # fmt: skip


def mutated(draw: random.Random) -> Any:
    tree = copy.deepcopy(valid())
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        node: Any = tree
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = draw.choice(keys)
            if isinstance(node[key], (dict, list)) and node[key] and draw.random() < 0.8:
                node = node[key]
                continue
            change = draw.random()
            if change < 0.15:
                del node[key]
            elif change < 0.25 and isinstance(node, list):
                node.append(copy.deepcopy(node[key]))
            elif change < 0.5 and isinstance(node[key], int):
                node[key] += draw.choice((-1, 1, 2, 4, 80, 400, 2**32))
            else:
                node[key] = copy.deepcopy(draw.choice(JUNK))
            break
    return tree


def test_every_mutation_is_refused_or_stays_inside():
    draw = random.Random(SEED)
    refused = kept = 0
    for _ in range(MUTATIONS):
        try:
            record = accepted(json.dumps(mutated(draw)))
        except form.Malformed:
            refused += 1
        else:
            kept += 1
            stays_inside(record)
    assert refused > MUTATIONS // 2 and kept > MUTATIONS // 50, (refused, kept)


def test_every_cut_and_every_changed_character_is_refused_or_stays_inside():
    draw, text = random.Random(SEED), json.dumps(valid())
    for _ in range(MUTATIONS):
        place = draw.randrange(len(text))
        changed = text[:place] + draw.choice(['"', "[", "}", "9", "-", "e", "\x00", ""]) + text[place + 1 :]
        for candidate in (changed, text[:place]):
            with contextlib.suppress(form.Malformed):
                stays_inside(accepted(candidate))


def changed(path: str, value: Any) -> str:
    tree = valid()
    *way, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    node: Any = tree
    for step in way:
        node = node[step]
    node[last] = value
    return json.dumps(tree)


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("kernels.0.options", {"ptx_options": 1}, "ptx_options"),
        ("kernels.0.options", {"num_warps": 0}, "num_warps"),
        ("kernels.0.options", {"num_warps": True}, "num_warps"),
        ("kernels.0.name", "other", "exactly one kernel"),
        ("kernels.0.ttir", TTIR.replace("@k", '@"../../k"'), "exactly one kernel"),
        ("kernels.0.ttir", TTIR + TTIR.replace("@k", "@other"), "exactly one kernel"),
        ("kernels.0.ttir", TTIR + TTIR.replace("@k", '@"other"'), "exactly one kernel"),
        ("steps.2.grid", [1, 70000, 1], "grid"),
        ("steps.2.grid", [-1, 1, 1], "grid"),
        ("steps.2.kernel", 1, "no kernel 1"),
        ("steps.2.arguments.0.buffer", 3, "outside buffer 3"),
        ("steps.2.arguments.1.offset", 801, "outside buffer 2"),
        ("steps.2.arguments.3.value", str(2**32), "i32"),
        ("steps.2.arguments.3.type", "i128", "scalar type"),
        ("steps.2.arguments.3.value", "1e5", "i32"),
        ("steps.0.to.offset", 4, "outside buffer 2"),
        ("steps.0.to.offset", 2, "outside buffer 2"),
        ("steps.0.to.stride", [0, 1], "several times"),
        ("steps.0.to.stride", [1, 1], "several times"),
        ("steps.0.to.stride", [20, -1], "int"),
        ("steps.1.source.shape", [4, 25], "different shapes"),
        ("outputs.0.dtype", "complex64", "no such view"),
        ("outputs.0.shape", [10, 21], "outside buffer 2"),
        ("buffers.2.nbytes", 2**35, "GiB"),
        ("buffers.2.dtype", "__doc__", "dtype"),
        ("buffers.1.position", 1, "tensor arguments"),
        ("buffers", [], "tensor arguments"),
        ("extra", 1, "unknown field"),
    ],
)
def test_a_record_is_refused_with_the_reason(path, value, why):
    with pytest.raises(form.Malformed, match=why):
        accepted(changed(path, value))


@pytest.mark.parametrize(
    "make",
    [
        lambda: "[" * 100_000,
        lambda: "9" * 1_000_000,
        lambda: '{"buffers": ' + "[" * 50_000 + "]" * 50_000 + "}",
        lambda: changed("kernels.0.ttir", TTIR + " " * (form.MOST_TTIR + 1)),
        lambda: json.dumps({**valid(), "kernels": [{**valid()["kernels"][0], "ttir": TTIR + " " * (1 << 20)}] * 9}),
        lambda: json.dumps({**valid(), "steps": valid()["steps"] * (form.MOST_STEPS // 3 + 1)}),
        lambda: json.dumps({**valid(), "buffers": valid()["buffers"] + [valid()["buffers"][2]] * form.MOST_BUFFERS}),
        lambda: " " * (form.LONGEST + 1),
    ],
)
def test_what_is_too_large_is_refused(make: Callable[[], str]):
    with pytest.raises(form.Malformed):
        accepted(make())


def test_integers_reach_the_launcher_as_the_signed_number_with_those_bits():
    assert form.Scalar("u32", str(2**32 - 1)).number() == -1
    assert form.Scalar("i64", str(-(2**63))).number() == -(2**63)
    assert form.Scalar("u64", str(2**63)).number() == -(2**63)
    assert form.Scalar("i1", "1").number() == form.Scalar("u1", "1").number() == 1
    assert form.Scalar("fp32", "-inf").number() == float("-inf")
