"""The broad product of inputs that a mutant is compared on: sizes, dtypes, layouts, value classes, for each exercise.

Drawn independently of the exercises' own cases: what those miss must show here. A call is its name and its arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch

Call = tuple[str, tuple[Any, ...]]
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
FLOATS = (F32, F16, BF16)
LINE = (1, 0, 1025, 7, 2, 3, 63, 64, 65, 513, 1000, 1023, 1024, 2047, 2048, 2049, 3077, 4099)
ORDINARY = ("normal", "negative", "positive", "huge", "tiny", "equal", "integers")


class Values:
    """Tensors of one seed, by value class and layout."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, kind: str, *shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
        normal = torch.randn(shape, generator=self.generator)
        uniform = torch.rand(shape, generator=self.generator)
        if kind == "integers":
            return (uniform * 17).floor().sub(8).to(dtype)
        if kind == "specials":
            normal[uniform < 0.05], normal[uniform > 0.95] = float("inf"), float("-inf")
            normal[(uniform > 0.4) & (uniform < 0.43)] = float("nan")
            return normal.to(dtype)
        if kind == "masked":  # -inf here and there, and whole rows of it
            normal[uniform < 0.3] = float("-inf")
            if normal.dim() == 2 and shape[0] > 1:
                normal[1] = float("-inf")
            return normal.to(dtype)
        half = dtype == F16
        return {
            "normal": normal,
            "negative": -1 - 8 * uniform,
            "positive": 1 + 8 * uniform,
            "huge": normal * (1e4 if half else 1e30),
            "tiny": normal * (1e-6 if half else 1e-30),
            "equal": torch.full(shape, -0.5),
            "large": normal * 100,
            "far below": normal - 1000.0,
            "far above": normal + 1000.0,
            "extreme": normal * (2e4 if half else 1e37),
            "rising": normal + torch.arange(shape[-1] if shape else 1) / 50,
            "falling": normal - torch.arange(shape[-1] if shape else 1) / 50,
        }[kind].to(dtype)

    def laid_out(self, layout: str, kind: str, *shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
        """The last two axes laid out as named; see LAYOUTS."""
        *front, m, n = shape
        if layout == "transposed":
            return self(kind, *front, n, m, dtype=dtype).transpose(-1, -2)
        if layout == "sliced":
            return self(kind, *front, m + 3, 2 * n + 5, dtype=dtype)[..., 2 : 2 + m, 3 : 3 + 2 * n : 2]
        if layout == "every third row":
            return self(kind, *front, 3 * m, n + 1, dtype=dtype)[..., ::3, 1:]
        if layout == "one row":
            return self(kind, *front, 1, n, dtype=dtype).expand(*front, m, n)
        if layout == "one column":
            return self(kind, *front, m, 1, dtype=dtype).expand(*front, m, n)
        return self(kind, *front, m, n, dtype=dtype)


LAYOUTS = ("contiguous", "transposed", "sliced", "every third row", "one row", "one column")


def named(*parts: Any) -> str:
    return " ".join(str(p).removeprefix("torch.") for p in parts)


def on_a_line(
    draw: Values, kinds: tuple[str, ...], dtypes: tuple[torch.dtype, ...] = FLOATS, count: int = 2
) -> Iterator[Call]:
    """`count` vectors of each length; every kind and dtype at one length."""
    for n in LINE:
        yield named("n =", n), tuple(draw("normal", n) for _ in range(count))
    for dtype, kind in itertools.product(dtypes, kinds):
        yield named("n = 1300", dtype, kind), tuple(draw(kind, 1300, dtype=dtype) for _ in range(count))
    for dtype in dtypes:
        yield named("n = 4097", dtype), tuple(draw("normal", 4097, dtype=dtype) for _ in range(count))


def rows(
    draw: Values, kinds: tuple[str, ...], sizes: tuple[int, ...], dtypes: tuple[torch.dtype, ...] = FLOATS,
    layouts: tuple[str, ...] = LAYOUTS, heights: tuple[int, ...] = (1, 3, 0), empty_rows: bool = True,
) -> Iterator[Call]:  # fmt: skip
    """Matrices: each width; each layout at three shapes; each kind and dtype at one."""
    for m, n in itertools.product(heights, sizes):
        if n or empty_rows:
            yield named(m, "x", n), (draw("normal", m, n),)
    for layout, (m, n) in itertools.product(layouts, ((5, 37), (33, 33), (70, 3), (2, 1500))):
        yield named(m, "x", n, layout), (draw.laid_out(layout, "normal", m, n),)
    for kind, dtype in itertools.product(kinds, dtypes):
        yield named("3 x 1100", dtype, kind), (draw(kind, 3, 1100, dtype=dtype),)
        yield named("2 x 70", dtype, kind), (draw(kind, 2, 70, dtype=dtype),)


def tile_copy(draw: Values) -> Iterator[Call]:
    for block, n in itertools.product(
        (16, 64, 1024), (1, 0, 2, 3, 15, 16, 17, 33, 63, 64, 65, 127, 509, 1023, 1024, 1025, 2049)
    ):
        yield named("n =", n, "block", block), (draw("normal", n), block)
    for dtype in (*FLOATS, torch.int8, torch.int64):
        for kind in ("integers", "normal"):
            yield named("n = 301 block 32", dtype, kind), (draw(kind, 301, dtype=dtype), 32)
    yield "n = 301 bool", (draw("normal", 301) > 0, 128)
    yield "n = 301 int64, large", ((draw("normal", 301) * 2**60).to(torch.int64), 128)
    yield "n = 500 specials", (draw("specials", 500), 256)
    yield "n = 500 huge", (draw("extreme", 500), 512)


def program_ids(draw: Values) -> Iterator[Call]:
    for n in (1, 0, 2, 3, 62, 63, 64, 65, 127, 128, 129, 130, 191, 192, 193, 509, 1009, 2048):
        yield named("n =", n), ((draw("normal", n) * 1000).to(torch.int32),)
    yield "n = 300, near 2^30", ((draw("normal", 300) * 2**27).to(torch.int32),)


def grid_2d(draw: Values) -> Iterator[Call]:
    for m, n in itertools.product((1, 0, 2, 3, 7, 65), (1, 0, 2, 3, 63, 64, 65, 131, 193)):
        yield named(m, "x", n), (draw("normal", m), draw("normal", n))
    for kind, dtype in itertools.product((*ORDINARY, "specials"), (F32, F16)):
        yield named("5 x 70", dtype, kind), (draw(kind, 5, dtype=dtype), draw(kind, 70, dtype=dtype))
    yield "64 x 64", (draw("normal", 64), draw("normal", 64))


def affine_relu(draw: Values) -> Iterator[Call]:
    for scale, bias in ((0.5, 1.0), (-0.7, 0.1), (0.0, -1.0), (1.0, 0.0), (3.0, -2.5), (1e-3, 0.0), (-2.0, -1e4)):
        for name, (x,) in (
            on_a_line(draw, (*ORDINARY, "specials"), count=1)
            if scale in (0.5, -0.7)
            else [("n = 1100", (draw("normal", 1100),))]
        ):
            yield named(name, "scale", scale, "bias", bias), (x, scale, bias)


def two_vectors(draw: Values) -> Iterator[Call]:
    yield from on_a_line(draw, (*ORDINARY, "specials"))


def autotuned_add(draw: Values) -> Iterator[Call]:
    yield from on_a_line(draw, (*ORDINARY, "specials"))
    for n in (4095, 4096, 8191, 8193, 12289, 1025, 1025, 10007):  # some a second time: already tuned
        yield named("n =", n, "later"), (draw("normal", n), draw("normal", n))


def block_copy_2d(draw: Values) -> Iterator[Call]:
    for m, n in itertools.product((1, 0, 2, 3, 31, 32, 33, 65, 97), (1, 0, 2, 3, 63, 64, 65, 131, 200)):
        yield named(m, "x", n), (draw("normal", m, n),)
    for layout, (m, n) in itertools.product(LAYOUTS, ((5, 37), (67, 67), (37, 150), (150, 37), (100, 1))):
        yield named(m, "x", n, layout), (draw.laid_out(layout, "normal", m, n),)
    for dtype in (*FLOATS, torch.int32):
        yield named("40 x 70", dtype), (draw.laid_out("sliced", "integers", 40, 70, dtype=dtype),)
    yield "40 x 70 specials", (draw("specials", 40, 70),)
    yield "40 x 70 int32 large", ((draw("normal", 40, 70) * 2**28).to(torch.int32),)


def row_max(draw: Values) -> Iterator[Call]:
    kinds = (*ORDINARY, "extreme", "masked", "far below")
    yield from rows(draw, kinds, (1, 2, 3, 4, 5, 7, 8, 31, 64, 65, 127, 128, 129, 500, 1025, 2500), empty_rows=False)
    yield "3 x 21 near -9e37", (-8.5e37 - draw("positive", 3, 21) * 1e36,)


def row_scale(draw: Values) -> Iterator[Call]:
    for name, (x,) in rows(
        draw, (*ORDINARY, "specials"), (1, 0, 2, 3, 7, 511, 1023, 1024, 1025, 2047, 2048, 2049, 3077)
    ):
        yield name, (x, draw("normal", x.shape[0], dtype=x.dtype))


def row_sum(draw: Values) -> Iterator[Call]:
    kinds = (*ORDINARY, "specials", "large")
    yield from rows(draw, kinds, (1, 0, 2, 3, 7, 511, 1023, 1024, 1025, 2047, 2048, 2049, 3077, 5000))
    yield "2 x 4000 float16, sums past 65504", (draw("positive", 2, 4000, dtype=F16) * 100,)
    yield "2 x 5000 float16 ones", (torch.ones(2, 5000, dtype=F16),)
    x = draw("normal", 3, 1500) * 1e6
    x[:, 750:] = -x[:, :750]
    yield "3 x 1500 cancelling", (x,)


SOFT = (
    "normal",
    "negative",
    "positive",
    "tiny",
    "equal",
    "integers",
    "large",
    "far below",
    "far above",
    "rising",
    "falling",
)


def softmax(draw: Values) -> Iterator[Call]:
    yield from rows(draw, (*SOFT, "masked"), (1, 0, 2, 3, 5, 7, 8, 64, 65, 127, 128, 129, 500, 781, 1025, 2500, 4097))
    for n in (1, 2, 3, 4, 64, 100):
        yield named("3 x", n, "all -inf"), (torch.full((3, n), float("-inf")),)
    yield "2 x 16385", (draw("normal", 2, 16385),)


def online_softmax(draw: Values) -> Iterator[Call]:
    dtypes, layouts = (F32, F16), ("contiguous", "one row", "every third row")
    yield from rows(
        draw, SOFT, (1, 0, 2, 3, 5, 100, 511, 1023, 1024, 1025, 2047, 2048, 2049, 3077, 5000), dtypes, layouts
    )
    for first in (1, 500, 1023, 1024, 1025, 2048, 2900):
        x = draw("normal", 2, 3000)
        x[:, :first] = float("-inf")
        yield named("2 x 3000, the first", first, "-inf"), (x,)
        x = draw("normal", 2, 3000) - 1e20
        x[:, -first:] = float("-inf")
        yield named("2 x 3000 about -1e20, the last", first, "-inf"), (x,)
    yield "2 x 3000 float16 large, rising", ((draw("normal", 2, 3000) * 30 + torch.arange(3000) / 10).to(F16),)


def accumulate_rows(draw: Values) -> Iterator[Call]:
    for m, n in itertools.product(
        (1, 0, 2, 3, 31, 32, 33, 64, 100, 129, 257), (1, 0, 2, 3, 33, 100, 127, 128, 129, 257)
    ):
        if (m * n < 20_000 and (m + n) % 2 == 0) or m < 4 or n in (0, 1, 129):
            yield named(m, "x", n), (draw("integers", m, n),)
    for layout, (m, n) in itertools.product(LAYOUTS, ((37, 70), (100, 100), (150, 20), (1, 200))):
        yield named(m, "x", n, layout), (draw.laid_out(layout, "integers", m, n),)
    for kind, dtype in itertools.product((*ORDINARY, "large"), (F32, F16)):
        yield named("150 x 40", dtype, kind), (draw(kind, 150, 40, dtype=dtype),)
        yield named("150 x 40 again", dtype, kind), (draw(kind, 150, 40, dtype=dtype),)
    yield "100 x 20 float16, sums past 65504", (draw("positive", 100, 20, dtype=F16) * 300,)


def products(draw: Values, dtypes: tuple[torch.dtype, ...]) -> Iterator[Call]:
    shapes = [
        (16, 16, 16), (17, 33, 65), (1, 1, 1), (1, 70, 97), (33, 1, 64), (32, 32, 32), (64, 64, 64), (31, 33, 31),
        (40, 40, 40), (5, 7, 0), (0, 5, 7), (5, 0, 7), (2, 3, 2), (65, 97, 33), (100, 16, 100), (3, 130, 129),
        (200, 10, 63), (16, 16, 300), (128, 96, 32), (160, 64, 32), (224, 40, 64), (290, 33, 32), (33, 130, 40),
    ]  # fmt: skip
    for dtype in dtypes:
        for m, n, k in shapes:
            yield named(m, n, k, dtype), (draw("normal", m, k, dtype=dtype), draw("normal", k, n, dtype=dtype))
        for left, right in itertools.product(LAYOUTS, LAYOUTS):
            a, b = (
                draw.laid_out(left, "normal", 37, 70, dtype=dtype),
                draw.laid_out(right, "normal", 70, 41, dtype=dtype),
            )
            yield named("37 41 70", dtype, left, right), (a, b)
        for kind in ("negative", "positive", "tiny", "equal", "integers", "large"):
            yield named("40 40 100", dtype, kind), (draw(kind, 40, 100, dtype=dtype), draw(kind, 100, 40, dtype=dtype))
    a, b = torch.full((16, 64), 100.0, dtype=F16), torch.full((64, 16), 100.0, dtype=F16)
    b[32:], b[0] = -100.0, draw("integers", 16, dtype=F16)
    yield "16 16 64 float16, sums past 65504", (a, b)


def matmul(draw: Values) -> Iterator[Call]:
    yield from products(draw, (F16, F32))
    yield "34 20 40 specials", (draw("specials", 34, 40), draw("normal", 40, 20))
    for dtype in (F16, F32):  # the launcher takes other tiles from here on
        yield (
            named("1025 1030 70", dtype),
            (draw("normal", 1025, 70, dtype=dtype), draw("normal", 70, 1030, dtype=dtype)),
        )


def grouped_matmul(draw: Values) -> Iterator[Call]:
    yield from products(draw, (F16,))
    # the second row of the launcher's table, just and by far, and the first row
    for m, n, k in ((645, 650, 70), (1000, 700, 70), (1290, 2500, 70)):
        yield named(m, n, k), (draw("normal", m, k, dtype=F16), draw("normal", k, n, dtype=F16))


def heads(
    draw: Values,
    batch: int,
    count: int,
    lengths: tuple[int, int, int],
    width: int,
    layout: str = "contiguous",
    kind: str = "normal",
) -> tuple[torch.Tensor, ...]:
    if layout == "heads last":
        return tuple(draw(kind, batch, n, count, width, dtype=F16).transpose(1, 2) for n in lengths)
    if layout == "mixed":
        q, k, v = (
            draw.laid_out(name, kind, batch, count, n, width, dtype=F16)
            for name, n in zip(("sliced", "every third row", "transposed"), lengths, strict=True)
        )
        return q, k, v
    return tuple(draw.laid_out(layout, kind, batch, count, n, width, dtype=F16) for n in lengths)


def scores(draw: Values, sign: float, query: int, keys: int, fall_from: int | None = None) -> tuple[torch.Tensor, ...]:
    q, k = draw("normal", 1, 1, query, 64) * 0.1 + 8, draw("normal", 1, 1, keys, 64) * 0.1 + 8
    if fall_from is not None:
        k[:, :, fall_from:] -= 16
    return q.half(), (sign * k).half(), draw("normal", 1, 1, keys, 64, dtype=F16)


def attention_like(draw: Values, causal: bool) -> Iterator[Call]:
    lengths = (1, 2, 16, 63, 64, 65, 100, 127, 128, 129, 200, 257, 300)
    for q, k in [(n, n) for n in lengths] if causal else [*itertools.product((1, 64, 130), lengths), (257, 70), (0, 5)]:
        yield named("N_q", q, "N_k", k), heads(draw, 1, 1, (q, k, k), 32)
    for width, layout in itertools.product((32, 64, 128), (*LAYOUTS, "heads last", "mixed")):
        yield named("D", width, layout), heads(draw, 2, 3, (70, 70, 70) if causal else (70, 100, 100), width, layout)
    yield "B 3 H 2 D 128", heads(draw, 3, 2, (130, 130, 130), 128)
    for kind in ("negative", "positive", "equal", "tiny", "large"):
        yield named("200", kind), heads(draw, 1, 2, (200, 200, 200), 64, kind=kind)
    for n in (70, 150, 300):
        yield named("scores near +500,", n), scores(draw, 1.0, n, n)
        yield named("scores near -500,", n), scores(draw, -1.0, n, n)
        yield named("falling,", n), scores(draw, 1.0, n, n, n // 2)
        yield named("rising,", n), scores(draw, -1.0, n, n, n // 2)
    q, k = torch.zeros(1, 1, 150, 32, dtype=F16), draw("normal", 1, 1, 150, 32, dtype=F16)
    yield "large values", (q, k, (draw("positive", 1, 1, 150, 32) * 100).half())
    if not causal:
        yield "bfloat16", tuple(t.to(BF16) for t in heads(draw, 1, 2, (70, 100, 100), 64))


def attention(draw: Values) -> Iterator[Call]:
    yield from attention_like(draw, causal=False)


def causal_attention(draw: Values) -> Iterator[Call]:
    yield from attention_like(draw, causal=True)


def compiled_add(draw: Values) -> Iterator[Call]:
    yield from on_a_line(draw, (*ORDINARY, "specials"))
    for left, right in itertools.product(LAYOUTS, LAYOUTS):
        yield (
            named("33 x 40", left, right),
            (draw.laid_out(left, "normal", 33, 40), draw.laid_out(right, "normal", 33, 40)),
        )
    yield "3 x 5 x 70", (draw("normal", 3, 5, 70), draw("normal", 5, 3, 70).transpose(0, 1))
    yield "one number", (draw("normal"), draw("normal"))


def with_gradient(draw: Values) -> Iterator[Call]:
    for name, (x, grad) in on_a_line(
        draw, ("normal", "negative", "positive", "tiny", "equal", "integers", "far below", "far above", "large")
    ):
        yield name, (x, grad / 64 if "far" in name or "large" in name else grad)
    for left, right in itertools.product(LAYOUTS, LAYOUTS):
        yield (
            named("33 x 40", left, right),
            (draw.laid_out(left, "normal", 33, 40), draw.laid_out(right, "normal", 33, 40)),
        )
    yield "3 x 5 x 70", (draw("normal", 3, 5, 70), draw("normal", 5, 3, 70).transpose(0, 1))
    yield "1500, one number expanded", (draw("normal", 1500), draw("normal", 1).expand(1500))
    yield "one number", (draw("normal"), draw("normal"))


INPUTS: dict[str, Callable[[Values], Iterator[Call]]] = {
    "tile_copy": tile_copy,
    "program_ids": program_ids,
    "grid_2d": grid_2d,
    "vector_add": two_vectors,
    "affine_relu": affine_relu,
    "block_copy_2d": block_copy_2d,
    "row_max": row_max,
    "row_scale": row_scale,
    "row_sum": row_sum,
    "softmax": softmax,
    "online_softmax": online_softmax,
    "accumulate_rows": accumulate_rows,
    "autotuned_add": autotuned_add,
    "matmul": matmul,
    "grouped_matmul": grouped_matmul,
    "attention": attention,
    "causal_attention": causal_attention,
    "compiled_add": compiled_add,
    "silu_op": with_gradient,
    "square_autograd": with_gradient,
}


def calls(exercise: str, seed: int = 7) -> list[Call]:
    return list(INPUTS[exercise](Values(seed)))
