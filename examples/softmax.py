"""The softmax of each row: two reductions inside larger expressions, one row at a time."""

import numpy as np

from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, exp, f32, max, sum

M, N = Size("M"), Size("N")
x = Input("x", f32, [M, N])
i, j, k, n = Var("i"), Var("j"), RDom("k", N), RDom("n", N)

# What.  Subtracting the maximum keeps exp in range; it cancels in the quotient.
top, e, total, softmax = Func("top"), Func("e"), Func("total"), Func("softmax")
top[i] = max(x[i, k], over=k)
e[i, j] = exp(x[i, j] - top[i])
total[i] = sum(e[i, n], over=n)
softmax[i, j] = e[i, j] / total[i]
rows = Pipeline("rows", inputs=[x], outputs={softmax: [M, N]})

# How: a block takes a row.  On a GPU the row is one tile; on a CPU, vectors.
row_a_block = Schedule(rows)
row_a_block[softmax].gpu_blocks(i).vectorize(j)
row_a_block[top].compute_at(softmax, i).update(0).vectorize(k)
row_a_block[total].compute_at(softmax, i).update(0).vectorize(n)

if __name__ == "__main__":
    values = np.random.default_rng(0).standard_normal((5, 1000)).astype(np.float32)
    result = rows.compile(row_a_block, target="c")(values)
    shifted = np.exp(values - values.max(axis=1, keepdims=True))
    assert np.allclose(result, shifted / shifted.sum(axis=1, keepdims=True), rtol=1e-5)
    print(row_a_block.loop_nest())
