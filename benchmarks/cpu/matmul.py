"""C = A B in f32: packed panels of B, and a tile of C in registers over all of K."""

from typing import Any

import numpy as np

from benchmarks.case import Case, Place
from benchmarks.cpu import contenders
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f32
from tensorlang import sum as total

ROWS, COLUMNS, LANES = 4, 24, 8
"""Of the register tile: 12 vectors of C, 3 of B and one element of A fit 16 registers."""


def cases(place: Place) -> list[Case]:
    return [_case(n) for n in ((37,) if place.dry else (512, 1024))]


def _case(n: int) -> Case:
    return Case(
        name=f"matmul {n} f32",
        inputs=lambda at: (at.array(n, n), at.array(n, n)),
        reference=lambda a, b: a.astype(np.float64) @ b.astype(np.float64),
        contenders=(
            contenders.ours(tensorlang),
            contenders.ours_by_formula(tensorlang),
            contenders.numpy(np.matmul),
            contenders.torch(lambda a, b: a @ b),
            *contenders.all_halide(halide, lambda inputs: np.empty_like(inputs[0])),
        ),
        modes=("wall",),
        tolerance=1e-5,
        flops=2.0 * n**3,
        quick=n == 512,
    )


def tensorlang() -> tuple[Pipeline, Schedule]:
    M, N, K = Size("M"), Size("N"), Size("K")
    i, j, k = Var("i"), Var("j"), RDom("k", K)
    A, B = Input("A", f32, [M, K]), Input("B", f32, [K, N])
    C, D = Func("C"), Func("D")
    C[i, j] = total(A[i, k] * B[k, j], over=k)
    D[i, j] = C[i, j]
    pipeline = Pipeline("matmul", inputs=[A, B], outputs={D: [M, N]})

    s = Schedule(pipeline)
    s[D].tile(i, j, "io", "jo", "ii", "ji", ROWS, COLUMNS, tail="shift_inwards").reorder(
        "jo", "io", "ii", "ji"
    )
    s[D].parallel("jo").unroll("ii").vectorize("ji")
    s[C].compute_at(D, "io").unroll(i).vectorize(j)
    s[C].update(0).reorder("k", i, j).unroll(i).vectorize(j)
    packed = s[B].in_(C)
    s[packed].compute_at(D, "jo").vectorize("_1")
    return pipeline, s


def halide(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    A, B = hl.ImageParam(hl.Float(32), 2, "A"), hl.ImageParam(hl.Float(32), 2, "B")
    i, j, io, jo, ii, ji = (hl.Var(n) for n in ("i", "j", "io", "jo", "ii", "ji"))
    k = hl.RDom([(0, A.width())], "k")
    C, D = hl.Func("C"), hl.Func("D")
    C[j, i] = 0.0
    C[j, i] += A[k, i] * B[j, k]
    D[j, i] = C[j, i]
    if by_hand:
        D.tile(j, i, jo, io, ji, ii, COLUMNS, ROWS).reorder(ji, ii, io, jo)
        D.parallel(jo).unroll(ii).vectorize(ji, LANES).unroll(ji)
        C.compute_at(D, io).unroll(i).vectorize(j, LANES).unroll(j)
        C.update(0).reorder(j, i, k).unroll(i).vectorize(j, LANES).unroll(j)
        packed = B.in_()
        packed.compute_at(D, jo).vectorize(packed.args()[0], LANES).unroll(packed.args()[0])
    return D, [A, B]
