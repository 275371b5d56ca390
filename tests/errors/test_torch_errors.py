"""The whole message of what goes wrong on the way to an operator of torch."""

import pytest
import torch

from tensorlang import Func, Input, Pipeline, Size, Var
from tensorlang.ir.types import DType
from tensorlang.nn import functional
from tensorlang.torch.compiler.options import Options
from tensorlang.torch.family import family_of
from tensorlang.torch.shapes import shape_of
from tests.errors.mistakes import Mistakes

mistake = Mistakes()
N, i = Size("N"), Var("i")


def _doubled(x: DType, *, by: int) -> Pipeline:
    X, out = Input("x", x, [N]), Func("out")
    out[i] = X[i] * by
    return Pipeline("doubled", inputs=[X], outputs={out: [N]})


def unknown(pipeline, target):
    return None


@mistake
def not_supported():
    return functional.gelu(torch.zeros(3), approximate="fast")


@mistake
def not_a_family():
    def listed(x: DType, *, by: list) -> Pipeline:
        raise NotImplementedError

    return family_of(listed, {}, unknown)


@mistake
def no_such_dtype():
    return family_of(_doubled, {}, unknown).key([torch.zeros(2, dtype=torch.complex64)], [2])


@mistake
def not_an_extent():
    return shape_of([-N], {"N": 3})


@mistake
def unknown_option():
    return Options.of({"freez": True})


@pytest.mark.parametrize("name", mistake)
def test_the_message_of_what_torch_cannot_have(name, golden):
    mistake.check(name, golden)
