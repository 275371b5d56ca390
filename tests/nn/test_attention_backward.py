"""The gradient of attention is torch's: derived, with no gradient through the largest score."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as reference

from tensorlang import Target, bf16, f16, i32
from tensorlang.nn import functional as ours
from tensorlang.nn.attention import attention
from tensorlang.nn.attention_backward import attention_gradients
from tensorlang.nn.attention_backward_schedule import Tile, backward


def draw(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def made(dtype, wrt=("q", "k", "v"), **options):
    p = attention(dtype, dtype, dtype, kept=True, **options)
    return p, attention_gradients(p, wrt)


def test_no_row_is_gone_over_again():
    """The weights follow from what is kept of a row, of which a mask leaves a part."""
    _, g = made(bf16, features=64, values=64, causal="top_left")
    text = str(g)
    assert "grad_top" not in text
    assert "= max(" not in text
    assert "grad_total[b, h, i] = sum(-(f32(grad_out[b, h, i, d])*f32(out[b, h, i, d]))" in text
    assert text.count("where j <= i") == 2


@pytest.mark.cc
def test_every_mask_and_shared_heads_have_gradients():
    q, k, v = (
        draw(2, h, n, 8, seed=s).double() for s, (h, n) in enumerate([(4, 7), (2, 9), (2, 9)])
    )
    bias = draw(2, 4, 7, 9, seed=5).double()
    tensors = [t.requires_grad_() for t in (q, k, v, bias)]
    found = ours.attention(q, k, v, bias=bias, window=(3, 4), softcap=2.0)
    at = torch.arange(9) - torch.arange(7)[:, None]
    score = q @ k.repeat_interleave(2, 1).mT * 8**-0.5
    score = (2 * (score / 2).tanh() + bias).masked_fill(~((at >= -3) & (at <= 4)), -torch.inf)
    want = score.softmax(-1) @ v.repeat_interleave(2, 1)
    slopes = draw(*want.shape, seed=9).double()
    found, want = (torch.autograd.grad(y, tensors, slopes) for y in (found, want))
    torch.testing.assert_close(found, want)


@pytest.mark.cc
def test_a_causal_backward_in_bf16_with_a_score_of_its_own():
    """score + (q - k) at 1025 queries, at most twice as far from the truth as torch's own."""
    n, d = 1025, 16
    q, k, v, slope = (draw(1, 1, n, d, seed=s).bfloat16() for s in range(4))
    at = torch.arange(n)
    change = (at[:, None] - at).float().masked_fill(at > at[:, None], -torch.inf)

    def gradient(f, *tensors):
        tensors = [t.detach().requires_grad_() for t in tensors]
        return torch.autograd.grad(f(*tensors), tensors, slope.to(tensors[0].dtype))

    def plain(q, k, v):
        score = q.double() @ k.double().mT * d**-0.5 + change.double()
        return (score.softmax(-1) @ v.double()).to(q.dtype)

    want = gradient(plain, *(t.double() for t in (q, k, v)))
    theirs = gradient(lambda *t: reference(*t, attn_mask=change.bfloat16()), q, k, v)
    own = gradient(
        lambda *t: ours.attention(*t, causal="top_left", slopes=torch.tensor([-1.0])), q, k, v
    )
    for exact, a, b in zip(want, own, theirs, strict=True):
        assert (a - exact).norm() <= 2 * (b - exact).norm() + 1e-3 * exact.norm()


TILES = {"keys": Tile(16, 32, 4, 2), "queries": Tile(32, 16, 4, 2)}


@pytest.mark.parametrize(
    ("groups", "options"),
    [
        (1, {"causal": "top_left"}),
        (2, {}),
        (1, {"causal": "bottom_right", "softcap": 3.0}),
        (1, {"left": 9, "right": 3}),
    ],
)
def test_tiles_on_triton_give_the_gradients(groups, options):
    p, g = made(f16, features=16, values=16, scale=0.3, groups=groups, **options)
    kernel = g.compile(backward(g, "triton", **TILES), "triton")
    heads = 2 // groups
    q, slopes = (draw(1, 2, 21, 16, seed=s).half() for s in (0, 3))
    k, v = (draw(1, heads, 37, 16, seed=s).half() for s in (1, 2))
    out, lse = p(q, k, v)
    tensors = [t.double().requires_grad_() for t in (q, k, v)]
    want = torch.autograd.grad(plain(*tensors, groups, **options), tensors, slopes.double())
    found = kernel(q, k, v, out, lse, slopes)
    for a, b in zip(found, want, strict=True):
        torch.testing.assert_close(a.double(), b, atol=4e-3, rtol=1e-2)


def plain(q, k, v, groups, causal="", softcap=0.0, left=-1, right=-1):
    """The definition, in f64."""
    k, v = (t.repeat_interleave(groups, 1) for t in (k, v))
    score = q @ k.mT * 0.3
    if softcap:
        score = softcap * (score / softcap).tanh()
    at = torch.arange(k.shape[2]) - torch.arange(q.shape[2])[:, None]
    shift = k.shape[2] - q.shape[2] if causal == "bottom_right" else 0
    seen = at <= shift if causal else at == at
    seen = seen & (at >= -left) if left >= 0 else seen
    seen = seen & (at <= right) if right >= 0 else seen
    return score.masked_fill(~seen, -torch.inf).softmax(-1) @ v


def test_what_a_mask_excludes_may_be_as_large_as_it_will():
    """An excluded score has no weight, where exp of it less the level of the row is infinite."""
    p, g = made(f16, features=16, values=16, causal="top_left")
    kernel = g.compile(backward(g, "triton", **TILES), "triton")
    q, k, v, slopes = (draw(1, 1, 32, 16, seed=s).half() for s in range(4))
    k[:, :, 16:] = 40 * q.flip(2)[:, :, 16:]
    out, lse = p(q, k, v)
    assert all(torch.isfinite(t).all() for t in kernel(q, k, v, out, lse, slopes))


def test_packed_sequences_have_their_gradients_by_tiles():
    """What lies outside a range has no part in any product; also of a query that sees nothing."""
    p, g = made(f16, features=16, values=16, scale=0.3, first=i32, last=i32)
    assert str(g).count("where") == 3
    kernel = g.compile(backward(g, "triton", **TILES), "triton")
    # Of keys only those that some query of the tile sees are gone over.
    assert "first_least = " in kernel.source
    assert "last_most = " in kernel.source
    n = 75
    q, k, v, slopes = (draw(1, 2, n, 16, seed=s).half() for s in range(4))
    starts = torch.tensor([0, 3, 50, n])
    own = torch.searchsorted(starts, torch.arange(n), right=True)
    first, last = starts[own - 1], starts[own]
    last[60], first[61], last[61] = 0, -(2**31), 2**31 - 1
    given = [t[None].int() for t in (first, last)]
    out, lse = p(q, k, v, *given)
    keep = (first[:, None] <= torch.arange(n)) & (torch.arange(n) < last[:, None])
    tensors = [t.double().requires_grad_() for t in (q, k, v)]
    score = (tensors[0] @ tensors[1].mT * 0.3).masked_fill(~keep, -torch.inf)
    exact = score.softmax(-1).masked_fill(~keep.any(1)[:, None], 0.0) @ tensors[2]
    want = torch.autograd.grad(exact, tensors, slopes.double())
    found = kernel(q, k, v, *given, out, lse, slopes)
    for a, b in zip(found, want, strict=True):
        torch.testing.assert_close(a.double(), b.nan_to_num(), atol=4e-3, rtol=1e-2)


def test_keys_and_values_share_one_kernel_that_spills_nothing():
    for causal in ("", "top_left"):
        _, g = made(bf16, features=64, values=64, causal=causal)
        kernel = g.compile(backward(g, "triton"), Target("triton", arch="sm_90"))
        binaries = [b for name, b in kernel.binaries.items() if not name.endswith("grad_total")]
        assert len(binaries) == 2
        assert all("wgmma.mma_async" in b.ptx and b.spilled == 0 for b in binaries)
