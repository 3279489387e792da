"""What module 5 claims about autotuning and heuristics, shown by running it."""

import triton

from tests.evidence.run import interpreted

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])

# A benchmark for a machine without a GPU: two runs of each configuration, and the first one wins.
TUNED_SUM = """
def bench(kernel_call, quantiles):
    kernel_call()
    kernel_call()
    return [1.0, 1.0, 1.0]

CONFIGS = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]
GRID = lambda meta: (triton.cdiv(100, meta["BLOCK"]),)

def body(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))

def tuned(**options):
    options = {"configs": CONFIGS, "key": ["n"], "do_bench": bench, **options}
    return triton.autotune(**options)(triton.jit(body))

x = torch.ones(100)

def twice(kernel, make):
    results = []
    for _ in range(2):
        out = make()
        kernel[GRID](x, out, 100)
        results.append(out.item())
    return results
"""

TUNED_COPY = """
def bench(kernel_call, quantiles):
    kernel_call()
    return [1.0, 1.0, 1.0]

CONFIGS = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]

def body(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)

copy = triton.autotune(configs=CONFIGS, key=["n"], do_bench=bench)(triton.jit(body))
grid = lambda meta: (triton.cdiv(256, meta["BLOCK"]),)
x, out = torch.ones(256), torch.zeros(256)
"""


def tuned_sum(snippet: str) -> str:
    return interpreted(TUNED_SUM + snippet)


def tuned_copy(snippet: str) -> str:
    return interpreted(TUNED_COPY + snippet)


def test_every_trial_adds_and_only_the_first_call_shows_it():
    # two configurations, two runs each, and the run that counts: five times the sum of 100 ones
    out = tuned_sum("print(twice(tuned(), lambda: torch.zeros(1)))")
    assert out.strip() == "[500.0, 100.0]"


def test_reset_to_zero_clears_in_the_tuning_call_only():
    out = tuned_sum("""
kernel = tuned(reset_to_zero=["out_ptr"])
print(twice(kernel, lambda: torch.zeros(1)))
print(twice(tuned(reset_to_zero=["out_ptr"]), lambda: torch.full((1,), 1000.0)))
""")
    assert out.split("\n")[:2] == ["[100.0, 100.0]", "[100.0, 1100.0]"]


def test_restore_value_keeps_what_was_there():
    out = tuned_sum('print(twice(tuned(restore_value=["out_ptr"]), lambda: torch.full((1,), 1000.0)))')
    assert out.strip() == "[1100.0, 1100.0]"


def test_own_pre_hook_replaces_reset_to_zero():
    out = tuned_sum("""
calls = []
def hook(arguments, reset_only=False):
    calls.append(reset_only)
kernel = tuned(reset_to_zero=["out_ptr"], pre_hook=hook)
print(twice(kernel, lambda: torch.zeros(1)), calls)
""")
    assert out.strip() == "[500.0, 100.0] [False, False, False, False, True]"


def test_config_pre_hook_runs_before_every_launch():
    out = tuned_sum("""
calls = []
hook = lambda arguments: calls.append(arguments["BLOCK"])
kernel = tuned(configs=[triton.Config({"BLOCK": b}, pre_hook=hook) for b in (64, 128)])
twice(kernel, lambda: torch.zeros(1))
print(calls)
""")
    assert out.strip() == "[64, 64, 128, 128, 64, 64]"


def test_key_values_and_dtypes_decide_when_to_tune():
    out = tuned_copy("""
copy[grid](x, out, 256); print(len(copy.cache))
copy[grid](torch.ones(512)[::2], out, 256); print(len(copy.cache))      # other strides
copy[grid](torch.ones(16, 16), out, 256); print(len(copy.cache))        # another shape, the same n
copy[grid](x, out, 255); print(len(copy.cache))                         # another n
copy[grid](x.half(), out, 255); print(len(copy.cache))                  # another dtype
print(list(copy.cache)[-1])
""")
    assert out.split("\n")[:6] == ["1", "1", "1", "2", "3", "(255, 'torch.float16', 'torch.float32')"]


def test_naming_a_tuned_argument_raises():
    out = tuned_copy("""
def attempt(**kwargs):
    try:
        copy[grid](x, out, 256, **kwargs)
    except (TypeError, ValueError) as error:
        print(type(error).__name__, "BLOCK" in str(error) or "num_warps" in str(error))
attempt(BLOCK=64)
copy[grid](x, out, 256)
attempt(BLOCK=64)
attempt(num_warps=8)
try:
    copy[grid](x, out, 256, 64)
except TypeError as error:
    print("positional", "BLOCK" in str(error))
""")
    # while tuning the tuner notices; later Python does
    assert out.split("\n")[:4] == ["ValueError True", "TypeError True", "TypeError True", "positional True"]


def test_meta_parameters_may_be_positional():
    out = tuned_copy("triton.jit(body)[(4,)](x, out, 256, 64)\nprint(out.sum().item())")
    assert out.strip() == "256.0"


def test_grid_callable_gets_every_bound_argument():
    out = tuned_copy("""
seen = []
def grid(meta):
    seen.append(sorted(meta))
    return (triton.cdiv(256, meta["BLOCK"]),)
copy[grid](x, out, 256)
print(seen[-1])
try:
    copy[lambda meta: triton.cdiv(256, meta["BLOCK"])](x, out, 256)
except TypeError:
    print("an int is no grid")
""")
    assert out.split("\n")[:2] == ["['BLOCK', 'n', 'out_ptr', 'x_ptr']", "an int is no grid"]


def test_a_fixed_grid_is_wrong_from_the_second_call_on():
    out = tuned_copy("""
for _ in range(2):
    out = torch.zeros(256)
    copy[(2,)](x, out, 256)       # counted for BLOCK = 128; the winner has 64
    print(out.sum().item())
""")
    # the trial of BLOCK = 128 wrote the whole of the first output
    assert out.split() == ["256.0", "128.0"]


def test_one_configuration_is_not_benchmarked():
    out = tuned_copy("""
def never(kernel_call, quantiles):
    raise AssertionError("benchmarked")
single = triton.autotune(configs=CONFIGS[:1], key=["n"], do_bench=never)(triton.jit(body))
single[grid](x, out, 256)
print(len(single.cache), out.sum().item())
""")
    assert out.split() == ["0", "256.0"]


def test_two_configurations_need_a_benchmark():
    out = tuned_copy("""
plain = triton.autotune(configs=CONFIGS, key=["n"])(triton.jit(body))
from triton.runtime import driver
try:
    driver.active
    print("a GPU is here")
except RuntimeError:
    try:
        plain[grid](x, out, 256)
    except RuntimeError as error:
        print("active drivers" in str(error))
""")
    assert out.strip() in ("True", "a GPU is here")


def test_the_tuner_asks_for_the_median_and_takes_the_least():
    out = tuned_copy("""
asked = []
times = iter([[2.0, 1.0, 3.0], [1.5, 1.4, 9.0]])
def bench(kernel_call, quantiles):
    asked.append(quantiles)
    return next(times)
copy = triton.autotune(configs=CONFIGS, key=["n"], do_bench=bench)(triton.jit(body))
copy[grid](x, out, 256)
print(asked[0], copy.best_config.kwargs)
""")
    assert out.strip() == "(0.5, 0.2, 0.8) {'BLOCK': 128}"


def test_out_of_resources_counts_as_infinitely_slow():
    out = tuned_copy("""
def bench(kernel_call, quantiles):
    if not tried:
        tried.append(1)
        raise triton.OutOfResources(294912, 232448, "shared memory")
    kernel_call()
    return [1.0, 1.0, 1.0]
tried = []
copy = triton.autotune(configs=CONFIGS, key=["n"], do_bench=bench)(triton.jit(body))
copy[grid](x, out, 256)
print(copy.best_config.kwargs, [t[0] for t in copy.configs_timings.values()])
""")
    assert out.strip() == "{'BLOCK': 128} [inf, 1.0]"


def test_if_no_candidate_fits_one_is_picked_all_the_same():
    out = tuned_copy("""
def bench(kernel_call, quantiles):
    raise triton.OutOfResources(294912, 232448, "shared memory")
copy = triton.autotune(configs=CONFIGS, key=["n"], do_bench=bench)(triton.jit(body))
copy[grid](x, out, 256)      # on a GPU this launch raises in its turn
print(copy.best_config.kwargs, [t[0] for t in copy.configs_timings.values()], out.sum().item())
""")
    assert out.strip() == "{'BLOCK': 64} [inf, inf] 256.0"


def test_printing_names_the_winner():
    out = tuned_copy("import os; os.environ['TRITON_PRINT_AUTOTUNING'] = '1'\ncopy[grid](x, out, 256)")
    assert "Triton autotuning for function body" in out and "best config selected: BLOCK: 64" in out


def test_a_wrong_name_in_key():
    out = tuned_copy("""
try:
    typo = triton.autotune(configs=CONFIGS, key=["m"], do_bench=bench)(triton.jit(body))
    typo[grid](x, out, 256)
    typo[grid](x, out, 255)
    print(len(typo.cache))
except ValueError as error:
    print("refused")
""")
    assert out.strip() == ("refused" if VERSION >= (3, 9) else "1")


def test_pruning_limits_what_is_tried():
    out = tuned_copy("""
small = lambda configs, named_args, **kwargs: [c for c in configs if c.kwargs["BLOCK"] <= named_args["n"] // 4]
copy = triton.autotune(CONFIGS + [triton.Config({"BLOCK": 32})], key=["n"], do_bench=bench,
                       prune_configs_by={"early_config_prune": small})(triton.jit(body))
copy[grid](x, out, 256)
print([c.kwargs["BLOCK"] for c in copy.configs_timings])
""")
    assert out.strip() == "[64, 32]"


EVEN = """
def even(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    tl.store(out_ptr, EVEN + 0.0)
tune = triton.autotune(configs=CONFIGS, key=["n", "EVEN"], do_bench=bench)
"""


def even(snippet: str) -> str:
    return tuned_copy(EVEN + snippet)


def test_heuristics_under_autotune_see_the_tuned_value():
    out = even("""
kernel = tune(triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})(triton.jit(even)))
kernel[grid](x, out, 256)
print(out[0].item())
""")
    assert out.strip() == "1.0"


def test_heuristics_on_top_of_autotune():
    out = even("""
reads = triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})(tune(triton.jit(even)))
try:
    reads[grid](x, out, 256)
except KeyError as error:
    print("KeyError", error)
above = triton.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})(tune(triton.jit(even)))
above[grid](x, out, 256)
print(list(above.fn.cache)[0][:2])     # what it computes can be part of the key
""")
    assert out.split("\n")[:2] == ["KeyError 'BLOCK'", "(256, True)"]


def test_heuristics_compute_a_size():
    out = tuned_copy("""
row = triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})(triton.jit(body))
row[(1,)](x, out, 200)
print(out.sum().item())
""")
    assert out.strip() == "200.0"
