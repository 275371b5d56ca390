"""Values of 8 bits and matmuls of them; norms and softmax have theirs beside them.

A row is (C blocks, T values); each block has its scale, so that one block a row is a scale a token.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Size, Var
from tensorlang.ir.functions import select
from tensorlang.ir.types import DTYPES, DType, f32, i8, i32
from tensorlang.nn.activation import quick_silu
from tensorlang.nn.numbers import wide
from tensorlang.nn.rows import BLOCKS, in_scaled_bytes
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum
from tensorlang.schedule import Schedule

M, N, K, C, T = (Size(name) for name in "MNKCT")
i, j, c, t = (Var(name) for name in "ijct")


def quantize(x: DType, *, out_dtype: str) -> Pipeline:
    """q and scale of x itself."""
    X = Input("x", x, [M, C, T])
    outputs = in_scaled_bytes(BLOCKS, f32(X[i, c, t]), out_dtype)
    return Pipeline("quantize", inputs=[X], outputs=outputs)


def silu_mul(x: DType, gate: DType, *, out_dtype: str) -> Pipeline:
    """q and scale of silu(x) * gate."""
    X, G = Input("x", x, [M, C, T]), Input("gate", gate, [M, C, T])
    value = quick_silu(f32(X[i, c, t])) * f32(G[i, c, t])
    return Pipeline("silu_mul", inputs=[X, G], outputs=in_scaled_bytes(BLOCKS, value, out_dtype))


def scaled_mm(
    x: DType,
    weight: DType,
    scale_x: DType,
    scale_w: DType,
    bias: DType | None,
    *,
    out_dtype: str,
    rowwise: bool,
) -> Pipeline:
    """out[i, j] = sum(x[i, k] * weight[j, k]) * scale_x * scale_w + bias[j]

    x and weight are f8 or int8; their sum is in f32 or i32.

    Args: rowwise: a scale a row of x and of weight; else one for each.
    """
    w, k = (i32 if x is i8 else f32), RDom("k", K)
    X, W = Input("x", x, [M, K]), Input("weight", weight, [N, K])
    a = Input("scale_x", scale_x, [M] if rowwise else [1])
    b = Input("scale_w", scale_w, [N] if rowwise else [1])
    product, out = Func("product"), Func("out")
    product[i, j] = sum(w(X[i, k]) * w(W[j, k]), over=k)
    at = (i, j) if rowwise else (0, 0)
    value = f32(product[i, j]) * (f32(a[at[0]]) * f32(b[at[1]]))
    inputs = [X, W, a, b]
    if bias is not None:
        inputs.append(Input("bias", bias, [N]))
        value = value + f32(inputs[-1][j])
    out[i, j] = DTYPES[out_dtype](value)
    return Pipeline("scaled_mm", inputs=inputs, outputs={out: [M, N]})


def block_scaled_mm(
    x: DType, weight: DType, scale_x: DType, scale_w: DType, *, out_dtype: str, block: int
) -> Pipeline:
    """out[i, j] = sum(part[i, j, c] * scale_x[i, c] * scale_w[j // block, c], over=c)

    part[i, j, c] sums x[i, k] * weight[j, k] over block c of k.
    """
    w, r, k = (i32 if x is i8 else f32), RDom("r", C), RDom("k", block)
    X, W = Input("x", x, [M, C * block]), Input("weight", weight, [N, C * block])
    a = Input("scale_x", scale_x, [M, C])
    b = Input("scale_w", scale_w, [(N + (block - 1)) // block, C])
    part, total, out = Func("part"), Func("total"), Func("out")
    part[i, j, c] = sum(w(X[i, c * block + k]) * w(W[j, c * block + k]), over=k)
    total[i, j] = sum(f32(part[i, j, r]) * (f32(a[i, r]) * f32(b[j // block, r])), over=r)
    out[i, j] = DTYPES[out_dtype](total[i, j])
    return Pipeline("block_scaled_mm", inputs=[X, W, a, b], outputs={out: [M, N]})


def weight_only(
    x: DType, weight: DType, scale: DType, bias: DType | None, *, bits: int, group: int
) -> Pipeline:
    """out[i, j] = sum(part[i, j, c] * scale[j, c], over=c) + bias[j], the weights of `bits` bits

    part[i, j, c] sums x[i, k] * w[j, k] over group c of k.  A weight of 8 bits is an i8; two of 4
    bits are a u8, the even k in the low half, each 8 more than it stands for.  Those of a byte meet
    apart[i, h, k] = x[i, 2*k + h], half after half, so that a tile of bytes is read once.

    Args: group: how many weights of a row share a scale; 0: all.
    """
    w, out = wide(x), Func("out")
    count = C * group if group else K
    q = Var("q")
    X = Input("x", x, [M, count])
    W = Input("weight", weight, [N, count if bits > 4 else (count + 1) // 2])
    S = Input("scale", scale, [N, C if group else 1])

    apart = Func("apart")
    apart[i, t, q] = X[i, q * 2 + t]

    def terms(first: Operand, length: Operand) -> tuple[RDom, Expr]:
        """The products of x and weights from `first`, an even one, on; the weights exact."""
        if bits > 4:
            k = RDom("k", length)
            return k, w(X[i, first + k]) * w(x(W[j, first + k]))
        k = RDom("k", 2, (length + 1) // 2)
        half, at = k[0], k[1] + first // 2
        byte = i32(W[j, at])
        weight = select(half == 0, byte & 15, byte >> 4) - 8
        return k, w(apart[i, half, at]) * w(x(weight))

    inputs = [X, W, S]
    if group:
        r, part, total = RDom("r", C), Func("part"), Func("total")
        k, term = terms(c * group, group)
        part[i, j, c] = sum(term, over=k)
        total[i, j] = sum(part[i, j, r] * w(S[j, r]), over=r)
        result = total[i, j]
    else:
        product = Func("product")
        k, term = terms(0, K)
        product[i, j] = sum(term, over=k)
        result = product[i, j] * w(S[j, 0])
    if bias is not None:
        inputs.append(Input("bias", bias, [N]))
        result = result + w(inputs[-1][j])
    out[i, j] = x(result)
    return Pipeline("weight_only", inputs=inputs, outputs={out: [M, N]})


def tiles_of_groups(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """On Triton: out is tiles, each a sum over groups of K of a dot times its scales.

    blocks (io, jo) { total = 0; for groups r { part = dot in the group; total += part * scales } }

    None where a formula is as good: on C, and where no group has a scale of its own.
    """
    if target != "triton" or all(f.name != "total" for f in pipeline.algorithm.funcs):
        return None
    schedule = Schedule(pipeline)
    *halves, depth = (v for v in schedule.state.nests["part", 1].names() if v.startswith("k"))
    tile = _tile_for(sizes.get("M", _TILE), bytes_of_two=bool(halves))
    out = schedule["out"].split("i", "io", "ii", tile.rows).split("j", "jo", "ji", tile.columns)
    out.reorder("io", "jo", "ii", "ji").gpu_blocks("io", "jo").gpu_warps(tile.warps)
    total = schedule["total"].compute_at("out", "jo")
    merge = total.update(0).reorder("r", "i", "j").pipeline("r", tile.stages)
    part = schedule["part"].compute_at("total", "r").reorder("c", "i", "j")
    # Rows past the end are masked: a tile has its whole extent.
    part.bound_extent("i", tile.rows).bound_extent("j", tile.columns)
    step = part.update(0).reorder("c", *halves, "i", "j", depth)
    for half in halves:
        step.unroll(half)
    if halves:
        # Read by all tiles of columns: brought into the order in which they read it, for loads of
        # every other element are narrow, and none runs ahead.
        apart = schedule["apart"].compute_root().split("q", "qo", "qi", _LANES)
        apart.reorder("i", "qo", "t", "qi").gpu_blocks("i", "qo").unroll("t").vectorize("qi")
    tiles = ((stage, ("i", "j")) for stage in (total, merge, part))
    for stage, loops in ((out, ("ii", "ji")), (step, ("i", "j", depth)), *tiles):
        for loop in loops:
            stage.vectorize(loop)
    return schedule


@dataclass(frozen=True)
class Tile:
    """A tile of the result, and how a program runs it."""

    rows: int
    columns: int
    warps: int
    stages: int


def _tile_for(rows: int, *, bytes_of_two: bool) -> Tile:
    """Few rows take narrow tiles, so that every multiprocessor reads weights.

    Args: bytes_of_two: weights are widened in registers, of which a narrow tile has more left.
    """
    if rows >= _TILE:
        return Tile(_TILE, _TILE // 2 if bytes_of_two else _TILE, 4 if bytes_of_two else 8, 3)
    if not bytes_of_two:
        return Tile(16 if rows <= 16 else 64, _TILE, 4, 3)
    return Tile(16, 32, 4, 3) if rows <= 16 else Tile(64, 64, 4, 4)


# Rows and columns of a tile, as of a block of weights with one scale; elements that a program of a
# copy takes.
_TILE, _LANES = 128, 512
