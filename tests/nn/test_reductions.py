"""Reductions, scans and topk have torch's meaning: dims, NaN, ties, integers, empty sums."""

import numpy as np
import pytest
import torch

from tensorlang import DefinitionError, Target, bf16, f32, i32
from tensorlang.nn.functions import reductions as ours
from tensorlang.nn.reductions import reduce
from tensorlang.nn.schedules import columns
from tensorlang.nn.selection import rows_of_topk, topk
from tests.nn.checks import check, draw

pytestmark = pytest.mark.cc


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "logsumexp"])
@pytest.mark.parametrize("dim", [0, (1, 2), (0, 2)])
def test_reductions(name, dim):
    for keepdim in (False, True):
        check(
            lambda x: getattr(ours, name)(x, dim, keepdim),  # noqa: B023 - called at once
            lambda x: getattr(torch, name)(x, dim, keepdim),  # noqa: B023 - called at once
            draw(3, 4, 5),
        )


@pytest.mark.parametrize("name", ["prod", "cumsum", "cumprod"])
def test_what_has_one_dimension(name):
    check(lambda x: getattr(ours, name)(x, 1), lambda x: getattr(torch, name)(x, 1), draw(3, 4, 2))


def test_the_places_of_extremes_by_ties_and_nan():
    x = torch.tensor([[1.0, 5.0, 5.0], [torch.nan, 2.0, torch.nan], [-torch.inf] * 3])
    for name in ("argmax", "argmin", "amax", "amin"):
        for dim in (0, 1):
            found, want = (getattr(m, name)(x, dim) for m in (ours, torch))
            torch.testing.assert_close(found, want, equal_nan=True)
    assert ours.argmax(x) == torch.argmax(x)


def test_integers_bools_and_all_dims():
    x = torch.tensor([[3, -2, 0], [1, 1, 1]], dtype=torch.int8)
    for name in ("sum", "prod", "any", "all", "amax"):
        found, want = (getattr(m, name)(x) for m in (ours, torch))
        assert found.dtype is want.dtype
        assert found == want
    assert ours.cumsum(x, 1).tolist() == torch.cumsum(x, 1).tolist()
    assert ours.sum(x > 0).tolist() == 4
    assert ours.sum(torch.tensor(2.5)) == 2.5


def test_nothing_adds_up_to_zero_and_has_no_largest():
    x = torch.empty(2, 0, 3)
    torch.testing.assert_close(ours.sum(x, 1), x.sum(1))
    torch.testing.assert_close(ours.mean(x, 1), x.mean(1), equal_nan=True)
    torch.testing.assert_close(ours.logsumexp(x, 1), x.logsumexp(1))
    for name in ("amax", "argmax"):
        with pytest.raises(DefinitionError, match="not-supported"):
            getattr(ours, name)(x, 1)
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.sum(x, (0, 0))
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.mean(x.long())


def test_a_row_of_minus_infinity_and_large_numbers():
    x = torch.tensor([[-torch.inf, -torch.inf], [1e4, 1e4], [torch.inf, 0.0], [torch.nan, 0.0]])
    found, want = (m.logsumexp(x, 1) for m in (ours, torch))
    torch.testing.assert_close(found, want, equal_nan=True)


@pytest.mark.parametrize("largest", [True, False])
def test_topk(largest):
    x = draw(4, 9, 2, dtype=torch.float32).detach()
    x[0, 3, 0], x[1] = torch.nan, -torch.inf
    (found, at), (want, _) = (m.topk(x, 4, 1, largest) for m in (ours, torch))
    torch.testing.assert_close(found, want, equal_nan=True)
    assert all(len(set(row)) == 4 for row in at.movedim(1, -1).reshape(-1, 4).tolist())
    y = draw(5, 7)
    check(
        lambda y: ours.topk(y, 3, largest=largest)[0],
        lambda y: torch.topk(y, 3, largest=largest)[0],
        y,
    )
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.topk(x, 10)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [f32, i32])
def test_topk_of_a_row_in_lanes(dtype, largest):
    """With ties, NaN and infinities, as one after the other; of whole rows, and in slices."""
    x = torch.randint(-3, 4, (5, 40, 2), generator=torch.Generator().manual_seed(0)).int()
    if dtype is f32:
        x = x.float()
        x[0, 3, 0], x[1], x[2, :, 1], x[3, :38, 0] = torch.nan, -torch.inf, torch.nan, torch.nan
        x[3, 38:, 0] = torch.inf if largest else -torch.inf
    want, _ = x.topk(2, 1, largest)
    exact = x.sort(dim=1, descending=largest, stable=True).indices[:, :2]
    p = topk(dtype, count=2, largest=largest, apart=True)
    at = p.compile(rows_of_topk(p, "triton", {"N": 40}), "triton")(x)
    assert torch.equal(at, exact)
    torch.testing.assert_close(x.gather(1, at), want, equal_nan=True)
    in_turn = topk(dtype, count=2, largest=largest)
    assert torch.equal(in_turn(x), exact)
    sliced = p.compile(rows_of_topk(p, "triton", {"N": 1 << 15}), "triton")
    assert torch.equal(sliced(x[:1, :, :1]), exact[:1, :, :1])


def test_a_gpu_finds_them_in_one_kernel():
    p = topk(bf16, count=3, largest=True, apart=True)
    schedule = rows_of_topk(p, "triton", {"N": 4096})
    source = p.compile(schedule, Target("triton", arch="sm_90")).source
    assert source.count("@triton.jit") == 1
    assert "tl.range" not in source
    # The row, and the last one found, twice.
    assert source.count("tl.load(") == 3


@pytest.mark.parametrize("kind", ["sum", "argmax"])
def test_columns_are_reduced_in_parts_on_a_gpu(kind):
    pipeline = reduce(f32, kind=kind, out_dtype="f32")
    schedule = columns(pipeline, "triton", {"A": 2, "N": 300, "B": 70})
    x = np.random.default_rng(0).standard_normal((2, 70, 40)).astype(np.float32)
    found = pipeline.compile(schedule, "triton")(x)
    want = x.sum(1) if kind == "sum" else x.argmax(1)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    assert columns(pipeline, "triton", {"A": 8, "N": 300, "B": 1}) is None
