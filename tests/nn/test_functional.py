"""Functions with torch's names give torch's values and gradients."""

import numpy as np
import pytest
import torch
from torch.nn import functional as reference

from tensorlang import DefinitionError, autoschedule, f32, i64
from tensorlang.autodiff import gradients
from tensorlang.calling.evaluate import evaluate
from tensorlang.nn import functional as ours
from tensorlang.nn.activation import gate
from tensorlang.nn.linear import linear
from tensorlang.nn.normalization import layer_norm, rms_norm
from tensorlang.nn.schedules import rows
from tensorlang.nn.softmax import cross_entropy, softmax

pytestmark = pytest.mark.cc


def draw(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=dtype, generator=generator).requires_grad_()


def check(mine, theirs, *tensors, **tolerance):
    """Equal outputs, and equal gradients of a sum with random weights."""
    found, want = mine(*tensors), theirs(*tensors)
    torch.testing.assert_close(found, want, **tolerance)
    slopes = torch.randn_like(want)
    wrt = [t for t in tensors if t.requires_grad]
    found = torch.autograd.grad(found, wrt, slopes)
    want = torch.autograd.grad(want, wrt, slopes)
    torch.testing.assert_close(found, want, **tolerance)


@pytest.mark.parametrize("name", ["relu", "silu", "gelu"])
def test_activations(name):
    check(getattr(ours, name), getattr(reference, name), draw(3, 7))


def test_gates():
    check(ours.swiglu, lambda x, g: reference.silu(x) * g, draw(3, 5), draw(3, 5, seed=1))
    check(ours.geglu, lambda x, g: reference.gelu(x) * g, draw(3, 5), draw(3, 5, seed=1))
    tanh = {"approximate": "tanh"}
    check(lambda x: ours.gelu(x, **tanh), lambda x: reference.gelu(x, **tanh), draw(11))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(("shape", "dim"), [((3, 37), -1), ((4, 3, 2), 0), ((5,), 0), ((), 0)])
def test_softmax(name, shape, dim):
    check(
        lambda x: getattr(ours, name)(x, dim),
        lambda x: getattr(reference, name)(x, dim),
        draw(*shape),
    )


def test_softmax_of_large_and_masked_scores():
    x = torch.tensor([[1e14, -1.7e14, 3.0], [-torch.inf, 0.0, 1.0], [torch.nan, 0.0, 1.0]])
    torch.testing.assert_close(ours.softmax(x, -1), reference.softmax(x, -1), equal_nan=True)
    masked = torch.full((1, 3), -torch.inf)
    assert ours.softmax(masked, -1).isnan().all()


@pytest.mark.parametrize("given", [(True, True), (True, False), (False, False)])
def test_layer_norm(given):
    x, extra = draw(4, 3, 7), [draw(3, 7, seed=k) for k, g in enumerate(given) if g]
    tensors = [x, *extra]

    def call(function):
        return lambda x, *rest: function(x, (3, 7), *rest, *[None] * (2 - len(rest)))

    check(call(ours.layer_norm), call(reference.layer_norm), *tensors)


@pytest.mark.parametrize("eps", [None, 1e-3])
def test_rms_norm(eps):
    check(
        lambda x, w: ours.rms_norm(x, (37,), w, eps),
        lambda x, w: reference.rms_norm(x, (37,), w, eps),
        draw(5, 37),
        draw(37, seed=1),
    )


def test_an_expanded_gradient_of_a_norm():
    x = draw(4, 5120, dtype=torch.float32)
    (found,) = torch.autograd.grad(ours.rms_norm(x, (5120,)).sum(), [x])
    (want,) = torch.autograd.grad(reference.rms_norm(x, (5120,)).sum(), [x])
    torch.testing.assert_close(found, want, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("activation", ["none", "relu", "gelu_tanh"])
def test_linear_with_an_epilogue(activation):
    kinds = {
        "none": lambda z: z,
        "relu": reference.relu,
        "gelu_tanh": lambda z: reference.gelu(z, approximate="tanh"),
    }
    check(
        lambda x, w, b, r: ours.linear(x, w, b, activation=activation, residual=r),
        lambda x, w, b, r: kinds[activation](reference.linear(x, w, b)) + r,
        draw(2, 3, 5),
        draw(4, 5, seed=1),
        draw(4, seed=2),
        draw(2, 3, 4, seed=3),
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(reduction, smoothing, weighted):
    target = torch.tensor([3, -100, 0, 6, 3])
    weight = torch.rand(7, dtype=torch.float64) if weighted else None
    given = {"weight": weight, "reduction": reduction, "label_smoothing": smoothing}
    check(
        lambda x: ours.cross_entropy(x, target, **given),
        lambda x: reference.cross_entropy(x, target, **given),
        draw(5, 7),
    )


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_that_forms_its_gradient_itself(reduction):
    target = torch.tensor([[3, -100], [0, 6]])
    given = {"weight": torch.rand(7), "reduction": reduction, "label_smoothing": 0.1}
    x = draw(2, 7, 2).detach().float().requires_grad_()
    for scale in (1, 3):
        losses = [m.cross_entropy(x, target, **given) * scale for m in (reference,)]
        losses.append(ours.cross_entropy_with_gradient(x, target, **given) * scale)
        torch.testing.assert_close(*losses)
        torch.testing.assert_close(*(torch.autograd.grad(loss, [x])[0] for loss in losses))
    with pytest.raises(DefinitionError, match="mean"):
        ours.cross_entropy_with_gradient(x, target, reduction="none")


def test_cross_entropy_of_images_and_of_nothing():
    target = torch.tensor([[0, 2, 1], [1, 1, 0]])
    check(
        lambda x: ours.cross_entropy(x, target),
        lambda x: reference.cross_entropy(x, target),
        draw(2, 3, 3),
    )
    ignored = torch.full((4,), -100)
    x = draw(4, 5)
    loss = ours.cross_entropy(x, ignored)
    assert loss.isnan()
    assert not torch.autograd.grad(loss, [x])[0].any()
    assert ours.cross_entropy(x, ignored, reduction="sum") == 0


def test_embedding():
    at = torch.tensor([[1, 0, 5], [1, 1, 2]])
    check(lambda w: ours.embedding(at, w), lambda w: reference.embedding(at, w), draw(6, 4))
    check(lambda w: ours.embedding(at, w, 1), lambda w: reference.embedding(at, w, 1), draw(6, 4))


def test_dropout_keeps_its_share_and_repeats_by_seed():
    x, seed = draw(10_000, dtype=torch.float32), torch.tensor([7])
    first = ours.dropout(x, 0.25, seed=seed)
    assert torch.equal(first, ours.dropout(x, 0.25, seed=seed))
    kept = first != 0
    assert abs(kept.float().mean() - 0.75) < 0.02
    torch.testing.assert_close(first[kept], x[kept] / 0.75)
    slopes = torch.autograd.grad(first.sum(), [x])[0]
    torch.testing.assert_close(slopes, kept / 0.75)
    assert ours.dropout(x, 0.25, training=False) is x


@pytest.mark.parametrize("interleaved", [False, True])
def test_rope(interleaved):
    x, angle = draw(2, 3, 5, 8), torch.randn(5, 4, dtype=torch.float64)
    pairs = (lambda t: (t[..., ::2], t[..., 1::2])) if interleaved else (lambda t: t.chunk(2, -1))

    def turned(x):
        a, b = pairs(x)
        c, s = angle.cos(), angle.sin()
        parts = [a * c - b * s, b * c + a * s]
        return torch.stack(parts, -1).flatten(-2) if interleaved else torch.cat(parts, -1)

    check(lambda x: ours.rope(x, angle.cos(), angle.sin(), interleaved=interleaved), turned, x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_floats_are_at_most_twice_as_far_off_as_torch(dtype):
    x, w = draw(6, 65, dtype=dtype), draw(9, 65, dtype=dtype, seed=1)
    cases = [
        (lambda m, x: m.softmax(x, -1), (x,)),
        (lambda m, x: m.layer_norm(x, (65,)), (x,)),
        (lambda m, x: m.silu(x), (x,)),
        (lambda m, x, w: m.linear(x, w), (x, w)),
    ]
    for call, tensors in cases:
        exact = call(reference, *(t.double() for t in tensors))
        own, other = ((call(m, *tensors) - exact).abs().max() for m in (ours, reference))
        # Both are off by less than one step of the largest value in f32: no more is asked there.
        step = torch.finfo(dtype).eps * exact.abs().max() if dtype is torch.float32 else 1e-9
        assert own <= 2 * other + step


def test_autocast_narrows_products_and_keeps_sums():
    x, w = draw(3, 5, dtype=torch.float32), draw(4, 5, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        product = ours.linear(x, w)
        assert product.dtype is torch.bfloat16
        assert ours.softmax(product, -1).dtype is torch.float32


def test_what_has_no_definition_is_refused():
    x = draw(2, 3)
    for call in (
        lambda: ours.gelu(x, "fast"),
        lambda: ours.cross_entropy(x, x),
        lambda: ours.layer_norm(x, (2,)),
    ):
        with pytest.raises(DefinitionError, match="not-supported"):
            call()


PIPELINES = {
    "softmax": softmax(f32, logarithm=False, out_dtype=""),
    "layer_norm": layer_norm(f32, f32, f32),
    "rms_norm": rms_norm(f32, f32),
    "gate": gate(f32, f32, kind="silu"),
    "cross_entropy": cross_entropy(f32, i64, None, ignore_index=1, label_smoothing=0.1),
    "linear": linear(f32, f32, f32, None, activation="gelu"),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_definitions_and_their_gradients_run_on_triton_as_on_c(name):
    forward = PIPELINES[name]
    rng = np.random.default_rng(0)
    sizes = {"M": 5, "N": 19, "K": 7}
    for pipeline in (forward, gradients(forward)):
        algorithm = pipeline.algorithm
        arrays = [
            rng.integers(0, 19, [evaluate(e, sizes) for e in a.shape])
            if a.dtype is i64
            else rng.standard_normal([evaluate(e, sizes) for e in a.shape]).astype(np.float32)
            for a in algorithm.inputs
        ]
        given = {"sizes": {s.name: sizes[s.name] for s in algorithm.sizes}}
        given |= {p.name: 1e-5 for p in algorithm.params}
        kernels = [
            pipeline.compile(rows(pipeline, target) or autoschedule(pipeline, target), target)
            for target in ("c", "triton")
        ]
        found, want = (kernel(*arrays, **given) for kernel in kernels)
        for a, b in zip(_listed(found), _listed(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def _listed(made):
    return made if isinstance(made, tuple) else (made,)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0, 0)])
def test_what_has_no_element_stays_so(shape):
    x = torch.empty(shape, requires_grad=True)
    for found in (ours.softmax(x, 0), ours.log_softmax(x, -1), ours.silu(x)):
        assert found.shape == shape
        assert torch.autograd.grad(found.sum(), [x])[0].shape == shape
    assert ours.linear(torch.empty(0, 5), torch.empty(3, 5)).shape == (0, 3)
