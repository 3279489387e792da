"""The kernels by themselves: what is kept of a file, what a record may say, and what comes of carrying it out."""

from __future__ import annotations

import random
import subprocess
import sys

import msgspec
import pytest
import torch

from grader.catalog import exercises
from grader.kernels_alone import record as form
from grader.kernels_alone.operators import function_of
from grader.kernels_alone.plain import OUT_OF_THE_LANGUAGE, NotPlain, kernels_of
from grader.verified.record import Argument, Copy, Fill, Malformed, Scalar, Scratch, View

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
KERNEL = HEAD + "@triton.jit\ndef k(x_ptr, n, BLOCK: tl.constexpr):\n    {}\n"


@pytest.mark.parametrize("files", exercises(), ids=lambda f: f.slug)
def test_the_kernels_of_every_solution_stand_by_themselves(files):
    text = kernels_of(files.solution.read_text())
    assert "import torch" not in text and "@triton.jit" in text
    compile(text, "kernels.py", "exec")


def test_the_host_s_code_and_tuning_are_left_out():
    text = kernels_of(
        HEAD
        + "import os\nSIZE = tl.constexpr(4)\nPATH = os.environ\nHALF: tl.constexpr = SIZE.value // 2\n"
        + "@triton.autotune(configs=[triton.Config({'BLOCK': 4})], key=['n'])\n@triton.jit\n"
        + "def k(x_ptr, n, BLOCK: tl.constexpr):\n    tl.store(x_ptr, SIZE)\n"
        + "def host(x):\n    os.system('true')\n    k[(1,)](x, 1)\n"
    )
    assert (
        "os" not in text.replace("tl.constexpr", "").split("def k")[0].replace("constexpr", "") and "host" not in text
    )
    assert "autotune" not in text and "SIZE = tl.constexpr(4)" in text


def test_python_s_math_is_kept_for_constants():
    text = kernels_of(
        "import math\n"
        + HEAD
        + "SCALE = tl.constexpr(1 / math.sqrt(2 / math.pi))\n"
        + "@triton.jit\ndef k(x_ptr):\n    tl.store(x_ptr, SCALE * math.sqrt(2.0))\n"
    )
    assert "import math" in text and "SCALE = " in text
    compile(text, "kernels.py", "exec")


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "x_ptr.handle.data",
        "x_ptr.__class__",
        "tl.core.os.system('true')",
        "tl.math.core.builtins.eval('1')",
        "tl.standard.jit(k)",
        "tl.load = n",
        "open('/etc/passwd')",
        "eval('1')",
        "getattr(tl, 'core')",
        "torch.add(x_ptr, x_ptr)",
        "[c for c in ().__class__.__base__.__subclasses__()]",
        "(lambda: n)()",
        "global torch",
        "tl.tensor.to.__globals__",
        "k.fn",
        "k.run(n)",
        "x_ptr[0] = n",
        "try:\n        pass\n    except Exception:\n        pass",
        "def inner():\n        pass",
        "with n:\n        pass",
        "del n",
        "tl.extra.libdevice.core",
        "triton.runtime.driver",
        "triton.language.core",
        "'{0.__class__}'.format(n)",
        "yield n",
        "__builtins__",
        "(m := n)",
    ],
)
def test_what_is_not_triton_s_language_is_refused(line):
    with pytest.raises(NotPlain):
        kernels_of(KERNEL.format(line))


@pytest.mark.parametrize(
    "line",
    [
        "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]",
        "acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32).to(x_ptr.dtype.element_ty)",
        "w: tl.constexpr = tl.float32.primitive_bitwidth // 8",
        "for i in tl.range(0, n, BLOCK, num_stages=2):\n        tl.debug_barrier()",
        "y = tl.math.exp2(tl.load(x_ptr).to(tl.float32)) + tl.cdiv(n, 4) + triton.cdiv(n, 2)",
        "tl.static_assert(BLOCK % 2 == 0, f'{BLOCK}')",
        "z = tl.inline_asm_elementwise('', '', [n], tl.int32, True, 1)",
        "(tl.load(x_ptr)).to(tl.int1)",
        "return x_ptr.type.element_ty",
    ],
)
def test_triton_s_language_is_kept(line):
    assert line.split("\n")[0].split("(")[0].split(":")[0] in kernels_of(KERNEL.format(line)).replace("'", "'")


def test_no_part_of_the_language_that_is_let_through_is_a_way_out():
    """In the Triton that is installed: every module or plain Python function within reach is on the list."""
    program = (
        "import types, triton.language as tl\n"
        "from grader.kernels_alone.plain import OUT_OF_THE_LANGUAGE, SUBMODULES\n"
        "found = []\n"
        "def look(module, path, depth):\n"
        "    for name in dir(module):\n"
        "        if name.startswith('_') or name in OUT_OF_THE_LANGUAGE: continue\n"
        "        value = getattr(module, name)\n"
        "        if isinstance(value, types.ModuleType):\n"
        "            if name not in SUBMODULES: found.append(f'{path}.{name}')\n"
        "            elif depth < 3: look(value, f'{path}.{name}', depth + 1)\n"
        "        elif isinstance(value, types.BuiltinFunctionType): found.append(f'{path}.{name}')\n"
        "        elif not getattr(value, '__module__', 'triton').startswith(('triton', 'builtins', 'typing')):\n"
        "            found.append(f'{path}.{name}')\n"
        "look(tl, 'tl', 0)\n"
        "print(found)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout
    assert "core" in OUT_OF_THE_LANGUAGE


# -- records ------------------------------------------------------------------------------------------------------


def view(buffer: int, n: int = 8, offset: int = 0) -> View:
    return View(buffer, offset, "float32", (n,), (1,))


GOOD = form.Record(
    (Argument(0), Argument(1), Scratch(32, "float32")),
    (
        form.Launch("k", (2, 3), {"x_ptr": form.Tensor(view(0)), "n": form.Plain("int", "8"), "s": form.Plain("float", "0x1p+0")}),
        Fill(view(2), Scalar("fp64", "0x0p+0")),
        Copy(view(2), view(1)),
        form.Launch("k", (1,), {"t": form.Many((form.Tensor(view(2)), form.Plain("none")))}),
        form.Launch("k", (1,), {"d": form.Descriptor(view(2), (8,), (1,), (4,), "zero")}),
    ),
    (view(2),),
)  # fmt: skip
SIZES = [32, 32]


def test_a_good_record_is_read_as_it_was_written():
    assert form.parse(form.dump(GOOD), SIZES) == GOOD


@pytest.mark.parametrize(
    "change",
    [
        {"outputs": (view(2, 9),)},
        {"outputs": (view(3),)},
        {"outputs": (view(2, 8, 4),)},
        {"buffers": (Argument(0), Scratch(32, "float32"))},
        {"buffers": (Argument(0), Argument(1), Scratch(1 << 40, "float32"))},
        {"buffers": (Argument(0), Argument(1), Scratch(32, "object"))},
        {"steps": (form.Launch("k", (1 << 30,), {}),)},
        {"steps": (form.Launch("k", (1,), {"x": form.Tensor(view(0, 9))}),)},
        {"steps": (form.Launch("k", (1,), {"x": form.Many((form.Tensor(view(7)),))}),)},
        {"steps": (form.Launch("k", (1,), {"x": form.Descriptor(view(0, 9), (8,), (1,), (4,), "zero")}),)},
        {"steps": (Copy(view(0), view(1, 4)),)},
    ],
)
def test_a_record_that_reaches_outside_its_buffers_is_refused(change):
    with pytest.raises(Malformed):
        form.parse(form.dump(msgspec.structs.replace(GOOD, **change)), SIZES)


def test_pytorch_may_do_what_the_task_leaves_to_it_and_no_more():
    step = form.Operation("aten.relu.default", (form.Tensor(view(0)),), view(2))
    text = form.dump(msgspec.structs.replace(GOOD, steps=(step,)))
    assert form.parse(text, SIZES, ["aten.relu.default"]).steps == (step,)
    for allowed in ([], ["aten.mul.Tensor"]):
        with pytest.raises(Malformed, match=r"aten\.relu"):
            form.parse(text, SIZES, allowed)
    outside = form.Operation("aten.relu.default", (form.Tensor(view(0)),), view(2, 9))
    with pytest.raises(Malformed):
        form.parse(form.dump(msgspec.structs.replace(GOOD, steps=(outside,))), SIZES, ["aten.relu.default"])


def test_what_is_inside_a_learner_s_operator_is_seen():
    @torch.library.custom_op("triton_prep_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    inside = function_of(torch.ops.triton_prep_test.twice.default)
    assert inside is not None and torch.equal(inside(torch.ones(2)), torch.full((2,), 2.0))
    assert function_of(torch.ops.aten.add.Tensor) is None
    assert function_of(torch.ops.aten.contiguous.default) is not None


def test_no_damaged_record_does_worse_than_be_refused():
    text, generator = form.dump(GOOD), random.Random(0)
    refused = 0
    for _ in range(3000):
        damaged = list(text)
        for _ in range(generator.randrange(1, 4)):
            place = generator.randrange(len(damaged))
            damaged[place] = generator.choice(
                ['"', "{", "}", "[", "-", "9", "e", "\\", "\udc80", "", "null", '"kind":']
            )
        try:
            form.parse("".join(damaged), SIZES)
        except Malformed:
            refused += 1
    assert refused > 2000
    for nonsense in (None, 7, {}, "", "[" * 100_000, "x" * (form.LONGEST + 1)):
        with pytest.raises(Malformed):
            form.parse(nonsense, SIZES)


# -- verdicts -----------------------------------------------------------------------------------------------------

ADD_KERNEL = """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)
"""


def test_honest_wrappers_of_many_kinds_pass(submit):
    """Scratch kept between calls, clones, fills, a dtype and a tuple as arguments, a grid that looks at a result."""
    source = HEAD + ADD_KERNEL + (
        "@triton.jit\n"
        "def twice_kernel(pair, dtype: tl.constexpr, n, BLOCK: tl.constexpr):\n"
        "    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    x = tl.load(pair[0] + offs, mask=offs < n).to(dtype)\n"
        "    tl.store(pair[1] + offs, x, mask=offs < n)\n"
        "KEPT = {}\n"
        "def add(x, y):\n"
        "    n = x.numel()\n"
        "    out = torch.zeros_like(x)\n"
        "    if n == 0:\n        return out\n"
        "    scratch = KEPT.setdefault(x.dtype, torch.empty(8192, dtype=x.dtype, device=x.device))\n"
        "    twice_kernel[(triton.cdiv(n, 256),)]((y.clone(), scratch), tl.float32, n, BLOCK=256)\n"
        "    flag = torch.full((1,), 3, dtype=torch.int32, device=x.device)\n"
        "    add_kernel[(triton.cdiv(n, 256),)](x.contiguous(), scratch, out, n, BLOCK=256)\n"
        "    return out.reshape(-1)[:n]\n"
    )  # fmt: skip
    verdict = submit("vector_add", source=source)
    assert verdict["status"] == "passed", verdict["diagnosis"]


def test_a_wrapper_that_asks_for_a_result_of_its_kernel_passes(submit):
    source = HEAD + ADD_KERNEL + (
        "def add(x, y):\n"
        "    out = torch.zeros_like(x)\n"
        "    n = x.numel()\n"
        "    if n:\n"
        "        probe = torch.zeros(1, device=x.device)\n"
        "        add_kernel[(1,)](torch.ones(1), torch.ones(1), probe, 1, BLOCK=16)\n"
        "        if probe.item() != 2:\n            raise RuntimeError('no kernel ran')\n"
        "        add_kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)\n"
        "    return out\n"
    )  # fmt: skip
    verdict = submit("vector_add", source=source)
    assert verdict["status"] == "passed", verdict["diagnosis"]


def test_what_pytorch_computed_is_named(submit):
    source = HEAD + ADD_KERNEL + (
        "def add(x, y):\n"
        "    out = torch.empty_like(x)\n"
        "    if x.numel():\n"
        "        add_kernel[(triton.cdiv(x.numel(), 256),)](x + y, torch.zeros_like(x), out, x.numel(), BLOCK=256)\n"
        "    return out\n"
    )  # fmt: skip
    verdict = submit("vector_add", source=source)
    assert verdict["status"] == "not_triton" and "aten.add" in verdict["diagnosis"]["message"]


def test_a_kernel_that_calls_python_is_named_with_its_line(submit):
    source = HEAD + "import sys\n" + ADD_KERNEL.replace("mask = offs < n", "mask = offs < n; sys.getsizeof(n)") + (
        "def add(x, y):\n"
        "    out = torch.empty_like(x)\n"
        "    if x.numel():\n"
        "        add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)\n"
        "    return out\n"
    )  # fmt: skip
    verdict = submit("vector_add", source=source)
    assert verdict["status"] in ("not_triton", "compile_error")
    assert verdict["diagnosis"]["line"] == source.split("sys.getsizeof")[0].count("\n") + 1
