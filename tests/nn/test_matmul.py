"""Matmuls of batches and by groups are torch's, with an epilogue."""

import pytest
import torch
from torch.nn import functional as reference

from tensorlang import DefinitionError, Target, autoschedule, f16, i64
from tensorlang.nn import functional as ours
from tensorlang.nn.linear import bmm, grouped
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


def test_what_does_not_fit_is_refused():
    x = draw(4, 3)
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.bmm(x, x)
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.grouped_mm(x, x, offs=torch.tensor([4]))
