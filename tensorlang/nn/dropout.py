"""Dropout by a generator that is a function of seed and position, so that nothing is stored."""

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Param
from tensorlang.ir.functions import random_uniform, select
from tensorlang.ir.types import DType, f32
from tensorlang.nn.numbers import M, i, wide
from tensorlang.pipeline import Pipeline


def dropout(x: DType, seed: DType) -> Pipeline:
    """out[i] = x[i] / (1 - p) where the random number of i is at least p, else 0"""
    w = wide(x)
    X, S, p, out = Input("x", x, [M]), Input("seed", seed, [1]), Param("p", f32), Func("out")
    out[i] = x(select(random_uniform(S[0], i) < p, 0, w(X[i]) / (1 - w(p))))
    return Pipeline("dropout", inputs=[X, S], outputs={out: [M]})
