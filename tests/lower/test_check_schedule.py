"""What only the whole schedule shows wrong, at the line of the directive."""

from collections.abc import Callable

import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, ScheduleError, i32, repeat_edge, sum
from tests.lower.algorithms import N, i, j, rows


def ragged_lanes(s: Schedule) -> None:
    s["g"].split(j, "jo", "ji", 4, tail="ragged").vectorize("ji")


def blocks_apart(s: Schedule) -> None:
    s["g"].parallel(i).gpu_blocks(j)


def blocks_in_blocks(s: Schedule) -> None:
    s["g"].gpu_blocks(i)
    s["f"].compute_at("g", i).gpu_blocks(j)


def stored_inside(s: Schedule) -> None:
    s["f"].compute_at("g", i).store_at("g", j)


def shared(s: Schedule) -> None:
    s["g"].parallel(j)
    s["f"].store_root().compute_at("g", j)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (ragged_lanes, "lanes-not-constant"),
        (blocks_apart, "gpu-blocks-apart"),
        (blocks_in_blocks, "nested-gpu-blocks"),
        (stored_inside, "store-inside-compute"),
        (shared, "shared-storage"),
    ],
)
def test_a_schedule_that_cannot_be_lowered_is_refused(
    wrong: Callable[[Schedule], None], code: str
) -> None:
    pipeline = rows()
    s = Schedule(pipeline)
    wrong(s)
    with pytest.raises(ScheduleError) as caught:
        pipeline.lower(s)
    assert caught.value.code == code
    assert caught.value.span is not None
    assert caught.value.span.path == __file__


def test_lanes_of_an_extent_that_varies_are_refused() -> None:
    a, f, g = Input("A", i32, [N]), Func("f"), Func("g")
    f[i] = repeat_edge(a)[i] + 1
    g[i] = f[i * 2 - 2] + f[i + 1]
    pipeline = Pipeline("p", inputs=[a], outputs={g: [N]})
    s = Schedule(pipeline)
    s[f].compute_at(g, i).vectorize(i)
    with pytest.raises(ScheduleError, match="lanes-not-constant") as caught:
        pipeline.lower(s)
    assert "it depends on g.i" in str(caught.value)


@pytest.mark.parametrize("kind", ["vectorize", "parallel"])
def test_iterations_that_run_at_once_never_share_a_ring(kind: str) -> None:
    """Each has an element of `f` of its own, but for the ring."""
    a, f, g, k = Input("A", i32, [N, N]), Func("f"), Func("g"), RDom("k", N)
    f[i] = sum(a[i, k], over=k)
    g[i] = f[i] + 1
    pipeline = Pipeline("p", inputs=[a], outputs={g: [N]})
    s = Schedule(pipeline)
    getattr(s[g], kind)(i)
    s[f].store_root().compute_at(g, i)
    pipeline.lower(s)
    s[f].fold_storage(i, 2)
    with pytest.raises(ScheduleError, match="shared-storage"):
        pipeline.lower(s)
