"""The first program: every Func at root, its loops as the schedule has them."""

import numpy as np

from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, cumsum, f32
from tensorlang.ir.stmt import Stage, walk
from tests.lower.algorithms import i, j, matmul, rows, two_stages
from tests.lower.between import programs, run, text

M, N = Size("M"), Size("N")


def test_every_func_is_at_root_over_all_that_its_consumers_need(golden) -> None:
    pipeline = two_stages()
    program = programs(pipeline, Schedule(pipeline))["build_nests"]
    golden(text(program))
    out = run(pipeline, program, np.array([1, 2, 3, 4], np.int32))
    assert out[0].tolist() == [6, 10, 14]


def test_bindings_and_guards_stand_just_inside_the_last_loop_that_they_need(golden) -> None:
    pipeline = rows()
    s = Schedule(pipeline)
    s["g"].split(i, "io", "ii", 4).split(j, "jo", "ji", 8).reorder("io", "jo", "ii", "ji")
    golden(text(programs(pipeline, s)["build_nests"]))


def test_a_loop_that_was_split_again_is_recovered_from_the_inside_out(golden) -> None:
    pipeline = two_stages()
    s = Schedule(pipeline)
    s["g"].split(i, "io", "ii", 48).split("ii", "iio", "iii", 32)
    program = programs(pipeline, s)["build_nests"]
    golden(text(program))
    values = np.arange(101, dtype=np.int32)
    assert np.array_equal(run(pipeline, program, values)[0], 2 * (values[1:] + values[:-1]))


def test_an_update_runs_after_the_pure_definition(golden) -> None:
    pipeline = matmul()
    program = programs(pipeline, Schedule(pipeline))["build_nests"]
    golden(text(program))
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(run(pipeline, program, a, a.T)[0], a @ a.T)


def test_what_a_scan_replaces_everywhere_is_not_computed_before():
    x, k, y = Input("x", f32, [M, N]), RDom("k", N), Func("y")
    y[i, k] = cumsum(x[i, k], over=k)
    pipeline = Pipeline("running", inputs=[x], outputs={y: [M, N]})
    program = programs(pipeline, Schedule(pipeline))["build_nests"]
    assert [s.number for s in walk(program.body) if isinstance(s, Stage)] == [1]
    part = Func("part")
    part[i, j] = y[i, j] + y[i, 0]
    pipeline = Pipeline("part", inputs=[x], outputs={part: [M, N]})
    program = programs(pipeline, Schedule(pipeline))["build_nests"]
    stages = [(s.func, s.number) for s in walk(program.body) if isinstance(s, Stage)]
    assert ("y", 0) in stages
