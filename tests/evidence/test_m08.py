"""Module 8: what PyTorch does with gradients and operators of Triton kernels, and with tracing them."""

from tests.evidence.run import compiled, interpreted

KERNELS = """
@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * x, mask=offs < n)

@triton.jit
def square_backward_kernel(x_ptr, grad_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    grad = tl.load(grad_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, 2 * x * grad, mask=offs < n)

def bare(x):
    out = torch.empty_like(x)
    square_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out

def bare_backward(x, grad):
    out = torch.empty_like(x)
    square_backward_kernel[(triton.cdiv(x.numel(), 64),)](x, grad, out, x.numel(), BLOCK=64)
    return out

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return bare(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return bare_backward(x, grad.contiguous())

def message(action):
    try:
        action()
    except Exception as error:
        return type(error).__name__ + ": " + str(error)
    return ""
"""

OPERATORS = """
from torch.library import custom_op, opcheck, triton_op, wrap_triton

@triton_op("evidence::square", mutates_args=())
def square(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(square_kernel)[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out

@triton_op("evidence::square_backward", mutates_args=())
def square_backward(x: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(square_backward_kernel)[(triton.cdiv(x.numel(), 64),)](x, grad, out, x.numel(), BLOCK=64)
    return out

def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)
"""
# an interpreted kernel is no JITFunction, which older versions of wrap_triton refuse
UNWRAPPED = "wrap_triton = lambda kernel: kernel\n"

# Dynamo looks for a GPU before it looks for Triton kernels: say that there is one.
TRACED = (
    "import torch.utils._triton\ntorch.utils._triton.has_triton = lambda: True\n"
    + KERNELS
    + OPERATORS
    + '''
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

def nodes(function, *args, backward=False):
    """Names in the forward graph and, if asked, the backward graph, as the backend of torch.compile sees them."""
    seen = []
    def keep(graph, inputs):
        seen.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
        return make_boxed_func(graph.forward)
    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=keep, bw_compiler=keep)
    out = torch.compile(function, backend=backend, fullgraph=True)(*args)
    if backward:
        out.sum().backward()
    return seen

def launches(graph):
    return sum(name.startswith("triton_kernel_wrapper") for name in graph)

x = torch.arange(4.0)
'''
)


def test_bare_kernel_has_no_gradient():
    interpreted(
        KERNELS
        + """
x = torch.arange(4.0, requires_grad=True)
out = bare(x)
assert not out.requires_grad and out.grad_fn is None
assert "does not require grad" in message(lambda: out.sum().backward())
# mixed with PyTorch: no error, and the kernel's part of the gradient is missing
(bare(x) + x).sum().backward()
assert x.grad.tolist() == [1, 1, 1, 1]
# the Function gives the missing part
x.grad = None
(Square.apply(x) + x).sum().backward()
assert x.grad.tolist() == [1, 3, 5, 7]
"""
    )


def test_one_gradient_for_each_argument():
    interpreted(
        KERNELS
        + """
def function(gradients):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale, flag):
            return x * scale
        @staticmethod
        def backward(ctx, grad):
            return gradients(grad)
    def run():
        x = torch.ones(4, requires_grad=True)
        Scaled.apply(x, 2.0, True).sum().backward()
        assert x.grad.dtype == torch.float32
    return run

assert message(function(lambda g: (g * 2, None, None))) == ""
assert "incorrect number of gradients (expected 3, got 1)" in message(function(lambda g: g * 2))
assert message(function(lambda g: (g * 2, None, None, None))) == ""  # None too many is let pass
assert "invalid gradient" in message(function(lambda g: (g[:2], None, None)))
assert message(function(lambda g: (g.double(), None, None))) == ""  # cast to the input's dtype
"""
    )


def test_incoming_gradient_strides():
    interpreted(
        KERNELS
        + """
seen = []
class Look(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        seen.append(grad.stride())
        return grad
x = torch.ones(6, requires_grad=True)
Look.apply(x).sum().backward()
y = torch.ones(2, 3, requires_grad=True)
Look.apply(y).t().backward(torch.ones(3, 2))
Look.apply(y).sum(0).backward(torch.ones(3))
assert seen == [(0,), (1, 2), (0, 1)], seen
"""
    )


def test_forward_runs_without_grad_mode_and_saved_tensors_are_checked():
    interpreted(
        KERNELS
        + """
modes = []
class Saved(Square):
    @staticmethod
    def forward(ctx, x):
        modes.append(torch.is_grad_enabled())
        return Square.forward(ctx, x)
class Attribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return bare(x)
    @staticmethod
    def backward(ctx, grad):
        return bare_backward(ctx.x, grad.contiguous())
def changed_before_backward(function):
    weight = torch.arange(4.0, requires_grad=True)
    x = weight * 1
    out = function.apply(x)
    x.add_(10)
    out.sum().backward()
    return weight.grad.tolist()
assert "modified by an inplace operation" in message(lambda: changed_before_backward(Saved))
assert modes == [False]
assert changed_before_backward(Attribute) == [20, 22, 24, 26]  # wrong, and nobody says so: 0, 2, 4, 6 is right
"""
    )


def test_gradient_of_the_gradient_is_lost_and_gradcheck_works():
    interpreted(
        KERNELS
        + """
x = torch.arange(4.0, requires_grad=True)
(grad,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
assert not grad.requires_grad
assert torch.autograd.gradcheck(Square.apply, (torch.randn(5, dtype=torch.float64, requires_grad=True),))
"""
    )


def test_flat_kernel_reads_transposed_tensors_in_memory_order():
    interpreted(
        KERNELS
        + """
x = torch.arange(6.0).view(2, 3).t()
assert torch.equal(bare(x), x * x)  # empty_like keeps the strides: in and out are walked in the same order
grad = torch.arange(6.0).view(3, 2)
assert not torch.equal(bare_backward(x, grad), 2 * x * grad)  # two different orders
"""
    )


def test_operator_needs_annotations_a_formula_and_named_parameters():
    interpreted(
        KERNELS
        + OPERATORS.replace("\n@triton_op", "\n" + UNWRAPPED + "\n@triton_op", 1)
        + """
x = torch.arange(4.0, requires_grad=True)
assert square(x).requires_grad
assert "no autograd formula was registered" in message(lambda: square(x).sum().backward())
square.register_autograd(lambda ctx, grad: square_backward(ctx.saved_tensors[0], grad.contiguous()),
                         setup_context=setup_context)
square(x).sum().backward()
assert x.grad.tolist() == [0, 2, 4, 6]
assert torch.equal(torch.ops.evidence.square(x), x * x)

def without_annotations():
    @triton_op("evidence::bare", mutates_args=())
    def bare_op(x):
        return x.clone()
assert "must have a type annotation" in message(without_annotations)

def without_mutates_args():
    @triton_op("evidence::unsaid")
    def unsaid(x: torch.Tensor) -> torch.Tensor:
        return x.clone()
assert "mutates_args" in message(without_mutates_args)

@triton_op("evidence::identity", mutates_args=())
def identity(x: torch.Tensor) -> torch.Tensor:
    return x
assert "may not alias" in message(lambda: identity(torch.ones(2)))

@triton_op("evidence::renamed", mutates_args=())
def renamed(x: torch.Tensor) -> torch.Tensor:
    return x.clone()
renamed.register_autograd(lambda ctx, grad: grad, setup_context=lambda ctx, args, out: None)
assert "unexpected keyword argument" in message(lambda: renamed(x))
"""
    )


def test_opcheck_finds_an_undeclared_mutation():
    interpreted(
        KERNELS
        + """
from torch.library import opcheck, triton_op
def operator(name, mutates):
    @triton_op(name, mutates_args=mutates)
    def square_(x: torch.Tensor) -> None:
        square_kernel[(1,)](x, x, x.numel(), BLOCK=64)
    return square_
declared, hidden = operator("evidence::declared", ("x",)), operator("evidence::hidden", ())
hidden(torch.ones(3))  # runs without a word
check = lambda op: message(lambda: opcheck(op, (torch.arange(3.0),), test_utils="test_schema"))
assert check(declared) == ""
assert "not defined as mutable but was mutated" in check(hidden)
"""
    )


def test_backward_with_a_bare_launch_works_in_eager_only():
    interpreted(
        KERNELS
        + OPERATORS.replace("\n@triton_op", "\n" + UNWRAPPED + "\n@triton_op", 1)
        + """
square.register_autograd(lambda ctx, grad: bare_backward(ctx.saved_tensors[0], grad.contiguous()),
                         setup_context=setup_context)
x = torch.arange(4.0, requires_grad=True)
square(x).sum().backward()
assert x.grad.tolist() == [0, 2, 4, 6]
"""
    )
    compiled(
        TRACED
        + """
square.register_autograd(lambda ctx, grad: bare_backward(ctx.saved_tensors[0], grad.contiguous()),
                         setup_context=setup_context)
leaf = x.clone().requires_grad_()
square(leaf).sum().backward()  # eager: launched
assert leaf.grad.shape == (4,)
assert "Cannot access data pointer" in message(lambda: nodes(lambda x: square(x) + 1, leaf, backward=True))
"""
    )


def test_operators_backward_is_traced_into_its_own_graph():
    compiled(
        TRACED
        + """
square.register_autograd(lambda ctx, grad: square_backward(ctx.saved_tensors[0], grad.contiguous()),
                         setup_context=setup_context)
forward, backward = nodes(lambda x: square(x) + 1, x.clone().requires_grad_(), backward=True)
assert launches(forward) == 1 and launches(backward) == 1
forward, backward = nodes(lambda x: Square.apply(x) + 1, x.clone().requires_grad_(), backward=True)
assert launches(forward) == 1 and launches(backward) == 1  # autograd.Function as well
"""
    )


def test_triton_op_is_seen_through_and_custom_op_is_not():
    compiled(
        TRACED
        + """
@custom_op("evidence::opaque", mutates_args=())
def opaque(x: torch.Tensor) -> torch.Tensor:
    return bare(x)
assert "no fake impl registered" in message(lambda: nodes(lambda x: opaque(x) + 1, x))
opaque.register_fake(lambda x: torch.empty_like(x))
(graph,) = nodes(lambda x: opaque(x) + 1, x)
assert launches(graph) == 0 and "evidence.opaque.default" in graph
(graph,) = nodes(lambda x: square(x) + 1, x)
assert launches(graph) == 1 and "evidence.square.default" not in graph
"""
    )


def test_forgotten_wrap_triton_runs_in_eager_and_fails_when_traced():
    compiled(
        TRACED
        + """
@triton_op("evidence::unwrapped", mutates_args=())
def unwrapped(x: torch.Tensor) -> torch.Tensor:
    return bare(x)
assert message(lambda: unwrapped(x)) == ""
assert "Cannot access data pointer" in message(lambda: nodes(lambda x: unwrapped(x) + 1, x))
assert "Cannot access data pointer" in message(
    lambda: opcheck(unwrapped, (x,), test_utils="test_aot_dispatch_static"))
"""
    )


def test_compiled_function_takes_a_launch_and_shapes_but_no_values():
    compiled(
        TRACED
        + """
def around(x):
    if x.numel() > 0 and x.is_contiguous():
        return torch.relu(bare(2 * x))
    return x
(graph,) = nodes(around, x)
assert launches(graph) == 1 and "aten.relu.default" in graph

def branches_on_a_value(x):
    out = bare(x)
    return out if out.sum() > 0 else -out
def prints(x):
    print("here")
    return bare(x)
def branches_on_an_item(x):
    out = bare(x)
    return out if out.sum().item() > 0 else -out
assert "Data-dependent branching" in message(lambda: nodes(branches_on_a_value, x))
assert "data-dependent" in message(lambda: nodes(branches_on_an_item, x))
assert "print" in message(lambda: nodes(prints, x))
# compiling gives a bare kernel no gradient either
torch._dynamo.reset()
leaf = x.clone().requires_grad_()
assert not torch.compile(bare, backend="eager", fullgraph=True)(leaf).requires_grad
"""
    )
