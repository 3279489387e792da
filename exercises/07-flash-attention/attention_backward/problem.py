import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES
from .models import gradients, parts, rounded, widened

BFLOAT16 = "the interpreter computes bfloat16 arithmetic wrongly"


def reference(q, k, v, out, lse, grad_out):
    return rounded(q, *gradients(q, k, v, out, lse, grad_out))


def eager(q, k, v, out, lse, grad_out):
    """The five products, p and ds in memory: PyTorch has no public call for a fused backward pass alone."""
    scale = q.shape[-1] ** -0.5
    p = torch.exp((q @ k.transpose(-1, -2)).float() * scale - lse[..., None]).to(q.dtype)
    delta = (grad_out.float() * out.float()).sum(-1, keepdim=True)
    ds = (p * ((grad_out @ v.transpose(-1, -2)).float() - delta) * scale).to(q.dtype)
    return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ grad_out


def work(q, k, v, out, lse, grad_out):
    B, H, N_q, D = q.shape
    elements = 4 * q.numel() + 4 * k.numel()  # q, out, grad_out, dq; k, v, dk, dv
    return Work(bytes=elements * q.element_size() + 4 * lse.numel(), flops=10 * B * H * N_q * k.shape[2] * D)


def magnitude(q, k, v, out, lse, grad_out):
    """What rounding p and ds to 16 bits moves in dq, dk and dv; ds is a difference of float32 sums, rounded as they are."""
    p, ds, scale = parts(q, k, v, out, lse, grad_out)
    g = widened(grad_out).abs()
    sums = g @ widened(v).abs().transpose(-1, -2) + (g * widened(out).abs()).sum(-1, keepdim=True)
    ds = ds.abs() + 8 * p * sums * (torch.finfo(torch.float32).eps / torch.finfo(torch.float16).eps)
    dq = ds @ widened(k).abs() * scale
    dk = ds.transpose(-1, -2) @ widened(q).abs() * scale
    return dq, dk, p.transpose(-1, -2) @ widened(grad_out).abs()


def forward(q, k, v):
    """out and lse as a forward kernel leaves them: out rounded to q's dtype, lse in float32."""
    s = (widened(q) @ widened(k).transpose(-1, -2)) * q.shape[-1] ** -0.5
    return (torch.softmax(s, dim=-1) @ widened(v)).to(q.dtype), torch.logsumexp(s, dim=-1).contiguous()


def shapes(B: int, H: int, N_q: int, N_k: int, D: int, dtype: torch.dtype = torch.float16, **options) -> Case:
    def make(draw: Draw):
        q, k, v, grad_out = (draw.normal(B, H, N, D, dtype=dtype) for N in (N_q, N_k, N_k, N_q))
        return q, k, v, *forward(q, k, v), grad_out

    name = f"B={B} H={H} N_q={N_q} N_k={N_k} D={D}"
    return Case(name if dtype == torch.float16 else f"{name} bfloat16", make, **options)


def heads_last(draw: Draw):
    """[B, N, H, D] as a projection leaves it, seen as [B, H, N, D]; grad_out is packed."""
    q, k, v = (draw.normal(1, 70, 2, 32, dtype=torch.float16).transpose(1, 2) for _ in "qkv")
    return q, k, v, *forward(q, k, v), draw.normal(1, 2, 70, 32, dtype=torch.float16)


def transposed_gradient(draw: Draw):
    q, k, v = (draw.normal(1, 2, 40, 32, dtype=torch.float16) for _ in "qkv")
    return q, k, v, *forward(q, k, v), draw.normal(1, 2, 32, 40, dtype=torch.float16).transpose(-1, -2)


def expanded_gradient(draw: Draw):
    """As it comes back from out.sum(-1): one value for each row, stride 0 along D."""
    q, k, v = (draw.normal(1, 2, N, 32, dtype=torch.float16) for N in (40, 50, 50))
    return q, k, v, *forward(q, k, v), draw.normal(1, 2, 40, 1, dtype=torch.float16).expand(1, 2, 40, 32)


def all_scores(sign: float):
    def make(draw: Draw):
        q = (draw.normal(1, 1, 20, 64, scale=0.1) + 8).half()
        k = (sign * (draw.normal(1, 1, 70, 64, scale=0.1) + 8)).half()
        v, grad_out = (draw.normal(1, 1, N, 64, dtype=torch.float16) for N in (70, 20))
        return q, k, v, *forward(q, k, v), grad_out

    return make


PROBLEM = Problem(
    slug="attention_backward",
    title="Backward of flash attention",
    entry="attention_backward",
    parameters=("q", "k", "v", "out", "lse", "grad_out"),
    reference=reference,
    eager=eager,
    work=work,
    tolerance=Tolerance(ulps=2.0, terms=2.0, accumulate=torch.float16, scale=magnitude),
    cases=(
        shapes(1, 1, 65, 100, 32),
        shapes(1, 1, 1, 1, 32),
        shapes(1, 1, 16, 16, 32),
        shapes(1, 1, 64, 64, 64),
        shapes(2, 2, 17, 33, 32),
        shapes(1, 1, 130, 63, 64),
        shapes(1, 1, 33, 65, 128),
        Case("heads last in memory, N=70", heads_last),
        Case("grad_out transposed, N=40", transposed_gradient),
        Case("grad_out expanded, N_q=40 N_k=50", expanded_gradient),
        Case("all scores near +500, N_q=20 N_k=70", all_scores(+1.0)),
        Case("all scores near -500, N_q=20 N_k=70", all_scores(-1.0)),
        shapes(1, 1, 0, 5, 32),
        shapes(1, 2, 130, 193, 64, torch.bfloat16, needs_gpu=BFLOAT16),
        shapes(2, 3, 500, 700, 128, needs_gpu="too many tiles for the interpreter", offline=False),
    ),
    timing=Timing(
        "B=2 H=16 N=2048 D=64 float16",
        lambda draw: (
            *(qkv := tuple(draw.normal(2, 16, 2048, 64, dtype=torch.float16) for _ in "qkv")),
            *forward(*qkv),
            draw.normal(2, 16, 2048, 64, dtype=torch.float16),
        ),
        limit="compute",
        fair=0.2,
        fast=0.35,
    ),
    mistakes=MISTAKES,
    hints=(
        "Which of the six products belong to rows of queries, and which to rows of keys? What must be known of a row beforehand?",
        "p = exp(s - lse) is final, so no maximum, no rescaling. For dq loop over keys; for dk and dv loop over queries and "
        "transpose: tl.dot(tl.trans(p), do). Padded queries are harmless, their grad_out is 0; padded keys want p = 0.",
        "ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None]); dq = tl.dot(ds.to(k.dtype), k, dq); "
        "dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk); dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv)",
    ),
)
