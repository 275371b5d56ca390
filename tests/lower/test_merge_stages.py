"""compute_with as a pass: two stages in the loops of the first."""

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, ScheduleError, Size, Var, f32, sum
from tensorlang.ir.stmt import For, If, Program, Stage, walk
from tests.lower.between import around, run, text

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")


def pair(count: int = 2) -> Pipeline:
    """Funcs of one Input that do not read one another."""
    a = Input("A", f32, [M, N])
    funcs = [Func(f"f{k}") for k in range(count)]
    for k, f in enumerate(funcs):
        f[i, j] = a[i, j] * (k + 2)
    return Pipeline("pair", inputs=[a], outputs={f: [M, N] for f in funcs})


def loops(program: Program) -> list[str]:
    return [s.var for s in walk(program.body) if isinstance(s, For)]


def test_the_loops_down_to_the_one_named_are_shared(golden) -> None:
    p = pair()
    s = Schedule(p)
    s["f1"].compute_with("f0", i)
    before, after = around(p, s, "merge_stages")
    golden(text(after))
    assert loops(before) == ["f0.i", "f0.j", "f1.i", "f1.j"]
    assert loops(after) == ["f0.i", "f0.j", "f1.j"]
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert all(map(np.array_equal, run(p, before, a), run(p, after, a)))


def test_a_third_stage_joins_two_that_are_merged() -> None:
    p = pair(3)
    s = Schedule(p)
    s["f1"].compute_with("f0", j)
    s["f2"].compute_with("f0", j)
    after = around(p, s, "merge_stages")[1]
    assert loops(after) == ["f0.i", "f0.j"]
    assert [s.func for s in walk(after.body) if isinstance(s, Stage)] == ["f0", "f1", "f2"]
    a = np.ones((2, 3), np.float32)
    assert [out[0, 0] for out in run(p, after, a)] == [2, 3, 4]


def test_values_and_guards_of_tiles_stay_with_their_stage() -> None:
    p = pair()
    s = Schedule(p)
    for f in ("f0", "f1"):
        s[f].split(i, "io", "ii", 4)
    s["f1"].compute_with("f0", "ii")
    before, after = around(p, s, "merge_stages")
    a = np.arange(15, dtype=np.float32).reshape(5, 3)
    assert all(map(np.array_equal, run(p, before, a), run(p, after, a)))


def test_without_compute_with_nothing_changes() -> None:
    p = pair()
    before, after = around(p, Schedule(p), "merge_stages")
    assert after is before


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s["f1"].split(i, "io", "ii", 8),
        lambda s: s["f1"].split(i, "io", "ii", 4).parallel("io"),
    ],
    ids=["another factor", "another kind"],
)
def test_loops_that_differ_in_range_or_kind_are_refused(change) -> None:
    p = pair()
    s = Schedule(p)
    s["f0"].split(i, "io", "ii", 4)
    change(s)
    s["f1"].compute_with("f0", "io")
    with pytest.raises(ScheduleError, match="loops-differ"):
        p.lower(s)


@pytest.mark.parametrize("func", ["f0", "f1"])
def test_a_loop_that_is_split_later_is_shared_no_more(func: str) -> None:
    p = pair()
    s = Schedule(p)
    s["f1"].compute_with("f0", i)
    s[func].split(i, "io", "ii", 4)
    with pytest.raises(ScheduleError, match="loops-differ"):
        p.lower(s)


def test_a_stage_is_brought_beside_another_where_neither_needs_what_stands_between() -> None:
    a, first, kept = Input("A", f32, [M, N]), Func("first"), Func("kept")
    last = Func("last")
    first[i, j] = a[i, j] * 2
    kept[i, j] = a[i, j] * 3
    last[i, j] = kept[i, j] + kept[i, 0]
    p = Pipeline("p", inputs=[a], outputs={first: [M, N], last: [M, N]})
    s = Schedule(p)
    s["kept"].compute_root()
    s["kept"].compute_with("first", i)
    before, after = around(p, s, "merge_stages")
    assert loops(after) == ["first.i", "first.j", "kept.j", "last.i", "last.j"]
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert all(map(np.array_equal, run(p, before, values), run(p, after, values)))


def rows_and_their_sum() -> tuple[Pipeline, Schedule]:
    """Twice a matrix, and the sums of its columns by parts of 4 rows, in blocks of 4 rows."""
    a, doubled, total = Input("A", f32, [M, N]), Func("doubled"), Func("total")
    doubled[i, j] = a[i, j] * 2
    total[j] = sum(a[i, j], over=RDom("i", M))
    p = Pipeline("p", inputs=[a], outputs={doubled: [M, N], total: [N]})
    s = Schedule(p)
    s["doubled"].split(i, "p", "r", 4)
    part = s["total"].update(0).split("i", "po", "r", 4).rfactor("po", "p")
    stored = s[part].in_("total")
    s[stored].compute_root().compute_with("doubled", "p")
    s[part].compute_at(stored, "p").update(0).reorder("p", "r", j)
    s[part].update(0).compute_with("doubled", "r")
    return p, s


def test_an_update_joins_loops_inside_loops_that_are_merged_already(golden) -> None:
    p, s = rows_and_their_sum()
    before, after = around(p, s, "merge_stages")
    golden(text(after))
    assert [name for name in loops(after) if name.endswith(".r")] == ["doubled.r"]
    # 4 does not divide 7, so that both stages are guarded.
    values = np.arange(21, dtype=np.float32).reshape(7, 3)
    for found, other in zip(run(p, after, values), run(p, before, values), strict=True):
        np.testing.assert_array_equal(found, other)
    assert Schedule.parse(str(s), p) == s


def test_a_guard_that_both_stages_have_becomes_the_extent_of_their_loop() -> None:
    p, s = rows_and_their_sum()
    after = around(p, s, "trim_loops")[1]
    (rows,) = (s for s in walk(after.body) if isinstance(s, For) and s.var == "doubled.r")
    assert not any(isinstance(s, If) for s in walk(rows))


def test_what_a_stage_starts_from_comes_before_the_loops_that_it_joins() -> None:
    a, f, g = Input("A", f32, [M, N]), Func("f"), Func("g")
    f[i, j] = a[i, j] * 2
    g[j] = sum(a[i, j], over=RDom("i", M))
    p = Pipeline("p", inputs=[a], outputs={f: [M, N], g: [N]})
    s = Schedule(p)
    s["g"].update(0).reorder("i", j).compute_with("f", i)
    before, after = around(p, s, "merge_stages")
    assert loops(after) == ["g.j", "f.i", "f.j", "g.j"]
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert all(map(np.array_equal, run(p, before, values), run(p, after, values)))
