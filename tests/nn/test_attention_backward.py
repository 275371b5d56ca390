"""The gradient of attention is torch's: derived, with no gradient through the largest score."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as reference

from tensorlang import Target, bf16, f16
from tensorlang.nn import functional as ours
from tensorlang.nn.attention import attention
from tensorlang.nn.attention_backward import attention_gradients, backward


def draw(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_the_largest_score_has_no_gradient():
    p = attention(bf16, bf16, bf16, features=64, values=64, causal="top_left")
    text = str(attention_gradients(p, ["q", "k", "v"]))
    assert "grad_top" not in text
    assert "ties" not in text
    assert "rows[b, h, i] = (row_level[b, h, i], row_total[b, h, i], row_grad_total" in text


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


@pytest.mark.parametrize(("groups", "causal"), [(1, "top_left"), (2, "")])
def test_tiles_on_triton_give_the_gradients(groups, causal):
    p = attention(f16, f16, f16, features=16, values=16, scale=0.3, groups=groups, causal=causal)
    g = attention_gradients(p, ["q", "k", "v"])
    kernel = g.compile(backward(g, "triton", queries=16, keys=16), "triton")
    heads = 2 // groups
    q, slopes = (draw(1, 2, 19, 16, seed=s) for s in (0, 3))
    k, v = (draw(1, heads, 21, 16, seed=s) for s in (1, 2))
    tensors = [t.requires_grad_() for t in (q, k, v)]
    out = reference(*tensors, scale=0.3, is_causal=bool(causal), enable_gqa=groups > 1)
    want = torch.autograd.grad(out, tensors, slopes)
    found = kernel(*(t.detach().half() for t in (*tensors, slopes)))
    for a, b in zip(found, want, strict=True):
        torch.testing.assert_close(a.float(), b, atol=4e-3, rtol=1e-2)


def test_every_kernel_uses_the_matrix_unit_and_spills_nothing():
    p = attention(bf16, bf16, bf16, features=64, values=64, causal="top_left")
    g = attention_gradients(p, ["q", "k", "v"])
    kernel = g.compile(backward(g, "triton"), Target("triton", arch="sm_90"))
    sums = [b for name, b in kernel.binaries.items() if not name.endswith("out_sum")]
    assert len(sums) == 4
    assert all("wgmma.mma_async" in b.ptx and b.spilled == 0 for b in sums)
