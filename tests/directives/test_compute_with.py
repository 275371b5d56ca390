"""compute_with: two stages in one set of loops."""

import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, ScheduleError, Size, Var, f32, sum
from tensorlang.testing import assert_equivalent

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")


def rows() -> Pipeline:
    x, r, f = Input("X", f32, [M, N]), RDom("r", N), Func("f")
    f[i] = sum(x[i, r], over=r)
    return Pipeline("rows", inputs=[x], outputs={f: [M]})


def pair(reads: bool) -> Pipeline:
    x, f, g = Input("X", f32, [M, N]), Func("f"), Func("g")
    f[i, j] = x[i, j] * 2
    g[i, j] = (f[i, j] if reads else x[i, j]) + 1
    return Pipeline("pair", inputs=[x], outputs={f: [M, N], g: [M, N]})


def test_an_update_shares_the_loops_of_its_initialisation():
    p = rows()
    s = Schedule(p)
    s["f"].split(i, "io", "ii", 4).parallel("io").vectorize("ii")
    s["f"].update().split(i, "io", "ii", 4).reorder("io", "r", "ii").parallel("io")
    s["f"].update().compute_with("f", "io")
    assert s.loop_nest().count("parallel io") == 1
    assert_equivalent(p, s, target="interpreter")
    assert Schedule.parse(str(s), p) == s


def test_two_outputs_share_loops_when_neither_reads_the_other():
    p = pair(reads=False)
    s = Schedule(p)
    for f in ("f", "g"):
        s[f].tile(i, j, "io", "jo", "ii", "ji", 4, 8)
    s["g"].compute_with("f", "jo")
    assert s.loop_nest().count("for io") == 1
    assert_equivalent(p, s, target="interpreter")


@pytest.mark.parametrize(
    ("reads", "apply", "code"),
    [
        (True, lambda s: s["g"].compute_with("f", "i"), "stages-depend"),
        (False, lambda s: s["g"].split(j, "jo", "ji", 4).compute_with("f", "i"), None),
        (False, lambda s: s["g"].fuse(i, j, "t") and s["g"].compute_with("f", "i"), "unknown-loop"),
        (False, lambda s: s["g"].reorder(j, i).compute_with("f", "i"), "loops-differ"),
        (False, lambda s: s["f"].compute_with("g", "i"), None),
        (True, lambda s: s["f"].compute_with("g", "i"), "stages-depend"),
        (False, lambda s: s["g"].compute_with("g", "i"), "unknown-func"),
    ],
)
def test_what_cannot_share_loops_is_refused(reads, apply, code):
    p = pair(reads)
    s = Schedule(p)

    def run() -> None:
        apply(s)
        p.lower(s)

    if code is None:
        run()
        assert_equivalent(p, s, target="interpreter")
        return
    with pytest.raises(ScheduleError) as caught:
        run()
    assert caught.value.code == code


def two_sums() -> Pipeline:
    """Two products of one matrix, which is itself computed."""
    x, t, r = Input("X", f32, [M, N]), Func("t"), RDom("r", N)
    f, g = Func("f"), Func("g")
    t[i, j] = x[i, j] * x[i, j]
    f[i] = 1 + sum(t[i, r], over=r)
    g[i] = 2 * sum(t[i, r] * t[i, r], over=r)
    return Pipeline("two_sums", inputs=[x], outputs={f: [M], g: [M]})


@pytest.mark.parametrize(("first", "second"), [("f", "g"), ("g", "f")])
def test_what_two_sums_of_two_outputs_need_is_computed_once_in_their_loop(first, second, golden):
    p = two_sums()
    s = Schedule(p)
    for name in ("f", "g"):
        s[name].split(i, "io", "ii", 4)
    for name in ("f", "g"):
        s[f"{name}_sum"].compute_at(first, "io")
        s[f"{name}_sum"].update(0).split("r", "ro", "ri", 8).reorder("ro", "i", "ri")
    s[second].compute_with(first, "io")
    s[f"{second}_sum"].update(0).compute_with(f"{first}_sum", "ro")
    s["t"].compute_at(f"{first}_sum", "ro")
    assert s.loop_nest().count("allocate t[4, 8]") == 1
    assert_equivalent(p, s, target="interpreter")
    assert Schedule.parse(str(s), p) == s
    if first == "f":
        golden(s.loop_nest())


def test_sums_of_which_one_needs_the_other_do_not_share_their_loop():
    x, f, g, r = Input("X", f32, [M, N]), Func("f"), Func("g"), RDom("r", N)
    f[i] = sum(x[i, r], over=r)
    g[i] = sum(x[i, r] * f[i], over=r)
    p = Pipeline("p", inputs=[x], outputs={f: [M], g: [M]})
    s = Schedule(p)
    s["g"].update(0).compute_with("f", i)
    with pytest.raises(ScheduleError, match="stages-depend"):
        p.lower(s)


def test_a_loop_of_one_iteration_is_shared_too():
    a, k, c = Input("A", f32, [5, N]), RDom("k", N), Func("C")
    c[i] = sum(a[i, k], over=k)
    p = Pipeline("p", inputs=[a], outputs={c: [5]})
    s = Schedule(p)
    s["C"].split(i, "io", "ii", 8).vectorize("ii")
    s["C"].update(0).split(i, "io", "ii", 8).reorder("io", "k", "ii").vectorize("ii")
    s["C"].update(0).compute_with("C", "io")
    assert_equivalent(p, s, "interpreter")
