"""Each rewrite: the graph before and after, and the same values with NaN and inf among them."""

import math

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from tensorlang.torch.compiler.rewrites import REWRITES
from tensorlang.torch.compiler.rewrites.algebra import simplify_algebra
from tensorlang.torch.compiler.rewrites.convolutions import fold_into_convolutions
from tensorlang.torch.compiler.rewrites.creations import forget_shapes
from tensorlang.torch.compiler.rewrites.dead_code import drop_dead_code
from tensorlang.torch.compiler.rewrites.frozen import fold_constants
from tensorlang.torch.compiler.rewrites.layout import choose_layout
from tensorlang.torch.compiler.rewrites.products import merge_products
from tensorlang.torch.compiler.rewrites.shared import share_subexpressions

SPECIAL = torch.tensor([[0.0, -0.0, 1.0, math.nan], [math.inf, -math.inf, 1e-40, -2.5]])


def traced(function, *inputs):
    """The ATen graph of a function, with fake results."""
    return make_fx(function, tracing_mode="fake")(*inputs)


def code(module):
    """What a graph calls, one call a line."""
    lines = []
    for n in module.graph.nodes:
        if n.op == "call_function":
            name = str(n.target).removeprefix("aten.") if "aten" in str(n.target) else n.name
            lines.append(f"{n.name} = {name}({', '.join(map(str, n.args))})")
        elif n.op == "output":
            lines.append(f"return {n.args[0]}")
    return "\n".join(lines)


def rewritten(rewrite, function, *inputs, frozen=None):
    """(before, after), once the values have been seen to be the same, bit for bit."""
    module = traced(function, *inputs)
    before = code(module)
    want = module(*inputs)
    if frozen is None:
        rewrite(module.graph)
    else:
        given = [n for n in module.graph.nodes if n.op == "placeholder"]
        rewrite(module.graph, [given[k] for k in frozen])
    module.graph.lint()
    module.recompile()
    found = module(*inputs)
    exact = {"rtol": 1e-4, "atol": 1e-4} if frozen else {"rtol": 0, "atol": 0}
    torch.testing.assert_close(found, want, equal_nan=True, **exact)
    return before, code(module)


def shown(golden, rewrite, function, *inputs, frozen=None):
    before, after = rewritten(rewrite, function, *inputs, frozen=frozen)
    golden(f"{before}\n\n->\n\n{after}\n")


def test_dead_code_is_dropped(golden):
    def function(x):
        x.exp()
        return x + 1

    shown(golden, drop_dead_code, function, SPECIAL)


def test_what_is_computed_twice_is_shared(golden):
    def function(x):
        return (x * 2.0).exp() + (x * 2.0) * (x * 2)

    shown(golden, share_subexpressions, function, SPECIAL)


def test_two_equal_results_stay_two_tensors():
    def function(x):
        return x + 1, x + 1

    _, after = rewritten(share_subexpressions, function, SPECIAL)
    assert after.count("= add.Tensor") == 2


def test_random_numbers_are_not_shared():
    def function(x):
        return torch.bernoulli(x) + torch.bernoulli(x)

    module = traced(function, torch.full((4,), 0.5))
    share_subexpressions(module.graph)
    assert code(module).count("= bernoulli") == 2


def test_algebra_holds_for_nan_inf_and_signed_zeros(golden):
    def function(x):
        y = -(-((x * 1 / 1 - 0) ** 1))
        return y.to(torch.float32).view(2, 4).permute(0, 1).exp()

    shown(golden, simplify_algebra, function, SPECIAL)


@pytest.mark.parametrize(
    "function",
    [lambda x: (x + 0).exp(), lambda x: (x * 0).exp(), lambda x: (x - x).exp(),
     lambda x: (x - (-0.0)).exp(), lambda x: (x / x).exp()],
    ids=["x + 0", "x * 0", "x - x", "x - -0.0", "x / x"],
)  # fmt: skip
def test_algebra_leaves_what_does_not_hold(function):
    before, after = rewritten(simplify_algebra, function, SPECIAL)
    assert before == after


def test_algebra_never_lets_a_result_be_an_argument():
    before, after = rewritten(simplify_algebra, lambda x: x * 1, SPECIAL)
    assert before == after


def test_constants_forget_the_tensor_whose_shape_they_have(golden):
    def function(x):
        return torch.where(x > 0, torch.zeros_like(x), torch.full_like(x, 2.0))

    shown(golden, forget_shapes, function, SPECIAL)


def test_what_depends_on_frozen_parameters_is_computed_once(golden):
    def function(x, w, s):
        return x @ (w * s.exp()).t()

    inputs = torch.randn(2, 3), torch.randn(4, 3), torch.randn(3)
    shown(golden, fold_constants, function, *inputs, frozen=[1, 2])


def test_a_frozen_parameter_that_is_written_to_is_seen():
    module = traced(lambda x, w: x * w.exp(), *(inputs := (torch.ones(3), torch.zeros(3))))
    given = [n for n in module.graph.nodes if n.op == "placeholder"]
    fold_constants(module.graph, given[1:])
    module.recompile()
    assert module(*inputs).tolist() == [1, 1, 1]
    inputs[1].fill_(math.log(2))
    torch.testing.assert_close(module(*inputs), torch.full((3,), 2.0))


class Normed(nn.Module):
    """Two convolutions with batch norms."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3, bias=False)
        self.n, self.m = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
        for norm in (self.n, self.m):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return self.m(self.b(self.n(self.a(x)).relu())).relu()


def by_parts(x, w, b, mean, scale, shift):
    y = torch.nn.functional.conv2d(x, w, b)
    return (y - mean[:, None, None]) * scale[None, :, None, None] + shift[:, None, None]


def test_a_batch_norm_joins_the_weights_of_a_convolution(golden):
    inputs = [torch.randn(s) for s in ((1, 2, 5, 5), (3, 2, 3, 3), (3,), (3,), (3,), (3,))]

    def both(graph, frozen):
        fold_into_convolutions(graph, frozen)
        fold_constants(graph, frozen)

    shown(golden, both, by_parts, *inputs, frozen=[1, 2, 3, 4, 5])


def test_products_of_one_tensor_are_one(golden):
    def function(x, q, k, v, b, c):
        return torch.addmm(b, x, q.t()).relu(), torch.addmm(c, x, k.t()).relu(), x @ v.t()

    shapes = (2, 3), (4, 3), (5, 3), (4, 3), (4,), (5,)
    inputs = [torch.randn(s) for s in shapes]
    shown(golden, merge_products, function, *inputs, frozen=[1, 2, 3, 4, 5])


def test_between_convolutions_nothing_is_transposed(golden):
    def function(x, w, v):
        conv = torch.nn.functional.conv2d
        return (conv(conv(conv(x, w).relu(), v).relu() + 1, v),)

    inputs = torch.randn(1, 4, 9, 9), torch.randn(4, 4, 3, 3), torch.randn(4, 4, 3, 3)
    before, after = rewritten(choose_layout, function, *inputs, frozen=[1, 2])
    golden(f"{before}\n\n->\n\n{after}\n")
    # One copy of the image going in, one of the result going out, three of weights.
    assert after.count("= clone") == 5


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda r: r.__name__)
@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_keep_their_values_with_nan_and_inf(rewrite, seed):
    from tests.torch.compiler.random_modules import random_program

    program, inputs = random_program(seed)
    for x in inputs:
        x.flatten()[:2] = torch.tensor([math.nan, math.inf], dtype=x.dtype)[: x.numel()]

    def function(*given):
        torch.manual_seed(0)
        return program(*given)

    module = make_fx(function, tracing_mode="fake")(*inputs)
    torch.manual_seed(0)
    want = module(*inputs)
    rewrite(module.graph)
    module.graph.lint()
    module.recompile()
    torch.manual_seed(0)
    torch.testing.assert_close(module(*inputs), want, rtol=0, atol=0, equal_nan=True)
