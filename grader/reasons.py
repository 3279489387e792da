"""What an exception's text says about the mistake: the cause by name, and what to try.

The texts are Triton's and PyTorch's own (Triton 3.6 to 3.9, PyTorch 2.9 to 2.14); one that is not known keeps the
general cause of its stage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    pattern: str  # searched in the exception's text
    cause: str
    advice: str  # what to try; may use the pattern's groups as {0}, {1}
    in_triton: bool = False  # only if Triton raised it: Python raises the same text for other things
    short: str = ""  # said in place of the text; groups as in `advice`


UNDEFINED = r"\b(\w+)['\"]? is not defined"  # Python's NameError

REASONS = (
    Reason(
        r"Cannot access global variable (\w+)",
        "plain_global",
        "pass {0} as an argument, or define it as {0} = tl.constexpr(…): a kernel sees no plain globals, because "
        "compiled code would not notice that one changed",
        short="the kernel uses the plain global {0}",
    ),
    Reason(
        r"arange's range must be a power of 2|Shape element \d+ must be a power of 2",
        "not_a_power_of_two",
        "make every tile a power of two wide, with triton.next_power_of_2(n) if need be, and mask off what lies past n",
    ),
    Reason(
        r"arange's end argument must be greater than the start",
        "empty_tile",
        "return before the launch when a dimension is 0: there is no tile without elements",
    ),
    Reason(
        r"arange's arguments must be of type tl\.constexpr",
        "arange_of_runtime_value",
        "give tl.arange a tl.constexpr: a tile's size is fixed when the kernel is compiled. Mask off what lies past n",
    ),
    Reason(
        r"exceeds triton maximum tensor numel",
        "tile_too_large",
        "take smaller tiles, and a loop or more programs: a tile holds at most 1,048,576 elements",
    ),
    Reason(
        r"(?:program_id|num_programs) axis must be 0, 1, or 2",
        "no_such_axis",
        "a grid has at most three axes: fold a fourth into one of them, with // and %",
    ),
    Reason(
        r"Loop-carried variable (\w+) has initial type (.+?) but is re-assigned to (.+?) in loop",
        "loop_changes_type",
        "start {0} with the type and shape that the loop gives it, 0.0 or tl.zeros(…, dtype=tl.float32), or cast it in "
        "the loop",
        short="{0} is {1} before the loop and {2} after one turn",
    ),
    Reason(
        r"Mismatched type for (\w+) between then block \((.+?)\) and else block \((.+?)\)",
        "branch_changes_type",
        "give {0} the same type in both branches, or choose with tl.where",
        short="{0} is {1} in one branch and {2} in the other",
    ),
    Reason(
        r"(?:Mask|Value) argument cannot be block type if pointer argument is not a block",
        "mask_wider_than_pointer",
        "add the tile of offsets to the pointer: a pointer is never broadcast to the shape of its mask or value",
    ),
    Reason(
        r"unsupported AST node type: (\w+)",
        "unsupported_syntax",
        "write it without this: a kernel knows for, while, if and assignments, but no break, continue or try",
    ),
    Reason(
        r"Boolean value of Tensor with more than one value is ambiguous",
        "branch_on_tensor",
        "choose lane by lane with tl.where(condition, a, b): if, and, or need one value, a tile has many",
    ),
    Reason(
        r"must be real number, not tensor|only length-1 arrays can be converted|"
        r"loop of ufunc does not support argument 0 of type tensor",
        "python_function_of_a_tensor",
        "use the function of the same name in tl: Python's math and numpy know nothing of a tile",
    ),
    Reason(
        r"num_warps must be a power of 2",
        "warps_not_a_power_of_two",
        "take 1, 2, 4, 8, 16 or 32 warps",
    ),
    Reason(
        r"Input shapes should have M >= (\d+), N >= (\d+) and K >= (\d+)",
        "dot_too_small",
        "make the tiles of tl.dot at least {0} x {2} and {2} x {1}, and fill up with zeros what is not there",
    ),
    Reason(
        r"assert acc\b|expected accumulator (?:shape|dtype)",
        "accumulator_type",
        "keep the accumulator as tl.dot returns it, in float32 and of the product's shape; cast once, after the loop",
        short="tl.dot cannot add to this accumulator: its dtype or shape is not that of the product",
    ),
    Reason(
        r"Both operands must be same dtype",
        "dot_operand_types",
        "cast one operand of tl.dot to the dtype of the other: p.to(v.dtype)",
    ),
    Reason(
        r"Cannot make_shape_compatible|[Cc]annot broadcast|incompatible dimensions|could not be broadcast",
        "shapes_do_not_broadcast",
        "look at the shapes: [:, None] makes a column, [None, :] a row, and both together a tile",
    ),
    Reason(
        r"Expected dtype .+ but got (\w+)",
        "wrong_dtype_for_function",
        "cast with .to(tl.float32) first: this function takes no {0}",
    ),
    Reason(
        r"could not get source code|@jit functions should be defined in a Python file",
        "kernel_without_source",
        "write the kernel in the file: the compiler reads its source text, and exec leaves none",
    ),
    Reason(
        r"object of type 'int' has no len\(\)|'int' object is not (?:iterable|subscriptable)",
        "grid_not_a_tuple",
        "give a tuple, also for one axis, also from a callable: (triton.cdiv(n, BLOCK),)",
        in_triton=True,
        short="the grid is an int",
    ),
    Reason(
        r"Conflicting meta-parameters: (.+?)\.",
        "tuned_argument_passed",
        "leave {0} out of the launch: the configuration that the tuner picks brings it",
    ),
    Reason(
        r"Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available",
        "device_hard_coded",
        'take the device from the input, device=x.device: "cuda" is not there on every machine, and where there are '
        "several GPUs it may be another one than the input's",
    ),
    Reason(
        r"Expected a cuda device, but got: cpu",
        "device_guard_on_the_cpu",
        "with torch.cuda.device_of(x), for an input x: on a GPU the same as torch.cuda.device(x.device), and for a "
        "tensor on the CPU, as the interpreter's are, it does nothing",
    ),
    Reason(
        r"Pointer argument(?: \(at \d+\))? cannot be accessed from Triton",
        "tensor_on_the_cpu",
        "make every tensor that a kernel gets on the device of the input: torch.empty(…, device=x.device)",
        short="the kernel is given a tensor that lies in the CPU's memory, which a GPU cannot reach",
    ),
    Reason(
        r"returned an incorrect number of gradients \(expected (\d+), got (\d+)\)",
        "wrong_number_of_gradients",
        "return one gradient for each argument of forward after ctx, None for those that need none: {0} here",
        short="backward returned {1} gradients, forward takes {0} arguments",
    ),
    Reason(
        r"returned a gradient different than None at position (\d+)",
        "gradient_for_wrong_input",
        "return the gradients in the order of forward's arguments: number {0} is no tensor that needs one, so its "
        "gradient is None",
        short="backward returned a gradient as number {0}, where forward takes no tensor that needs one",
    ),
    Reason(
        r"no autograd formula was registered",
        "no_gradient",
        "call register_autograd on the operator, with the backward function and the one that saves what it needs",
    ),
    Reason(
        r"cannot access local variable '(\w+)'|local variable '(\w+)' referenced before",
        "defined_in_one_branch",
        "give it a value before the if, or in both branches: the compiler needs one on every path",
    ),
    Reason(
        UNDEFINED,
        "undefined_name",
        "check the spelling, and give {0} a value on every path that leads here: before an if, or in both branches",
        short="{0} is not defined",
    ),
)


@dataclass(frozen=True)
class Named:
    cause: str
    advice: str
    short: str


def named(text: str, in_triton: bool) -> Named | None:
    """The first known reason in an exception's text. `in_triton`: whether Triton's own code raised it."""
    for reason in REASONS:
        match = re.search(reason.pattern, text)
        if match is not None and (in_triton or not reason.in_triton):
            groups = [g.strip() if g else "" for g in match.groups()]
            return Named(reason.cause, reason.advice.format(*groups), reason.short.format(*groups))
    return None
