"""The whole message of everything that can be wrong with a text."""

import contextlib
import tempfile
from pathlib import Path

import pytest

import tensorlang as tl
from tensorlang import Schedule
from tensorlang.text.loop_ir import parse_expr, parse_program
from tests.errors.mistakes import Mistakes

mistake = Mistakes()

MATMUL = """
algorithm matmul(A: f32[M, K], B: f32[K, N], alpha: f32) -> C[M, N] {
  P[i, j] = sum(A[i, k]*B[k, j], over=k in [0, K))
  C[i, j] = P[i, j]*alpha
}
"""
PROGRAM = """
program double(N; a: f32[N]) -> b: f32[N]:
  stage b.0:
    for b.i in [0, N):
      b[b.i] = a[b.i]*2.0:f32
"""


def module(part: str, other: str, text: str = MATMUL):
    assert part in text
    return tl.parse(text.replace(part, other, 1), "matmul.tl")


def schedule(text: str):
    return Schedule.parse(text, tl.parse(MATMUL).pipelines["matmul"], "fast.schedule")


def program(part: str, other: str):
    assert part in PROGRAM
    return parse_program(PROGRAM.replace(part, other, 1), "double.ir")


# --- files -------------------------------------------------------------------------------------


@mistake
def not_utf8():
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        file = Path("latin.tl")
        file.write_bytes(MATMUL.strip().replace("alpha", "gr\u00f6\u00dfe").encode("latin-1"))
        return tl.load(file)


# --- algorithms --------------------------------------------------------------------------------


@mistake
def unexpected_text():
    return module("over=k in [0, K)", "over=k")


@mistake
def unexpected_text__that_ends_too_early():
    return module("\n}", "")


@mistake
def unexpected_text__a_strange_sign():
    return module("*alpha", "$alpha")


@mistake
def unknown_name():
    return module("*alpha", "*alhpa")


@mistake
def unknown_name__of_an_array():
    return module("P[i, j]*alpha", "Q[i, j]*alpha")


@mistake
def unknown_name__of_a_function():
    return module("P[i, j]*alpha", "tan(P[i, j])*alpha")


@mistake
def unknown_name__of_a_dtype():
    return module("alpha: f32", "alpha: float")


@mistake
def unknown_name__of_an_output():
    return module("-> C", "-> D")


@mistake
def unknown_name__of_an_algorithm():
    return module("\n}", "\n}\nschedule s for matmull {}")


@mistake
def not_indexed():
    return module("P[i, j]*", "P*")


@mistake
def not_defined_first():
    return module("C[i, j] =", "C[i, j] +=")


@mistake
def name_twice():
    return module("B: f32", "A: f32")


@mistake
def name_twice__in_a_module():
    return tl.parse(MATMUL + MATMUL, "matmul.tl")


@mistake
def unused_name():
    return module("alpha: f32", "alpha: f32, beta: f32")


@mistake
def bad_reduction():
    return module("sum(A[i, k]*B[k, j], over", "exp(A[i, k]*B[k, j], over")


@mistake
def bad_reduction__without_points():
    return module("*alpha", "*sum(alpha)")


@mistake
def bad_constant():
    return module("*alpha", "*alpha*3:f33")


@mistake
def no_such_component():
    return module("P[i, j]*", "P[i, j].2*")


@mistake
def wrong_count():
    return module("*alpha", "*exp(alpha, 2)")


@mistake
def wrong_rank():
    return module("P[i, j]*", "P[i]*")


@mistake
def pure_var_moved():
    return module("*alpha", "*alpha\n  C[i, j] += C[i - 1, j]")


@mistake
def update_changes_dtype():
    return module("*alpha", "*alpha\n  C[0, j] = 0.5:f64")


# --- schedules ---------------------------------------------------------------------------------


@mistake
def unknown_version():
    return schedule("# tensorlang schedule 7\ns[C].vectorize(j)")


@mistake
def unknown_directive():
    return schedule("s[C].vectorise(j)")


@mistake
def bad_arguments():
    return schedule("s[C].split(i, io, ii)")


@mistake
def bad_arguments__of_another_kind():
    return schedule("s[C].split(i, io, ii, 8, tail=3)")


@mistake
def bad_update():
    return schedule("s[P].update(k).vectorize(k)")


@mistake
def unknown_update():
    return schedule("s[P].update(1).vectorize(k)")


@mistake
def unknown_func():
    return schedule("s[D].vectorize(j)")


@mistake
def unknown_loop():
    return schedule("s[C].split(i, io, ii, 8)\ns[C].vectorize(i)")


@mistake
def algorithm_changed():
    return schedule("s[D].vectorize(j)\ns[C].vectorize(x).unroll(y)\ns[P].compute_at(C, z)")


@mistake
def unexpected_text__of_a_schedule():
    return schedule("s[C].split(i io ii)")


@mistake
def unknown_target():
    return module("\n}", "\n}\nschedule s for matmul on gpu {}")


# --- loop IR -----------------------------------------------------------------------------------


@mistake
def bad_indentation():
    return program("      b[b.i]", "      pass\n   b[b.i]")


@mistake
def ill_typed():
    return program("2.0:f32", "2:i32")


@mistake
def not_a_program():
    return program("b[b.i] =", "b[b.i, 0] =")


@mistake
def not_from_zero():
    return program("[0, N)", "[1, N)")


@mistake
def unknown_error():
    return program(
        "  stage", '  assert 1 <= N else TypeError("few",\n    what="a", why="b", fix="c")\n  stage'
    )


@mistake
def not_loop_ir():
    return program("a[b.i]*", "sum(a[b.i], over=k in [0, 3))*")


@mistake
def unknown_name__in_loop_ir():
    return program("a[b.i]", "c[b.i]")


@mistake
def bad_constant__a_bare_float():
    return parse_expr("1.5", {}, "<expression>")


@pytest.mark.parametrize("name", mistake)
def test_the_message_of_a_wrong_text(name, golden):
    mistake.check(name, golden)
