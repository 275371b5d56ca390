"""The classic lessons of scheduling, each with values known beforehand, on every target.

They follow the order in which the idea is usually taught: one Func, an image, the forms of a loop,
where a producer is computed, updates, reductions, boundaries.  What can be an integer is one, so
that every schedule has to give the same bits.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
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
    all,
    any,
    argmax,
    argmin,
    clamp,
    constant_exterior,
    f32,
    i32,
    max,
    min,
    minimum,
    mirror_image,
    mirror_interior,
    prod,
    repeat_edge,
    repeat_image,
    select,
    sum,
    u8,
    u16,
)

H, W, N = Size("H"), Size("W"), Size("N")
x, y = Var("x"), Var("y")
yo, xo, yi, xi, t = (Var(name) for name in ("yo", "xo", "yi", "xi", "t"))

Array = np.ndarray[Any, Any]
Run = Callable[..., Array]


@pytest.fixture(params=["interpreter", pytest.param("c", marks=pytest.mark.cc), "triton"])
def run(request: pytest.FixtureRequest) -> Run:
    """run(pipeline, schedule, *inputs, sizes=, **params): the output on one target, as an array."""

    def call(pipeline: Pipeline, schedule: Schedule | None, *inputs: Array, **rest: Any) -> Array:
        kernel = pipeline.compile(schedule or Schedule(pipeline), target=request.param)
        return np.asarray(kernel(*inputs, **rest))

    return call


def pipeline_of(func: Func, shape: Sequence[Any], *inputs: Input) -> Pipeline:
    return Pipeline(func.name, inputs=list(inputs), outputs={func: list(shape)})


# One Func


def test_gradient_is_the_sum_of_its_coordinates(run: Run) -> None:
    gradient = Func("gradient")
    gradient[y, x] = y + x
    out = run(pipeline_of(gradient, [H, W]), None, sizes={"H": 6, "W": 8})
    assert out.shape == (6, 8)
    assert out[0, 0] == 0
    assert out[2, 3] == 5
    assert out[5, 7] == 12
    assert np.array_equal(out, np.add.outer(np.arange(6), np.arange(8)))


def test_brightened_image_saturates(run: Run) -> None:
    image, brighter = Input("image", u8, [H, W]), Func("brighter")
    brighter[y, x] = u8(minimum(f32(image[y, x]) * 1.5, 255))
    pixels = np.array([[0, 1, 2], [100, 170, 255]], np.uint8)
    out = run(pipeline_of(brighter, [H, W], image), None, pixels)
    assert out.tolist() == [[0, 1, 3], [150, 255, 255]]


def test_param_is_given_by_the_call(run: Run) -> None:
    scaled, factor = Func("scaled"), Param("factor", i32)
    scaled[x] = i32(x) * factor
    out = run(pipeline_of(scaled, [5]), None, factor=3)
    assert out.tolist() == [0, 3, 6, 9, 12]


# The forms of a loop: whatever is done to the loops of a gradient, it stays the gradient.

LOOPS: dict[str, Callable[[Any], Any]] = {
    "column_major": lambda stage: stage.reorder(x, y),
    "split": lambda stage: stage.split(x, xo, xi, 3),
    "split_twice": lambda stage: stage.split(x, xo, xi, 4).split(xi, yi, t, 3),
    "fused": lambda stage: stage.fuse(y, x, t),
    "tiled": lambda stage: stage.tile(y, x, yo, xo, yi, xi, 2, 3),
    "tiles_fused": lambda stage: stage.tile(y, x, yo, xo, yi, xi, 2, 3).fuse(yo, xo, t),
    "vectorized": lambda stage: stage.split(x, xo, xi, 4).vectorize(xi),
    "unrolled": lambda stage: stage.split(x, xo, xi, 2).unroll(xi),
    "shifted_inwards": lambda stage: stage.split(x, xo, xi, 4, tail="shift_inwards"),
    "parallel_tiles": lambda stage: (
        stage.tile(y, x, yo, xo, yi, xi, 4, 4).fuse(yo, xo, t).parallel(t).vectorize(xi)
    ),
}


@pytest.mark.parametrize("form", LOOPS)
@pytest.mark.parametrize("shape", [(4, 6), (5, 7), (1, 1), (0, 3)])
def test_form_of_the_loops_keeps_the_gradient(run: Run, form: str, shape: tuple[int, int]) -> None:
    gradient = Func("gradient")
    gradient[y, x] = 10 * y + x
    pipeline = pipeline_of(gradient, [H, W])
    s = Schedule(pipeline)
    LOOPS[form](s[gradient])
    out = run(pipeline, s, sizes={"H": shape[0], "W": shape[1]})
    assert np.array_equal(out, np.add.outer(10 * np.arange(shape[0]), np.arange(shape[1])))


# Where a producer is computed


def _corners() -> tuple[Pipeline, Func, Func]:
    """The sum of a producer's four corners around each point."""
    producer, consumer = Func("producer"), Func("consumer")
    producer[y, x] = i32(y * y + 3 * x)
    consumer[y, x] = (
        producer[y, x] + producer[y, x + 1] + producer[y + 1, x] + producer[y + 1, x + 1]
    )
    return pipeline_of(consumer, [H, W]), producer, consumer


def _corners_by_hand(height: int, width: int) -> Array:
    made = np.add.outer(np.arange(height + 1) ** 2, 3 * np.arange(width + 1))
    return made[:-1, :-1] + made[:-1, 1:] + made[1:, :-1] + made[1:, 1:]


PLACEMENTS: dict[str, Callable[[Any, Func, Func], Any]] = {
    "inline": lambda s, p, c: s[p].compute_inline(),
    "root": lambda s, p, c: s[p].compute_root(),
    "at_a_row": lambda s, p, c: s[p].compute_at(c, y),
    "at_a_point": lambda s, p, c: s[p].compute_at(c, x),
    "stored_at_root": lambda s, p, c: s[p].store_root().compute_at(c, y),
    "stored_at_root_for_a_point": lambda s, p, c: s[p].store_root().compute_at(c, x),
    "stored_at_a_row": lambda s, p, c: s[p].store_at(c, y).compute_at(c, x),
    "at_a_tile": lambda s, p, c: (
        s[c].tile(y, x, yo, xo, yi, xi, 4, 4),
        s[p].compute_at(c, xo),
    ),
    "at_a_row_of_a_tile": lambda s, p, c: (
        s[c].tile(y, x, yo, xo, yi, xi, 4, 4),
        s[p].compute_at(c, yi),
    ),
    "stored_at_a_tile": lambda s, p, c: (
        s[c].tile(y, x, yo, xo, yi, xi, 4, 4),
        s[p].store_at(c, xo).compute_at(c, yi),
    ),
    "strips_in_parallel": lambda s, p, c: (
        s[c].split(y, yo, yi, 4).parallel(yo).split(x, xo, xi, 4).vectorize(xi),
        s[p].store_at(c, yo).compute_at(c, yi),
    ),
}


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("shape", [(4, 4), (9, 6), (1, 1), (3, 0)])
def test_place_of_the_producer_keeps_the_values(
    run: Run, placement: str, shape: tuple[int, int]
) -> None:
    pipeline, producer, consumer = _corners()
    s = Schedule(pipeline)
    PLACEMENTS[placement](s, producer, consumer)
    out = run(pipeline, s, sizes={"H": shape[0], "W": shape[1]})
    assert np.array_equal(out, _corners_by_hand(*shape))


def test_chain_of_producers_at_one_loop_is_as_small_as_an_iteration_needs(
    run: Run, golden: Callable[..., None]
) -> None:
    first, second, third = Func("first"), Func("second"), Func("third")
    first[y, x] = i32(10 * y + x)
    second[y, x] = first[y, x] + first[y, x + 1]
    third[y, x] = second[y, x] * second[y, x + 1]
    pipeline = pipeline_of(third, [H, W])
    s = Schedule(pipeline)
    s[first].compute_at(third, y)
    s[second].compute_at(third, y)
    golden(s.loop_nest(), "chain_of_producers")
    out = run(pipeline, s, sizes={"H": 3, "W": 4})
    pairs = 2 * np.add.outer(10 * np.arange(3), np.arange(5)) + 1
    assert np.array_equal(out, pairs[:, :-1] * pairs[:, 1:])


# Blur


def _blur() -> tuple[Pipeline, Func, Func]:
    image = Input("image", u8, [H, W])
    blur_x, blur_y = Func("blur_x"), Func("blur_y")
    edge = repeat_edge(image)
    blur_x[y, x] = (u16(edge[y, x - 1]) + edge[y, x] + edge[y, x + 1]) // 3
    blur_y[y, x] = u8((blur_x[y - 1, x] + blur_x[y, x] + blur_x[y + 1, x]) // 3)
    return pipeline_of(blur_y, [H, W], image), blur_x, blur_y


def test_blur_spreads_a_point_over_nine(run: Run) -> None:
    pipeline, _, _ = _blur()
    image = np.zeros((5, 5), np.uint8)
    image[2, 2] = 90
    expected = np.zeros((5, 5), np.uint8)
    expected[1:4, 1:4] = 10
    assert np.array_equal(run(pipeline, None, image), expected)


def test_blur_keeps_a_flat_image_up_to_its_edge(run: Run) -> None:
    pipeline, blur_x, blur_y = _blur()
    s = Schedule(pipeline)
    s[blur_y].split(y, yo, yi, 4).parallel(yo).split(x, xo, xi, 8).vectorize(xi)
    s[blur_x].compute_at(blur_y, yo)
    image = np.full((7, 13), 200, np.uint8)
    assert np.array_equal(run(pipeline, s, image), image)


# Boundaries


BOUNDARIES = {
    "repeat_edge": (repeat_edge, [1, 1, 1, 1, 2, 3, 3, 3, 3]),
    "constant_exterior": (lambda a: constant_exterior(a, 7), [7, 7, 7, 1, 2, 3, 7, 7, 7]),
    "repeat_image": (repeat_image, [1, 2, 3, 1, 2, 3, 1, 2, 3]),
    "mirror_image": (mirror_image, [3, 2, 1, 1, 2, 3, 3, 2, 1]),
    "mirror_interior": (mirror_interior, [2, 3, 2, 1, 2, 3, 2, 1, 2]),
}


@pytest.mark.parametrize("kind", BOUNDARIES)
def test_boundary_gives_the_known_values_outside(run: Run, kind: str) -> None:
    condition, expected = BOUNDARIES[kind]
    a, padded = Input("a", i32, [N]), Func("padded")
    padded[x] = condition(a)[x - 3]
    out = run(pipeline_of(padded, [N + 6], a), None, np.array([1, 2, 3], np.int32))
    assert out.tolist() == expected


# Updates


def test_update_of_one_row_and_one_column(run: Run) -> None:
    f = Func("f")
    f[y, x] = i32(y + x)
    f[0, x] = f[1, x] * 10
    f[y, 0] = f[y, 1] + 100
    out = run(pipeline_of(f, [3, 3]), None)
    # Row 0 is ten times row 1; then column 0 is column 1 plus a hundred, in every row.
    assert out.tolist() == [[120, 20, 30], [102, 2, 3], [103, 3, 4]]


def test_update_over_a_domain_reads_what_it_wrote(run: Run) -> None:
    fibonacci, r = Func("fibonacci"), RDom("r", (2, 8))
    fibonacci[x] = 1
    fibonacci[r] = fibonacci[r - 1] + fibonacci[r - 2]
    out = run(pipeline_of(fibonacci, [10]), None)
    assert out.tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def test_update_scheduled_apart_from_its_pure_definition(run: Run) -> None:
    f, r = Func("f"), RDom("r", 5)
    f[y, x] = i32(0)
    f[y, x] = f[y, x] + i32(r) * i32(x + y)
    pipeline = pipeline_of(f, [H, W])
    s = Schedule(pipeline)
    s[f].split(x, xo, xi, 4).vectorize(xi)
    s[f].update(0).reorder(r, y, x).vectorize(x)
    out = run(pipeline, s, sizes={"H": 3, "W": 6})
    assert np.array_equal(out, 10 * np.add.outer(np.arange(3), np.arange(6)))


def test_producer_with_an_update_is_computed_at_a_loop_of_its_consumer(run: Run) -> None:
    producer, consumer, r = Func("producer"), Func("consumer"), RDom("r", 4)
    producer[x] = i32(x)
    producer[x] = producer[x] + i32(r)
    consumer[y, x] = producer[x] * producer[x + 1] + i32(y)
    pipeline = pipeline_of(consumer, [3, 5])
    s = Schedule(pipeline)
    s[producer].compute_at(consumer, y)
    out = run(pipeline, s)
    line = np.arange(6) + 6
    assert np.array_equal(out, np.add.outer(np.arange(3), line[:-1] * line[1:]))


# Reductions


REDUCTIONS = {
    "sum": (lambda a, r: sum(a[r], over=r), 14),
    "prod": (lambda a, r: prod(a[r], over=r), -90),
    "min": (lambda a, r: min(a[r], over=r), -2),
    "max": (lambda a, r: max(a[r], over=r), 9),
    "any": (lambda a, r: i32(any(a[r] > 8, over=r)), 1),
    "all": (lambda a, r: i32(all(a[r] > -2, over=r)), 0),
    "argmin": (lambda a, r: argmin(a[r], over=r), 2),
    "argmax": (lambda a, r: argmax(a[r], over=r), 3),
}


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reduction_of_five_known_numbers(run: Run, kind: str) -> None:
    reduce, expected = REDUCTIONS[kind]
    a, out, r = Input("a", i32, [N]), Func("out"), RDom("r", N)
    out[x] = reduce(a, r)
    numbers = np.array([5, 1, -2, 9, 1], np.int32)
    assert run(pipeline_of(out, [1], a), None, numbers).tolist() == [expected]


def test_reduction_inside_an_expression_is_a_func_that_schedules_name(run: Run) -> None:
    a, mean, r = Input("a", f32, [H, N]), Func("mean"), RDom("r", N)
    mean[y] = sum(a[y, r], over=r) / f32(N)
    pipeline = pipeline_of(mean, [H], a)
    s = Schedule(pipeline)
    s["mean_sum"].compute_root()
    rows = np.array([[1, 2, 3, 6], [8, 8, 8, 8]], np.float32)
    assert run(pipeline, s, rows).tolist() == [3.0, 8.0]


def test_domain_of_two_dimensions_sums_a_window(run: Run) -> None:
    a, window = Input("a", i32, [H, W]), Func("window")
    r = RDom("r", (-1, 3), (-1, 3))
    edge = constant_exterior(a, 0)
    window[y, x] = sum(edge[y + r[0], x + r[1]], over=r)
    out = run(pipeline_of(window, [H, W], a), None, np.ones((3, 4), np.int32))
    assert out.tolist() == [[4, 6, 6, 4], [6, 9, 9, 6], [4, 6, 6, 4]]


def test_where_cuts_a_triangle_from_a_square(run: Run) -> None:
    count, r = Func("count"), RDom("r", (0, 6), (0, 6))
    triangle = r.where(r[0] <= r[1])
    count[x] = sum(i32(1), over=triangle) + i32(x)
    assert run(pipeline_of(count, [2]), None).tolist() == [21, 22]


def test_where_cuts_a_disc_from_a_square(run: Run) -> None:
    disc, r = Func("disc"), RDom("r", (-2, 5), (-2, 5))
    inside = r.where(r[0] * r[0] + r[1] * r[1] <= 4)
    disc[x] = sum(i32(1), over=inside)
    assert run(pipeline_of(disc, [1]), None).tolist() == [13]


# Choices and data-dependent indices


def test_select_chooses_by_the_first_condition_that_holds(run: Run) -> None:
    steps = Func("steps")
    steps[x] = select(x < 2, i32(10), x < 4, i32(20), i32(30))
    assert run(pipeline_of(steps, [6]), None).tolist() == [10, 10, 20, 20, 30, 30]


def test_lookup_through_a_table_is_bounded_by_clamp(run: Run) -> None:
    table, index = Input("table", i32, [4]), Input("index", i32, [N])
    looked_up = Func("looked_up")
    looked_up[x] = table[clamp(index[x], 0, 3)]
    pipeline = pipeline_of(looked_up, [N], table, index)
    values = np.array([10, 11, 12, 13], np.int32)
    wanted = np.array([3, 0, -5, 99, 2], np.int32)
    assert run(pipeline, None, values, wanted).tolist() == [13, 10, 10, 13, 12]
