"""What a compiled kernel issues: in the loops that multiply tiles by its PTX or AMDGCN, else by its machine code.

A kernel that multiplies tiles in a loop spends its time there. Beside each product the loop loads tiles, and may take
exponentials or maxima: their number for each FLOP of the products does not depend on how often the loop runs.

Of a kernel without products, every warp issues what stands outside loops once. It is counted in the machine code, since
one instruction of it may be three of PTX. What a loop or a jump may leave out is not counted: how often is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = re.compile(r"^([$.]\w+):")
_JUMP = re.compile(r"^(?:@!?%\w+\s+)?(?:bra(?:\.uni)?|s_c?branch\w*)\s+([$.]\w+)")
_PTX_PRODUCT = re.compile(r"^(wgmma\.mma_async|mma\.sync|tcgen05\.mma)\S*?\.m(\d+)n(\d+)k(\d+)\.(\S+)")
_AMD_PRODUCT = re.compile(r"^(v_mfma)_[fi]32_(\d+)x(\d+)x(\d+)_?(\w+)")
_SPECIAL = re.compile(
    r"^(?:@!?%\w+\s+)?(?:(?:ex2|lg2|rcp|rsqrt|sqrt|sin|cos|tanh)\.|v_(?:exp|log|rcp|rsq|sqrt|sin|cos)_f)"
)
# no instruction, or one that costs none
_FREE = re.compile(r"^(?:[.{}/(;$]|mov\.|bra|ret|wgmma\.(?:fence|commit|wait)|s_(?:wait|barrier|nop|c?branch|setprio))")
_LOAD = re.compile(
    r"^(?:@!?%\w+\s+)?(?:cp\.async\.c[ag]\.shared\.global\S* .*, 0x(?P<hex>[0-9a-f]+)"
    r"|ld\.global\S*?(?:\.v(?P<lanes>\d))?\.[a-z](?P<bits>\d+)\b"
    r"|(?:global|buffer)_load_dword(?:x(?P<words>\d))?\b)"
)
KINDS = {
    "tf32": "tf32", "xf32": "tf32", "bf16": "fp16", "f16": "fp16", "e4m3": "fp8", "e5m2": "fp8", "fp8": "fp8",
    "bf8": "fp8", "s8": "int8", "u8": "int8", "i8": "int8",
}  # fmt: skip

# NVIDIA's machine code: address, predicate, operation, operands
_MACHINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)((?:\.\w+)*)([^;]*);")
_TARGET = re.compile(r"0x([0-9a-f]+)")
# Which units take what: Nsight Compute, Kernel Profiling Guide, Pipelines: ALU, FMA, XU
_INTEGER = frozenset(
    "BMSK F2FP FCHK FMNMX FMNMX3 FSEL FSET FSETP I2FP IABS IADD IADD3 IMNMX ISETP LEA LOP LOP3 MOV P2R PLOP3 PRMT R2P "
    "SEL SGXT SHF SHL SHR VIADD VIADDMNMX VIMNMX VIMNMX3".split()
)
_PRODUCTS = frozenset(("IMAD", "IMUL", "IDP"))
_FLOATING = frozenset(("FADD", "FMUL", "FFMA"))
_SPECIAL_UNITS = frozenset("BREV F2F F2I FLO FRND I2F MUFU POPC".split())


@dataclass(frozen=True)
class Mix:
    """Of a warp in one pass through every loop that multiplies."""

    kind: str  # of the products: fp16 (bf16 too), tf32, fp8, int8
    flops: float  # of the products
    issued: int  # other instructions
    special: int  # of these: exponentials and their like, by units of their own
    loaded: int = 0  # bytes of a thread's loads from global memory; what a descriptor loads is not known here


@dataclass(frozen=True)
class Issue:
    """Instructions of a warp outside loops. All but `issued` by the unit that they share."""

    issued: int  # all, also those below
    integer: int  # sums, comparisons, selections, logic, shifts, packed conversions
    products: int  # of integers; of which the upper half is kept, twice
    floating: int  # sums and products of float32
    special: int  # exponentials and their like, other conversions, counts of bits
    shuffles: int


def outside_loops(sass: str, kernel: str) -> Issue | None:
    """Of this kernel in the disassembly that `cuobjdump -sass` gives. None where there is none."""
    lines = _of_function(sass, kernel)
    ends = [number for number, (_, name, _, _) in enumerate(lines) if name == "EXIT"]
    if not ends:
        return None
    lines = lines[: ends[-1] + 1]  # then padding, and routines that are called
    passed = []  # addresses that a jump forward passes over, or that a jump back comes through again
    for address, name, _, operands in lines:
        target = _TARGET.search(operands)
        if name == "BRA" and target:
            to = int(target[1], 16)
            passed.append(range(to, address + 1) if to <= address else range(address + 1, to))
    kept = [
        (name, suffix)
        for address, name, suffix, _ in lines
        if name != "NOP" and not any(address in part for part in passed)
    ]
    return Issue(
        issued=len(kept),
        integer=sum(name in _INTEGER for name, _ in kept),
        products=sum(1 + (".WIDE" in suffix or ".HI" in suffix) for name, suffix in kept if name in _PRODUCTS),
        floating=sum(name in _FLOATING for name, _ in kept),
        special=sum(name in _SPECIAL_UNITS for name, _ in kept),
        shuffles=sum(name == "SHFL" for name, _ in kept),
    )


def _of_function(sass: str, kernel: str) -> list[tuple[int, str, str, str]]:
    """Address, operation, suffixes and operands of each instruction."""
    parts = re.split(r"^\s*Function : (\S+)$", sass, flags=re.MULTILINE)
    text = dict(zip(parts[1::2], parts[2::2], strict=True)).get(kernel, "")
    found = (_MACHINE.match(line) for line in text.splitlines())
    return [(int(m[1], 16), m[2], m[3], m[4]) for m in found if m]


def of_assembly(text: str) -> Mix | None:
    """None when nothing is multiplied on tensor cores."""
    lines = [line.strip() for line in text.splitlines()]
    bodies = [lines[first:last] for first, last in _innermost(lines)]
    multiplying = [body for body in bodies if any(_product(line) for line in body)]
    return _mix(multiplying or [lines])


def _mix(bodies: list[list[str]]) -> Mix | None:
    flops, issued, special, loaded, kind = 0.0, 0, 0, 0, ""
    for line in (line for body in bodies for line in body if line):
        product = _product(line)
        if product:
            m, n, k = (int(product[i]) for i in (2, 3, 4))
            flops += 2 * m * n * k / (4 if product[1].startswith("wgmma") else 1)  # a wgmma is four warps'
            kind = kind or _kind(product[5])
        elif not _FREE.match(line):
            issued += 1
            special += bool(_SPECIAL.match(line))
            loaded += _loaded(line)
    return Mix(kind, flops, issued, special, loaded) if flops else None


def _product(line: str) -> re.Match[str] | None:
    return _PTX_PRODUCT.match(line) or _AMD_PRODUCT.match(line)


def _loaded(line: str) -> int:
    """Bytes of one thread."""
    found = _LOAD.match(line)
    if not found:
        return 0
    if found["hex"]:
        return int(found["hex"], 16)
    if found["bits"]:
        return int(found["bits"]) // 8 * int(found["lanes"] or 1)
    return 4 * int(found["words"] or 1)


def _kind(operands: str) -> str:
    """From `f32.bf16.bf16`: what the operands are; in PTX the accumulator comes first."""
    after = operands.split(".", 1)[-1]
    return next((name for sign, name in KINDS.items() if sign in after), "fp16")


def _innermost(lines: list[str]) -> list[tuple[int, int]]:
    """First and last line of each loop that holds no other loop: from a label to a jump back to it."""
    labels = {found[1]: number for number, line in enumerate(lines) if (found := _LABEL.match(line))}
    loops = []
    for number, line in enumerate(lines):
        jump = _JUMP.match(line)
        if jump and labels.get(jump[1], number) < number:
            loops.append((labels[jump[1]], number))
    return [a for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
