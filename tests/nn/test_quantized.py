"""8-bit values and their scales, and matmuls of them, against the same in f32."""

import numpy as np
import pytest
import torch
from torch.nn import functional as reference

from tensorlang import DefinitionError, Target, autoschedule, bf16, f8e4m3, f32, i8, u8
from tensorlang.nn import quantized as definitions
from tensorlang.nn.functions import quantized as ours
from tensorlang.nn.normalization import group_norm, layer_norm, rms_norm
from tensorlang.nn.quantized_rows import Reading, in_one_read, read_by
from tensorlang.nn.softmax import softmax

pytestmark = pytest.mark.cc
F8, F8_WIDE, I8 = torch.float8_e4m3fn, torch.float8_e5m2, torch.int8
LARGEST = {F8: 448.0, F8_WIDE: 57344.0, I8: 127.0}
# A value at the middle of two steps may go to either.
STEP = {F8: 32, F8_WIDE: 8192, I8: 1}


def normal(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def expect(found, y, dtype, block):
    """q and scale are those of y."""
    q, scale = found
    z = y.float().reshape(*y.shape[:-1], -1, block or y.shape[-1])
    top = z.abs().amax(-1, keepdim=True).clamp(min=1e-12)
    want = z * (LARGEST[dtype] / top)
    want = (want.round() if dtype is I8 else want).to(dtype).reshape(y.shape)
    torch.testing.assert_close(scale, (top / LARGEST[dtype]).squeeze(-1), rtol=1e-5, atol=0)
    assert q.dtype is dtype
    off = (q.float() - want.float()).abs()
    assert off.max() <= STEP[dtype]
    assert (off > 0).float().mean() < 0.02


@pytest.mark.parametrize(("dtype", "block"), [(F8, 0), (F8_WIDE, 64), (I8, 64)])
def test_what_is_made_is_quantised(dtype, block):
    x, g = normal(5, 256, dtype=torch.bfloat16), normal(5, 256, dtype=torch.bfloat16, seed=1)
    w, how = normal(256, seed=2), {"dtype": dtype, "block": block}
    h = x + g
    expect(ours.quantize(x, **how), x, dtype, block)
    expect(ours.silu_mul_quantized(x, g, **how), reference.silu(x.float()) * g, dtype, block)
    *found, total = ours.rms_norm_quantized(x, w, 1e-6, residual=g, **how)
    assert torch.equal(total, h)
    expect(found, reference.rms_norm(h.float(), (256,), w, 1e-6), dtype, block)
    *found, total = ours.layer_norm_quantized(x, w, w, residual=g, **how)
    assert torch.equal(total, h)
    expect(found, reference.layer_norm(h.float(), (256,), w, w), dtype, block)


@pytest.mark.parametrize(("dtype", "block"), [(F8, 0), (I8, 64)])
@pytest.mark.parametrize("added", [False, True])
def test_softmax_is_quantised(dtype, block, added):
    x, g = normal(5, 256), normal(5, 256, seed=1)
    how = {"dtype": dtype, "block": block, "residual": g if added else None}
    h = x + g if added else x
    expect(ours.softmax_quantized(x, **how), h.softmax(-1), dtype, block)
    expect(ours.softmax_quantized(x, logarithm=True, **how), h.log_softmax(-1), dtype, block)
    q, scale = ours.softmax_quantized(x, 0, **{**how, "block": 0})
    expect((q.t(), scale.t()), h.softmax(0).t(), dtype, 0)


@pytest.mark.parametrize("added", [False, True])
def test_norms_of_groups_and_channels_are_quantised(added):
    x, g, w = normal(2, 8, 6, 5), normal(2, 8, 6, 5, seed=1), normal(8, seed=2)
    h, how = (x + g, {"residual": g}) if added else (x, {})
    found = ours.group_norm_quantized(x, 4, w, w, dtype=I8, **how)
    want = reference.group_norm(h, 4, w, w)
    expect((found[0].reshape(8, -1), found[1].reshape(8, 1)), want.reshape(8, -1), I8, 0)
    assert not added or torch.equal(found[2], h)
    mean, var = normal(8, seed=3), normal(8, seed=4).abs()
    for training in (False, True):
        given = [(mean.clone(), var.clone()) for _ in range(2)]
        for y in (x, x.to(memory_format=torch.channels_last)):
            q, scale, *total = ours.batch_norm_quantized(y, *given[0], w, w, training, 0.3, **how)
            want = reference.batch_norm(h, *given[1], w, w, training, 0.3).transpose(0, 1)
            of_channels = q.transpose(0, 1).reshape(8, -1), scale[:, None]
            expect(of_channels, want.reshape(8, -1), F8, 0)
            torch.testing.assert_close(given[0], given[1])
            assert not added or torch.equal(total[0], h)


def test_rows_of_zeros_and_blocks_that_do_not_fit():
    q, scale = ours.quantize(torch.zeros(2, 8))
    assert not q.float().any()
    assert (scale > 0).all()
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.quantize(torch.zeros(2, 9), block=4)
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.softmax_quantized(torch.zeros(2, 8), dtype=torch.int16)


@pytest.mark.parametrize("dtype", [F8, I8])
def test_scaled_matmuls(dtype):
    (a, sa), (b, sb) = (ours.quantize(normal(n, 256, seed=n), dtype=dtype) for n in (6, 9))
    rows = (a.float() * sa) @ (b.float() * sb).T
    found = ours.scaled_mm(a, b, sa, sb, out_dtype=torch.float32)
    torch.testing.assert_close(found, rows, rtol=1e-4, atol=1e-4)
    bias = normal(9)
    found = ours.scaled_mm(a, b, sa[0], sb[0], bias)
    want = ((a.float() * sa[0]) @ (b.float() * sb[0]).T + bias).bfloat16()
    torch.testing.assert_close(found, want)
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.scaled_mm(a, b, sa, sb[:3])


def test_a_scale_for_each_block():
    a, sa = ours.quantize(normal(6, 256), block=128)
    b, sb = normal(200, 256, seed=1).to(F8), torch.rand(2, 2)
    whole = sb.repeat_interleave(128, 0)[:200].repeat_interleave(128, 1)
    want = (a.float() * sa.repeat_interleave(128, 1)) @ (b.float() * whole).T
    found = ours.scaled_mm(a, b, sa, sb, out_dtype=torch.float32)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-3)


def test_weights_of_8_and_4_bits():
    x = normal(4, 64).requires_grad_()
    w, scale = torch.randint(-128, 128, (7, 64), dtype=I8), torch.rand(7)
    want = x @ (w.float() * scale[:, None]).T
    found = ours.weight_only_linear(x, w, scale)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-3)
    (slope,) = torch.autograd.grad(found.sum(), [x])
    torch.testing.assert_close(slope, torch.autograd.grad(want.sum(), [x])[0], rtol=1e-4, atol=1e-3)
    w, scale, bias = torch.randint(-8, 8, (7, 64)), torch.rand(7, 4), normal(7)
    want = x @ (w.float() * scale.repeat_interleave(16, 1)).T + bias
    found = ours.weight_only_linear(x, ours.pack_int4(w), scale, bias, bits=4)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-3)
    for bits, weight in ((3, w), (4, w)):
        with pytest.raises(DefinitionError, match="not-supported"):
            ours.weight_only_linear(x, weight, scale, bits=bits)


def test_a_gpu_reads_a_row_once_and_writes_values_and_scales():
    pipeline = rms_norm(bf16, bf16, bf16, out_dtype="f8e4m3")
    schedule = in_one_read(pipeline, "triton", {"C": 32, "T": 128})
    kernel = pipeline.compile(schedule, Target("triton", arch="sm_90"))
    assert kernel.source.count("@triton.jit") == 1
    assert kernel.source.count("tl.load(") == 3
    assert in_one_read(pipeline, "triton", {"C": 1, "T": 1 << 20}) is None


@pytest.mark.parametrize("reading", [Reading(1, 4), Reading(2, 4, 2), Reading(1, 4, blocks=2)])
def test_one_kernel_gives_the_values_of_any_schedule(reading):
    pipeline = layer_norm(f32, f32, f32, out_dtype="i8")
    schedule = read_by(pipeline, reading)
    rng = np.random.default_rng(0)
    shapes = (3, 3, 20), (3, 20), (3, 20)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    q, scale = pipeline.compile(schedule, "triton")(*arrays, eps=1e-5)
    want, exact = pipeline(*arrays, eps=1e-5)
    np.testing.assert_allclose(scale, exact, rtol=1e-5)
    assert np.abs(q.astype(int) - want).max() <= 1


@pytest.mark.parametrize("residual", [None, f32])
def test_a_gpu_takes_groups_and_softmax_in_one_kernel(residual):
    rng = np.random.default_rng(0)
    groups, params = group_norm(f32, f32, f32, residual, out_dtype="f8e4m3"), {"eps": 1e-5}
    rows = softmax(f32, residual, logarithm=False, out_dtype="f8e4m3")
    sizes = {"B": 2, "G": 3, "C": 4, "S": 10}
    cases = (
        (groups, sizes, [(2, 3, 4, 10), (3, 4), (3, 4), (2, 3, 4, 10)], params),
        (rows, {"M": 3, "C": 2, "T": 20}, [(3, 2, 20)] * 2, {}),
    )
    for pipeline, sizes, shapes, params in cases:
        shapes = shapes if residual else shapes[:-1]
        arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
        kernel = pipeline.compile(in_one_read(pipeline, "triton", sizes), "triton")
        assert kernel.source.count("@triton.jit") == 1
        assert kernel.source.count("tl.load(") == len(shapes)
        (q, scale, *more), (want, exact, *total) = (
            call(*arrays, **params) for call in (kernel, pipeline)
        )
        np.testing.assert_allclose(scale, exact, rtol=1e-5)
        assert (np.asarray(q) != np.asarray(want)).mean() < 0.02
        for own, other in zip(more, total, strict=True):
            np.testing.assert_array_equal(own, other)


def test_blocks_that_need_no_row_are_tiles_of_their_own():
    pipeline = definitions.silu_mul(bf16, bf16, out_dtype="f8e4m3")
    schedule = in_one_read(pipeline, "triton", {"C": 112, "T": 128})
    assert ".split(c, tile, block, 16).gpu_blocks(i, tile)" in str(schedule)
    kernel = pipeline.compile(schedule, Target("triton", arch="sm_90"))
    assert kernel.source.count("tl.load(") == 2


@pytest.mark.parametrize(
    "pipeline",
    [
        definitions.scaled_mm(f8e4m3, f8e4m3, f32, f32, None, out_dtype="bf16", rowwise=True),
        definitions.block_scaled_mm(f8e4m3, f8e4m3, f32, f32, out_dtype="bf16", block=128),
        definitions.weight_only(bf16, i8, bf16, None, bits=8, group=0),
        definitions.weight_only(bf16, u8, bf16, None, bits=4, group=128),
    ],
    ids=["scaled", "blocks", "int8", "int4"],
)
def test_a_gpu_takes_its_matrix_unit(pipeline):
    sizes = {"M": 4096, "N": 4096, "K": 4096, "C": 32}
    schedule = definitions.tiles_of_groups(pipeline, "triton", sizes)
    schedule = schedule or autoschedule(pipeline, "triton", sizes)
    kernel = pipeline.compile(schedule, Target("triton", arch="sm_90"))
    assert "wgmma.mma_async" in kernel.ptx
