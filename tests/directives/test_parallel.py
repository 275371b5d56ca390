"""parallel, vectorize, gpu_blocks: iterations that run at once."""

import pytest

from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    ScheduleError,
    Size,
    Var,
    cumprod,
    cumsum,
    f32,
    i32,
    sum,
)
from tensorlang.ir.stmt import LoopKind
from tensorlang.testing import assert_equivalent

M, K = Size("M"), Size("K")
i, j = Var("i"), Var("j")


def rows() -> Pipeline:
    a, k, f = Input("A", f32, [M, K]), RDom("k", K), Func("f")
    f[i] = sum(a[i, k], over=k)
    return Pipeline("rows", inputs=[a], outputs={f: [M]})


def horner() -> Pipeline:
    a, k, f = Input("A", i32, [M, K]), RDom("k", K), Func("f")
    f[i] = 0
    f[i] = f[i] * 3 + a[i, k]
    return Pipeline("horner", inputs=[a], outputs={f: [M]})


@pytest.mark.parametrize(
    ("directive", "kind"),
    [
        ("parallel", LoopKind.PARALLEL),
        ("vectorize", LoopKind.VECTORIZED),
        ("gpu_blocks", LoopKind.GPU_BLOCK),
    ],
)
def test_a_pure_loop_takes_the_kind_and_keeps_its_place(directive, kind):
    s = Schedule(rows())
    getattr(s["f"].update(), directive)(i)
    loops = s.state.nests["f", 1].loops
    assert [loop.name for loop in loops] == ["i", "k"]
    assert loops[0].kind is kind
    assert_equivalent(Pipeline.of(s.algorithm), s, target="interpreter")


def test_several_gpu_blocks_are_named_slowest_first():
    a, f = Input("A", f32, [M, K]), Func("f")
    f[i, j] = a[i, j] * 2
    p = Pipeline("scaled", inputs=[a], outputs={f: [M, K]})
    s = Schedule(p)
    s[f].gpu_blocks(i, j)
    assert "gpu_block i in [0, M):\n  gpu_block j in [0, K):" in s.loop_nest()
    assert_equivalent(p, s, target="interpreter")


@pytest.mark.parametrize(
    "target", ["interpreter", pytest.param("c", marks=pytest.mark.cc), "triton"]
)
def test_lanes_of_an_associative_reduction_are_a_tree(target):
    s = Schedule(rows())
    s["f"].update().split("k", "ko", "ki", 8).vectorize("ki")
    assert_equivalent(Pipeline.of(s.algorithm), s, target=target)


@pytest.mark.parametrize("directive", ["parallel", "gpu_blocks"])
def test_parallel_iterations_of_a_sum_would_race(directive):
    s = Schedule(rows())
    with pytest.raises(ScheduleError) as caught:
        getattr(s["f"].update(), directive)("k")
    assert caught.value.code == "carried-dependence"
    assert "k = 0 and k = 1 both touch one element of 'f'" in str(caught.value)
    assert "rfactor" in caught.value.fix


def test_lanes_of_an_ordered_reduction_are_refused():
    s = Schedule(horner())
    with pytest.raises(ScheduleError, match="carried-dependence"):
        s["f"].update().vectorize("k")


def test_a_loop_fused_from_both_kinds_has_no_lanes():
    s = Schedule(rows())
    with pytest.raises(ScheduleError, match="fused from both"):
        s["f"].update().fuse(i, "k", "t").vectorize("t")


def test_blocks_inside_blocks_and_blocks_apart_are_refused():
    a, f, g = Input("A", f32, [M, K]), Func("f"), Func("g")
    f[i, j] = a[i, j] * 2
    g[i, j] = f[i, j] + 1
    p = Pipeline("two", inputs=[a], outputs={g: [M, K]})
    s = Schedule(p)
    s[g].gpu_blocks(i)
    s[f].compute_at(g, i).gpu_blocks(j)
    with pytest.raises(ScheduleError, match="nested-gpu-blocks"):
        p.lower(s)
    t = Schedule(p)
    t[g].split(j, "jo", "ji", 4).reorder(i, "jo", "ji").gpu_blocks(i).gpu_blocks("ji")
    with pytest.raises(ScheduleError, match="gpu-blocks-apart"):
        p.lower(t)


def test_stages_that_share_blocks_have_no_blocks_of_their_own_inside():
    a, f, k = Input("A", f32, [M, K]), Func("f"), RDom("k", K)
    f[i, j] = sum(a[i, k] * a[j, k], over=k)
    p = Pipeline("gram", inputs=[a], outputs={f: [M, M]})
    s = Schedule(p)
    s[f].gpu_blocks(i)
    s[f].update(0).gpu_blocks(i, j).compute_with(f, i)
    with pytest.raises(ScheduleError, match="nested-gpu-blocks"):
        p.lower(s)


def test_lanes_need_an_extent_that_is_fixed():
    s = Schedule(rows())
    s["f"].split(i, "io", "ii", 4, tail="ragged").vectorize("ii")
    with pytest.raises(ScheduleError, match="lanes-not-constant"):
        Pipeline.of(s.algorithm).lower(s)


def running_sum() -> Pipeline:
    a, k, f = Input("A", f32, [M, K]), RDom("k", K), Func("f")
    f[i, k] = cumsum(a[i, k], over=k)
    return Pipeline("running_sum", inputs=[a], outputs={f: [M, K]})


@pytest.mark.parametrize("target", ["interpreter", pytest.param("c", marks=pytest.mark.cc)])
def test_the_innermost_loop_of_a_scan_may_be_lanes(target):
    s = Schedule(running_sum())
    s["f"].update().split("k", "ko", "ki", 4).vectorize("ki")
    assert_equivalent(Pipeline.of(s.algorithm), s, target=target)


def test_an_outer_loop_of_a_scan_may_not():
    s = Schedule(running_sum())
    s["f"].update().split("k", "ko", "ki", 4)
    with pytest.raises(ScheduleError, match="carried-dependence"):
        s["f"].update().vectorize("ko")


def test_nor_may_those_of_a_recurrence_that_is_not_associative():
    a, k, f = Input("A", f32, [M, K]), RDom("k", K), Func("f")
    f[i, j] = 0.0
    f[i, k] = f[i, k - 1] * 0.5 + a[i, k]
    s = Schedule(Pipeline("smooth", inputs=[a], outputs={f: [M, K]}))
    with pytest.raises(ScheduleError, match="carried-dependence"):
        s["f"].update().vectorize("k")


@pytest.mark.parametrize("along", [cumsum, cumprod])
def test_the_oracle_grants_a_scan_any_grouping_of_its_terms(along):
    a, k, f = Input("A", f32, [M, K]), RDom("k", K), Func("f")
    f[i, k] = along(a[i, k], over=k)
    s = Schedule(Pipeline("running", inputs=[a], outputs={f: [M, K]}))
    s["f"].update().gpu_blocks(i).vectorize("k")
    assert_equivalent(Pipeline.of(s.algorithm), s, target="triton")
    assert_equivalent(Pipeline.of(s.algorithm), s, target="interpreter")
