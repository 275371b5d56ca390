"""Warps follow the size of the tile where the schedule names none."""

import pytest

from tensorlang.backends.triton.warps import usual_warps
from tests.backends.triton import programs
from tests.backends.triton.running import compiled


@pytest.mark.parametrize(("n", "warps"), [(16, 1), (2048, 1), (4096, 2), (16384, 8), (65536, 16)])
def test_rows_get_warps_by_their_length(n: int, warps: int) -> None:
    [kernel] = compiled(programs.SOFTMAX).kernels
    assert usual_warps(kernel.kernel, {"N_P2": n}) == warps


def test_a_large_accumulator_gets_two_warp_groups() -> None:
    for side, warps in ((64, 4), (128, 8)):
        [kernel] = compiled(programs.with_tiles(programs.LINEAR_RELU, side, 64)).kernels
        assert usual_warps(kernel.kernel, {}) == warps
