"""Operators on a GPU: torch's values, in a CUDA graph, on another stream, and in large batches."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as reference

from tensorlang.nn import functional as ours

pytestmark = pytest.mark.gpu


def normal(*shape: int, dtype: Any = torch.bfloat16) -> Any:
    generator = torch.Generator("cuda").manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32).to(dtype)


CALLS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda m: m.softmax(normal(64, 1000), -1),
    "layer_norm": lambda m: m.layer_norm(normal(64, 1000), (1000,), normal(1000), normal(1000)),
    "rms_norm": lambda m: m.rms_norm(normal(64, 5120), (5120,), normal(5120), 1e-6),
    "linear": lambda m: m.linear(normal(300, 256), normal(512, 256), normal(512)),
    "conv2d": lambda m: m.conv2d(
        normal(4, 64, 14, 14).to(memory_format=torch.channels_last), normal(64, 64, 3, 3), padding=1
    ),
    "conv2d, strided": lambda m: m.conv2d(
        normal(2, 8, 15, 15), normal(16, 4, 3, 3), None, 2, 1, 1, 2
    ),
    "conv_transpose2d": lambda m: m.conv_transpose2d(
        normal(2, 8, 7, 7), normal(8, 4, 3, 3), None, 2, 1
    ),
    "max_pool2d": lambda m: m.max_pool2d(normal(2, 8, 15, 15), 3, 2, 1),
    "avg_pool2d": lambda m: m.avg_pool2d(normal(2, 8, 15, 15), 2),
    "group_norm": lambda m: m.group_norm(normal(2, 32, 10, 10), 8),
    "batch_norm": lambda m: m.batch_norm(normal(4, 32, 10, 10), None, None, training=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_are_torchs(name: str) -> None:
    found, want = (CALLS[name](m) for m in (ours, reference))
    torch.testing.assert_close(found, want, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "conv2d", "softmax"])
def test_gradients_are_torchs(name: str) -> None:
    shapes = {
        "layer_norm": ((300, 1000), (1000,), (1000,)),
        "rms_norm": ((300, 1000), (1000,)),
        "conv2d": ((4, 64, 14, 14), (32, 64, 3, 3)),
        "softmax": ((300, 1000),),
    }

    def call(module: Any, *tensors: Any) -> Any:
        x, *rest = tensors
        if name.endswith("norm"):
            return getattr(module, name)(x, (1000,), *rest)
        return module.softmax(x, -1) if name == "softmax" else module.conv2d(x, *rest, padding=1)

    tensors = [normal(*s).requires_grad_() for s in shapes[name]]
    exact = [t.detach().double().requires_grad_() for t in tensors]
    slopes = torch.randn_like(call(reference, *tensors))
    found = torch.autograd.grad(call(ours, *tensors), tensors, slopes)
    want = torch.autograd.grad(call(reference, *exact), exact, slopes.double())
    for own, other in zip(found, want, strict=True):
        assert (own - other).norm() < 1e-2 * other.norm()


def test_a_call_is_captured_in_a_graph() -> None:
    x, w = normal(64, 1024), normal(1024)
    ours.rms_norm(x, (1024,), w, 1e-6)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = ours.rms_norm(x, (1024,), w, 1e-6)
    x.copy_(normal(64, 1024) * 2)
    graph.replay()
    torch.testing.assert_close(made, reference.rms_norm(x, (1024,), w, 1e-6), rtol=2e-2, atol=2e-2)


def test_work_goes_to_the_current_stream() -> None:
    x = normal(2048, 4096)
    ours.softmax(x, -1)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(10_000_000)
        x.zero_()
        made = ours.softmax(x, -1)
    side.synchronize()
    torch.testing.assert_close(made, torch.full_like(made, 1 / 4096))


def test_a_batch_of_more_matrices_than_a_grid_has_rows() -> None:
    x, w = normal(65_600, 2, 4), normal(65_600, 4, 2)
    torch.testing.assert_close(ours.bmm(x, w), torch.bmm(x, w), rtol=2e-2, atol=2e-2)


def test_more_than_2_to_the_31_elements() -> None:
    x = torch.zeros(1 << 21, 1040, dtype=torch.int8, device="cuda")
    x[-1, -1] = 7
    assert ours.amax(x, 1)[-1] == 7


def test_quantised_rows_and_their_matmul() -> None:
    x, w = normal(128, 4096), normal(4096)
    q, scale = ours.rms_norm_quantized(x, w, 1e-6)
    want = reference.rms_norm(x.float(), (4096,), w.float(), 1e-6)
    assert (q.float() * scale - want).norm() < 5e-2 * want.norm()
    weight, scales = ours.quantize(normal(512, 4096))
    made = ours.scaled_mm(q, weight, scale, scales)
    exact = (q.float() * scale) @ (weight.float() * scales).T
    assert (made - exact).norm() < 1e-2 * exact.norm()


@pytest.mark.parametrize("name", ["sum", "argmax", "cumsum"])
@pytest.mark.parametrize("dim", [0, 1])
def test_reductions(name: str, dim: int) -> None:
    x = normal(500, 700, dtype=torch.float32)
    found, want = (getattr(m, name)(x, dim) for m in (ours, torch))
    torch.testing.assert_close(found, want, rtol=1e-3, atol=1e-3)


def test_groups_of_rows() -> None:
    x, w = normal(300, 128), normal(4, 128, 256)
    offs = torch.tensor([100, 100, 250, 300], dtype=torch.int32, device="cuda")
    found = ours.grouped_mm(x, w, offs=offs)
    parts = zip([0, 100, 100, 250], offs.tolist(), range(4), strict=True)
    want = torch.cat([x[i:j] @ w[e] for i, j, e in parts])
    torch.testing.assert_close(found, want, rtol=2e-2, atol=2e-1)


LENGTHS = (1, 7, 127, 128, 129, 1025, 4096)
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
# Our arguments, and the scores that torch adds, of positions of queries and keys.
MASKS: dict[str, tuple[dict[str, Any], Callable[[Any, Any], Any]]] = {
    "full": ({}, lambda i, j: i >= 0),
    "causal": ({"causal": "top_left"}, lambda i, j: j <= i),
    "window": (
        {"causal": "bottom_right", "window": (40, -1)}, lambda i, j: (j <= i) & (j >= i - 40)
    ),
    "both sides": ({"window": (33, 20)}, lambda i, j: (j >= i - 33) & (j <= i + 20)),
    "slopes": ({"slopes": SLOPES}, lambda i, j: SLOPES.to(i.device)[:, None, None] * (j - i)),
    "documents": ({"documents": 50}, lambda i, j: i // 50 == j // 50),
    "lengths": ({"last": 77}, lambda i, j: (j < 77) & (i >= 0)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("mask", MASKS)
def test_attention_is_at_most_twice_as_far_off_as_torch(mask: str, dtype: Any) -> None:
    """At every length, from one kernel; the truth is torch's formula in f64."""
    for n in LENGTHS:
        q, k, v = (normal(1, 4, n, 64, dtype=dtype) + s for s in (0.0, 0.1, 0.2))
        at = torch.arange(n, device=q.device)
        given, scores_of = MASKS[mask]
        scores = scores_of(at[:, None], at).expand(1, 4, n, n)
        options = dict(given)
        if "slopes" in options:
            options["slopes"] = SLOPES.to(q.device)
        if "documents" in options:
            options["documents"] = (at // 50)[None]
        if "last" in options:
            options["last"] = torch.full((1, n), 77, device=q.device)

        def errors(made: Any, scores: Any, *qkv: Any) -> float:
            wide = scores if scores.dtype is torch.bool else scores.double()
            exact = reference.scaled_dot_product_attention(*(t.double() for t in qkv), wide)
            return float((made.double() - exact).abs().max())

        added = scores if scores.dtype is torch.bool else scores.to(dtype)
        theirs = reference.scaled_dot_product_attention(q, k, v, added)
        own = errors(ours.attention(q, k, v, **options), scores, q, k, v)
        assert own <= 2 * errors(theirs, scores, q, k, v) + 2**-22, n
