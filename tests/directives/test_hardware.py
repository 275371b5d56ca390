"""pipeline, gpu_warps, gpu_registers, warp_specialize, load_with, store_with, cache: hints."""

import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, ScheduleError, Size, Var, f32, sum
from tensorlang.testing import assert_equivalent

M, K = Size("M"), Size("K")
i = Var("i")


def rows() -> Pipeline:
    a, k, f = Input("A", f32, [M, K]), RDom("k", K), Func("f")
    f[i] = sum(a[i, k], over=k)
    return Pipeline("rows", inputs=[a], outputs={f: [M]})


def hinted() -> Schedule:
    s = Schedule(rows())
    s["f"].split(i, "io", "ii", 4).gpu_blocks("io").gpu_warps(2).gpu_registers(64)
    update = s["f"].update().split(i, "io", "ii", 4).split("k", "ko", "ki", 8)
    update.reorder("io", "ko", "ii", "ki").gpu_blocks("io").gpu_warps(4).pipeline("ko", 3)
    update.warp_specialize("ko")
    s["A"].load_with("pointer").cache("evict_first")
    s["f"].store_with("pointer")
    return s


def test_hints_reach_the_loops_and_buffers_of_the_program():
    s = hinted()
    text = str(rows_of(s).lower(s))
    for hint in ("warps=2", "registers=64", "warps=4", "stages=3", "warp_specialize=1"):
        assert hint in text
    assert 'load_with="pointer"' in text
    assert 'cache="evict_first"' in text


def rows_of(s: Schedule) -> Pipeline:
    return Pipeline.of(s.algorithm)


@pytest.mark.parametrize("target", ["interpreter", pytest.param("c", marks=pytest.mark.cc)])
def test_hints_never_change_a_value(target):
    s = hinted()
    assert_equivalent(rows_of(s), s, target=target)


def test_hints_print_and_parse_back():
    s = hinted()
    assert Schedule.parse(str(s), s.algorithm) == s


def test_the_last_of_two_choices_counts():
    s = Schedule(rows())
    s["f"].gpu_blocks(i).gpu_warps(2).gpu_warps(8)
    assert dict(s.state.nests["f", 0].loops[0].hints) == {"warps": 8}


@pytest.mark.parametrize(
    ("apply", "code"),
    [
        (lambda s: s["f"].gpu_blocks(i).gpu_warps(3), "warps-not-legal"),
        (lambda s: s["f"].gpu_warps(4), "no-gpu-blocks"),
        (lambda s: s["f"].gpu_blocks(i).gpu_registers(1000), "registers-not-legal"),
        (lambda s: s["f"].update().pipeline("k", 0), "pipeline-not-serial"),
        (lambda s: s["f"].vectorize(i).pipeline(i, 2), "pipeline-not-serial"),
        (lambda s: s["f"].vectorize(i).warp_specialize(i), "pipeline-not-serial"),
        (lambda s: s["A"].load_with("magic"), "unknown-access"),
        (lambda s: s["f"].store_with("magic"), "unknown-access"),
        (lambda s: s["A"].cache("forever"), "unknown-policy"),
        (lambda s: s["A"].store_with("pointer"), "input-has-no-loops"),
    ],
)
def test_illegal_hints_are_refused(apply, code):
    s = Schedule(rows())
    with pytest.raises(ScheduleError) as caught:
        apply(s)
    assert caught.value.code == code
