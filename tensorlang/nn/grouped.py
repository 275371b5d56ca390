"""Matmuls by groups of rows, their gradients, and how these run on a GPU.

    out[b, i, j] = activation(sum(x[b, i, k] * weight[at[b], k, j], over=k) + bias[at[b], j])
    grad_weight[e, k, j] = sum(grad_out[b, i, j] * x[b, i, k])      over all b of group e, and i

Rows come in blocks, each of one group as a whole, so that a tile is one matmul.  The blocks of a
group follow one another: those of group e are `count[e]` from `first[e]` on.
"""

from collections.abc import Mapping, Sequence

from tensorlang.autodiff import gradients
from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Size, Var
from tensorlang.ir.functions import clamp, select
from tensorlang.ir.types import DType, f64, i32, index
from tensorlang.nn.activation import ACTIVATIONS
from tensorlang.nn.numbers import K, M, N, i, j, over, wide
from tensorlang.nn.schedules import tiles_of_dots
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum
from tensorlang.schedule import Schedule

B, E = Size("B"), Size("E")
b, e, k = Var("b"), Var("e"), Var("k")


def grouped(x: DType, weight: DType, at: DType, bias: DType | None, *, activation: str) -> Pipeline:
    """The product above.

    Args: at: the group of each block, ascending.
    """
    w, r = wide(x), over("k", K)
    X, W = Input("x", x, [B, M, K]), Input("weight", weight, [E, K, N])
    A, product, out = Input("at", at, [B]), Func("product"), Func("out")
    group = _group(A, b)
    product[b, i, j] = sum(w(X[b, i, r]) * w(W[group, r, j]), over=r)
    inputs, value = [X, W, A], product[b, i, j]
    if bias is not None:
        inputs.append(Input("bias", bias, [E, N]))
        value = value + w(inputs[-1][group, j])
    out[b, i, j] = x(ACTIVATIONS[activation](value))
    return Pipeline("grouped", inputs=inputs, outputs={out: [B, M, N]})


def _group(at: Input, block: Operand) -> Expr:
    return clamp(index(at[block]), 0, E - 1)


def grouped_gradients(forward: Pipeline, wrt: Sequence[str]) -> Pipeline:
    """The gradients above; with an activation those that `autodiff` finds, which scatter."""
    dtypes = {a.name: a.dtype for a in forward.algorithm.inputs}
    x, weight, at = (dtypes[name] for name in ("x", "weight", "at"))
    plain = grouped(x, weight, at, dtypes.get("bias"), activation="none")
    if forward.algorithm != plain.algorithm:
        return gradients(forward, wrt)
    parts = _Groups(dtypes)
    outputs = {parts.gradient(name): parts.shapes[name] for name in wrt}
    read = {"x": {"weight", "at"}, "weight": {"x", "at"}, "bias": {"at"}}
    used = set[str]().union(*(read[name] for name in wrt))
    inputs = [a for a in (parts.X, parts.W, parts.A) if a.name in used]
    return Pipeline("grouped_gradients", inputs=[*inputs, parts.G], outputs=outputs)


class _Groups:
    """The sums of a gradient.

    Args: dtypes: of the Inputs of the product.
    """

    def __init__(self, dtypes: Mapping[str, DType]) -> None:
        self.w, self.dtypes = wide(dtypes["x"]), dtypes
        self.shapes = {"x": [B, M, K], "weight": [E, K, N], "bias": [E, N]}
        self.X = Input("x", dtypes["x"], self.shapes["x"])
        self.W = Input("weight", dtypes["weight"], self.shapes["weight"])
        self.A, self.G = Input("at", dtypes["at"], [B]), Input("grad_out", dtypes["x"], [B, M, N])
        self.first, self.count = Func("first"), Func("count")
        p, q = over("p", B), over("q", B)
        self.first[e] = sum(select(_group(self.A, p) < e, i32(1), 0), over=p)
        self.count[e] = sum(select(_group(self.A, q) == e, i32(1), 0), over=q)

    def gradient(self, name: str) -> Func:
        """Of one Input, in its dtype."""
        w, grad, total = self.w, Func(f"grad_{name}"), Func(f"grad_{name}_sum")
        if name == "x":
            r = over("r", N)
            factor = w(self.W[_group(self.A, b), k, r])
            total[b, i, k] = sum(w(self.G[b, i, r]) * factor, over=r)
            point = (b, i, k)
        else:
            t, block, row = self._rows()
            slope = w(self.G[block, row, j])
            point = (e, k, j) if name == "weight" else (e, j)
            term = slope * w(self.X[block, row, k]) if name == "weight" else slope
            total[point] = sum(term, over=t)
        grad[point] = self.dtypes[name](total[point])
        return grad

    def _rows(self) -> tuple[RDom, Expr, Expr]:
        """The rows of group e: a domain, the block and the row in it."""
        t = RDom("t", B, M)
        t = t.where(t[0] < index(self.count[e]))
        return t, clamp(index(self.first[e]) + t[0], 0, B - 1), t[1]


# Rows and columns of a tile, and reduced values of one step; the most rows of a block that are one.
_TILE, _DEPTH, _BLOCK = 128, 64, 128


def grouped_tiles(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """On Triton every sum of a gradient is tiles of a matmul; None where a formula is as good."""
    funcs = {f.name: f for f in pipeline.algorithm.funcs}
    sums = [name for name in ("grad_x", "grad_weight", "grad_bias") if f"{name}_sum" in funcs]
    if target != "triton" or not sums or "product" in funcs or sizes.get("M", 0) > _BLOCK:
        return None
    if any(a.dtype is f64 for a in pipeline.algorithm.inputs):
        return None
    schedule = Schedule(pipeline)
    for name in sums:
        if name == "grad_x":
            tile, depth = {"i": _DEPTH, "k": _TILE}, ("r", _DEPTH)
            tiles_of_dots(schedule, (name, f"{name}_sum"), tile, depth)
        elif name == "grad_weight":
            tile, depth = {"k": _TILE, "j": _TILE}, ("t_1", 0)
            tiles_of_dots(schedule, (name, f"{name}_sum"), tile, depth, warps=8)
        else:
            _of_rows(schedule, name)
    for name, r in (("first", "p"), ("count", "q")):
        if name in funcs:
            schedule[name].compute_root().gpu_blocks("e")
            schedule[name].update(0).gpu_blocks("e").vectorize(r)
    return schedule


def _of_rows(schedule: Schedule, name: str) -> None:
    """blocks of (group, columns) { for blocks of the group: the sums of its rows }"""
    stage = schedule[name].split("j", "j_out", "j_in", _TILE).gpu_blocks("e", "j_out")
    stage.vectorize("j_in").gpu_warps(4)
    total = schedule[f"{name}_sum"].compute_at(name, "j_out").vectorize("j")
    update = total.update(0).reorder("e", "t_0", "t_1", "j")
    update.pipeline("t_0", 3).vectorize("t_1").vectorize("j")
