"""What module 2 claims about NaN and about the type that a tile has after meeting a number."""

import importlib.metadata

from tests.evidence.run import compiled, interpreted

TRITON = tuple(int(part) for part in importlib.metadata.version("triton").split(".")[:2])

MAXIMA = """
@triton.jit
def kernel(x_ptr, out_ptr, WAY: tl.constexpr):
    offs = tl.arange(0, 4)
    y = tl.load(x_ptr + offs)
    if WAY == 0:
        y = tl.maximum(y, 0.0)
    elif WAY == 1:
        y = tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL)
    elif WAY == 2:
        y = tl.where(y < 0, 0.0, y)
    else:
        y = tl.where(y > 0, y, 0.0)
    tl.store(out_ptr + offs, y)

x = torch.tensor([float("nan"), -1.0, 2.0, 0.0])
"""


def test_maximum_drops_nan_on_a_gpu():
    out = compiled(
        MAXIMA
        + """
for way in range(2):
    ptx = kernel[(1,)](x, x, WAY=way).asm["ptx"]
    print("max.NaN.f32" in ptx, "max.f32" in ptx)
"""
    )
    assert out.split() == ["False", "True", "True", "False"]
    out = interpreted(
        MAXIMA
        + """
for way in range(4):
    out = torch.empty(4)
    kernel[(1,)](x, out, WAY=way)
    print(bool(out[0].isnan()))
print(bool(torch.relu(x)[0].isnan()))
"""
    ).split()
    assert out[1:] == ["True", "True", "False", "True"]
    if TRITON <= (3, 7):
        assert out[0] == "True"  # so the interpreter hides it
    elif TRITON >= (3, 9):
        assert out[0] == "False"


def test_half_tile_times_a_number():
    source = """
@triton.jit
def kernel(x_ptr, out_ptr, scale, CONSTANT: tl.constexpr):
    offs = tl.arange(0, 128)
    x = tl.load(x_ptr + offs)
    tl.static_print((x * 0.1).dtype, (x * CONSTANT).dtype, (x * scale).dtype, (x.to(tl.float32) * 0.1).dtype)
    tl.store(out_ptr + offs, x * scale)

x = torch.zeros(128)
kernel[(1,)](x.half(), x, 0.1, CONSTANT=0.1)
"""
    assert compiled(source).split() == ["fp16", "fp16", "fp32", "fp32"]
    assert interpreted(source).split() == ["fp16", "fp16", "fp16", "fp32"]


def test_forms_of_the_sigmoid():
    out = interpreted("""
@triton.jit
def kernel(v_ptr, out_ptr, FORM: tl.constexpr):
    i = tl.arange(0, 8)
    v = tl.load(v_ptr + i)
    if FORM == 0:
        y = tl.exp(v) / (1 + tl.exp(v))
    elif FORM == 1:
        y = 1 / (1 + tl.exp(-v))
    else:
        y = tl.sigmoid(v)
    tl.store(out_ptr + i, y)

v, out = torch.tensor([-100.0, -90, -1, 0, 1, 88, 89, 100]), torch.empty(8)
for form in range(3):
    kernel[(1,)](v, out, FORM=form)
    print(torch.allclose(out, torch.sigmoid(v)), out.isnan().tolist().count(True))
print([name for name in dir(tl) if "tanh" in name])
z = torch.linspace(-5, 5, 101, dtype=torch.float64)
print(torch.allclose(torch.tanh(z), 2 * torch.sigmoid(2 * z) - 1))
""")
    assert out.splitlines() == ["False 2", "True 0", "True 0", "[]", "True"]
