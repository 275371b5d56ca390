"""The whole message of everything that can be wrong with a schedule."""

import pytest

from tensorlang import (
    Func,
    Input,
    Param,
    Pipeline,
    RDom,
    Schedule,
    Size,
    Var,
    exp,
    f32,
    i32,
    max,
    sum,
)
from tests.errors.mistakes import Mistakes

mistake = Mistakes()

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


# --- names -------------------------------------------------------------------------------------


@mistake
def unknown_func():
    return Schedule(matmul)["E"]


@mistake
def unknown_func__to_compute_at():
    return Schedule(matmul)["C"].compute_at("E", "i")


@mistake
def unknown_func__to_compute_with():
    return Schedule(matmul)["C"].compute_with("C", "i")


@mistake
def unknown_func__to_roll_into():
    return Schedule(softmax)["m"].rolling_update("m", "k")


@mistake
def unknown_update():
    return Schedule(matmul)["C"].update(1)


@mistake
def unknown_loop():
    s = Schedule(matmul)
    s["D"].split(i, "io", "ii", 8).vectorize(i)


@mistake
def unknown_loop__to_compute_at():
    return Schedule(matmul)["C"].compute_at("D", "k")


@mistake
def unknown_dim():
    return Schedule(chain)["f"].fold_storage("x", 4)


@mistake
def not_a_name():
    return Schedule(matmul)["D"].vectorize(3)


@mistake
def input_has_no_loops():
    return Schedule(matmul)["A"].vectorize("i")


@mistake
def input_has_no_loops__to_clone():
    return Schedule(matmul)["A"].clone_in("C")


@mistake
def loop_name_taken():
    return Schedule(matmul)["D"].split(i, "io", "j", 8)


@mistake
def func_name_taken():
    a, f, copy, g = Input("A", f32, [N]), Func("f"), Func("f_in_g"), Func("g")
    f[i] = a[i] * 2
    copy[i] = f[i] + 1
    g[i] = f[i] + copy[i]
    p = Pipeline("copies", inputs=[a], outputs={g: [N]})
    return Schedule(p)["f"].in_("g")


@mistake
def func_name_taken__by_rfactor():
    s = Schedule(matmul)
    s["C"].update().rfactor("k", "u")
    s["C"].update().rfactor("k", "u")


@mistake
def not_a_consumer():
    return Schedule(chain)["g"].in_("f")


@mistake
def not_a_pipeline():
    return Schedule("matmul")


@mistake
def not_a_schedule():
    return matmul.compile("c")


@mistake
def unknown_update__by_name():
    return Schedule(matmul)["C"].update("k")


@mistake
def other_pipeline():
    return matmul.lower(Schedule(chain))


@mistake
def algorithm_changed():
    s = Schedule(matmul)
    s["D"].split("i", "io", "ii", 8).vectorize("ii")
    s["C"].compute_at("D", "io")
    s["C"].update().vectorize("j")
    return s.on(chain)


# --- loops -------------------------------------------------------------------------------------


@mistake
def factor_not_positive():
    return Schedule(matmul)["D"].split(i, "io", "ii", 0)


@mistake
def bad_arguments():
    return Schedule(matmul)["D"].split(i, "io", "ii", 8.0)


@mistake
def bad_arguments__for_a_word():
    return Schedule(matmul)["A"].cache(3)


@mistake
def factor_not_positive__of_a_ring():
    return Schedule(chain)["f"].fold_storage("i", -1)


@mistake
def unknown_tail():
    return Schedule(matmul)["D"].split(i, "io", "ii", 8, tail="clip")


@mistake
def tail_not_legal():
    return Schedule(matmul)["C"].update().split("k", "ko", "ki", 8, tail="shift_inwards")


@mistake
def tail_not_legal__past_the_domain():
    return Schedule(matmul)["C"].update().split("k", "ko", "ki", 8, tail="round_up")


@mistake
def not_adjacent():
    return Schedule(matmul)["C"].update().fuse(i, "k", "t")


@mistake
def two_ragged_loops():
    s = Schedule(matmul)
    s["D"].split(i, "io", "ii", 8, tail="ragged").split(j, "jo", "ji", 8, tail="ragged")
    s["D"].reorder("io", "jo", "ii", "ji").fuse("ii", "ji", "t")


@mistake
def ragged_outside():
    s = Schedule(matmul)
    s["D"].split(i, "io", "ii", 8, tail="ragged").reorder("ii", "io")


@mistake
def ragged_inside():
    s = Schedule(matmul)
    s["D"].split(i, "io", "ii", 8, tail="ragged").split("io", "ioo", "ioi", 2)
    s["D"].fuse("ioi", "ii", "t")


@mistake
def loop_named_twice():
    return Schedule(matmul)["D"].reorder(i, i)


@mistake
def loop_in_use():
    s = Schedule(matmul)
    s["C"].compute_at("D", i)
    s["D"].split(i, "io", "ii", 8)


@mistake
def order_matters():
    return Schedule(scan)["f"].update().reorder("r_1", "r_0")


@mistake
def extent_not_constant():
    s = Schedule(matmul)
    s["D"].unroll(j)
    return matmul.lower(s)


@mistake
def too_many_copies():
    s = Schedule(matmul)
    s["D"].split(j, "jo", "ji", 2**20).unroll("ji")
    return matmul.lower(s)


@mistake
def carried_dependence():
    return Schedule(scan)["f"].update().parallel("r_0")


@mistake
def carried_dependence__of_lanes():
    return Schedule(scan)["f"].update().vectorize("r_0")


@mistake
def carried_dependence__of_a_sum():
    return Schedule(matmul)["C"].update().parallel("k")


@mistake
def lanes_not_constant():
    s = Schedule(matmul)
    s["D"].split(j, "jo", "ji", 8, tail="ragged").vectorize("ji")
    return matmul.lower(s)


@mistake
def gpu_blocks_apart():
    s = Schedule(matmul)
    s["D"].split(i, "io", "ii", 8).vectorize("ii").reorder("ii", "io", j).gpu_blocks(j)
    return matmul.lower(s)


@mistake
def nested_gpu_blocks():
    s = Schedule(matmul)
    s["D"].gpu_blocks(i)
    s["C"].compute_at("D", i).gpu_blocks(j)
    return matmul.lower(s)


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


# --- hardware ----------------------------------------------------------------------------------


@mistake
def not_a_scalar__to_specialize():
    return Schedule(chain)["out"].specialize(M % 8 == 0)


@mistake
def condition_not_simple():
    return Schedule(chain)["out"].specialize(exp(f32(N)) < 2)


@mistake
def no_variants():
    return Schedule(chain)["out"].specialize_fail("nothing to fall back to")


@mistake
def nothing_left():
    s = Schedule(chain)
    s["out"].specialize(N % 8 == 0)
    s["out"].specialize_fail("eights only")
    return s["out"].specialize(N == 3)


@mistake
def not_on_a_variant():
    return Schedule(chain)["g"].specialize(N % 8 == 0).compute_at("out", i)


@mistake
def variants_not_shared():
    s = Schedule(matmul)
    s["C"].update().specialize(N % 8 == 0)
    s["C"].update().compute_with("C", i)
    return matmul.lower(s)


@mistake
def consumer_outside__of_a_variant():
    s = Schedule(chain)
    s["out"].split(i, "io", "ii", 8)
    s["out"].specialize(N % 8 == 0).fuse("io", "ii", "t")
    s["g"].compute_at("out", "io")
    return chain.lower(s)


@mistake
def loops_scheduled__in_variants():
    s = Schedule(matmul)
    s["C"].update().specialize(K % 8 == 0)
    s["C"].update().rfactor("k", "u")


@mistake
def not_commutative():
    a, r, f = Input("a", i32, [N]), RDom("r", N, 2), Func("f")
    f[()] = (i32(1), i32(0))
    f[()] = (f[()][0] * 2, f[()][1] * 2 + a[r[0]])
    return Schedule(Pipeline("p", inputs=[a], outputs={f: []}))["f"].update().rfactor("r_1", "u")


@mistake
def not_associative__to_make_atomic():
    return Schedule(scan)["f"].update().atomic()


@mistake
def unknown_func__to_prefetch():
    return Schedule(matmul)["C"].update().prefetch("E", "k")


@mistake
def prefetch_not_serial():
    return Schedule(matmul)["D"].vectorize(j).prefetch("A", j)


@mistake
def unknown_dim__to_bound():
    return Schedule(chain)["f"].bound("x", 0, 4)


@mistake
def not_a_scalar():
    return Schedule(chain)["f"].bound(i, 0, M + i)


@mistake
def bound_not_integer():
    return Schedule(chain)["f"].bound_extent(i, 2.5)


@mistake
def negative_bound():
    return Schedule(chain)["f"].bound(i, 0, -1)


@mistake
def extent_not_bounded():
    s = Schedule(chain)
    s["out"].split(i, "io", "ii", 8)
    s["f"].compute_at("out", "io").bound_extent(i, 8)
    return chain.lower(s)


@mistake
def factor_not_positive__to_align():
    return Schedule(chain)["f"].align_bounds(i, 4, 4)


@mistake
def pipeline_not_serial():
    s = Schedule(matmul)
    s["D"].vectorize(j).pipeline(j, stages=3)


@mistake
def pipeline_not_serial__of_no_stage():
    return Schedule(matmul)["C"].update().pipeline("k", stages=0)


@mistake
def pipeline_not_serial__of_warps():
    return Schedule(matmul)["D"].vectorize(j).warp_specialize(j)


@mistake
def no_gpu_blocks():
    return Schedule(matmul)["D"].gpu_warps(4)


@mistake
def warps_not_legal():
    return Schedule(matmul)["D"].gpu_blocks(i).gpu_warps(3)


@mistake
def registers_not_legal():
    return Schedule(matmul)["D"].gpu_blocks(i).gpu_registers(1024)


@mistake
def unknown_access():
    return Schedule(matmul)["A"].load_with("teleport")


@mistake
def unknown_policy():
    return Schedule(matmul)["A"].cache("always")


@mistake
def lanes_not_constant__by_a_param():
    f, n = Func("f"), Param("n", f32)
    f[i] = n
    p = Pipeline("p", inputs=[], outputs={f: [N]})
    s = Schedule(p)
    s["f"].split(i, "io", "ii", 4, tail="ragged").vectorize("ii")
    return p.lower(s)


@pytest.mark.parametrize("name", mistake)
def test_the_message_of_a_wrong_schedule(name, golden):
    mistake.check(name, golden)
