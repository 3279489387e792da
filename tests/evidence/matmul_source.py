"""Sources of a blocked matmul and its variants, for snippets that module 6's evidence runs."""

from __future__ import annotations

# One tile of C per program, row-major; `{a_k}` and `{b_k}` are the masks along K, `{step}` how far A moves.
# `{name}` lets several variants share one process: starting one costs more than compiling a kernel.
MATMUL = """
@triton.jit
def mm{name}(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    rm = pid // tl.cdiv(N, BN) * BM + tl.arange(0, BM)
    rn = pid % tl.cdiv(N, BN) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * sam + rk[None, :] * sak
    b_ptrs = b_ptr + rk[:, None] * sbk + rn[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        a = tl.load(a_ptrs, mask=(rm[:, None] < M){a_k}, other=0.0)
        b = tl.load(b_ptrs, mask=(rn[None, :] < N){b_k}, other=0.0)
        acc = {dot}
        a_ptrs += {step}
        b_ptrs += BK * sbk
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(c_ptr.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul{name}(a, b, BM=16, BN=32, BK=32, **options):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype)
    grid = (triton.cdiv(M, BM) * triton.cdiv(N, BN),)
    kernel = mm{name}[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), BM, BN, BK, **options)
    return c if kernel is None else kernel
"""


def kernel(
    name: str = "",
    a_k: str = " & (rk[None, :] < left)",
    b_k: str = " & (rk[:, None] < left)",
    step: str = "BK * sak",
    dot: str = "tl.dot(a, b, acc)",
) -> str:
    return MATMUL.format(name=name, a_k=a_k, b_k=b_k, step=step, dot=dot)


# prints whether `matmul{name}` compiles, or the words it is refused with
ATTEMPT = """
def attempt(call, words=""):
    try:
        call()
    except Exception as error:
        text = f"{error} {error.__cause__}"
        return "refused" if words in text else text
    return "ok"
"""
