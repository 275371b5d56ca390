"""atomic: iterations of a reduction that update one element at once."""

import numpy as np
import pytest

from tensorlang import (
    Func,
    Input,
    ParseError,
    Pipeline,
    RDom,
    Schedule,
    ScheduleError,
    Size,
    TargetError,
    Var,
    argmax,
    clamp,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    maximum,
    minimum,
    sum,
    u8,
)
from tensorlang.arrays import numpy_dtype
from tensorlang.backends.interpreter import compile_program
from tensorlang.errors import InternalError
from tensorlang.target import Target
from tensorlang.testing import assert_equivalent
from tensorlang.text.loop_ir import parse_program

N, B = Size("N"), Size("B")
i, b = Var("i"), Var("b")
TARGETS = ("interpreter", pytest.param("c", marks=pytest.mark.cc), "triton")


def histogram(dtype=i32, op=lambda old, new: old + new, start=0) -> Pipeline:
    """out[b] = start, then out[at[r]] = op(out[at[r]], a[r])"""
    a, at, out, r = Input("A", dtype, [N]), Input("at", i32, [N]), Func("out"), RDom("r", N)
    out[b] = dtype(start)
    place = clamp(at[r], 0, 4)
    out[place] = op(out[place], a[r])
    return Pipeline("histogram", inputs=[a, at], outputs={out: [5]})


def scattered(dtype=i32, n=37):
    rng = np.random.default_rng(1)
    low = 0 if dtype is u8 else -2
    a = rng.integers(low, 4, n).astype(numpy_dtype(dtype))
    return [a, rng.integers(-2, 7, n).astype(np.int32)]


def in_parallel(p: Pipeline) -> Schedule:
    s = Schedule(p)
    s["out"].update(0).atomic().split("r", "ro", "ri", 8).gpu_blocks("ro")
    return s


@pytest.mark.parametrize("target", TARGETS)
def test_a_histogram_scatters_in_parallel(target):
    p = histogram()
    s = in_parallel(p)
    assert "atomic out[" in str(p.lower(s))
    assert_equivalent(p, s, target, scattered())


@pytest.mark.parametrize("target", TARGETS)
def test_lanes_scatter_too(target):
    p = histogram()
    s = in_parallel(p)
    s["out"].update(0).vectorize("ri")
    assert_equivalent(p, s, target, scattered())
    if target == "triton":
        assert "tl.atomic_add" in p.compile(s, target).source
        assert not any("serial" in note for note in p.compile(s, target).notes)


OPERATIONS = {
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": minimum,
    "max": maximum,
    "xor": lambda old, new: old ^ new,
}


@pytest.mark.cc
@pytest.mark.parametrize("dtype", [i8, u8, i32, i64, f16, f32, f64], ids=str)
def test_c_has_every_operation_of_every_dtype(dtype):
    for name, op in OPERATIONS.items():
        if name != "xor" or dtype.is_integer:
            p = histogram(dtype, op, 1)
            assert_equivalent(p, in_parallel(p), "c", scattered(dtype))


@pytest.mark.cc
def test_no_update_is_lost_between_threads():
    p = histogram()
    for target, n in (("c", 40_000), ("interpreter", 400)):
        a, at = np.ones(n, np.int32), (np.arange(n) % 3).astype(np.int32)
        out = p.compile(in_parallel(p), target)(a, at)
        assert out.tolist() == [-(-n // 3), -(-(n - 1) // 3), -(-(n - 2) // 3), 0, 0]


@pytest.mark.parametrize("target", TARGETS)
def test_partial_sums_of_programs_are_added_up(target):
    a, r, out = Input("A", f32, [N]), RDom("r", N), Func("out")
    out[()] = sum(a[r], over=r)
    p = Pipeline("total", inputs=[a], outputs={out: []})
    s = Schedule(p)
    s["out"].update(0).atomic().split("r", "ro", "ri", 16).gpu_blocks("ro").vectorize("ri")
    assert_equivalent(p, s, target, [np.arange(100, dtype=np.float32)])


def test_where_no_iterations_meet_the_store_is_a_plain_one():
    p = histogram()
    s = Schedule(p)
    s["out"].update(0).atomic()
    assert "atomic" not in str(p.lower(s))
    assert "atomic" in str(s)
    assert Schedule.parse(str(s), p) == s


@pytest.mark.parametrize(
    ("dtype", "op", "start"), [(f32, "max", -9), (i32, "mul", 1), (i8, "add", 0)]
)
def test_what_a_gpu_has_no_atomic_for_is_refused_with_a_remedy(dtype, op, start):
    p = histogram(dtype, OPERATIONS[op], start)
    with pytest.raises(TargetError, match="no-atomic") as caught:
        p.compile(in_parallel(p), "triton")
    assert "rfactor" in caught.value.fix


def test_what_is_not_proven_is_refused():
    p = histogram(op=lambda old, new: old * 2 + new)
    with pytest.raises(ScheduleError, match="not-associative"):
        Schedule(p)["out"].update(0).atomic()
    a, k, best = Input("A", f32, [N]), RDom("k", N), Func("best")
    best[()] = argmax(a[k], over=k)
    q = Pipeline("best", inputs=[a], outputs={best: []})
    with pytest.raises(ScheduleError, match="not-associative"):
        Schedule(q)["best_argmax"].update(0).atomic()


def test_without_it_the_loop_is_refused():
    p = histogram()
    with pytest.raises(ScheduleError, match="carried-dependence") as caught:
        Schedule(p)["out"].update(0).parallel("r")
    assert "atomic()" in caught.value.fix


RACE = """
program race(A: i32[4]) -> out: i32[1]:
  out[0] = 0:i32
  parallel i in [0, 4):
    atomic out[0] = out[0] + A[i]
    {}
"""


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("pass", None),
        ("atomic out[0] = out[0] + 1:i32", None),
        ("out[0] = out[0] + A[i]", "read and update"),
        ("out[0] = A[i]", "write and update"),
    ],
)
def test_the_interpreter_tells_atomic_updates_from_races(other, why):
    program = parse_program(RACE.format(other))
    assert parse_program(str(program)).body is not None
    run = compile_program(program, Target("interpreter"))
    out = np.zeros(1, np.int32)
    if why is None:
        run.run({}, {}, [np.arange(4, dtype=np.int32)], [out])
        assert out[0] == (6 if other == "pass" else 10)
    else:
        with pytest.raises(InternalError, match=why):
            run.run({}, {}, [np.arange(4, dtype=np.int32)], [out])


def test_the_verifier_knows_what_can_be_atomic():
    text = RACE.format("atomic out[0] = out[0]*2:i32 + 1:i32")
    with pytest.raises(ParseError, match="an atomic store is no update by an associative"):
        parse_program(text)
