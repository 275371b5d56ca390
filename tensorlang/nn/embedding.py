"""Rows of a table, by number."""

from tensorlang.func import Func, Input
from tensorlang.ir.functions import clamp
from tensorlang.ir.types import DType, index
from tensorlang.nn.numbers import K, M, N, i, j
from tensorlang.pipeline import Pipeline


def embedding(at: DType, weight: DType) -> Pipeline:
    """out[i, j] = weight[at[i], j]; a number outside the table is brought to its end."""
    A, W, out = Input("at", at, [M]), Input("weight", weight, [K, N]), Func("out")
    out[i, j] = W[clamp(index(A[i]), 0, K - 1), j]
    return Pipeline("embedding", inputs=[A, W], outputs={out: [M, N]})
