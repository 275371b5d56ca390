"""split, tile, fuse, reorder, rename, serial, unroll on nests."""

import numpy as np
import pytest

from tensorlang import (
    Func,
    Input,
    Param,
    Pipeline,
    RDom,
    Schedule,
    ScheduleError,
    Size,
    Var,
    f32,
    i32,
    sum,
)
from tensorlang.directives import Nest
from tensorlang.ir.printer import print_expr
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import LoopKind

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")


def matmul() -> Pipeline:
    a, b, k = Input("A", f32, [M, K]), Input("B", f32, [K, N]), RDom("k", K)
    c = Func("C")
    c[i, j] = sum(a[i, k] * b[k, j], over=k)
    return Pipeline("matmul", inputs=[a, b], outputs={c: [M, N]})


def nest(s: Schedule, func: str = "C", number: int = 0) -> Nest:
    return s.state.nests[func, number]


def bindings(n: Nest) -> dict[str, tuple[str, str | None]]:
    return {
        b.name: (print_expr(b.value), None if b.guard is None else print_expr(b.guard))
        for b in n.bindings
    }


def test_default_nest_is_pure_vars_then_reduction_variables():
    s = Schedule(matmul())
    assert nest(s).names() == ("i", "j")
    assert nest(s, number=1).names() == ("i", "j", "k")


def test_split_replaces_the_loop_by_two_and_masks_the_tail():
    s = Schedule(matmul())
    s["C"].split(i, "io", "ii", 8)
    n = nest(s)
    assert n.names() == ("io", "ii", "j")
    assert print_expr(n.loops[0].extent) == "(C.i.extent + 7)//8"
    assert print_expr(n.loops[1].extent) == "8"
    assert bindings(n) == {"i": ("C.i.min + (io*8 + ii)", "i < C.i.min + C.i.extent")}


def test_split_round_up_has_no_guard_and_shift_inwards_moves_the_last_block():
    s = Schedule(matmul())
    s["C"].split(i, "io", "ii", 8, tail="round_up").split(j, "jo", "ji", 4, tail="shift_inwards")
    found = bindings(nest(s))
    assert found["i"] == ("C.i.min + (io*8 + ii)", None)
    assert found["j"][0] == "C.j.min + (min(jo*4, max(C.j.extent - 4, 0)) + ji)"


def test_tile_splits_both_and_puts_the_outer_loops_first():
    s = Schedule(matmul())
    s["C"].tile(i, j, "io", "jo", "ii", "ji", 8, 16)
    assert nest(s).names() == ("io", "jo", "ii", "ji")


def test_fuse_recovers_both_loops_from_one():
    s = Schedule(matmul())
    s["C"].fuse(i, j, "t")
    assert nest(s).names() == ("t",)
    assert print_expr(nest(s).loops[0].extent) == "C.i.extent*C.j.extent"
    assert bindings(nest(s)) == {
        "i": ("C.i.min + t//C.j.extent", None),
        "j": ("C.j.min + t%C.j.extent", None),
    }


def test_a_fused_domain_that_may_be_less_than_empty_is_masked():
    # Of -1 by -1 points there are none, and not one.
    a, f, r = Input("A", i32, [M, N]), Func("f"), RDom("r", (1, M - 1), (1, N - 1))
    f[i] = 0
    f[i] = f[i] + a[r[0], r[1]]
    p = Pipeline("p", inputs=[a], outputs={f: [2]})
    s = Schedule(p)
    s[f].update().fuse(r[0], r[1], "t")
    kernel = p.compile(s, target="interpreter")
    for m, n in ((0, 0), (1, 0), (1, 1), (2, 3), (5, 4)):
        values = np.arange(m * n, dtype=np.int32).reshape(m, n)
        assert kernel(values).tolist() == [values[1:, 1:].sum()] * 2


def test_reorder_permutes_only_the_places_of_the_named_loops():
    s = Schedule(matmul())
    s["C"].update().split("k", "ko", "ki", 4).reorder("ko", "i", "ki")
    assert nest(s, number=1).names() == ("ko", "j", "i", "ki")


def test_rename_keeps_the_old_name_as_a_binding():
    s = Schedule(matmul())
    s["C"].rename(i, "row")
    assert nest(s).names() == ("row", "j")
    assert bindings(nest(s)) == {"i": ("row", None)}


def test_serial_undoes_unroll():
    s = Schedule(matmul())
    s["C"].split(i, "io", "ii", 4).unroll("ii").serial("ii")
    assert nest(s).find("ii").kind is LoopKind.SERIAL  # type: ignore[union-attr]


def test_a_refused_directive_changes_nothing():
    s = Schedule(matmul())
    s["C"].split(i, "io", "ii", 8)
    before = str(s), nest(s)
    with pytest.raises(ScheduleError, match="loop-name-taken"):
        s["C"].tile("io", j, "a", "b", "c", "j", 2, 2)
    assert (str(s), nest(s)) == before


@pytest.mark.parametrize(
    ("apply", "code"),
    [
        (lambda s: s["C"].split("q", "a", "b", 2), "unknown-loop"),
        (lambda s: s["C"].split("i", "a", "b", 2).split("i", "c", "d", 2), "unknown-loop"),
        (lambda s: s["C"].split("i", "a", "a", 2), "loop-name-taken"),
        (lambda s: s["C"].split("i", "j", "b", 2), "loop-name-taken"),
        (lambda s: s["C"].split("i", "a", "b", 0), "factor-not-positive"),
        (lambda s: s["C"].split("i", "a", "b", 2.5), "bad-arguments"),
        (lambda s: s["C"].split("i", "a", "b", 2, tail="odd"), "unknown-tail"),
        (lambda s: s["C"].update().split("i", "a", "b", 2, tail="shift_inwards"), "tail-not-legal"),
        (lambda s: s["C"].update().split("k", "a", "b", 2, tail="round_up"), "tail-not-legal"),
        (lambda s: s["C"].fuse("j", "i", "t"), "not-adjacent"),
        (lambda s: s["C"].reorder("i", "i"), "loop-named-twice"),
        (lambda s: s["C"].update(1), "unknown-update"),
        (lambda s: s["Q"], "unknown-func"),
        (lambda s: s["C"].split(3, "a", "b", 2), "not-a-name"),
    ],
)
def test_illegal_directives_are_refused_where_they_stand(apply, code):
    with pytest.raises(ScheduleError) as caught:
        apply(Schedule(matmul()))
    assert caught.value.code == code
    assert caught.value.span is not None
    assert caught.value.span.path == __file__


def test_reduction_loops_reorder_only_when_the_update_commutes():
    g, f, r = Input("g", i32, [9]), Func("f"), RDom("r", (0, 3), (0, 3))
    f[i] = 0
    f[i] = f[i] * 2 + g[r[0] * 3 + r[1]]
    s = Schedule(Pipeline("p", inputs=[g], outputs={f: [N]}))
    s[f].update().reorder(r[0], i, r[1])
    with pytest.raises(ScheduleError, match="order-matters"):
        s[f].update().reorder(r[1], r[0])


def test_a_loop_at_which_a_func_is_placed_stays():
    a, f, g = Input("A", f32, [N]), Func("f"), Func("g")
    f[i] = a[i] * Param("scale", f32)
    g[i] = f[i] + f[i]
    s = Schedule(Pipeline("p", inputs=[a], outputs={g: [N]}))
    s[g].split(i, "io", "ii", 8)
    s[f].compute_at(g, "io")
    with pytest.raises(ScheduleError, match="loop-in-use"):
        s[g].split("io", "ioo", "ioi", 2)


def test_ragged_split_reordered_and_fused_has_the_exact_total():
    """The L2 swizzle: groups of rows of tiles, the last group shorter, and no masked program."""
    s = Schedule(matmul())
    s["C"].split(i, "io", "ii", 16).split(j, "jo", "ji", 32).reorder("io", "jo", "ii", "ji")
    s["C"].split("io", "g", "ir", 8, tail="ragged").reorder("g", "jo", "ir")
    s["C"].fuse("jo", "ir", "x").fuse("g", "x", "t")
    t = nest(s).loops[0]
    assert t.name == "t"
    assert print_expr(simplify(t.extent)) == "(C.i.extent + 15)//16*((C.j.extent + 31)//32)"


def test_a_ragged_loop_stays_inside_the_loop_that_its_extent_depends_on():
    s = Schedule(matmul())
    s["C"].split(i, "io", "ii", 8, tail="ragged")
    with pytest.raises(ScheduleError, match="ragged-outside"):
        s["C"].reorder("ii", "io")


def test_a_ragged_loop_stays_inside_what_the_loop_it_depends_on_was_split_into():
    s = Schedule(matmul())
    s["C"].split(i, "io", "ii", 8, tail="ragged").split("io", "ioo", "ioi", 2)
    for order in (("ii", "ioo", "ioi"), ("ioo", "ii", "ioi")):
        with pytest.raises(ScheduleError, match="ragged-outside"):
            s["C"].reorder(*order)
    with pytest.raises(ScheduleError, match="ragged-inside"):
        s["C"].fuse("ioi", "ii", "t")


def test_part_of_a_ragged_loop_has_no_exact_total():
    s = Schedule(matmul())
    s["C"].split(i, "io", "ii", 8, tail="ragged").split("ii", "iio", "iii", 4)
    with pytest.raises(ScheduleError, match="ragged-inside"):
        s["C"].fuse("io", "iio", "t")


def test_a_loop_at_which_a_func_is_computed_keeps_its_name():
    a, f, g = Input("A", f32, [N]), Func("f"), Func("g")
    f[i] = a[i] * 2
    g[i] = f[i] + 1
    s = Schedule(Pipeline("p", inputs=[a], outputs={g: [N]}))
    s["f"].compute_at("g", i)
    with pytest.raises(ScheduleError, match="loop-in-use"):
        s["g"].rename(i, "row")


def test_an_argument_that_is_not_the_usual_one_is_printed_by_name():
    a, f = Input("A", f32, [N]), Func("f")
    f[i] = a[i] * 2
    s = Schedule(Pipeline("p", inputs=[a], outputs={f: [N]}))
    s["f"].split(i, "io", "ii", 4, tail="guard").split("ii", "x", "y", 2)
    assert str(s) == 's[f].split(i, io, ii, 4, tail="guard").split(ii, x, y, 2)'
