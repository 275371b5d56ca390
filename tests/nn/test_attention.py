"""Attention from definitions is torch's, under every mask; and in one pass."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as reference

from tensorlang import (
    DefinitionError,
    Input,
    RDom,
    Size,
    Target,
    bf16,
    f8e4m3,
    f32,
    i32,
    i64,
    sum,
)
from tensorlang.nn import functional as ours
from tensorlang.nn.attention import attention
from tensorlang.nn.attention_schedules import decode, flash

pytestmark = pytest.mark.cc
B, H, M, N, D = 2, 4, 19, 37, 8


def draw(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def qkv(heads=H, m=M, n=N, dtype=torch.float32):
    return draw(B, H, m, D, dtype=dtype), *(
        draw(B, heads, n, D, seed=s, dtype=dtype) for s in (1, 2)
    )


def exact(q, k, v, bias=None, keep=None):
    """In f64, with a mask of what stays; a row without keys is 0."""
    q, k, v = (t.double() for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    score = q @ k.mT * D**-0.5
    score = score if bias is None else bias(score)
    score = score if keep is None else score.masked_fill(~keep, -torch.inf)
    return torch.nan_to_num(score.softmax(-1)) @ v


I, J = torch.arange(M)[:, None], torch.arange(N)
SLOPES, SINKS = torch.rand(H), draw(H, seed=5)
FIRST = torch.tensor([[3] * M, [0] * M])
LAST = torch.tensor([[30] * M, [0] * M])
MASK = draw(B, H, M, N, seed=6) > 0.3
MASK[0, 1, 4] = False
CASES = {
    "last keys": ({"causal": "bottom_right"}, {"keep": J <= I + N - M}),
    "window": ({"causal": "top_left", "window": (4, -1)}, {"keep": (J <= I) & (J >= I - 4)}),
    "alibi and cap": (
        {"slopes": SLOPES, "softcap": 2.0},
        {"bias": lambda s: 2 * (s / 2).tanh() + SLOPES[:, None, None] * (J - I)},
    ),
    "mask": ({"bias": MASK}, {"keep": MASK}),
    "range of keys": (
        {"first": FIRST, "last": LAST},
        {"keep": ((FIRST[..., None] <= J) & (LAST[..., None] > J))[:, None]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_mask(name):
    given, expected = CASES[name]
    q, k, v = qkv()
    found = ours.attention(q, k, v, **given)
    torch.testing.assert_close(found.double(), exact(q, k, v, **expected), atol=2e-6, rtol=2e-5)


def test_heads_of_keys_are_shared_and_sinks_take_weight():
    q, k, v = qkv(heads=2)
    found = ours.attention(q, k, v, sinks=SINKS, causal="top_left")
    k, v = (t.repeat_interleave(2, 1) for t in (k, v))
    score = (q @ k.mT * D**-0.5).masked_fill(~(J <= I), -torch.inf)
    sink = SINKS[None, :, None, None].expand(B, H, M, 1)
    weights = torch.cat([score, sink], -1).double().softmax(-1)[..., :-1]
    torch.testing.assert_close(found.double(), weights @ v.double(), atol=2e-6, rtol=2e-5)


def test_documents_packed_in_one_sequence():
    q, k, v = qkv(m=N)
    documents = torch.tensor([[0] * 10 + [1] * 27, [0] * 36 + [5]])
    found = ours.attention(q, k, v, documents=documents, causal="top_left")
    same = (documents[:, None, :] == documents[:, :, None])[:, None]
    keep = same & (torch.arange(N) <= torch.arange(N)[:, None])
    torch.testing.assert_close(found.double(), exact(q, k, v, keep=keep), atol=2e-6, rtol=2e-5)


def test_pages_of_keys_in_a_poisoned_pool():
    page, pages = 8, 12
    q, _, _ = qkv(m=1)
    pool_k, pool_v = (torch.full((pages, 2, page, D), torch.nan) for _ in range(2))
    table = torch.tensor([[3, 7, 1], [0, 5, 9]])
    k, v = draw(B, 2, 3 * page, D, seed=1), draw(B, 2, 3 * page, D, seed=2)
    for batch in range(B):
        for t in range(3):
            at = slice(t * page, (t + 1) * page)
            pool_k[table[batch, t]], pool_v[table[batch, t]] = k[batch, :, at], v[batch, :, at]
    last = torch.tensor([[24], [17]])
    pool_k[9, :, 1:], pool_v[9, :, 1:] = torch.nan, torch.nan
    found = ours.attention(q, pool_k, pool_v, table=table, last=last)
    keep = (torch.arange(24) < last[..., None])[:, None]
    torch.testing.assert_close(found.double(), exact(q, k, v, keep=keep), atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats_are_at_most_twice_as_far_off_as_torch(dtype):
    q, k, v = qkv(n=129, dtype=dtype)
    want = exact(q, k, v)
    own = (ours.scaled_dot_product_attention(q, k, v) - want).abs().max()
    assert own <= 2 * (reference(q, k, v) - want).abs().max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_length_is_at_most_twice_as_far_off_as_torch(dtype):
    """32 heads that share 8 of keys and values; one kernel for all lengths."""
    for n in (1, 7, 127, 128, 129):
        q = draw(1, 32, n, D, dtype=dtype)
        k, v = (draw(1, 8, n, D, seed=s, dtype=dtype) for s in (1, 2))
        keep = torch.arange(n) <= torch.arange(n)[:, None]
        want = exact(q, k, v, keep=keep)
        own, theirs = (
            (f(q, k, v, is_causal=True, enable_gqa=True) - want).abs().max()
            for f in (ours.scaled_dot_product_attention, reference)
        )
        # With one key torch is exact; an exponent is rounded here, by one place of f32.
        assert own <= 2 * theirs + 2**-23 * want.abs().max()


def test_gradients_are_those_of_torch():
    tensors = [t.requires_grad_() for t in qkv(m=5, n=7, dtype=torch.float64)]
    found = ours.scaled_dot_product_attention(*tensors, is_causal=True)
    want = reference(*tensors, is_causal=True)
    torch.testing.assert_close(found, want)
    slopes = draw(*want.shape, seed=9, dtype=torch.float64)
    found, want = (torch.autograd.grad(y, tensors, slopes) for y in (found, want))
    torch.testing.assert_close(found, want)


def test_a_score_with_a_reduction_inside_is_another_definition():
    """Relative positions: a product of the query with a vector of its distance to the key."""
    table, r = Input("table", f32, [Size("M"), Size("N"), D]), RDom("r", D)

    def relative(s, at):
        query = at.q[at.batch, at.head, at.query, r]
        return s + sum(query * table[at.query, at.key, r], over=r)

    p = attention(
        f32, f32, f32, features=D, values=D, scale=D**-0.5, score=relative, inputs=[table]
    )
    q, k, v = qkv()
    distances = draw(M, N, D, seed=8)
    found = p.compile(flash(p, "c"), "c")(q, k, v, distances)
    want = exact(q, k, v, bias=lambda s: s + torch.einsum("bhie,ije->bhij", q, distances))
    torch.testing.assert_close(found.double(), want, atol=2e-6, rtol=2e-5)


def test_tiles_on_triton_skip_and_mask_as_slices_on_c_do():
    p = attention(f32, f32, f32, features=D, values=D, scale=D**-0.5, causal="top_left", left=48)
    kernel = p.compile(flash(p, "triton", queries=32, slices=16), "triton")
    assert kernel.source.count("for out_sum_ro in") >= 3
    q, k, v = (draw(1, 1, 75, D, seed=s) for s in range(3))
    at = torch.arange(75)
    keep = (at <= at[:, None]) & (at >= at[:, None] - 48)
    found = kernel(q, k, v).double()
    torch.testing.assert_close(found, exact(q, k, v, keep=keep), atol=2e-6, rtol=2e-5)


def test_packed_sequences_are_masked_at_their_ends_alone():
    """Of tiles inside a sequence nothing is masked; tiles outside are skipped."""
    options = {"features": D, "values": D, "scale": D**-0.5}
    p = attention(f32, f32, f32, first=i32, last=i32, **options)
    kernel = p.compile(flash(p, "triton", queries=16, slices=16), "triton")
    _, boundary, inner, last = kernel.source.split("for out_sum_ro in")
    assert ["mask" in part for part in (boundary, inner, last)] == [True, False, True]
    n = 150
    q, k, v = (draw(1, 2, n, D, seed=s) for s in range(3))
    starts = torch.tensor([0, 3, 3, 70, 149, n])
    ends = torch.searchsorted(starts, torch.arange(n), right=True)
    first, last = starts[ends - 1], starts[ends]
    # A query of nothing, and one whose numbers lie beyond the keys.
    first[80], last[80], first[90], last[90] = 75, 75, -(2**31), 2**31 - 1
    keep = (torch.arange(n) >= first[:, None]) & (torch.arange(n) < last[:, None])
    found = kernel(q, k, v, *(t[None].int() for t in (first, last))).double()
    torch.testing.assert_close(found, exact(q, k, v, keep=keep), atol=2e-6, rtol=2e-5)


def test_packed_sequences_spill_nothing():
    options = {"features": 128, "values": 128, "scale": 128**-0.5}
    p = attention(bf16, bf16, bf16, first=i32, last=i32, **options)
    kernel = p.compile(flash(p, "triton"), Target("triton", arch="sm_90"))
    [binary] = kernel.binaries.values()
    assert binary.spilled == 0
    assert "wgmma.mma_async" in binary.ptx


@pytest.mark.parametrize("length", [128, 227])
def test_parts_of_the_keys_in_a_poisoned_buffer(length):
    """Decode: what lies behind the last key is NaN, and the number of parts is that of the call."""
    p = attention(f32, f32, f32, last=i64, features=D, values=D, groups=4, scale=D**-0.5)
    kernel = p.compile(decode(p, "triton", part=64, slices=16), "triton")
    assert "out_sum_u_all_g * k_s1" in kernel.source
    q = draw(1, 8, 1, D)
    k, v = (torch.full((1, 2, 256, D), torch.nan) for _ in range(2))
    k[:, :, :length], v[:, :, :length] = (
        draw(1, 2, length, D, seed=1),
        draw(1, 2, length, D, seed=2),
    )
    found = kernel(q, k, v, torch.tensor([[length]]))
    want = exact(q, k[:, :, :length], v[:, :, :length])
    torch.testing.assert_close(found.double(), want, atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize("kept", [torch.float8_e4m3fn, torch.float8_e5m2])
@pytest.mark.parametrize("m", [1, M])
def test_a_cache_of_8_bits_is_scaled_by_head(kept, m):
    q, k, v = qkv(heads=2, m=m, dtype=torch.bfloat16)
    scales = torch.tensor([0.5, 2.0]), torch.tensor([4.0, 0.25])
    k, v = k.to(kept), v.to(kept)
    found = ours.attention(q, k, v, key_scales=scales[0], value_scales=scales[1])
    k, v = (t.double() * scale[:, None, None] for t, scale in zip((k, v), scales, strict=True))
    torch.testing.assert_close(found.double(), exact(q, k, v), atol=2e-2, rtol=2e-2)


def test_a_cache_of_8_bits_is_multiplied_by_the_matrix_unit():
    given = {"features": 128, "values": 128, "groups": 4, "scale": 128**-0.5}
    p = attention(bf16, f8e4m3, f8e4m3, key_scales=f32, value_scales=f32, **given)
    text = p.compile(decode(p, "triton"), Target("triton", arch="sm_90")).source
    assert text.count("tl.dot(") == 2
    assert text.count("tl.atomic_add(") == 1


def test_what_torch_takes_and_this_does_not_is_refused():
    q, k, v = qkv()
    with pytest.raises(DefinitionError, match="dropout_p"):
        ours.scaled_dot_product_attention(q, k, v, dropout_p=0.1)
    with pytest.raises(DefinitionError, match="is_causal"):
        ours.scaled_dot_product_attention(q, k, v, attn_mask=MASK, is_causal=True)
