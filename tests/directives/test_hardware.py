"""pipeline, gpu_warps, warp_specialize, load_with, store_with, cache, prefetch ...: hints."""

import numpy as np
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
    sum,
)
from tensorlang.testing import assert_equivalent

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")


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


# --- prefetch ------------------------------------------------------------------------------------


def prefetched(offset=2):
    a, b = Input("A", f32, [M, K]), Input("B", f32, [K, N])
    k, c = RDom("k", K), Func("C")
    c[i, j] = sum(a[i, k] * b[k, j], over=k)
    p = Pipeline("matmul", inputs=[a, b], outputs={c: [M, N]})
    s = Schedule(p)
    s["C"].update(0).reorder("k", i, j).vectorize(j).prefetch("B", "k", offset)
    return p, s


@pytest.mark.cc
def test_a_row_is_asked_for_two_iterations_before_it_is_read():
    p, s = prefetched()
    kernel = p.compile(s, "c")
    assert "if (k + 2 < K) {" in kernel.source
    assert "__builtin_prefetch(&B[" in kernel.source
    assert "const int64_t ahead0 = k + 2;" in kernel.source
    assert kernel.notes == ()
    assert_equivalent(p, s, "c")


def test_other_targets_say_that_they_do_not_prefetch():
    p, s = prefetched(3)
    assert_equivalent(p, s, "interpreter")
    assert_equivalent(p, s, "triton")
    assert any("prefetch.B=3" in note for note in p.compile(s, "triton").notes)
    assert str(s).endswith("prefetch(B, k, offset=3)")
    assert Schedule.parse(str(s), p) == s


@pytest.mark.cc
def test_what_data_decides_is_not_asked_for():
    a, at, out = Input("A", f32, [N]), Input("at", i32, [N]), Func("out")
    out[i] = a[clamp(at[i], 0, N - 1)]
    p = Pipeline("gather", inputs=[a, at], outputs={out: [N]})
    s = Schedule(p)
    s["out"].prefetch("at", i, 8).prefetch("out", i)
    kernel = p.compile(s, "c")
    assert "__builtin_prefetch(&at[" in kernel.source
    assert_equivalent(p, s, "c", [np.ones(9, np.float32), np.arange(9, dtype=np.int32)])


def test_the_last_hint_of_a_kind_counts():
    p = rows()
    s = Schedule(p)
    s["A"].cache("evict_first").load_with("pointer").cache("evict_last")
    text = str(p.lower(s))
    assert 'cache="evict_last"' in text
    assert "evict_first" not in text
