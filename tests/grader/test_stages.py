"""Every stage of the compiler, on real output: which line of the learner's file each line comes from, and what matters."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from grader.catalog import find
from grader.stages.locations import Line, library_callers, read_assembly, read_mlir, read_sass
from grader.stages.marks import mark
from tests.grader.server import RealGrader

NVIDIA = ["ttir", "ttgir", "llir", "ptx", "sass"]


@pytest.fixture
def stages(grader: RealGrader, tmp_path: Path):
    """The answer for an exercise's solution, after replacing pieces of its text."""

    def ask(exercise: str, *changes: tuple[str, str], fails: bool = False, **fields):
        text = find(exercise).solution.read_text()
        for old, new in changes:
            assert old in text, f"{old!r} is not in the solution any more"
            text = text.replace(old, new)
        file = tmp_path / f"{exercise}.py"
        file.write_text(text)
        event, _ = grader.ask("stages", exercise=exercise, file=str(file), **{"sizes": "case", **fields})
        assert event["event"] == ("failed" if fails else "answer"), event
        return event if fails else event["data"]

    return ask


def of(kernel, stage):
    return next(found for found in kernel["stages"] if found["id"] == stage)


def line_of(data, text):
    """The only line of the submission that holds this text, from 1."""
    (number,) = [n for n, line in enumerate(data["source"].splitlines(), 1) if text in line]
    return number


def marked(stage, kind):
    """Each marked line of a kind: its lines of the file, and the words."""
    return [(stage["lines"][row], words) for row, found, words in stage["marks"] if found == kind]


def test_each_load_product_and_store_of_matmul_comes_from_its_line_in_every_stage(stages):
    data = stages("matmul", sizes="timed")
    (kernel,) = data["kernels"]
    assert [stage["id"] for stage in kernel["stages"]] == NVIDIA
    loads = {line_of(data, "a = tl.load("), line_of(data, "b = tl.load(")}
    machine = stages("matmul", sizes="timed", sass=0)["sass"]
    for stage in (*kernel["stages"][:4], machine):
        name = stage["id"]
        assert len(stage["lines"]) == len(stage["text"].split("\n"))
        expected = {
            "load" if name == "ttir" else "async": loads,
            "tensor": {line_of(data, "acc = tl.dot(")},
            "store": {line_of(data, "tl.store(c_ptrs")},
        }
        for kind, lines in expected.items():
            found = {lines[0] for lines, _ in marked(stage, kind)}
            # ptxas moves instructions, and may name the line of a neighbour
            assert found >= lines if name == "sass" else found == lines, (name, kind)
    wide = "asynchronous copy, 128 bit"
    assert {words for _, words in marked(of(kernel, "ptx"), "async")} == {f"{wide}, predicated"}
    assert len(marked(machine, "async")) == len(marked(of(kernel, "ptx"), "async")) > 0
    assert dict(kernel["counts"])[wide] == len(marked(machine, "async"))
    assert kernel["numbers"]["registers"] > 0 and kernel["numbers"]["occupancy"] > 0


def test_a_function_of_tritons_is_shown_where_it_was_inlined(stages):
    data = stages("softmax")
    (kernel,) = data["kernels"]
    largest, total = line_of(data, "tl.max("), line_of(data, "tl.sum(")
    for stage in (*kernel["stages"][:4], stages("softmax", sass=0)["sass"]):
        inlined = [stage["lines"][int(row)] for row, name in stage["library"].items() if "standard.py" in name]
        assert {line for lines in inlined for line in lines} >= {largest, total}, stage["id"]
        shuffles = {lines[0] for lines, _ in marked(stage, "shuffle")}
        assert shuffles == {largest, total}, stage["id"]


def test_a_helper_of_the_learners_own_leads_to_its_line_and_to_the_call(stages):
    helper = "@triton.jit\ndef shifted(x, largest):\n    return tl.exp(x - largest)\n\n\n"
    data = stages(
        "softmax",
        ("@triton.jit\n", helper + "@triton.jit\n"),
        ("tl.exp(x - tl.max(x, axis=0))", "shifted(x, tl.max(x, axis=0))"),
    )
    inside, call = line_of(data, "return tl.exp("), line_of(data, "numerator = ")
    for stage in data["kernels"][0]["stages"][:4]:
        assert [inside, call] in stage["lines"], stage["id"]


def test_amd_has_its_assembly_in_the_place_of_ptx_and_machine_code(stages):
    data = stages("matmul", target="gfx942")
    (kernel,) = data["kernels"]
    assert [stage["id"] for stage in kernel["stages"]] == ["ttir", "ttgir", "llir", "amdgcn"]
    assembly = of(kernel, "amdgcn")
    assert {lines[0] for lines, _ in marked(assembly, "tensor") if lines} == {line_of(data, "acc = tl.dot(")}
    assert {lines[0] for lines, _ in marked(assembly, "store")} == {line_of(data, "tl.store(c_ptrs")}
    assert stages("matmul", target="gfx942", sass=0) == {"sass": None}


def test_spills_are_marked_in_the_machine_code_and_in_the_figures(stages):
    tight = ("num_warps=num_warps,", "num_warps=1, maxnreg=64,")
    data = stages("softmax", tight, sizes="timed")
    assert data["kernels"][0]["numbers"]["spill_bytes"] > 0
    assert marked(stages("softmax", tight, sizes="timed", sass=0)["sass"], "spill")
    assert not marked(stages("softmax", sass=0)["sass"], "spill")


def test_other_warps_are_compiled_whatever_the_launch_says(stages):
    assert stages("matmul", num_warps=8)["kernels"][0]["numbers"]["num_warps"] == 8
    assert stages("matmul")["kernels"][0]["numbers"]["num_warps"] == 4
    assert "power of two" in stages("matmul", num_warps=3, fails=True)["message"]


def test_the_sizes_are_those_that_are_timed_or_those_of_a_case(stages):
    timed, case = stages("matmul", sizes="timed"), stages("matmul")
    assert (timed["sizes"], timed["case"]) == ("timed", "4096x4096x4096 float16")
    assert case["sizes"] == "case" and case["case"] != timed["case"]
    tensor = [{words for _, words in marked(of(d["kernels"][0], "ptx"), "tensor")} for d in (timed, case)]
    assert tensor == [{"tensor-core instruction (wgmma)"}, {"tensor-core instruction (mma)"}]


def test_a_call_that_needs_its_values_is_compiled_as_in_a_case(stages):
    looks = (
        "grid = (triton.cdiv(M, BLOCK_M)",
        "assert float(a.sum()) is not None\n    grid = (triton.cdiv(M, BLOCK_M)",
    )
    data = stages("matmul", looks, sizes="timed")
    assert data["sizes"] == "case" and data["kernels"] and data["error"] is None


def test_each_configuration_of_an_autotuned_kernel_is_a_kernel(stages):
    data = stages("autotuned_add")
    assert data["total"] == len(data["kernels"]) > 1
    told = [(k["constexprs"]["BLOCK"], k["numbers"]["num_warps"]) for k in data["kernels"]]
    assert len(set(told)) == len(told)


def test_what_does_not_compile_names_the_line(stages):
    data = stages("vector_add", ("x = tl.load(", "x = tl.lod("))
    assert data["kernels"] == [] and data["error"]["status"] == "compile_error"
    assert data["error"]["line"] == line_of(data, "tl.lod(")
    broken = stages("vector_add", ("def add(", "def add(:"))
    assert broken["error"]["line"] == line_of(broken, "def add(:")


def test_no_text_names_a_scratch_folder_beside_the_locations(stages):
    (kernel,) = stages("vector_add")["kernels"]
    for stage in kernel["stages"][:2]:
        assert "loc(" not in stage["text"] and "triton-prep-" not in stage["text"]
    assert ".loc" not in of(kernel, "ptx")["text"] and "debug" not in of(kernel, "ptx")["text"].replace(", debug", "")


# what the kernels above do not happen to hold

MLIR = """\
#loc = loc("/x/k.py":3:0)
#loc1 = loc(unknown)
module {
  %a = arith.constant 1 : i32 loc(#loc4)
  %b = "tt.reduce"(%a) ({
  ^bb0(%c: f32 loc(callsite(#loc1 at #loc2))):
    tt.reduce.return %c : f32 loc(#loc5)
  }) : (i32) -> i32 loc("b"(#loc2))
  %d = arith.addi %a, %b : i32 loc(fused<"why">[#loc2, "/x/k.py":9:4])
  %e = arith.addi %a, %b : i32 loc("/x (1)/k.py":9:4)
} loc(#loc)
#loc2 = loc("/x/k.py":5:1 to :7)
#loc3 = loc("/lib/standard.py":40:2)
#loc4 = loc("a"(#loc1))
#loc5 = loc(callsite(#loc3 at callsite("/x/k.py":7:1 at #loc2)))
"""


def test_mlir_locations_of_every_form():
    lines = read_mlir(MLIR, "/x/k.py")
    assert [line.lines for line in lines] == [(3,), (), (5,), (), (7, 5), (5,), (5, 9), (), (3,)]
    assert lines[4] == Line("    tt.reduce.return %c : f32", (7, 5), "standard.py:40")
    assert lines[2].text == '  %b = "tt.reduce"(%a) ({'


PTX = """\
.visible .entry k(
	.param .u64 k_param_0
)
{
	.loc	1 5 1
	mov.u32 	%r1, %tid.x;
	.loc	2 40 2, function_name $L__info_string0, inlined_at 1 7 3 // standard.py:40:2
	shfl.sync.bfly.b32 	%r2, %r1, 16, 31, -1;
	.loc	2 20 2, function_name $L__info_string0, inlined_at 2 40 2
	max.f32 	%r3, %r1, %r2;
	.loc	2 20 2                          // standard.py:20:2 @[ k.py:9:4 ]
	max.f32 	%r3, %r1, %r2;
	ret;
}
	.file	1 "/x/k.py"
	.file	2 "/lib" "standard.py"
	.section	.debug_str
	{
.b8 1
	}
"""


def test_ptx_says_where_a_line_was_inlined_in_both_of_its_ways():
    lines = read_assembly(PTX, "/x/k.py")
    assert [line.lines for line in lines] == [(), (), (), (), (5,), (7,), (7,), (9,), (9,), ()]
    assert library_callers(lines) == {"standard.py:40": (7,), "standard.py:20": (7, 9)}


SASS = """\
.text.k:
	//## File "/x/k.py", line 5
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/lib/standard.py", line 20
        /*0010*/              @!P0 STG.E.128 desc[UR4][R2.64], R4 ;
	//## File "/lib/standard.py", line 20 inlined at "/x/k.py", line 9
	//## File "/x/k.py", line 9
        /*0020*/              @!PT LDS RZ, [RZ] ;
"""


def test_machine_code_without_inlining_names_every_place_it_may_come_from():
    lines = read_sass(SASS, "/x/k.py", {"standard.py:20": (7, 9)})
    assert [line.lines for line in lines] == [(), (5,), (7, 9), (9,)]
    assert lines[2].library == "standard.py:20"


@pytest.mark.parametrize(
    ("stage", "text", "told"),
    [
        ("ptx", "@%p1 ld.global.L1::evict_last.v2.b64 { %rd1, %rd2 }, [ %rd3 + 0 ];", "vector load, 128 bit, predicated"),
        ("ptx", "ld.global.b16 { %rs1 }, [ %rd3 + 0 ];", "load, 16 bit"),
        ("ptx", "ld.param.b64 	%rd8, [k_param_2];", None),
        ("ptx", "st.local.v4.b32 [%rd1], {%r1, %r2, %r3, %r4};", "store of local memory, 128 bit"),
        ("ptx", "atom.global.gpu.acq_rel.add.f32 %f1, [ %rd1 + 0 ], %f2;", "atomic operation"),
        ("ptx", "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%f1}, 1;", "tensor-core instruction (wgmma)"),
        ("ptx", "@%p1 tcgen05.mma.cta_group::1.kind::f16 [ %r1 ], %rd1;", "tensor-core instruction (tcgen05), predicated"),
        ("ptx", "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1];",
         "asynchronous tile copy (TMA)"),
        ("sass", "  /*0690*/ @P0 LDG.E.LTC128B.128.CONSTANT R4, desc[UR4][R2.64] ;", "vector load, 128 bit, predicated"),
        ("sass", "  /*0690*/ LDG.E.U16 R4, desc[UR4][R2.64] ;", "load, 16 bit"),
        ("sass", "  /*0690*/ @!PT LDS RZ, [RZ] ;", None),
        ("sass", "  /*0690*/ STL.64 [R1+0x8], R4 ;", "store of local memory, 64 bit"),
        ("sass", "  /*0690*/ UTMALDG.2D [UR8], [UR4] ;", "asynchronous tile copy (TMA)"),
        ("sass", "  /*0690*/ HGMMA.64x64x16.F32 R24, R4, gdesc[UR8] ;", "tensor-core instruction (wgmma)"),
        ("amdgcn", "    global_load_dwordx4 v[0:3], v[4:5], off", "vector load, 128 bit"),
        ("amdgcn", "    scratch_store_dwordx2 off, v[0:1], s33 ; 8-byte Folded Spill", "store of scratch memory, 64 bit"),
        ("amdgcn", "    global_atomic_add_f32 v0, v1, s[0:1]", "atomic operation"),
        ("llir", "  %1 = load <4 x i32>, ptr addrspace(1) %0, align 16", "vector load, 128 bit"),
        ("llir", "declare void @llvm.nvvm.barrier0()", None),
        ("ttir", "%x = tt.load %p : tensor<64x!tt.ptr<f32>>", "load of a tensor"),
        ("ttir", "tt.store %p, %v, %m : tensor<64x!tt.ptr<f32>>", "store of a tensor, masked"),
        ("ttgir", "%1 = ttg.convert_layout %0 : tensor<64xf32, #a> -> tensor<64xf32, #b>", "layout conversion"),
        ("ttgir", "%1 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf16>", "matrix product by a group of four warps (wgmma)"),
    ],
)  # fmt: skip
def test_a_line_that_matters_has_words(stage, text, told):
    found = mark(stage, text)
    assert (found.told if found else None) == told


def test_ptx_and_machine_code_count_the_same_accesses(stages):
    """They are two readings of one kernel: a rule that misses an instruction shows here."""
    for exercise in ("vector_add", "softmax", "attention"):
        kernel = stages(exercise)["kernels"][0]
        machine = stages(exercise, sass=0)["sass"]
        for kind in ("load", "store", "async", "tensor"):
            words = [
                Counter(w.removesuffix(", predicated") for _, w in marked(s, kind))
                for s in (of(kernel, "ptx"), machine)
            ]
            assert words[0] == words[1], (exercise, kind)
