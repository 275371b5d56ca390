"""Flash attention is a schedule: five definitions, and one directive that fuses passes."""

import numpy as np

from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    Size,
    Var,
    exp,
    f32,
    max,
    sum,
)  # fmt: skip

M, N, D = Size("M"), Size("N"), Size("D")
Q, K, V = Input("Q", f32, [M, D]), Input("K", f32, [N, D]), Input("V", f32, [N, D])
i, j, d = Var("i"), Var("j"), Var("d")
e, a, b, c = RDom("e", D), RDom("a", N), RDom("b", N), RDom("c", N)

# What.  Three reductions over the keys: the largest score, the sum of weights, the weighted values.
S, m, p, total, O = Func("S"), Func("m"), Func("p"), Func("total"), Func("O")
S[i, j] = sum(Q[i, e] * K[j, e], over=e) * 0.125
m[i] = max(S[i, a], over=a)
p[i, j] = exp(S[i, j] - m[i])
total[i] = sum(p[i, b], over=b)
O[i, d] = sum(p[i, c] * V[c, d], over=c) / total[i]
attention = Pipeline("attention", inputs=[Q, K, V], outputs={O: [M, D]})

# How.  The weights need the final m, so that plain fusion would be wrong.  rolling_update fuses the
# three all the same: for each slice of 32 keys it repairs what was summed for the change of m.
s = Schedule(attention)
s[O].split(i, "io", "ii", 16).parallel("io")
s["O_sum"].compute_at(O, "io").update(0).split(c, "co", "ci", 32).reorder("co", i, d, "ci")
s[m].rolling_update("O_sum", "co")
s[S].compute_at("O_sum", "co")

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((n, 24)).astype(np.float32) for n in (50, 70, 70))
    scores = (q.astype(np.float64) @ k.T) * 0.125
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights @ v / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(attention.compile(s, "c")(q, k, v), expected, rtol=1e-5, atol=1e-6)
    print(s.loop_nest())
