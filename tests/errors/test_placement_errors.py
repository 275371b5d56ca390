"""The whole message of what can be wrong with where Funcs are computed and stored, and reduced."""

import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, exp, f32, max, sum
from tests.errors.mistakes import Mistakes
from tests.errors.pipelines import M, N, chain, i, j, matmul, scan, softmax

mistake = Mistakes()


# --- placement and storage ---------------------------------------------------------------------


@mistake
def placement_of_update():
    return Schedule(matmul)["C"].update().compute_root()


@mistake
def output_not_root():
    return Schedule(matmul)["D"].compute_at("C", i)


@mistake
def output_not_root__inlined():
    return Schedule(matmul)["D"].compute_inline()


@mistake
def inline_with_update():
    return Schedule(matmul)["C"].compute_inline()


@mistake
def consumer_outside():
    s = Schedule(chain)
    s["f"].compute_at("g", i)
    s["g"].compute_root()
    return chain.lower(s)


@mistake
def store_inside_compute():
    s = Schedule(matmul)
    s["C"].compute_at("D", i).store_at("D", j)
    return matmul.lower(s)


@mistake
def shared_storage():
    s = Schedule(chain)
    s["out"].parallel(i)
    s["f"].compute_at("out", i).store_root()
    return chain.lower(s)


@mistake
def output_storage():
    return Schedule(matmul)["D"].store_in("stack")


@mistake
def unknown_memory():
    return Schedule(matmul)["C"].store_in("attic")


@mistake
def fold_too_small():
    s = Schedule(chain)
    s["out"].split(i, "io", "ii", 8)
    s["f"].compute_at("out", "io").store_root().fold_storage(i, 4)
    s["g"].compute_inline()
    return chain.lower(s)


@mistake
def stages_apart():
    s = Schedule(chain)
    s["f"].compute_root()
    s["g"].compute_root()
    s["out"].compute_with("f", i)
    return chain.lower(s)


@mistake
def stages_depend():
    a, f, g = Input("A", f32, [N]), Func("f"), Func("g")
    f[i] = a[i] * 2
    g[i] = f[i] + 1
    p = Pipeline("pair", inputs=[a], outputs={g: [N], f: [N]})
    s = Schedule(p)
    s["g"].compute_with("f", i)
    return p.lower(s)


@mistake
def loops_differ():
    s = Schedule(matmul)
    s["C"].compute_root().vectorize(j)
    s["C"].update().reorder(i, j, "k").compute_with("C", j)
    return matmul.lower(s)


# --- reductions --------------------------------------------------------------------------------


@mistake
def unknown_merge():
    return Schedule(matmul)["C"].update().rfactor("k", "u", merge="tree")


@mistake
def not_a_reduction_loop():
    return Schedule(matmul)["C"].update().rfactor("i", "u")


@mistake
def loops_scheduled():
    s = Schedule(matmul)
    s["C"].update().split(i, "io", "ii", 8).rfactor("k", "u")


@mistake
def not_associative():
    return Schedule(scan)["f"].update().rfactor("r_0", "u")


@mistake
def not_a_reduction():
    return Schedule(softmax)["m"].rolling_update("out", i)


@mistake
def not_a_reduction__of_two_values():
    a, best, f, out = Input("A", f32, [M, N]), Func("best"), Func("f"), Func("out")
    k, n = RDom("k", N), RDom("n", N)
    best[i] = a[i, 0]
    best[i] = best[i] * 0.5 + a[i, k]
    f[i] = sum(a[i, n] - best[i], over=n)
    out[i] = f[i]
    p = Pipeline("decay", inputs=[a], outputs={out: [M]})
    s = Schedule(p)
    s["f"].compute_root()
    s["f"].update().reorder("n", "i")
    s["best"].rolling_update("f", "n")
    return p.lower(s)


@mistake
def loop_not_outermost():
    s = Schedule(softmax)
    s["l"].compute_root()
    s["m"].rolling_update("l", "n")
    return softmax.lower(s)


@mistake
def domain_scheduled():
    s = Schedule(softmax)
    s["l"].compute_root().update().reorder("n", i).rename("n", "q")
    s["m"].rolling_update("l", "q")
    return softmax.lower(s)


@mistake
def other_consumer():
    a, top, p, total = Input("A", f32, [M, N]), Func("m"), Func("p"), Func("l")
    k, n = RDom("k", N), RDom("n", N)
    top[i] = max(a[i, k], over=k)
    p[i, j] = exp(a[i, j] - top[i])
    total[i] = sum(p[i, n], over=n)
    pipeline = Pipeline("weights", inputs=[a], outputs={total: [M]})
    s = Schedule(pipeline)
    s["p"].compute_root()
    s["l"].update().reorder("n", i)
    s["m"].rolling_update("l", "n")
    return pipeline.lower(s)


@mistake
def no_repair():
    a, top, total = Input("A", f32, [M, N]), Func("m"), Func("l")
    k, n = RDom("k", N), RDom("n", N)
    top[i] = max(a[i, k], over=k)
    total[i] = sum((a[i, n] - top[i]) / (a[i, n] + top[i]), over=n)
    p = Pipeline("ratio", inputs=[a], outputs={total: [M]})
    s = Schedule(p)
    s["l"].update().reorder("n", i)
    s["m"].rolling_update("l", "n")
    return p.lower(s)


@mistake
def domains_differ():
    a, top, total = Input("A", f32, [M, N]), Func("m"), Func("l")
    k, n = RDom("k", N), RDom("n", N - 1)
    top[i] = max(a[i, k], over=k)
    total[i] = sum(exp(a[i, n] - top[i]), over=n)
    p = Pipeline("shorter", inputs=[a], outputs={total: [M]})
    s = Schedule(p)
    s["m"].rolling_update("l", "n")
    return p.lower(s)


@mistake
def not_a_consumer__to_roll_into():
    a, top, total = Input("A", f32, [M, N]), Func("m"), Func("l")
    k, n = RDom("k", N), RDom("n", N)
    top[i] = max(a[i, k], over=k)
    total[i] = sum(a[i, n], over=n)
    p = Pipeline("apart", inputs=[a], outputs={total: [M], top: [M]})
    s = Schedule(p)
    s["m"].rolling_update("l", "n")
    return p.lower(s)


@pytest.mark.parametrize("name", mistake)
def test_the_message_of_a_wrong_schedule(name, golden):
    mistake.check(name, golden)
