"""Names of a program as C identifiers."""

import pytest

from tensorlang.backends.c.names import Names
from tensorlang.text.loop_ir import parse_program

PROGRAM = """
program p(N; A: f32[N]) -> B: f32[N]:
  for f.x in [0, N):
    for g.y in [0, N):
      for f.y in [0, N):
        B[f.x] = A[g.y]
"""


def names() -> Names:
    return Names(parse_program(PROGRAM))


def test_a_loop_has_its_short_name_where_that_is_unique() -> None:
    assert names()["f.x"] == "x"
    assert (names()["f.y"], names()["g.y"]) == ("f_y", "g_y")


def test_fresh_names_clash_with_none() -> None:
    made = names()
    assert made["A"] == "A"
    assert [made.fresh("A"), made.fresh("A"), made.fresh("t"), made.fresh("t")] == [
        "A_1", "A_2", "t", "t_1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        *("int", "restrict", "NULL", "f32x8", "exp_f32x8", "f32_from_f16_x8", "f8e4m3", "index"),
        *("u8x16_at", "sinf", "log1pl", "int64_t", "INT8_MAX", "_Bool", "omp_x"),
    ],
)
def test_what_c_or_the_prelude_uses_is_not_given_away(name: str) -> None:
    assert names().fresh(name) == name + "_"


@pytest.mark.parametrize("name", ["xs", "f", "x8", "f32x", "sines", "interior", "lanes_x8"])
def test_other_names_stay(name: str) -> None:
    assert names().fresh(name) == name


def test_letters_beyond_ascii_are_spelled() -> None:
    assert names().fresh("größe") == "gruf6udfe"
