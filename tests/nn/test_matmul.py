"""Matmuls of batches and by groups are torch's, with an epilogue."""

import pytest
import torch
from torch.nn import functional as reference

from tensorlang import DefinitionError, Target, autoschedule, bf16, f16, f32, i64
from tensorlang.autodiff import gradients
from tensorlang.nn import functional as ours
from tensorlang.nn.grouped import grouped, grouped_gradients, grouped_tiles
from tensorlang.nn.linear import bmm
from tests.nn.checks import check, draw

pytestmark = pytest.mark.cc


def test_bmm_with_an_epilogue():
    check(
        lambda x, w, b, r: ours.bmm(x, w, b, activation="gelu", residual=r),
        lambda x, w, b, r: reference.gelu(torch.baddbmm(b[:, None], x, w)) + r,
        *(draw(3, 5, 4), draw(3, 4, 6, seed=1), draw(3, 6, seed=2), draw(3, 5, 6, seed=3)),
    )


def test_a_batch_of_more_matrices_than_a_grid_has_rows():
    x, w = draw(65_600, 1, 2, dtype=torch.float32), draw(65_600, 2, 1, dtype=torch.float32)
    torch.testing.assert_close(ours.bmm(x, w), torch.bmm(x, w))


@pytest.mark.parametrize("ends", [[3, 3, 17, 20], [0, 0, 0, 0], [20, 20, 20, 20], [1, 2, 3, 9]])
def test_rows_by_groups(ends):
    offs = torch.tensor(ends, dtype=torch.int32)

    def want(x, w, b):
        bounds = [0, *ends]
        parts = [
            reference.silu(x[i:j] @ w[e] + b[e])
            for e, (i, j) in enumerate(zip(bounds, ends, strict=False))
        ]
        return torch.cat([*parts, x.new_zeros(len(x) - ends[-1], w.shape[2])])

    tensors = draw(20, 5), draw(4, 5, 3, seed=1), draw(4, 3, seed=2)
    check(
        lambda x, w, b: ours.grouped_mm(x, w, offs=offs, bias=b, activation="silu"), want, *tensors
    )


def test_a_gpu_multiplies_tiles():
    for pipeline in (
        bmm(f16, f16, None, None, activation="relu"),
        grouped(f16, f16, i64, None, activation="none"),
    ):
        sizes = {"M": 64, "N": 1024, "K": 1024, "B": 64}
        schedule = autoschedule(pipeline, "triton", sizes)
        kernel = pipeline.compile(schedule, Target("triton", arch="sm_90"))
        assert "wgmma.mma_async" in kernel.ptx


@pytest.mark.parametrize("wrt", [["x"], ["weight"], ["bias"], ["x", "weight", "bias"]])
def test_the_gradients_of_groups_on_a_gpu(wrt):
    """Groups 1 and 4 have no block; the values are those of the gradient that scatters."""
    forward = grouped(f32, f32, i64, f32, activation="none")
    one, exact = grouped_gradients(forward, wrt), gradients(forward, wrt)
    x, w = draw(6, 8, 20, dtype=torch.float32), draw(5, 20, 18, dtype=torch.float32)
    slopes = draw(6, 8, 18, dtype=torch.float32, seed=1)
    given = {"x": x, "weight": w, "grad_out": slopes, "at": torch.tensor([0, 0, 2, 2, 2, 3])}
    arrays = [given[a.name].detach() for a in one.algorithm.inputs]
    sizes = {} if "weight" in [a.name for a in one.algorithm.inputs] else {"E": 5}
    schedule = grouped_tiles(one, "triton", {"M": 8})
    found = one.compile(schedule, "triton")(*arrays, sizes=sizes)
    want = exact(*(given[a.name].detach() for a in exact.algorithm.inputs), sizes=sizes)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


def test_a_gpu_takes_the_blocks_of_a_group_and_no_others():
    forward = grouped(bf16, bf16, i64, bf16, activation="none")
    one = grouped_gradients(forward, ["x", "weight", "bias"])
    schedule = grouped_tiles(one, "triton", {"M": 64})
    kernel = one.compile(schedule, Target("triton", arch="sm_90"))
    assert kernel.source.count("tl.dot") == 2
    # The loops of grad_weight and grad_bias end where the blocks of the group do.
    assert kernel.source.count("tl.range(0, rt.minimum(B, count.to(INDEX)), num_stages=3)") == 2
    assert "atomic" not in kernel.source
    assert "wgmma.mma_async" in kernel.ptx


def test_what_does_not_fit_is_refused():
    x = draw(4, 3)
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.bmm(x, x)
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.grouped_mm(x, x, offs=torch.tensor([4]))
