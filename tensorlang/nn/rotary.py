"""Rotary position embedding: pairs of features turned by an angle that grows with position."""

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Size, Var
from tensorlang.ir.functions import clamp, select
from tensorlang.ir.types import DType
from tensorlang.nn.numbers import wide
from tensorlang.pipeline import Pipeline


def rope(x: DType, cos: DType, sin: DType, *, features: int, interleaved: bool) -> Pipeline:
    """out[z, s, :] = x[z, s, :] with every pair (a, b) turned to (a*cos - b*sin, b*cos + a*sin)

    A pair is (d, d + features/2), or (2*d, 2*d + 1) where `interleaved`; its angle is that of
    position s and pair d.
    """
    Z, S, half, w = Size("Z"), Size("S"), features // 2, wide(x)
    z, s, d = Var("z"), Var("s"), Var("d")
    X = Input("x", x, [Z, S, features])
    C, D = Input("cos", cos, [S, half]), Input("sin", sin, [S, half])
    out = Func("out")
    step = 1 if interleaved else half
    pair = d // 2 if interleaved else d % half
    is_first = d % 2 == 0 if interleaved else d < half
    before, after = (
        X[z, s, clamp(d - step, 0, features - 1)],
        X[z, s, clamp(d + step, 0, features - 1)],
    )
    other = select(is_first, -w(after), w(before))
    out[z, s, d] = x(w(X[z, s, d]) * w(C[s, pair]) + other * w(D[s, pair]))
    return Pipeline("rope", inputs=[X, C, D], outputs={out: [Z, S, features]})
