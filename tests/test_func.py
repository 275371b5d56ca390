"""Func and Input, apart from what their definitions compute."""

from tensorlang import Func, Input, Pipeline, Var, f32, i32

i = Var("i")


def test_funcs_of_one_name_are_apart_though_both_are_alive() -> None:
    reads = []
    for dtype in (f32, i32):
        a, f, g = Input("a", dtype, [8]), Func("f"), Func("g")
        f[i] = a[i] + 1
        reads.append(f[i])
        g[i] = f[i] * 2
        pipeline = Pipeline("p", inputs=[a], outputs={g: [8]})
        assert pipeline.algorithm.func("f").dtypes == (dtype,)
    assert reads[0] is not reads[1]
