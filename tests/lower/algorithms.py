"""Small pipelines whose loop IR fits on a screen."""

from tensorlang import Func, Input, Pipeline, RDom, Size, Var, f32, i32, sum

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")


def two_stages() -> Pipeline:
    """g reads f at two points."""
    a, f, g = Input("A", i32, [N + 1]), Func("f"), Func("g")
    f[i] = a[i] * 2
    g[i] = f[i] + f[i + 1]
    return Pipeline("two_stages", inputs=[a], outputs={g: [N]})


def rows() -> Pipeline:
    """A producer in two dimensions, read at one row and two columns."""
    a, f, g = Input("A", f32, [M, N + 1]), Func("f"), Func("g")
    f[i, j] = a[i, j] * 2
    g[i, j] = f[i, j] + f[i, j + 1]
    return Pipeline("rows", inputs=[a], outputs={g: [M, N]})


def matmul() -> Pipeline:
    a, b, k, c = Input("A", f32, [M, K]), Input("B", f32, [K, N]), RDom("k", K), Func("C")
    c[i, j] = sum(a[i, k] * b[k, j], over=k)
    return Pipeline("matmul", inputs=[a, b], outputs={c: [M, N]})
