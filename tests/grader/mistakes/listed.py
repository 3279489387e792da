"""The list: mistakes reported in public trackers (T: triton-lang/triton, P: pytorch/pytorch, others by name), by number.

"D …": the interpreter and the compiler disagree, as seen by running both on Triton 3.6 to 3.9.
"""

from __future__ import annotations

import re
from pathlib import Path

# ids of the course's items, which a diagnosis may point to
ITEMS = frozenset(
    found
    for module in (Path(__file__).resolve().parents[3] / "modules").glob("*.yaml")
    for found in re.findall(r"^\s*-?\s*id: (\S+)", module.read_text(), re.MULTILINE)
)

LISTED = {
    "1": "padded lanes join a variance or a sum [T9838, Liger-Kernel 518]",
    "2": "padding loaded as 0 before a softmax or a maximum",
    "3": "softcap turns -inf padding into -softcap",
    "5": "right only for multiples of the tile: no mask on the tail",
    "6": "columns past BLOCK ignored: no loop over columns [xformers 785]",
    "7": "only one head dimension works: 64 is hard-coded [T621]",
    "9": "-inf minus -inf on a fully masked row [P131060]",
    "10": "torch.empty returned the previous right answer's memory [T3399]",
    "11": "int32 offsets past 2^31 elements [T6748, Liger-Kernel 1335]",
    "13": "wrong on x.t() or a slice: contiguity assumed",
    "15": "the incoming gradient is expanded, stride 0",
    "17": "backward needs grad.contiguous() or strides",
    "18": "a tile mask with a scalar pointer [T633]",
    "20": "row index and column index exchanged",
    "21": "TF32 is the default for float32 [T1800]",
    "23": "tl.sum of float16 adds in float16 [T1960]",
    "24": "// and % of negative numbers truncate as in C [T619]",
    "27": "activation applied after the cast to float16",
    "29": "final division by l inside the loop",
    "31": "running maximum starts at 0",
    "32": "accumulator or denominator not rescaled",
    "34": "base-2 exponent without log2(e)",
    "35": "arange over a length that is no power of two, or a runtime value [T3722]",
    "36": "a plain module-level number used inside a kernel",
    "38": "a loop-carried variable changes type",
    "40": "recompiling for every row count [T10872]",
    "42": "if on a tile [Liger-Kernel 991]",
    "43": "a kernel built with exec [T5386]",
    "45": "an in-place kernel tuned without restore_value [T6547]",
    "47": "an accumulating kernel tuned without reset_to_zero",
    "48": "a shape missing from key [T4046]",
    "49": "an irrelevant argument in key",
    "51": "two programs add to one address without atomics",
    "53": "store then load by other lanes without a barrier [T1097]",
    "57": "the grid callable returns an int [T5704]",
    "59": "zero-size input: an empty grid",
    "61": "another device than the current one [T2925]",
    "62": "an input left on the CPU",
    "63": "timing without synchronising, or timing the first call",
    "65": "backward through a bare kernel: no grad_fn [T1189]",
    "67": "a mutated argument that is not declared",
    "68": "wrap_triton forgotten inside a triton_op",
    "69": "gradient for the wrong input, or too few returned",
    "D axis": "program_id(3): both refuse",
    "D branch": "a variable defined in one branch",
    "D break": "break in a kernel",
    "D dot": "a tile too small for tl.dot",
    "D math": "math.sqrt of a tensor",
    "D other": "masked-off lanes of a load without other",
    "D size": "a tile over 2^20 elements: both refuse",
    "D warps": "num_warps=3",
}
