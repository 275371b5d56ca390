"""Each Func over what is needed of it where it is computed; tiles of constant extent."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    clamp,
    i32,
    maximum,
    repeat_edge,
)
from tensorlang.ir.expr import Const
from tensorlang.ir.stmt import Allocate, walk
from tests.lower.algorithms import M, N, i, j, rows, two_stages
from tests.lower.between import around, run, text


def extents(program) -> list[list[int | None]]:
    """The constant extents of each allocation; None where one is no constant."""
    names = {}
    found = []
    for s in walk(program.body):
        if hasattr(s, "value"):
            names[s.var] = s.value
        if isinstance(s, Allocate):
            dims = [names.get(str(d.extent), d.extent) for d in s.buffer.dims]
            found.append([int(e.value) if isinstance(e, Const) else None for e in dims])
    return found


def test_a_tile_of_the_consumer_needs_a_tile_of_constant_extent(golden) -> None:
    pipeline = two_stages()
    s = Schedule(pipeline)
    s["g"].split(i, "io", "ii", 16)
    s["f"].compute_at("g", "io")
    before, after = around(pipeline, s, "infer_bounds")
    golden(text(after))
    assert extents(after) == [[17]]
    values = np.arange(38, dtype=np.int32)
    assert np.array_equal(run(pipeline, before, values), run(pipeline, after, values))


def test_one_row_of_the_consumer_needs_one_row(golden) -> None:
    pipeline = rows()
    s = Schedule(pipeline)
    s["f"].compute_at("g", i)
    before, after = around(pipeline, s, "infer_bounds")
    golden(text(after))
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(run(pipeline, before, values), run(pipeline, after, values))


def test_a_tile_beside_the_edge_computes_nothing_past_it() -> None:
    # What is allocated is a whole tile; what is needed ends with the array.
    pipeline = two_stages()
    s = Schedule(pipeline)
    s["g"].split(i, "io", "ii", 16)
    s["f"].compute_at("g", "io")
    values = np.arange(18, dtype=np.int32)
    kernel = pipeline.compile(s, target="interpreter")  # which checks every access
    assert np.array_equal(kernel(values), 2 * (values[1:] + values[:-1]))


def test_a_clamped_index_needs_no_more_than_its_range() -> None:
    a, f, g = Input("A", i32, [N]), Func("f"), Func("g")
    f[i] = repeat_edge(a)[i - 1]
    g[i] = f[clamp(a[i], 0, 4)]
    pipeline = Pipeline("gather", inputs=[a], outputs={g: [N]})
    s = Schedule(pipeline)
    s["f"].compute_root()
    assert extents(around(pipeline, s, "infer_bounds")[1]) == [[5]]
    s["f"].compute_at("g", i)
    assert extents(around(pipeline, s, "infer_bounds")[1]) == [[1]]


def test_a_stencil_in_two_dimensions_needs_a_halo() -> None:
    a, f, g = Input("A", i32, [M + 2, N + 4]), Func("f"), Func("g")
    f[i, j] = a[i, j] + 1
    g[i, j] = f[i, j] + f[i + 2, j + 4]
    pipeline = Pipeline("halo", inputs=[a], outputs={g: [M, N]})
    s = Schedule(pipeline)
    s["g"].tile(i, j, "io", "jo", "ii", "ji", 8, 16)
    s["f"].compute_at("g", "jo")
    assert extents(around(pipeline, s, "infer_bounds")[1]) == [[10, 20]]


# An update may need more of its Func than its consumers do: f[x, r] all along r.


def running_difference(axis: int) -> Pipeline:
    """f[i, k] (or f[k, i]) -= f[i, k - 1] over k, read at one point."""
    a, f, g, k = (
        Input("A", i32, [M, N]),
        Func("f"),
        Func("g"),
        RDom("k", (1, (N if axis else M) - 1)),
    )
    f[i, j] = a[i, j]
    before, here = ((i, k - 1), (i, k)) if axis else ((k - 1, i), (k, i))
    f[here] = f[here] - f[before]
    g[i, j] = f[i, j] + 1
    return Pipeline("differences", inputs=[a], outputs={g: [M, N]})


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("at", [i, j])
@pytest.mark.parametrize(
    "order", [("fuse", i, "k"), ("fuse", "k", i), ("split", i), ("split", "k")]
)
def test_an_update_over_a_whole_dimension_needs_all_of_it(axis, at, order) -> None:
    pipeline = running_difference(axis)
    s = Schedule(pipeline)
    s["f"].compute_at("g", at)
    stage = s["f"].update(0)
    if order[0] == "split":
        stage.split(order[1], "xo", "xi", 3)
    else:
        stage.reorder(*order[1:]).fuse(*order[1:], "t")
    values = np.arange(20, dtype=np.int32).reshape(4, 5) ** 2
    a = values.copy()
    if axis == 0:
        a = a.T
    for n in range(1, a.shape[1]):
        a[:, n] -= a[:, n - 1]
    expected = (a.T if axis == 0 else a) + 1
    assert np.array_equal(pipeline.compile(s, target="interpreter")(values), expected)


def test_a_dimension_that_depends_on_another_comes_after_it() -> None:
    a, f, g, k = Input("A", i32, [M, 4]), Func("f"), Func("g"), RDom("k", 4)
    f[j, i] = 0
    f[i + k, i] = f[i + k, i] + a[i, k]
    g[i, j] = f[i, j]
    pipeline = Pipeline("band", inputs=[a], outputs={g: [M, M]})
    s = Schedule(pipeline)
    s["f"].compute_at("g", j)
    values = np.arange(24, dtype=np.int32).reshape(6, 4)
    expected = np.zeros((9, 6), np.int32)
    for n in range(6):
        expected[n : n + 4, n] = values[n]
    assert np.array_equal(pipeline.compile(s, target="interpreter")(values), expected[:6])


def test_an_update_that_is_not_of_the_new_part_alone_does_not_slide() -> None:
    a, f, g, k = Input("A", i32, [M, N]), Func("f"), Func("g"), RDom("k", N)
    f[i, j] = j
    f[i, clamp(3 - k, 0, 7)] *= a[i, k]
    g[i, j] = f[i, j]
    pipeline = Pipeline("again", inputs=[a], outputs={g: [M, 8]})
    s = Schedule(pipeline)
    s["g"].reorder(j, i)
    s["f"].compute_at("g", i).store_root()
    values = np.arange(2, 8, dtype=np.int32).reshape(2, 3)
    expected = np.arange(8, dtype=np.int32) * np.ones((2, 1), np.int32)
    expected[:, 3:0:-1] *= values
    assert np.array_equal(pipeline.compile(s, target="interpreter")(values), expected)


def test_a_window_slides_by_what_the_loops_of_an_iteration_reach() -> None:
    """Guards further in leave a region whose last place, the array's end, no iteration gets to."""
    a, f, g = Input("A", i32, [M, N + 3]), Func("f"), Func("g")
    f[i, j] = a[i, j] * 2
    g[i, j] = f[i, j] + f[i, j + 3]
    pipeline = Pipeline("window", inputs=[a], outputs={g: [M, N]})
    s = Schedule(pipeline)
    s["g"].split(j, "jo", "ji", 2).split("jo", "joo", "joi", 1)
    s["f"].compute_at("g", "joo").store_at("g", i)
    values = np.arange(24, dtype=np.int32).reshape(2, 12)
    wanted = 2 * (values[:, :-3] + values[:, 3:])
    assert np.array_equal(pipeline.compile(s, target="interpreter")(values), wanted)
    # Each of the 12 columns is computed once, though an iteration needs five.
    assert "g.joo*2 + 3" in str(pipeline.lower(s))


@pytest.mark.parametrize("places", ["moves back", "grows downwards"])
def test_a_window_that_does_not_move_forward_does_not_slide(places: str) -> None:
    """What an iteration needs below the last one's window, no iteration has computed."""
    a, f, g, k = Input("A", i32, [M, N + 3]), Func("f"), Func("g"), RDom("k", N)
    f[i, j] = a[i, j] * 2
    if places == "moves back":
        g[i, j] = f[i, N - 1 - j] + f[i, N + 1 - j]
    else:
        g[i, j] = tl.sum(f[i, N - 1 - tl.minimum(k, j)], over=k)
    pipeline = Pipeline("window", inputs=[a], outputs={g: [M, N]})
    s = Schedule(pipeline)
    s["f"].compute_at("g", j).store_at("g", i)
    values = np.arange(24, dtype=np.int32).reshape(2, 12)
    twice, n = 2 * values, 9
    if places == "moves back":
        wanted = twice[:, n - 1 :: -1] + twice[:, n + 1 : 1 : -1]
    else:
        last = np.minimum(np.arange(n)[:, None], np.arange(n))
        wanted = twice[:, n - 1 - last].sum(-1)
    assert np.array_equal(pipeline.compile(s, target="interpreter")(values), wanted)


def test_what_a_variant_knows_of_sizes_enlarges_no_region() -> None:
    a, f, g, k = Input("A", i32, [M, N]), Func("f"), Func("g"), RDom("k", N)
    f[i, j] = a[i, j]
    f[i, k] += 1
    g[i, j] = f[i, j] * 2
    pipeline = Pipeline("variants", inputs=[a], outputs={g: [M, N]})
    s = Schedule(pipeline)
    s["g"].specialize(N == 5)
    s["g"].specialize((M <= 4) & (N >= 2))
    for n in (1, 3, 5):
        values = np.ones((3, n), np.int32)
        assert np.array_equal(pipeline.compile(s, target="interpreter")(values), 4 * values)


def test_a_loop_fused_around_the_region_of_its_own_func_divides_by_an_extent() -> None:
    a, f, g, k = Input("A", i32, [M, N]), Func("f"), Func("g"), RDom("k", N)
    f[i, j] = 0
    f[i, k] = maximum(f[i, clamp(k - 1, 0, maximum(N - 1, 0))], a[i, k])
    g[i, j] = f[i, j]
    pipeline = Pipeline("fused", inputs=[a], outputs={g: [M, N]})
    s = Schedule(pipeline)
    s["f"].compute_at("g", i)
    s["f"].update(0).reorder(k, i).fuse(k, i, "t")
    values = np.random.default_rng(0).integers(0, 9, (3, 4)).astype(np.int32)
    expected = np.maximum.accumulate(values, axis=1)
    assert np.array_equal(pipeline.compile(s, target="interpreter")(values), expected)


def test_a_ragged_split_needs_no_more_of_what_it_reads_back() -> None:
    """The last of an odd number of steps: the two loops together do not reach beyond it."""
    k = RDom("k", N)
    A, f, out = Input("A", tl.f32, [M, N]), Func("f"), Func("out")
    f[i, j] = A[i, j]
    f[i, k] = f[i, tl.clamp(k - 1, 0, tl.maximum(N - 1, 0))] + 1.0
    out[i, j] = f[i, j]
    pipeline = Pipeline("back", inputs=[A], outputs={out: [M, N]})
    s = Schedule(pipeline)
    s[f].update(0).split(k, "ko", "ki", 2, tail="ragged")
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(
        pipeline.compile(s, target="interpreter")(given),
        pipeline.compile(target="reference")(given),
    )


def test_a_func_that_no_point_reads_has_an_empty_region() -> None:
    a, f, g = Input("a", tl.f32, [4]), Func("f"), Func("g")
    f[i, j] = a[i] * 2
    g[i] = tl.select(i > 5, f[i, i], a[i])
    p = Pipeline("p", inputs=[a], outputs={g: [4]})
    s = Schedule(p)
    s[f].compute_root()
    _, after = around(p, s, "infer_bounds")
    assert extents(after) == [[0, 0]]
    a = np.arange(4, dtype=np.float32)
    assert np.array_equal(run(p, after, a)[0], a)
