"""tensorlang's side of the GPU benchmarks: what each case computes, then how.

Every function returns a pipeline and a schedule for it, written by hand with the public directives
and no search.  Numbers in a schedule are tile sizes, warps and stages; the reasons for them are in
the docstrings.  `cases/` says which of them runs at which size.
"""

from dataclasses import dataclass
from typing import Any

import tensorlang as tl
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f32

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")


@dataclass(frozen=True)
class Tile:
    """One output tile a program: its rows, columns, the depth of a step, and who works on it."""

    rows: int
    columns: int
    depth: int
    warps: int = 4
    stages: int = 3
    group: int = 8
    """Rows of tiles that are walked together, so that their operands meet in the L2 cache."""

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}x{self.depth} w{self.warps} s{self.stages}"


# ------------------------------------------------------------------------------------------ matmul


def matmul(dtype: Any, *, transposed: bool) -> Pipeline:
    """D = A B, or A B^T where the second operand is a weight of shape [N, K]."""
    k = RDom("k", K)
    A = Input("A", dtype, [M, K])
    B = Input("B", dtype, [N, K] if transposed else [K, N])
    C, D = Func("C"), Func("D")
    C[i, j] = tl.sum(f32(A[i, k]) * f32(B[j, k] if transposed else B[k, j]), over=k)
    D[i, j] = dtype(C[i, j])
    return Pipeline("matmul", inputs=[A, B], outputs={D: [M, N]})


def linear(dtype: Any, activation: str) -> Pipeline:
    """D = activation(A W^T + bias), all in f32 until the last cast."""
    k = RDom("k", K)
    A, W, bias = Input("A", dtype, [M, K]), Input("W", dtype, [N, K]), Input("bias", dtype, [N])
    C, D = Func("C"), Func("D")
    C[i, j] = tl.sum(f32(A[i, k]) * f32(W[j, k]), over=k)
    D[i, j] = dtype(ACTIVATIONS[activation](C[i, j] + f32(bias[j])))
    return Pipeline(f"linear_{activation}", inputs=[A, W, bias], outputs={D: [M, N]})


def relu(x: Any) -> Any:
    return tl.maximum(x, 0.0)


def gelu_tanh(x: Any) -> Any:
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), with the tanh of the hardware."""
    return 0.5 * x * (1.0 + tl.approx.tanh(x * (0.7978845608028654 + 0.035677408136300125 * x * x)))


def gelu_erf(x: Any) -> Any:
    """x/2 (1 + erf(x/sqrt(2))), with a cheap erf (absolute error below 3e-7)."""
    return 0.5 * x * (1.0 + tl.approx.erf(x * 0.7071067811865476))


ACTIVATIONS = {"relu": relu, "gelu_tanh": gelu_tanh, "gelu_erf": gelu_erf}


def one_tile_a_program(pipeline: Pipeline, tile: Tile, *, descriptors: bool = False) -> Schedule:
    """Each program makes one tile of D; tiles are walked in groups of rows (the L2 swizzle)."""
    s = Schedule(pipeline)
    _tiles_in_groups(s, tile).gpu_blocks("t").gpu_warps(tile.warps)
    s["D"].vectorize("ii").vectorize("ji")
    _accumulate(s, "t", tile)
    if descriptors:
        _through_descriptors(s)
    return s


def persistent(pipeline: Pipeline, tile: Tile, *, sms: int, halves: bool = True) -> Schedule:
    """One program a multiprocessor, each walking every sms-th tile, through tensor descriptors.

    The epilogue goes in two halves of the columns: half the registers, and the first half is on its
    way while the second is converted.
    """
    s = Schedule(pipeline)
    _tiles_in_groups(s, tile).split("t", "turn", "sm", sms).reorder("sm", "turn")
    s["D"].gpu_blocks("sm").gpu_warps(tile.warps)
    if halves:
        s["D"].split("ji", "half", "jh", tile.columns // 2).reorder("half", "ii", "jh")
        s["D"].unroll("half").vectorize("ii").vectorize("jh")
    else:
        s["D"].vectorize("ii").vectorize("ji")
    _accumulate(s, "turn", tile)
    _through_descriptors(s)
    return s


def _tiles_in_groups(s: Schedule, tile: Tile) -> Any:
    """for t: the tiles of D, `group` rows of tiles at a time, column by column inside a group."""
    stage = s["D"].tile(i, j, "io", "jo", "ii", "ji", tile.rows, tile.columns)
    stage.split("io", "g", "ir", tile.group, tail="ragged").reorder("g", "jo", "ir")
    return stage.fuse("jo", "ir", "within").fuse("g", "within", "t")


def _accumulate(s: Schedule, at: str, tile: Tile) -> None:
    """C is one tile in registers, summed over steps of K whose loads run ahead."""
    s["C"].compute_at("D", at).vectorize(i).vectorize(j)
    update = s["C"].update(0).split("k", "ko", "ki", tile.depth).reorder("ko", i, j, "ki")
    update.vectorize(i).vectorize(j).vectorize("ki").pipeline("ko", tile.stages)


def _through_descriptors(s: Schedule) -> None:
    for operand in s.algorithm.inputs:
        if len(operand.shape) == 2:
            s[operand.name].load_with("descriptor")
    s["D"].store_with("descriptor")


# -------------------------------------------------------------------------------- decode: few rows


def gemv(dtype: Any, depth: int) -> Pipeline:
    """y = W x.  The depth is a number, so that the loop over it can be unrolled."""
    k = RDom("k", depth)
    x, W = Input("x", dtype, [depth]), Input("W", dtype, [N, depth])
    acc, y = Func("acc"), Func("y")
    acc[i] = tl.sum(f32(W[i, k]) * f32(x[k]), over=k)
    y[i] = dtype(acc[i])
    return Pipeline("gemv", inputs=[x, W], outputs={y: [N]})


def gemv_unrolled(pipeline: Pipeline, *, rows: int, step: int, warps: int = 4) -> Schedule:
    """A few rows of W a program; `step` partial sums a row until the end; every load in flight."""
    s = Schedule(pipeline)
    s["y"].split(i, "io", "ii", rows).gpu_blocks("io").gpu_warps(warps).vectorize("ii")
    s["acc"].update(0).split("k", "ko", "ki", step)
    partial = s["acc"].update(0).rfactor("ki", "u")
    s["acc"].compute_at("y", "io").vectorize(i)
    s["acc"].update(0).vectorize(i).vectorize("ki")
    s[partial].compute_at("y", "io").reorder(i, "u").vectorize(i).vectorize("u")
    s[partial].update(0).reorder("ko", i, "u").unroll("ko").vectorize(i).vectorize("u")
    s["W"].cache("evict_first")
    s["x"].cache("evict_last")
    return s


def weights_first(pipeline: Pipeline, tile: Tile, *, parts: int = 1, depth: int = 0) -> Schedule:
    """A matmul of few rows: the weights are the operand with 64 rows, K is split over programs.

    Args:
        pipeline: `matmul(transposed=True)`.
        tile: `columns` of weights by `rows` of tokens (all of them).
        parts: how many programs share one tile; the last to arrive adds their sums.
        depth: K, which `parts` divides.
    """
    s = Schedule(pipeline)
    s["D"].tile(i, j, "io", "jo", "ii", "ji", tile.rows, tile.columns)
    s["D"].reorder("jo", "io", "ji", "ii").fuse("jo", "io", "t").gpu_blocks("t")
    s["D"].gpu_warps(tile.warps).vectorize("ji").vectorize("ii")
    s["C"].compute_at("D", "t").reorder(j, i).vectorize(j).vectorize(i)
    s["A"].load_with("descriptor")
    s["B"].load_with("descriptor")
    if parts == 1:
        update = s["C"].update(0).split("k", "ko", "ki", tile.depth).reorder("ko", j, i, "ki")
        update.vectorize(j).vectorize(i).vectorize("ki").pipeline("ko", tile.stages)
        return s
    s["C"].update(0).split("k", "part", "kp", depth // parts)
    sums = s["C"].update(0).rfactor("part", "u", merge="last")
    s["C"].update(0).reorder("part", j, i).vectorize(j).vectorize(i)
    # The partial sums in memory are a copy of the tile that a program holds in registers.
    stored = s[sums].in_("C")
    s[stored].tile(i, j, "io", "jo", "ii", "ji", tile.rows, tile.columns)
    s[stored].reorder("jo", "io", "u", "ji", "ii").fuse("jo", "io", "t").gpu_blocks("t", "u")
    s[stored].compute_root().gpu_warps(tile.warps).vectorize("ji").vectorize("ii")
    s[sums].compute_at(stored, "u").reorder(j, i, "u").vectorize(j).vectorize(i)
    update = s[sums].update(0).split("kp", "ko", "ki", tile.depth)
    update.reorder("u", "ko", j, i, "ki").vectorize(j).vectorize(i).vectorize("ki")
    update.pipeline("ko", tile.stages)
    return s


def padded(pipeline: Pipeline, tile: Tile, *, sms: int) -> Schedule:
    """A matmul whose rows are no multiple of 16 bytes: operands are copied to rows that are.

    A row of 1023 elements cannot be read in wide loads nor through a descriptor; the copies cost
    two passes over A and B, the tiles then run as if the sizes were even.  D is stored under a mask
    while the operands of the program's next tile arrive.
    """
    s = Schedule(pipeline)
    _tiles_in_groups(s, tile).split("t", "turn", "sm", sms).reorder("sm", "turn")
    s["D"].gpu_blocks("sm").gpu_warps(tile.warps).vectorize("ii").vectorize("ji")
    for operand, shape in (("A", (M, K)), ("B", (K, N))):
        copy = s[operand].in_("C")
        s[copy].compute_root().split("_1", "to", "ti", 1024).gpu_blocks("_0", "to").vectorize("ti")
        s[copy].bound("_0", 0, shape[0]).bound("_1", 0, shape[1])
        s[copy].align_storage("_1", 64).load_with("descriptor")
    _accumulate(s, "turn", tile)
    return s


# -------------------------------------------------------------------------------------------- rows


def softmax(dtype: Any) -> Pipeline:
    """y = exp(x - max x) / sum of it, along each row."""
    k = RDom("k", N)
    x = Input("x", dtype, [M, N])
    top, e, total, y = Func("top"), Func("e"), Func("total"), Func("y")
    top[i] = tl.max(f32(x[i, k]), over=k)
    e[i, j] = tl.exp2((f32(x[i, j]) - top[i]) * 1.4426950408889634)
    total[i] = tl.sum(e[i, k], over=k)
    y[i, j] = dtype(e[i, j] * (1.0 / total[i]))
    return Pipeline("softmax", inputs=[x], outputs={y: [M, N]})


def layer_norm(dtype: Any, eps: float = 1e-5) -> Pipeline:
    """y = (x - mean) / sqrt(variance + eps) * w + b, along each row."""
    k = RDom("k", N)
    x, w, b = Input("x", dtype, [M, N]), Input("w", dtype, [N]), Input("b", dtype, [N])
    total, centred, squares, y = Func("total"), Func("centred"), Func("squares"), Func("y")
    total[i] = tl.sum(f32(x[i, k]), over=k)
    centred[i, j] = f32(x[i, j]) - total[i] / f32(N)
    squares[i] = tl.sum(centred[i, k] * centred[i, k], over=k)
    scale = tl.rsqrt(squares[i] / f32(N) + eps)
    y[i, j] = dtype(centred[i, j] * scale * f32(w[j]) + f32(b[j]))
    return Pipeline("layer_norm", inputs=[x, w, b], outputs={y: [M, N]})


def rms_norm(dtype: Any, eps: float = 1e-5) -> Pipeline:
    """y = x / sqrt(mean of x^2 + eps) * w, along each row."""
    k = RDom("k", N)
    x, w = Input("x", dtype, [M, N]), Input("w", dtype, [N])
    squares, y = Func("squares"), Func("y")
    squares[i] = tl.sum(f32(x[i, k]) * f32(x[i, k]), over=k)
    y[i, j] = dtype(f32(x[i, j]) * tl.rsqrt(squares[i] / f32(N) + eps) * f32(w[j]))
    return Pipeline("rms_norm", inputs=[x, w], outputs={y: [M, N]})


def rms_norm_residual(dtype: Any, eps: float = 1e-5) -> Pipeline:
    """h = x + residual; (h / sqrt(mean of h^2 + eps) * w, h) is one Func of two values."""
    k = RDom("k", N)
    x, residual = Input("x", dtype, [M, N]), Input("residual", dtype, [M, N])
    w = Input("w", dtype, [N])
    h, squares, y = Func("h"), Func("squares"), Func("y")
    h[i, j] = f32(x[i, j]) + f32(residual[i, j])
    squares[i] = tl.sum(h[i, k] * h[i, k], over=k)
    normed = h[i, j] * tl.rsqrt(squares[i] / f32(N) + eps) * f32(w[j])
    y[i, j] = (dtype(normed), dtype(h[i, j]))
    return Pipeline("rms_norm_residual", inputs=[x, residual, w], outputs={y: [M, N]})


def dropout_add_layer_norm(dtype: Any, rate: float = 0.1, eps: float = 1e-5) -> Pipeline:
    """layer_norm(dropout(x) + residual): each element is dropped where its random number is low."""
    k = RDom("k", N)
    x, residual = Input("x", dtype, [M, N]), Input("residual", dtype, [M, N])
    w, b = Input("w", dtype, [N]), Input("b", dtype, [N])
    seed = tl.Param("seed", tl.i64)
    h, total, centred = Func("h"), Func("total"), Func("centred")
    squares, y = Func("squares"), Func("y")
    kept = tl.random_uniform(seed, i * N + j) >= rate
    h[i, j] = tl.select(kept, f32(x[i, j]) * (1.0 / (1.0 - rate)), 0.0) + f32(residual[i, j])
    total[i] = tl.sum(h[i, k], over=k)
    centred[i, j] = h[i, j] - total[i] / f32(N)
    squares[i] = tl.sum(centred[i, k] * centred[i, k], over=k)
    scale = tl.rsqrt(squares[i] / f32(N) + eps)
    y[i, j] = dtype(centred[i, j] * scale * f32(w[j]) + f32(b[j]))
    return Pipeline("dropout_add_layer_norm", inputs=[x, residual, w, b], outputs={y: [M, N]})


def row_a_program(pipeline: Pipeline, warps: int, registers: int = 0) -> Schedule:
    """Each program holds one whole row as a tile: read once, reduced in registers, written once.

    Args: registers: the most that a thread may use, so that two rows are in flight; 0 for no limit.
    """
    s = Schedule(pipeline)
    for func in pipeline.algorithm.funcs:
        if func.name == "y":
            s["y"].gpu_blocks(i).gpu_warps(warps).vectorize(j)
            if registers:
                s["y"].gpu_registers(registers)
        elif len(func.definitions) == 2:
            s[func.name].compute_at("y", i).update(0).vectorize("k")
    return s


def row_in_passes(pipeline: Pipeline, *, chunk: int, warps: int, programs: int) -> Schedule:
    """Softmax of rows that registers cannot hold: two passes over a row that stays in the L2.

    The first takes the max and the sum at once, `chunk` elements at a time, mending the sum when
    the max grows.  Few enough programs run that the rows in flight fit the cache: the second pass
    finds its row there.
    """
    s = Schedule(pipeline)
    s["y"].split(i, "turn", "program", programs).split(j, "jo", "ji", chunk)
    s["y"].reorder("program", "turn", "jo", "ji").gpu_blocks("program").gpu_warps(warps)
    s["y"].vectorize("ji")
    s["top"].compute_at("y", "turn").update(0).vectorize("k")
    total = s["total"].compute_at("y", "turn").update(0).split("k", "ko", "ki", chunk)
    total.reorder("ko", i, "ki").vectorize("ki")
    s["top"].rolling_update("total", "ko")
    s["x"].cache("evict_last")
    s["y"].cache("evict_first")
    return s


# ------------------------------------------------------------------------------------------- others


def rope(dtype: Any) -> Pipeline:
    """Rotate the halves of each head: x is [T, H, 2, D/2], cos and sin are [T, D/2]."""
    T, H, D = Size("T"), Size("H"), Size("D")
    t, h, p, d = Var("t"), Var("h"), Var("p"), Var("d")
    x = Input("x", dtype, [T, H, 2, D])
    cos, sin = Input("cos", dtype, [T, D]), Input("sin", dtype, [T, D])
    y = Func("y")
    a, b, c, s = f32(x[t, h, 0, d]), f32(x[t, h, 1, d]), f32(cos[t, d]), f32(sin[t, d])
    y[t, h, p, d] = dtype(tl.select(p == 0, a * c - b * s, b * c + a * s))
    return Pipeline("rope", inputs=[x, cos, sin], outputs={y: [T, H, 2, D]})


def rope_heads(pipeline: Pipeline, *, heads: int, warps: int = 4) -> Schedule:
    """A program takes some heads of one token and writes both halves from one read."""
    s = Schedule(pipeline)
    s["y"].split("h", "ho", "hi", heads).reorder("t", "ho", "p", "hi", "d").unroll("p")
    s["y"].gpu_blocks("t", "ho").gpu_warps(warps).vectorize("hi").vectorize("d")
    return s


def add(dtype: Any) -> Pipeline:
    """c = a + b: next to no work, so that a call costs what a launch costs."""
    a, b, c = Input("a", dtype, [N]), Input("b", dtype, [N]), Func("c")
    c[i] = a[i] + b[i]
    return Pipeline("add", inputs=[a, b], outputs={c: [N]})


def blocks_of(pipeline: Pipeline, size: int, warps: int = 4) -> Schedule:
    """A pointwise Func of one dimension, `size` elements a program."""
    s = Schedule(pipeline)
    s["c"].split(i, "io", "ii", size).gpu_blocks("io").gpu_warps(warps).vectorize("ii")
    return s
