import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import BLOCK, MISTAKES

NONE_IGNORED = -100


def reference(logits, target, ignore_index, softcap):
    wide = logits if logits.dtype == torch.float64 else logits.float()
    z = softcap * torch.tanh(wide / softcap) if softcap else wide
    return torch.nn.functional.cross_entropy(z, target, reduction="none", ignore_index=ignore_index)


def work(logits, target, ignore_index, softcap):
    rows, columns = logits.shape
    return Work(bytes=rows * columns * logits.element_size() + rows * 12, flops=5 * rows * columns)


def magnitude(logits, target, ignore_index, softcap):
    """The loss is a difference of numbers as large as the logits, or as the cap; tanh near 0 is off by eps."""
    if logits.numel() == 0:
        return logits.new_zeros(logits.shape[0])
    largest = torch.nan_to_num(logits, neginf=0.0).abs().amax(dim=1)
    return 10.0 + (largest.clamp(max=softcap) + softcap if softcap else largest)


def case(
    m: int,
    v: int,
    dtype: torch.dtype = torch.float32,
    scale: float = 1.0,
    mean: float = 0.0,
    ignore_index: int = NONE_IGNORED,
    softcap: float = 0.0,
) -> Case:
    name = f"{m} x {v} {str(dtype).removeprefix('torch.')}"
    name += f" of size {scale:g}" if scale != 1.0 else ""
    name += f" about {mean:g}" if mean else ""
    name += f", softcap {softcap:g}" if softcap else ""
    name += f", class {ignore_index} ignored" if ignore_index != NONE_IGNORED else ""

    def make(draw: Draw):
        logits = (draw.normal(m, v, scale=scale) + mean).to(dtype)
        target = draw.integers(m, low=0, high=v, dtype=torch.int64)
        if m > 1:
            target[1] = ignore_index
        return logits, target, ignore_index, softcap

    return Case(name, make)


def all_counted(m: int, v: int, mean: float) -> Case:
    def make(draw: Draw):
        return draw.normal(m, v) + mean, draw.integers(m, low=0, high=v, dtype=torch.int64), NONE_IGNORED, 0.0

    return Case(f"{m} x {v}, about {mean:g}, none ignored", make)


def rising(draw: Draw):
    """Every tile raises the maximum."""
    logits = draw.normal(2, 2 * BLOCK + 5) + torch.arange(2 * BLOCK + 5) / 512.0
    return logits, draw.integers(2, low=0, high=BLOCK, dtype=torch.int64), NONE_IGNORED, 0.0


def ruled_out(draw: Draw):
    """The whole first tile is -inf."""
    logits = draw.normal(2, BLOCK + 100)
    logits[:, : BLOCK + 7] = float("-inf")
    return logits, draw.integers(2, low=BLOCK + 7, high=BLOCK + 100, dtype=torch.int64), NONE_IGNORED, 0.0


def far_apart(draw: Draw):
    """exp overflows float32 above 88.7, and is 0 below -104."""
    logits = draw.normal(3, 100)
    logits[0] += 1000.0
    logits[1] -= 1000.0
    logits[2, ::2] = 10000.0
    return logits, draw.integers(3, low=0, high=100, dtype=torch.int64), NONE_IGNORED, 0.0


def window(draw: Draw):
    target = draw.integers(4, low=0, high=300, dtype=torch.int64)
    return draw.normal(8, 500)[1:5, 100:400], target, NONE_IGNORED, 0.0


PROBLEM = Problem(
    slug="cross_entropy",
    title="Cross entropy",
    entry="cross_entropy",
    parameters=("logits", "target", "ignore_index", "softcap"),
    reference=reference,
    work=work,
    out_dtype=lambda *_: torch.float32,
    tolerance=Tolerance(terms=4.0, scale=magnitude),
    cases=(
        all_counted(2, 5, -3.0),
        case(3, 1),
        case(0, 5),
        case(3, 127),
        case(4, 10, ignore_index=3),
        case(3, 129, softcap=30.0, scale=20.0),
        Case("3 x 100 shifted by 1000, -1000 and 10000", far_apart),
        Case("rising logits, 2 x 8197", rising),
        case(3, BLOCK - 1, mean=-5.0),
        case(3, BLOCK, softcap=5.0),
        case(3, BLOCK + 1, softcap=2.0),
        case(2, 10000, scale=3.0),
        Case("the first tile -inf, 2 x 4196", ruled_out),
        case(3, 1000, torch.float16, scale=30.0),
        case(3, 5003, torch.bfloat16, softcap=15.0, scale=10.0),
        Case("4 x 300 window of a wider matrix", window),
    ),
    timing=Timing(
        "4096 x 128256 bfloat16",
        lambda draw: (
            draw.normal(4096, 128256, dtype=torch.bfloat16),
            draw.integers(4096, low=0, high=128256, dtype=torch.int64),
            NONE_IGNORED,
            0.0,
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "log(softmax(z)[target]) needs no softmax: which two numbers of the row are enough, and which of them can be "
        "found in one walk?",
        "Walk as in online_softmax: m and l, rescaled. The loss is m + log(l) - z[target]. With a cap, the lanes past "
        "V must become -inf after the tanh; load the target's logit under the mask target != ignore_index.",
        "z = tl.where(mask, softcap * (2 * tl.sigmoid(2 * x / softcap) - 1), -float('inf')); "
        "tl.store(loss_ptr + row, tl.where(counted, m + tl.log(l) - z_target, 0.0))",
    ),
)
