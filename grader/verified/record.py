"""One call as data: buffers, kernels as TTIR, and the steps in order. It comes from a process that nobody trusts.

`parse` accepts a record only if every number in it makes sense by itself; `check` holds it against the call's memory.
A record may still ask for anything a kernel could do: it is carried out by a process that has nothing to lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import torch

from grader.guards import Region
from grader.triton_launches import OPTIONS, SCALARS, entry_of

LONGEST = 16 << 20  # bytes of a whole record
MOST_TTIR = 8 << 20  # bytes, all kernels of a record together
MOST_STEPS, MOST_KERNELS, MOST_BUFFERS, MOST_OUTPUTS = 4096, 64, 512, 16
MOST_SCRATCH = 8 << 30  # bytes that a call may allocate
GRID_LIMITS = (2**31 - 1, 65535, 65535)  # CUDA C++ Programming Guide 12.9, table of technical specifications
DTYPES = {
    name: dtype
    for name in (
        "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 "
        "int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool"
    ).split()
    if isinstance(dtype := getattr(torch, name, None), torch.dtype)
}

Size = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**20)]  # of a buffer or kernel
Sizes = Annotated[tuple[Size, ...], msgspec.Meta(max_length=16)]
Name = Annotated[str, msgspec.Meta(max_length=256)]


class Malformed(ValueError):
    """The record makes no sense: the text says where."""


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a record: nothing in it may be unknown."""


class Argument(Strict, frozen=True, tag_field="kind", tag="argument"):
    """A tensor argument of the call, by its position among all arguments."""

    position: Number


class Scratch(Strict, frozen=True, tag_field="kind", tag="scratch"):
    """Memory that the call allocated; `dtype` decides what it is poisoned with."""

    nbytes: Size
    dtype: Name


class View(Strict, frozen=True):
    """A tensor over a buffer. `offset` in bytes, strides in elements."""

    buffer: Number
    offset: Size
    dtype: Name
    shape: Sizes
    stride: Sizes

    def region(self, regions: Sequence[Region]) -> Region:
        return Region(regions[self.buffer].offset + self.offset, self.shape, self.stride, DTYPES[self.dtype])


class Pointer(Strict, frozen=True, tag_field="kind", tag="pointer"):
    """An address in a buffer; a null pointer without one."""

    buffer: Number | None
    offset: Size = 0


class Scalar(Strict, frozen=True, tag_field="kind", tag="scalar"):
    """A number: decimal for integers, hexadecimal (`float.hex`) for floats, so that every bit arrives."""

    type: Name
    value: Annotated[str, msgspec.Meta(max_length=64)]

    def number(self) -> int | float:
        """As the launcher takes it: integers by the bits of a signed one of that width. Raises ValueError."""
        if self.type[0] in "fb":
            return float.fromhex(self.value)
        value, bits = int(self.value), int(self.type[1:])
        if not -(2 ** (bits - 1)) <= value < 2**bits:
            raise ValueError(f"{value} is no {self.type}")
        return value if bits == 1 or value < 2 ** (bits - 1) else value - 2**bits


class Kernel(Strict, frozen=True):
    name: Name
    ttir: Annotated[str, msgspec.Meta(max_length=MOST_TTIR)]
    options: Annotated[dict[Name, bool | int], msgspec.Meta(max_length=32)]


class Launch(Strict, frozen=True, tag_field="kind", tag="launch"):
    kernel: Number
    grid: tuple[Size, Size, Size]
    arguments: Annotated[tuple[Pointer | Scalar, ...], msgspec.Meta(max_length=256)]


class Fill(Strict, frozen=True, tag_field="kind", tag="fill"):
    to: View
    value: Scalar


class Copy(Strict, frozen=True, tag_field="kind", tag="copy"):
    """Element by element, with the conversion of dtypes that PyTorch's copy_ makes."""

    to: View
    source: View


Step = Launch | Fill | Copy


class Record(Strict, frozen=True):
    """One call. A returned value that is no tensor appears by the name of its type."""

    buffers: Annotated[tuple[Argument | Scratch, ...], msgspec.Meta(max_length=MOST_BUFFERS)]
    kernels: Annotated[tuple[Kernel, ...], msgspec.Meta(max_length=MOST_KERNELS)]
    steps: Annotated[tuple[Step, ...], msgspec.Meta(max_length=MOST_STEPS)]
    outputs: Annotated[tuple[View | Name, ...], msgspec.Meta(max_length=MOST_OUTPUTS)]

    @property
    def launches(self) -> int:
        return sum(isinstance(step, Launch) for step in self.steps)


def dump(record: Record) -> str:
    return msgspec.json.encode(record).decode()


def parse(text: str) -> Record:
    """Raises Malformed for whatever is not a well-formed record within the limits."""
    if len(text) > LONGEST:
        raise Malformed(f"longer than {LONGEST >> 20} MiB")
    try:
        record = msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=Record)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Malformed(str(error)) from error
    if sum(len(kernel.ttir) for kernel in record.kernels) > MOST_TTIR:
        raise Malformed(f"more than {MOST_TTIR >> 20} MiB of TTIR")
    for kernel in record.kernels:
        _check_kernel(kernel)
    for buffer in record.buffers:
        if isinstance(buffer, Scratch) and buffer.dtype not in DTYPES:
            raise Malformed(f"no dtype {buffer.dtype!r}")
    if sum(b.nbytes for b in record.buffers if isinstance(b, Scratch)) > MOST_SCRATCH:
        raise Malformed(f"the call allocates more than {MOST_SCRATCH >> 30} GiB")
    return record


def check(record: Record, sizes: Sequence[int | None]) -> None:
    """Hold a record against its call: `sizes` has the bytes of each argument that is a tensor, None for the others.

    Raises Malformed.
    """
    tensors = [position for position, size in enumerate(sizes) if size is not None]
    if [b.position for b in record.buffers if isinstance(b, Argument)] != tensors or any(
        isinstance(b, Argument) for b in record.buffers[len(tensors) :]
    ):
        raise Malformed("the buffers do not begin with the call's tensor arguments")
    lengths = [(sizes[b.position] or 0) if isinstance(b, Argument) else b.nbytes for b in record.buffers]
    for step in record.steps:
        if isinstance(step, Launch):
            _check_launch(step, record, lengths)
        elif isinstance(step, Fill):
            _check_target(step.to, lengths)
            _check_scalar(step.value)
        else:
            _check_target(step.to, lengths)
            _check_view(step.source, lengths)
            if step.to.shape != step.source.shape:
                raise Malformed("a copy between different shapes")
    for output in record.outputs:
        if isinstance(output, View):
            _check_view(output, lengths)


def _check_kernel(kernel: Kernel) -> None:
    unknown = set(kernel.options) - set(OPTIONS)
    if unknown:
        raise Malformed(f"no option {sorted(unknown)[0]!r} can be given")
    for option, most in (("num_warps", 64), ("num_ctas", 16), ("num_stages", 64), ("maxnreg", 255)):
        value = kernel.options.get(option, 1)
        if not 1 <= value <= most or isinstance(value, bool):
            raise Malformed(f"{option} = {value}")
    if not 0 <= kernel.options.get("min_shared_mem", 0) <= 1 << 20:
        raise Malformed("min_shared_mem")
    if entry_of(kernel.ttir) != kernel.name:
        raise Malformed(f"the TTIR does not hold exactly one kernel, {kernel.name!r}")


def _check_launch(launch: Launch, record: Record, lengths: Sequence[int]) -> None:
    if launch.kernel >= len(record.kernels):
        raise Malformed(f"no kernel {launch.kernel}")
    if any(n > most for n, most in zip(launch.grid, GRID_LIMITS, strict=True)):
        raise Malformed(f"the grid {launch.grid} is larger than CUDA's largest")
    for argument in launch.arguments:
        if isinstance(argument, Scalar):
            _check_scalar(argument)
        elif argument.buffer is None:
            if argument.offset:
                raise Malformed("a null pointer with an offset")
        elif argument.buffer >= len(lengths) or argument.offset > lengths[argument.buffer]:
            raise Malformed(f"a pointer outside buffer {argument.buffer}")


def _check_scalar(scalar: Scalar) -> None:
    if scalar.type not in SCALARS:
        raise Malformed(f"no scalar type {scalar.type!r}")
    try:
        scalar.number()
    except (ValueError, OverflowError) as error:
        raise Malformed(f"{scalar.value!r} is no {scalar.type}") from error


def _check_view(view: View, lengths: Sequence[int]) -> None:
    if view.buffer >= len(lengths) or view.dtype not in DTYPES or len(view.shape) != len(view.stride):
        raise Malformed(f"no such view: {view}")
    item = DTYPES[view.dtype].itemsize
    region = Region(view.offset, view.shape, view.stride, DTYPES[view.dtype])
    if view.offset % item or view.offset + region.nbytes > lengths[view.buffer]:
        raise Malformed(f"a view outside buffer {view.buffer}")


def _check_target(view: View, lengths: Sequence[int]) -> None:
    """What is written: no element twice, as far as strides show it."""
    _check_view(view, lengths)
    if any(n > 1 and s == 0 for n, s in zip(view.shape, view.stride, strict=True)):
        raise Malformed("a fill or copy that writes one element several times")
    count = 1
    for n in view.shape:
        count *= n
    if count > Region(0, view.shape, view.stride, DTYPES[view.dtype]).span:
        raise Malformed("a fill or copy that writes one element several times")


def scalar_of(kind: str, value: Any) -> Scalar:
    """The runner's side of Scalar. `value` is a Python number, or what float() and int() take."""
    return Scalar(kind, float(value).hex() if kind[0] in "fb" else str(int(value)))
