"""What module 5 claims about warps, stages, recompilation and benchmarks, shown by compiling without a GPU."""

import inspect
import re

from tests.evidence.run import compiled, interpreted

# A loop over tl.dot, a loop without one, and a kernel without a loop, compiled for a GPU that is not here.
KERNELS = """
import re

@triton.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1.0, mask=offs < n)

@triton.jit
def row_sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, n, BLOCK, num_stages=STAGES):
        offs = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0))

@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * BN + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * BN + n[None, :], acc.to(tl.float16))

x, out = torch.empty(4096), torch.empty(4096)
a = torch.empty(128, 512, dtype=torch.float16)
b = torch.empty(512, 256, dtype=torch.float16)
c = torch.empty(128, 256, dtype=torch.float16)

def shared(stages):
    kernel = product[(1,)](a, b, c, 512, BM=128, BN=256, BK=64, num_warps=8, num_stages=stages)
    return kernel.metadata.shared
"""


def kernels(snippet: str, target: str = "sm_90") -> str:
    return compiled(KERNELS + snippet, target)


def test_warps_set_the_threads_of_a_program():
    out = kernels(r"""
for warps in (1, 4, 8):
    ptx = add[(4,)](x, out, 4096, BLOCK=1024, num_warps=warps).asm["ptx"]
    print(re.search(r"\.(?:req|max)ntid (\d+)", ptx).group(1))
""")
    assert out.split() == ["32", "128", "256"]


def test_stages_change_nothing_without_a_loop():
    out = kernels(r"""
def code(stages):
    kernel = add[(4,)](x, out, 4096, BLOCK=1024, num_stages=stages)
    return re.sub(r"(//|\.loc|\.file).*", "", kernel.asm["ptx"])

print(code(1) == code(3) == code(6))
""")
    assert out.strip() == "True"


def test_each_stage_is_a_set_of_buffers():
    # one pair of tiles: 128 x 64 and 64 x 256 fp16 = 49,152 bytes
    snippet = "print([shared(stages) // 49152 for stages in (2, 3, 4)])"
    assert kernels(snippet, "sm_90").strip() == "[2, 3, 4]"
    assert kernels(snippet, "sm_80").strip() == "[1, 2, 3]"


def test_too_many_stages_compile_and_fail_at_loading():
    out = kernels("""
kernel = product[(1,)](a, b, c, 512, BM=128, BN=256, BK=64, num_warps=8, num_stages=6)
print(kernel.metadata.shared, "cubin" in kernel.asm)

from types import SimpleNamespace
from triton.runtime import driver
driver.active.utils = SimpleNamespace(get_device_properties=lambda device: {"max_shared_mem": 232448})
driver.active.launcher_cls = lambda src, metadata: None
try:
    kernel._init_handles()
except triton.OutOfResources as error:
    print(error.required, error.limit)
""")
    assert out.split("\n")[:2] == ["294912 True", "294912 232448"]


def test_a_loop_without_dot_is_pipelined_only_when_asked():
    out = kernels(r"""
for stages in (None, 3):
    kernel = row_sum[(1,)](x, out, 4096, BLOCK=1024, STAGES=stages, num_stages=4)
    print("cp.async" in kernel.asm["ptx"])
""")
    assert out.split() == ["False", "True"]


def test_num_warps_must_be_a_power_of_two():
    out = kernels("""
try:
    add[(4,)](x, out, 4096, BLOCK=1024, num_warps=3)
except AssertionError as error:
    print(error)
""")
    assert "power of 2" in out
    add = "@triton.jit\ndef nothing(BLOCK: tl.constexpr):\n    pass\n"
    assert interpreted(add + "nothing[(1,)](BLOCK=64, num_warps=3)\nprint(1)").strip() == "1"


def test_what_makes_another_binary():
    out = kernels("""
def variants():
    return len(add.device_caches[0][0])
def launch(label, x, n, **options):
    add[(4,)](x, out, n, **{"BLOCK": 1024, **options})
    print(label, variants())
launch("first", x, 4001)
launch("another n", x, 4003)
launch("n divisible by 16", x, 4000)
launch("n = 1", x, 1)
launch("dtype", x.half(), 4001)
launch("BLOCK", x, 4001, BLOCK=512)
launch("num_warps", x, 4001, num_warps=8)
launch("num_stages", x, 4001, num_stages=2)
launch("pointer not at 16 bytes", x[1:], 4001)
launch("n beyond 32 bits", x, 2**31 + 1)
launch("strides", torch.empty(8192)[::2], 4001)
launch("seen before", x, 4001)
""")
    counts = [int(line.split()[-1]) for line in out.strip().split("\n")]
    assert counts == [1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9]


def test_tuning_results_can_be_kept_on_disk():
    out = kernels("""
import glob, os
runs = []
def bench(kernel_call, quantiles):
    runs.append(1)
    return [1.0, 1.0, 1.0]
configs = [triton.Config({"BLOCK": b}) for b in (512, 1024)]
grid = lambda meta: (triton.cdiv(4096, meta["BLOCK"]),)
for keep in (False, True, True):       # a new tuner each time, as in a new process
    tuned = triton.autotune(configs=configs, key=["n"], do_bench=bench, cache_results=keep)(add)
    tuned[grid](x, out, 4096)
    print(len(runs))
print(len(glob.glob(os.environ["TRITON_CACHE_DIR"] + "/*/*.autotune.json")))
""")
    assert out.split() == ["2", "4", "4", "1"]


def test_do_bench_gives_the_mean_unless_asked():
    from triton.testing import do_bench, do_bench_cudagraph

    for function in (do_bench, do_bench_cudagraph):
        assert inspect.signature(function).parameters["return_mode"].default == "mean"
    defaults = inspect.signature(do_bench).parameters
    assert (defaults["warmup"].default, defaults["rep"].default) == (25, 100)


def test_only_do_bench_flushes_the_cache():
    from triton.testing import do_bench, do_bench_cudagraph

    flush = re.compile(r"clear_cache\(cache\)\n")
    assert flush.search(inspect.getsource(do_bench))
    assert not flush.search(inspect.getsource(do_bench_cudagraph))


def test_torch_compile_refuses_hooks_in_autotune():
    """Heuristics under autotune, reset_to_zero and restore_value become a node of the graph; hooks do not."""
    out = compiled("""
import torch.utils._triton
torch.utils._triton.has_triton = lambda: True
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)

under = triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})(copy)

def traced(hook=None, **options):
    kernel = triton.autotune(configs=[triton.Config({"BLOCK": 64}, pre_hook=hook)], key=["n"], **options)(under)
    def launch(x):
        out = torch.empty_like(x)
        kernel[lambda meta: (triton.cdiv(4, meta["BLOCK"]),)](x, out, 4)
        return out
    seen = []
    def keep(graph, inputs):
        seen.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return make_boxed_func(graph.forward)
    torch._dynamo.reset()
    try:
        torch.compile(launch, backend=aot_autograd(fw_compiler=keep), fullgraph=True)(torch.ones(4))
    except Exception as error:
        return "refused" if "pre_hook and post_hook are not supported" in str(error) else str(error)
    return "a node" if any(name.startswith("triton_kernel_wrapper") for name in seen) else "nothing"

print(traced(), traced(reset_to_zero=["out_ptr"]), traced(restore_value=["out_ptr"]), sep=" / ")
print(traced(hook=lambda arguments: None), traced(pre_hook=lambda *a, **k: None), traced(post_hook=lambda *a, **k: None), sep=" / ")
""")
    first, second = (line.split(" / ") for line in out.strip().split("\n"))
    assert first == ["a node"] * 3
    assert second == ["refused"] * 3
