"""Pipelines about which schedules go wrong."""

from tensorlang import Func, Input, Pipeline, RDom, Size, Var, exp, f32, max, sum

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")


def _matmul():
    a, b = Input("A", f32, [M, K]), Input("B", f32, [K, N])
    k, c, d = RDom("k", K), Func("C"), Func("D")
    c[i, j] = sum(a[i, k] * b[k, j], over=k)
    d[i, j] = c[i, j] + 1
    return Pipeline("matmul", inputs=[a, b], outputs={d: [M, N]})


def _chain():
    a, f, g, out = Input("A", f32, [N + 4]), Func("f"), Func("g"), Func("out")
    f[i] = a[i] * 2
    g[i] = f[i] + f[i + 1]
    out[i] = g[i] + f[i]
    return Pipeline("chain", inputs=[a], outputs={out: [N]})


def _scan():
    a, f, r = Input("A", f32, [M, N]), Func("f"), RDom("r", (1, N - 1), (0, 4))
    f[i, j] = a[i, j]
    f[i, r[0]] = f[i, r[0] - 1] * 0.5 + a[i, r[0]]
    return Pipeline("scan", inputs=[a], outputs={f: [M, N]})


def _softmax():
    a, top, total, out = Input("A", f32, [M, N]), Func("m"), Func("l"), Func("out")
    k, n = RDom("k", N), RDom("n", N)
    top[i] = max(a[i, k], over=k)
    total[i] = sum(exp(a[i, n] - top[i]), over=n)
    out[i, j] = exp(a[i, j] - top[i]) / total[i]
    return Pipeline("softmax", inputs=[a], outputs={out: [M, N]})


matmul, chain, scan, softmax = _matmul(), _chain(), _scan(), _softmax()
