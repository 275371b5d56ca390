"""A tile beyond the limits of the target is refused with the factor that fits."""

import pytest
import torch

from tensorlang.errors import TargetError
from tests.backends.triton import programs
from tests.backends.triton.running import compiled, run


def test_a_constant_tile_is_refused_when_compiled() -> None:
    text = programs.SCALE.replace("16", "2097152").replace("+ 15", "+ 2097151")
    with pytest.raises(TargetError) as caught:
        compiled(text)
    assert caught.value.code == "tile-too-large"
    assert "2097152 elements" in caught.value.what
    assert "at most 1048576" in caught.value.why
    assert "split 'D.ji' by 1048576 or less" in caught.value.fix


def test_a_row_is_refused_at_the_call() -> None:
    a = torch.zeros(1, 1).expand(1, 2**20 + 1)
    with pytest.raises(TargetError, match=r"split 'm\.j' by 1048576"):
        run(programs.SOFTMAX, {"M": 1, "N": 2**20 + 1}, [a], [torch.zeros(1, 1)])


def test_a_large_reduction_without_the_matrix_unit_is_refused() -> None:
    text = programs.with_tiles(programs.LINEAR_RELU, 128, 64)
    text = text.replace(
        "f32(A[C.i, C.k])*f32(B[C.k, C.j])", "max(f32(A[C.i, C.k]), f32(B[C.k, C.j]))"
    )
    with pytest.raises(TargetError, match="without the matrix unit takes at most 131072"):
        compiled(text)


def test_a_dot_is_no_tile_of_three_axes() -> None:
    assert "tl.dot" in compiled(programs.with_tiles(programs.LINEAR_RELU, 256, 64)).source
