"""Updates may be reordered and run at once exactly where their dependences allow."""

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
    clamp,
    f32,
    i32,
    select,
)  # fmt: skip
from tensorlang.ir.dependence import Dependence, dependences_of, keeps_order, witness
from tensorlang.ir.linear import integer
from tensorlang.testing import assert_equivalent

M, N = Size("M"), Size("N")
i, j, x = Var("i"), Var("j"), Var("x")


def scan() -> Pipeline:
    g, f, r = Input("g", f32, [M, N]), Func("f"), RDom("r", (1, N - 1))
    f[x, i] = g[x, i]
    f[x, r] = f[x, r - 1] + g[x, r]
    return Pipeline("scan", inputs=[g], outputs={f: [M, N]})


def wavefront(rows: int, columns: int) -> Pipeline:
    """f[r0, r1] reads the element `rows` above and `columns` to the left."""
    g, f = Input("g", i32, [12, 12]), Func("f")
    r = RDom("r", (2, 10), (2, 8))
    f[i, j] = g[i, j]
    f[r[0], r[1]] = f[r[0] - rows, r[1] - columns] * 3 + 1
    return Pipeline("wavefront", inputs=[g], outputs={f: [12, 12]})


def scale() -> Pipeline:
    g, f, r = Input("g", i32, [N]), Func("f"), RDom("r", N)
    f[i] = g[i]
    f[r] = f[r] * 2 + 1
    return Pipeline("scale", inputs=[g], outputs={f: [N]})


def histogram() -> Pipeline:
    g, f, r = Input("g", i32, [N]), Func("f"), RDom("r", N)
    f[i] = 0
    f[clamp(g[r], 0, 9)] += 1
    return Pipeline("histogram", inputs=[g], outputs={f: [10]})


def distances(p: Pipeline) -> list[tuple[int | None, ...]]:
    func = p.algorithm.func("f")
    update = func.definitions[1]
    assert update.domain is not None
    found = dependences_of("f", update.indices, update.values, update.domain.names)
    return [d.distances for d in found]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (scan, [(1,)]),
        (lambda: wavefront(1, 0), [(1, 0)]),
        (lambda: wavefront(1, -1), [(1, -1)]),
        (lambda: wavefront(0, 2), [(0, 2)]),
        (scale, []),
        (histogram, [(None,)]),
    ],
)
def test_distances_are_those_of_the_definition(make, expected):
    assert distances(make()) == expected


def test_a_loop_that_no_dependence_moves_along_is_as_free_as_a_pure_one():
    p = scale()
    s = Schedule(p)
    s["f"].update().split("r", "ro", "ri", 4).parallel("ro").vectorize("ri")
    for target in ("interpreter", "c", "triton"):
        assert_equivalent(p, s, target=target)


def test_rows_of_a_scan_are_parallel_and_its_steps_are_not():
    p = scan()
    s = Schedule(p)
    s["f"].update().reorder("r", x).parallel(x)
    assert_equivalent(p, s, target="interpreter")
    with pytest.raises(ScheduleError, match="carried-dependence") as caught:
        s["f"].update().parallel("r")
    assert "r = 1 and r = 2 both touch one element of 'f'" in str(caught.value)


def test_columns_of_a_dependence_on_the_row_above_run_at_once():
    p = wavefront(1, 0)
    s = Schedule(p)
    s["f"].update().vectorize("r_1").reorder("r_1", "r_0")
    assert_equivalent(p, s, target="interpreter")
    with pytest.raises(ScheduleError, match="carried-dependence"):
        s["f"].update().parallel("r_0")


def test_a_diagonal_dependence_is_separated_by_the_serial_loop_outside():
    p = wavefront(1, -1)
    s = Schedule(p)
    s["f"].update().parallel("r_1")
    assert_equivalent(p, s, target="interpreter")
    with pytest.raises(ScheduleError, match="order-matters"):
        s["f"].update().reorder("r_1", "r_0")


def test_moving_the_separating_loop_inside_is_refused_in_the_end():
    p = wavefront(1, 1)
    s = Schedule(p)
    s["f"].update().parallel("r_1").reorder("r_1", "r_0")
    with pytest.raises(ScheduleError, match="carried-dependence"):
        p.lower(s)


def test_splits_keep_their_halves_in_order():
    p = scan()
    s = Schedule(p)
    s["f"].update().split("r", "ro", "ri", 4).reorder("ro", x, "ri")
    assert_equivalent(p, s, target="interpreter")
    with pytest.raises(ScheduleError, match="order-matters"):
        s["f"].update().reorder("ri", "ro")


def test_an_update_of_a_triangle_may_be_tiled():
    g, f, r = Input("g", i32, [N, N]), Func("f"), RDom("r", (0, N), (0, N))
    t = r.where(r[1] <= r[0])
    f[i, j] = 0
    f[t[0], t[1]] = f[t[0], t[1]] + g[t[0], t[1]]
    p = Pipeline("triangle", inputs=[g], outputs={f: [N, N]})
    s = Schedule(p)
    s["f"].update().tile("r_0", "r_1", "a", "b", "c", "d", 4, 4).reorder("b", "a", "d", "c")
    s["f"].update().parallel("b")
    assert_equivalent(p, s, target="interpreter")


def test_order_of_unknown_distances_is_kept_and_known_ones_may_move():
    both = Dependence((None, None))
    assert keeps_order(both, [0, 1])
    assert not keeps_order(both, [1, 0])
    assert keeps_order(Dependence((1, 0)), [1, 0])
    assert keeps_order(Dependence((1, 2)), [1, 0])
    assert not keeps_order(Dependence((1, -2)), [1, 0])
    assert not keeps_order(Dependence((1, None)), [1, 0])
    assert witness(Dependence((1, -2)), ("a", "b")) == "a = 0, b = 2 and a = 1, b = 0"
    starts = (integer(1), Size("N"))
    assert witness(Dependence((1, -2)), ("a", "b"), starts) == "a = 1, b = N + 2 and a = 2, b = N"


def test_select_of_a_neighbour_keeps_its_order():
    g, f, r = Input("g", i32, [N]), Func("f"), RDom("r", N)
    f[i] = g[i]
    f[r] = select(r > 0, f[clamp(r - 1, 0, N - 1)], 0) + 1
    p = Pipeline("neighbour", inputs=[g], outputs={f: [N]})
    with pytest.raises(ScheduleError, match="carried-dependence"):
        Schedule(p)["f"].update().parallel("r")


def test_of_equal_values_the_first_in_order_is_the_least():
    a, r, f = Input("A", i32, [M, N]), RDom("r", M, N), Func("f")
    f[()] = (i32(1000), i32(-1))
    here = a[r[0], r[1]]
    better = here < f[()][0]
    f[()] = (select(better, here, f[()][0]), select(better, i32(r[0]), f[()][1]))
    p = Pipeline("least", inputs=[a], outputs={f: []})
    with pytest.raises(ScheduleError, match="order-matters"):
        Schedule(p)["f"].update().reorder("r_1", "r_0")
