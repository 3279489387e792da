"""What module 5 says about the inside of the tuner: what a trial may fail with, how candidates are left out, ties."""

import triton

from tests.evidence.run import compiled, interpreted

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])

COPY = """
def body(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)

CONFIGS = [triton.Config({"BLOCK": 2**k}) for k in (6, 7, 8, 9)]
grid = lambda meta: (triton.cdiv(512, meta["BLOCK"]),)
x, out = torch.ones(512), torch.zeros(512)
tried = []

def tuned(times=lambda block: 1.0, fn=body, **options):
    def bench(kernel_call, quantiles):
        kernel_call()
        tried.append(1)
        return [times(len(tried))] * 3
    tried.clear()
    options = {"configs": CONFIGS, "key": ["n"], "do_bench": bench, **options}
    return triton.autotune(**options)(triton.jit(fn))
"""


def test_only_a_failure_that_belongs_to_a_configuration_is_caught():
    out = compiled(
        COPY
        + """
from triton.runtime.errors import PTXASError

def small(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK <= 128, "too large")
    tl.store(out_ptr + tl.arange(0, BLOCK), 1.0)

kernel = tuned(fn=small)
kernel[grid](x, out, 512)
print(len(kernel.configs_timings), sum(t[0] == float("inf") for t in kernel.configs_timings.values()))

def raising(error):
    def bench(kernel_call, quantiles):
        raise error
    try:
        tuned(do_bench=bench)[grid](x, out, 512)
        return "caught"
    except ValueError:
        return "raised"
print(raising(PTXASError("registers")), raising(ValueError("a mistake")))

def unknown(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    if BLOCK == 128:
        tl.store(out_ptr, nobody_defined_this)

try:
    tuned(fn=unknown)[grid](x, out, 512)
    print("caught")
except Exception as error:
    print("raised" if "nobody_defined_this" in str(error) else error)
"""
    )
    assert out.split() == ["4", "2", "caught", "raised", "raised"]


def test_a_model_of_the_time_chooses_what_is_tried():
    out = interpreted(
        COPY
        + """
def blocks(**prune):
    seen = []
    def guess(BLOCK, n, num_warps, **rest):
        seen.append((BLOCK, n, num_warps))
        return abs(BLOCK - 200)              # the smaller, the sooner tried
    kernel = tuned(prune_configs_by={"perf_model": guess, **prune})
    kernel[grid](x, out, 512)
    return sorted(c.kwargs["BLOCK"] for c in kernel.configs_timings), len(seen)

print(blocks(top_k=2))
print(blocks(top_k=0.5))
print(blocks())
"""
    )
    # without top_k everything is tried, and the model is not asked
    assert out.strip().split("\n") == ["([128, 256], 4)", "([128, 256], 4)", "([64, 128, 256, 512], 0)"]


def test_what_a_tuner_keeps():
    out = interpreted(
        COPY
        + """
kernel = tuned(times=lambda turn: 5.0 - turn)
kernel[grid](x, out, 512)
print(list(kernel.cache), kernel.best_config.kwargs, len(kernel.configs_timings), kernel.bench_time >= 0.0)
kernel[grid](x, out, 512)
print(len(tried))
kernel.cache.clear()
kernel[grid](x, out, 512)
print(len(tried))
even = tuned()                               # all candidates take the same time
even[grid](x, out, 512)
print(even.best_config.kwargs)
"""
    )
    assert out.strip().split("\n") == [
        "[(512, 'torch.float32', 'torch.float32')] {'BLOCK': 512} 4 True",
        "4",
        "8",
        "{'BLOCK': 64}",
    ]


def test_one_candidate_left_is_measured_before_3_9_only():
    out = interpreted(
        COPY
        + """
kernel = tuned(prune_configs_by={"early_config_prune": lambda configs, named_args, **rest: configs[:1]})
kernel[grid](x, out, 512)
print(len(tried))
"""
    )
    assert out.strip() == ("0" if VERSION >= (3, 9) else "1")


def test_warmup_compiles_every_candidate_and_measures_none():
    out = compiled(
        COPY
        + """
kernel = tuned()
made = kernel.warmup(x, out, 512, grid=(1,))
print(len(made), len(tried), len(kernel.cache), len({k.metadata.hash for k in made}))
"""
    )
    assert out.split() == ["4", "0", "0", "4"]
