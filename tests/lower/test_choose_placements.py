"""Where each Func is computed when its schedule does not say."""

from tensorlang import Func, Input, Pipeline, RDom, Schedule, f32, sum
from tensorlang.directives import Level, Placement
from tensorlang.lower.choose_placements import choose_placements
from tests.lower.algorithms import K, M, N, i, j, two_stages


def chosen(pipeline: Pipeline, s: Schedule | None = None) -> dict[str, Placement]:
    s = s or Schedule(pipeline)
    return dict(choose_placements(s.state.algorithm, s.state))


def softmax_rows() -> Pipeline:
    """out reads a lifted reduction, in two dimensions."""
    a, k, out = Input("A", f32, [M, K]), RDom("k", K), Func("out")
    out[i, j] = a[i, j] / sum(a[i, k], over=k)
    return Pipeline("rows", inputs=[a], outputs={out: [M, K]})


def test_a_pure_func_is_inlined_and_an_output_is_at_root() -> None:
    found = chosen(two_stages())
    assert found["f"].inline
    assert found["g"] == Placement()


def test_a_lifted_reduction_is_computed_at_the_innermost_loop_of_its_home() -> None:
    assert chosen(softmax_rows())["out_sum"] == Placement(Level("out", "j"))


def test_it_stays_outside_the_vectorized_loops() -> None:
    pipeline = softmax_rows()
    s = Schedule(pipeline)
    s["out"].split(j, "jo", "ji", 8).vectorize("ji")
    assert chosen(pipeline, s)["out_sum"] == Placement(Level("out", "jo"))


def test_a_func_with_updates_is_at_root() -> None:
    a, k, f, out = Input("A", f32, [M, K]), RDom("k", K), Func("f"), Func("out")
    f[i] = sum(a[i, k], over=k)
    out[i] = f[i] + 1
    assert chosen(Pipeline("p", inputs=[a], outputs={out: [M]}))["f"] == Placement()


def test_the_schedule_decides_where_it_says() -> None:
    pipeline = two_stages()
    s = Schedule(pipeline)
    s["f"].compute_at("g", i)
    assert chosen(pipeline, s)["f"].compute == Level("g", "i")
    assert N.name == "N"
