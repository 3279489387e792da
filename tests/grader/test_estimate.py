"""The model of a GPU that is not there: its parts by hand-made figures, and the whole beside an H200's record."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grader import footprint, instruction_mix, offline
from grader.catalog import find
from grader.devices import A100, DEVICES, H100, H200, MI300X, RTX_4090
from grader.estimate import COPY_SHARE, LAUNCH_US, Call, Launch, estimate, resident
from grader.instruction_mix import Issue, Mix
from grader.watch import Access, Extent, LaunchTrace

REPOSITORY = Path(__file__).resolve().parents[2]
LAUNCH = Launch("k", programs=65536, num_warps=4, registers=26, shared_bytes=0)
ADD = Call(2 * 2**28, 0, 2**28, 2**26, (LAUNCH,), 3 * 2**28)


# -- the table of devices


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (A100, r"A100 80GB SXM datasheet: 2,039 GB/s, FP32 19\.5 TFLOPS, FP16 Tensor Core 312"),
        (H100, r"H100 SXM datasheet: 3\.35 TB/s, FP32 67 TFLOPS, FP16 Tensor Core 1,979"),
        (H200, r"H200 SXM datasheet: 4\.8 TB/s, FP32 67 TFLOPS, FP16 Tensor Core 1,979"),
        (MI300X, r"MI300X data sheet \(2023\): 304 compute units, 5\.3 TB/s, 1,307 TFLOP/s fp16 dense, 64 KB LDS"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_table_says_what_the_course_cites(device, words):
    course = "".join(path.read_text() for path in (REPOSITORY / "modules").glob("0*.yaml"))
    assert re.search(words, course)
    figures = [float(text.replace(",", "")) for text in re.findall(r"\d[\d,]*\.?\d*", words.replace("\\", ""))]
    terabytes = "TB/s" in words
    assert device.gb_per_s / (1000 if terabytes else 1) in figures
    half = 2 if "1,979" in words else 1  # printed with sparsity
    assert any(abs(device.tflops["fp16"] * half - figure) < 1 for figure in figures)
    assert device.sources and all(device.sources)


def test_programs_on_a_multiprocessor_agree_with_the_verdicts_occupancy():
    for registers, shared, warps in ((26, 0, 4), (255, 0, 8), (64, 100_000, 4), (128, 49_152, 8), (32, 0, 1)):
        for device in (A100, H200, RTX_4090):
            launch = Launch("k", 1000, warps, registers, shared)
            known = offline.occupancy(device.target, registers, shared, warps)
            if known:
                assert resident(device, launch) * warps / device.warps == pytest.approx(known, abs=1e-4)


# -- the rules


def test_a_stream_takes_its_bytes_over_the_bandwidth_that_a_copy_reaches():
    found = estimate(H200, ADD)
    assert (found.limit, found.device) == ("memory", "NVIDIA H200 SXM")
    assert found.time_us == pytest.approx(3 * 2**28 / (4800 * COPY_SHARE * 1000) + LAUNCH_US)
    assert found.time_us == found.limit_us
    assert estimate(A100, ADD).time_us > 2 * found.time_us
    assert found.as_dict()["model"] is True


def test_what_is_read_again_counts_when_the_l2_cannot_hold_it():
    again = replace(ADD, again_bytes=2**28, launches=(replace(LAUNCH, programs=4096),))
    assert estimate(H200, again).moved_bytes == 4 * 2**28  # 2112 programs x 128 KB
    small = replace(again, read_bytes=2**20, launches=(replace(LAUNCH, programs=65536),))
    assert estimate(H200, small).moved_bytes == 2**20 + 2**28


def test_many_small_programs_wait_for_their_starts():
    found = estimate(H200, replace(ADD, launches=(replace(LAUNCH, programs=2**20),)))
    assert (found.limit, round(found.starts_us)) == ("starts", round(2**20 / 1980))


def test_few_loads_under_way_leave_bandwidth_unused():
    looped = replace(ADD, in_flight_bytes=256.0)
    narrow = replace(looped, launches=(replace(LAUNCH, registers=255),))
    assert estimate(H200, narrow).limit == "latency"
    assert estimate(H200, narrow).time_us > 3 * estimate(H200, ADD).time_us
    staged = replace(narrow, launches=(replace(LAUNCH, registers=255, stages=4),))
    assert estimate(H200, staged).memory_us == pytest.approx(estimate(H200, narrow).memory_us / 4)


def test_a_tiny_call_waits_for_its_launches():
    tiny = replace(
        ADD, read_bytes=8192, written_bytes=4096, least_bytes=12288, launches=(replace(LAUNCH, programs=4),) * 3
    )
    assert estimate(H200, tiny).limit == "launch"
    assert estimate(H200, tiny).launch_us == 3 * LAUNCH_US


def test_products_go_to_the_tensor_cores_and_a_last_wave_leaves_some_idle():
    mix = Mix("fp16", flops=2**20, issued=10, special=0)
    flops = 2.0 * 4096**3
    whole = Call(0, 0, 0, flops, (Launch("k", 264, 8, 128, 0, mix),), 1)
    ragged = replace(whole, launches=(Launch("k", 265, 8, 128, 0, mix),))
    assert estimate(H200, whole).compute_us == pytest.approx(flops / (989.5e6 * 0.75), rel=0.01)
    assert estimate(H200, ragged).compute_us == pytest.approx(
        estimate(H200, whole).compute_us * 3 / (265 / 132), rel=0.01
    )
    plain = replace(whole, launches=(Launch("k", 264, 8, 128, 0),))
    assert estimate(H200, plain).compute_us > 20 * estimate(H200, whole).compute_us


def test_exponentials_beside_products_cost_when_a_program_is_alone():
    mix = Mix("fp16", flops=2**20, issued=400, special=128)
    together = Call(0, 0, 0, 1e12, (Launch("k", 13200, 8, 64, 0, mix),), 1)
    alone = replace(together, launches=(Launch("k", 13200, 8, 64, 200_000, mix),))
    assert estimate(H200, alone).compute_us > 1.2 * estimate(H200, together).compute_us


def test_issue_is_the_warps_times_the_slowest_of_the_rates_over_the_clock():
    plain = Issue(issued=400, integer=0, products=0, floating=0, special=0, shuffles=0)

    def us(device, **fields):
        launch = Launch("k", device.multiprocessors * 100, 4, 32, 0, issue=replace(plain, **fields))
        return estimate(device, Call(0, 0, 0, 0, (launch,), 1)).issue_us

    clocks = 400  # warps of a multiprocessor, 100 programs of 4
    assert us(H200) == pytest.approx(clocks * 400 / 4 / 1980)
    assert us(H200, integer=240) == pytest.approx(clocks * 240 / 2 / 1980)  # 64 lanes for a warp of 32
    assert us(H200, products=240) == us(H200, integer=240)
    assert us(H200, special=60) == pytest.approx(clocks * 60 * 2 / 1980)  # 16 lanes
    assert us(H200, shuffles=110) == pytest.approx(clocks * 110 / 1980)  # 32 lanes
    assert us(H200, floating=360) == us(H200)  # 128 lanes: as many as start
    assert us(A100, floating=360) == pytest.approx(clocks * 360 / 2 / 1410)  # 64
    assert [d.float_lanes for d in (A100, H100, RTX_4090)] == [64, 128, 128]


def test_a_call_that_issues_more_than_it_moves_waits_for_it():
    issue = Issue(issued=4000, integer=0, products=0, floating=0, special=0, shuffles=0)
    found = estimate(H200, replace(ADD, launches=(replace(LAUNCH, issue=issue),)))
    assert (found.limit, found.as_dict()["issue_us"]) == ("issue", round(found.issue_us, 3))
    assert found.time_us == pytest.approx(65536 * 4 * 1000 / 132 / 1980 + LAUNCH_US)
    assert found.limit_us == estimate(H200, ADD).limit_us  # the task's, which has no instructions


def test_of_an_autotuners_trials_the_best_counts_once():
    trials = tuple(replace(LAUNCH, programs=n, trial=True) for n in (2**21, 2**16, 2**20))
    found = estimate(H200, replace(ADD, launches=(*trials, replace(LAUNCH, programs=2**21))))
    assert found.limit == "memory" and found.starts_us == pytest.approx(2**16 / 1980)


# -- what goes in


PTX = """
.visible .entry k()
{
	mov.u32 %r1, %tid.x;
	ex2.approx.ftz.f32 %f9, %f8;
$L__BB0_2:
	cp.async.cg.shared.global [ %r1 + 0 ], [ %rd4 + 0 ], 0x10, %r2;
	@%p3 ld.global.v2.b32 {%r7, %r8}, [%rd5];
	ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r9];
	wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%f1}, %rd1, %rd2, %p1, 1, 1, 0, 1;
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};
	ex2.approx.ftz.f32 %f3, %f2;
	add.f32 %f4, %f3, %f2;
	@%p2 bra $L__BB0_2;
	st.global.v4.b32 [%rd3], {%r1, %r2, %r3, %r4};
	ret;
}
"""


def test_the_mix_of_a_loop_is_read_off_its_ptx():
    mix = instruction_mix.of_assembly(PTX)
    assert mix is not None
    assert (mix.kind, mix.special, mix.issued, mix.loaded) == (
        "fp16",
        1,
        5,
        24,
    )  # the exponential before the loop does not count
    assert mix.flops == 2 * 64 * 128 * 16 / 4 + 2 * 16 * 8 * 16
    assert instruction_mix.of_assembly(PTX.replace("wgmma.mma_async", "nothing").replace("mma.sync", "nothing")) is None


SASS = """
	code for sm_90a
		Function : routine
        /*0000*/                   FADD R1, R1, R2 ;            /* 0x0000000000000000 */
        /*0010*/                   EXIT ;                       /* 0x0000000000000000 */
		Function : k
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;       /* 0x00000a00ff017b82 */
                                                                /* 0x000e220000000800 */
        /*0010*/                   IMAD.WIDE.U32 R2, R0, 0x4, R4 ;
        /*0020*/                   IMAD.HI.U32 R3, R0, 0x4, RZ ;
        /*0030*/                   IMAD.MOV.U32 R3, RZ, RZ, R5 ;
        /*0040*/              @!P0 LDG.E.128 R4, [R2.64] ;
        /*0050*/                   NOP ;
        /*0060*/               @P1 BRA 0x80 ;
        /*0070*/                   FADD R4, R4, R5 ;
        /*0080*/                   SHF.R.S32.HI R6, RZ, 0x1f, R4 ;
        /*0090*/                   FFMA.FTZ R4, R4, R5, R6 ;
        /*00a0*/                   MUFU.EX2 R4, R4 ;
        /*00b0*/                   SHFL.BFLY PT, R7, R4, 0x1, 0x1f ;
        /*00c0*/                   FMUL R4, R4, R4 ;
        /*00d0*/              @!P2 BRA 0xb0 ;
        /*00e0*/               @P0 EXIT ;
        /*00f0*/                   STG.E.128 [R2.64], R4 ;
        /*0100*/                   EXIT ;
        /*0110*/                   FADD R4, R4, R5 ;
        /*0120*/                   BRA 0x120 ;
"""


def test_what_a_warp_issues_once_is_read_off_the_machine_code():
    """Not the loop from 0xb0, not the sum that a jump passes over, nothing after the last end."""
    assert instruction_mix.outside_loops(SASS, "k") == Issue(
        issued=12, integer=1, products=2 + 2 + 1, floating=1, special=1, shuffles=0
    )
    assert instruction_mix.outside_loops(SASS.replace("@!P2 BRA 0xb0", "@!P2 BRA 0xe0"), "k") == Issue(
        issued=15, integer=1, products=5, floating=2, special=1, shuffles=1
    )
    assert instruction_mix.outside_loops(SASS, "other") is None
    assert instruction_mix.outside_loops("", "k") is None


def access(kind: str, program: int, addresses: list[int], line: int = 1) -> Access:
    where, nothing = np.array(addresses, dtype=np.uint64), np.zeros(len(addresses), dtype=np.uint64)
    lanes = np.arange(len(addresses))
    return Access(
        kind=kind, program=program, addresses=where, lanes=lanes, values=nothing, before=nothing, itemsize=4,  # type: ignore[arg-type]
        line=line, epoch=0,
    )  # fmt: skip


def test_bytes_read_again_are_told_from_bytes_that_programs_share():
    launch = LaunchTrace((2,), [Extent("x", 0, 64, 0, 4)])
    launch.accesses += [access("load", 0, [0, 4, 8]), access("load", 0, [0, 4]), access("load", 1, [8, 12], line=2)]
    launch.accesses += [access("store", 0, [32]), access("store", 1, [36])]
    found = footprint.of_call([launch])
    assert (found["read"], found["again"], found["shared"], found["written"]) == (16, 8, 4, 8)
    assert (found["programs"], found["loops"], found["load_bytes"]) == (2, True, 12)


# -- the whole


def row(grader, slug: str, file: Path | None = None, **fields):
    event, _ = grader.ask("estimate", exercise=slug, file=str(file or find(slug).solution), **fields)
    assert event["event"] == "answer", event
    return event["data"]["rows"][0]


@pytest.mark.parametrize("slug", ["vector_add", "softmax", "online_softmax", "row_max", "program_ids"])
def test_the_model_lies_within_25_per_cent_of_the_record(grader, slug):
    record = json.loads((REPOSITORY / "benchmarks" / "results" / "bench-nvidia-h200.json").read_text())
    measured = next(result for result in record["results"] if result["exercise"] == slug)
    assert hashlib.sha256(find(slug).solution.read_bytes()).hexdigest() == measured["sha256"], "measure it again"
    found = row(grader, slug)
    timed = next(each for each in measured["rows"] if each["case"] == found["case"])
    assert found["time_us"] == pytest.approx(timed["median_us"], rel=0.25)


def test_online_softmax_is_told_to_read_its_rows_twice(grader):
    found = row(grader, "online_softmax")
    assert found["moved_bytes"] == pytest.approx(1.5 * found["least_bytes"])
    assert found["percent_of_limit"] < 70


def test_many_products_of_integers_take_longer_than_the_memory_and_a_loop_is_left_out(grader):
    dropout = row(grader, "seeded_dropout")
    assert dropout["limit"] == "issue" and dropout["issue_us"] > 1.2 * dropout["memory_us"]
    assert row(grader, "histogram")["issue_us"] < 1  # its loop runs as often as there are elements
    assert row(grader, "seeded_dropout", device="mi300x")["issue_us"] == 0


@pytest.mark.parametrize("device", sorted(DEVICES))
def test_every_device_of_the_table_has_an_estimate(grader, device):
    found = row(grader, "row_sum", device=device)
    assert found["device"] == DEVICES[device].name and found["limit"] == "memory"
    assert found["time_us"] == pytest.approx(2**28 / DEVICES[device].gb_per_s / COPY_SHARE / 1000, rel=0.1)


def test_a_file_that_fails_has_no_estimate_and_says_why(grader, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(find("vector_add").solution.read_text().replace("x + y", "x - y"))
    assert "does not pass" in row(grader, "vector_add", file)["reason"]


def test_the_verdict_carries_it_only_when_timing_is_asked_for_and_nothing_can_be_measured(submit):
    change = ("x + y", "y + x")
    assert submit("vector_add", change)["estimate"] is None
    verdict = submit("vector_add", change, time=True)
    assert verdict["timing"] is None and verdict["estimate"]["model"] is True
