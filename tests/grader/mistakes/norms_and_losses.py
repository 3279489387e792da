"""layer_norm, cross_entropy, scale_in_place, matmul_bias_relu."""

from __future__ import annotations

from tests.grader.mistakes import KnownMistake

MISTAKES: tuple[KnownMistake, ...] = (
    KnownMistake(
        ("1",),
        "padded lanes join the variance as -mean",
        "layer_norm",
        (("tl.where(mask, x - mean, 0.0)", "x - mean"),),
        causes=("padding_in_variance",),
    ),
    KnownMistake(
        ("3",),
        "softcap turns -inf padding into -softcap",
        "cross_entropy",
        (
            (
                "capped(tl.load(logits_row + cols, mask=mask, other=0.0)",
                'capped(tl.load(logits_row + cols, mask=mask, other=-float("inf"))',
            ),
            ('        z = tl.where(mask, z, -float("inf"))\n', ""),
        ),
        causes=("padding_after_softcap",),
    ),
    KnownMistake(
        ("45",),
        "in-place kernel tuned without restore_value",
        "scale_in_place",
        (('    restore_value=["x_ptr"],\n', ""),),
        causes=("missing_restore_value",),
        line="@triton.autotune",
    ),
    KnownMistake(
        ("27",),
        "cast to float16 before bias and activation",
        "matmul_bias_relu",
        (("    acc += bias.to(tl.float32)[None, :]\n", "    acc = acc.to(tl.float16) + bias[None, :]\n"),),
        causes=("activation_after_cast",),
    ),
)
