"""The whole message of what can be wrong with variants, bounds and what hardware is told."""

import pytest

from tensorlang import Func, Input, Param, Pipeline, RDom, Schedule, exp, f32, i32
from tests.errors.mistakes import Mistakes
from tests.errors.pipelines import K, M, N, chain, i, j, matmul, scan

mistake = Mistakes()


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
