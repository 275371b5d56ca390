"""Random modules beside eager torch, their definitions evaluated as they are or compiled to C."""

import pytest

from tests.torch.compiler.comparing import compare
from tests.torch.compiler.random_modules import together

pytestmark = pytest.mark.cc
# Programs of one compilation.
TOGETHER = 10


@pytest.mark.parametrize("first", range(0, 140, 2 * TOGETHER))
def test_random_modules_are_those_of_eager_torch(first):
    module, inputs = together(range(first, first + 2 * TOGETHER))
    compare(module, *inputs, target="reference", tolerance=1e-9, grad=False)


@pytest.mark.parametrize("first", range(200, 230, TOGETHER))
def test_gradients_of_random_modules_are_those_of_eager_torch(first):
    module, inputs = together(range(first, first + TOGETHER))
    compare(module, *inputs, target="reference", tolerance=1e-9)


@pytest.mark.parametrize("first", [1000])
def test_random_modules_as_c_are_those_of_eager_torch(first):
    module, inputs = together(range(first, first + TOGETHER))
    compare(module, *inputs, tolerance=1e-9, grad=False)


@pytest.mark.parametrize("first", [2000])
def test_random_modules_with_narrow_floats_are_close(first):
    module, inputs = together(range(first, first + TOGETHER), narrow=True)
    compare(module, *inputs, target="reference", tolerance=5e-2)
