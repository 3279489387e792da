"""One call in the interpreter as data: buffers, launches by the kernel's name, fills and copies, in order.

Beside grader/verified/record.py, whose kernels are TTIR: in the interpreter a kernel is its name, and the grader has
the text. It comes from a process that nobody trusts; `parse` checks all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec

from grader.verified import record as form
from grader.verified.record import Argument, Copy, Fill, Malformed, Name, Scratch, Size, Sizes, Strict, View

LONGEST = 1 << 19  # characters
MOST_SCRATCH = 1 << 28  # bytes that a call may allocate
MOST_PROGRAMS = 1 << 20  # of one launch


class Tensor(Strict, frozen=True, tag_field="kind", tag="tensor"):
    view: View


class Descriptor(Strict, frozen=True, tag_field="kind", tag="descriptor"):
    """A TensorDescriptor that the host made."""

    base: View
    shape: Sizes
    strides: Sizes
    block_shape: Sizes
    padding: Name


class Plain(Strict, frozen=True, tag_field="kind", tag="plain"):
    """A number (floats as `float.hex`), a truth value, text, None, one of Triton's dtypes, or a kernel by its name."""

    what: Literal["int", "float", "bool", "str", "none", "dtype", "kernel"]
    text: Annotated[str, msgspec.Meta(max_length=256)] = ""


class Many(Strict, frozen=True, tag_field="kind", tag="many"):
    """A tuple."""

    items: Annotated[tuple[Tensor | Plain | Many, ...], msgspec.Meta(max_length=64)]


Value = Tensor | Descriptor | Plain | Many


class Launch(Strict, frozen=True, tag_field="kind", tag="launch"):
    kernel: Name
    grid: Annotated[tuple[Size, ...], msgspec.Meta(min_length=1, max_length=3)]
    arguments: Annotated[dict[Name, Value], msgspec.Meta(max_length=256)]


class Operation(Strict, frozen=True, tag_field="kind", tag="operation"):
    """A PyTorch operation that the task leaves to PyTorch, by its full name; `out` is None for one in place."""

    name: Name
    arguments: Annotated[tuple[Tensor | Plain, ...], msgspec.Meta(max_length=16)]
    out: View | None


class Record(Strict, frozen=True):
    buffers: Annotated[tuple[Argument | Scratch, ...], msgspec.Meta(max_length=form.MOST_BUFFERS)]
    steps: Annotated[tuple[Launch | Fill | Copy | Operation, ...], msgspec.Meta(max_length=form.MOST_STEPS)]
    outputs: Annotated[tuple[View | Name, ...], msgspec.Meta(max_length=form.MOST_OUTPUTS)]


def dump(record: Record) -> str:
    return msgspec.json.encode(record).decode()


def parse(text: object, sizes: Sequence[int | None], allowed: Sequence[str] = ()) -> Record:
    """`sizes` has the bytes of each argument that is a tensor, None for the others; `allowed` names PyTorch operations.

    Raises Malformed.
    """
    if not isinstance(text, str) or len(text) > LONGEST:
        raise Malformed("no record, or one that is too long")
    try:
        record = msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=Record)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Malformed(str(error)) from error
    scratch = [b for b in record.buffers if isinstance(b, Scratch)]
    if any(b.dtype not in form.DTYPES for b in scratch) or sum(b.nbytes for b in scratch) > MOST_SCRATCH:
        raise Malformed(f"scratch memory of an unknown dtype, or more than {MOST_SCRATCH >> 20} MiB of it")
    views: list[View | str] = [*record.outputs]
    rest: list[form.Step] = []
    for step in record.steps:
        if isinstance(step, Launch):
            programs = 1
            for n in step.grid:
                programs *= n
            if programs > MOST_PROGRAMS:
                raise Malformed(f"a grid of {programs} programs")
            views += _views(step.arguments.values())
        elif isinstance(step, Operation):
            if step.name not in allowed:
                raise Malformed(f"the operation {step.name!r}")
            views += _views(step.arguments)
            if step.out is not None:
                rest.append(Fill(step.out, form.Scalar("fp64", "0x0p+0")))  # checked as what is written
        else:
            rest.append(step)
    form.check(form.Record(record.buffers, (), tuple(rest), tuple(views)), sizes)
    return record


def _views(values: object) -> Iterator[View]:
    for value in values:  # type: ignore[attr-defined]
        if isinstance(value, Tensor):
            yield value.view
        elif isinstance(value, Descriptor):
            yield value.base
        elif isinstance(value, Many):
            yield from _views(value.items)
