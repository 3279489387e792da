"""embedding_gather: out[t, d] = table[ids[t], d]

Called as      embedding(table, ids)
table          (V, D); the elements of a row lie side by side, the rows ROW >= D elements apart;
               float32, float16 or bfloat16
ids            (T,), contiguous, each from 0 to V - 1, some equal; int64, int32, or uint8 (a vocabulary of bytes)
returns        a new contiguous (T, D) tensor of the dtype of table
T, V, D        T from 0, D from 1 to several times BLOCK_D

In use, a table may hold more than 2^31 elements. An offset must not be computed in a type that is too narrow for it:
in Triton, id * ROW has the type of the id when ROW is a constexpr, whatever the value of the product is.

One program owns one row of out, and walks along it in chunks of BLOCK_D columns. The launcher is given; write the
kernel.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(
    table_ptr,
    ids_ptr,
    out_ptr,
    D: tl.constexpr,  # columns
    ROW: tl.constexpr,  # elements from table[v, d] to table[v + 1, d]
    BLOCK_D: tl.constexpr,
):
    # 1. which token is mine, and which row of the table does it name?
    # 2. where does that row begin, and in which integer type is that computed?
    # 3. for each chunk of columns: load, store
    pass


def embedding(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    n_tokens, D = ids.numel(), table.shape[1]
    out = torch.empty((n_tokens, D), dtype=table.dtype, device=table.device)
    if out.numel() == 0:
        return out
    # a model's table has one shape: as constexprs, D and ROW cost one compilation and let loads be wide
    gather_kernel[(n_tokens,)](table, ids, out, D=D, ROW=table.stride(0), BLOCK_D=1024)
    return out
