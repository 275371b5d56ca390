"""in_ and clone_in: consumers read a Func of their own."""

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


def matmul() -> Pipeline:
    a, b, k = Input("A", f32, [M, K]), Input("B", f32, [K, N]), RDom("k", K)
    c = Func("C")
    c[i, j] = sum(a[i, k] * b[k, j], over=k)
    return Pipeline("matmul", inputs=[a, b], outputs={c: [M, N]})


def chain() -> Pipeline:
    a, f, g, h = Input("A", f32, [N + 2]), Func("f"), Func("g"), Func("h")
    f[i] = a[i] * 2
    g[i] = f[i] + f[i + 1]
    h[i] = g[i] + f[i + 2]
    return Pipeline("chain", inputs=[a], outputs={h: [N]})


def test_a_copy_of_an_input_stages_a_tile():
    p = matmul()
    s = Schedule(p)
    staged = s["B"].in_("C")
    s["C"].update().split("k", "ko", "ki", 4).reorder("ko", "i", "j", "ki")
    s[staged].compute_at("C", "ko")
    assert staged.name == "B_in_C"
    assert "allocate B_in_C[4, N]" in s.loop_nest()
    assert_equivalent(p, s, target="interpreter")


def test_in_redirects_only_the_consumers_named():
    p = chain()
    s = Schedule(p)
    s["f"].compute_root()
    copy = s["f"].in_("h")
    s[copy].compute_root()
    assert s.state.algorithm.consumers("f") == ("g", "f_in_h")
    assert s.state.algorithm.consumers("f_in_h") == ("h",)
    assert_equivalent(p, s, target="interpreter")


def test_clone_in_computes_the_func_again_under_its_own_schedule():
    p = chain()
    s = Schedule(p)
    s["f"].compute_root()
    s["g"].compute_root()
    clone = s["f"].clone_in("g")
    s["h"].split(i, "io", "ii", 4)
    s[clone].compute_at("g", "i")
    assert s.state.algorithm.consumers("f") == ("h",)
    assert_equivalent(p, s, target="interpreter")


@pytest.mark.parametrize("first", ["table", "where"])
@pytest.mark.parametrize("kept_outside", [False, True])
def test_what_an_index_reads_may_be_staged_before_or_after_what_it_is_an_index_of(
    first: str, kept_outside: bool
):
    n = Size("N")
    table, where, out = Input("table", f32, [7]), Input("where", i32, [n]), Func("out")
    out[i] = table[clamp(where[i], 0, 6)]
    p = Pipeline("lookup", inputs=[table, where], outputs={out: [n]})
    s = Schedule(p)
    for name in (first, "where" if first == "table" else "table"):
        s[s[name].in_()].compute_at(out, i)
    if kept_outside:
        s["where_in"].store_root()
    # What of the table is needed is one element where it is known, and otherwise all of it.
    one = "allocate table_in: f32[table_in._0.min : +1]" in str(p.lower(s))
    assert one == (first == "where")
    assert_equivalent(p, s, "interpreter")


@pytest.mark.parametrize(
    ("apply", "code"),
    [
        (lambda s: s["f"].in_("f"), "not-a-consumer"),
        (lambda s: s["h"].in_(), "not-a-consumer"),
        (lambda s: s["A"].clone_in("f"), "input-has-no-loops"),
        (lambda s: s["A"].split("i", "a", "b", 2), "input-has-no-loops"),
        (lambda s: (s["f"].in_("g"), s["f"].in_("g")), "not-a-consumer"),
    ],
)
def test_copies_are_refused_between_strangers(apply, code):
    with pytest.raises(ScheduleError) as caught:
        apply(Schedule(chain()))
    assert caught.value.code == code


def test_copies_print_as_assignments_that_parse_back():
    p = matmul()
    s = Schedule(p)
    s[s["B"].in_("C")].compute_at("C", "i")
    assert str(s) == "B_in_C = s[B].in_(C)\ns[B_in_C].compute_at(C, i)"
    assert Schedule.parse(str(s), p) == s
    assert "s = Schedule(matmul)\nB_in_C = s[B].in_(C)" in s.to_python()
