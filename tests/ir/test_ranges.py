"""Numeric ranges contain every value, of indices and of data that wraps."""

from hypothesis import given
from hypothesis import strategies as st

from tensorlang.ir.expr import Binary, Call, Cast, Const, Expr, Param, Select, Size, Unary, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.ranges import dtype_range, fits, intersect, range_of, union
from tensorlang.ir.types import bool_, f32, i8, i16, i32, index, u8
from tensorlang.ir.walk import fold
from tests.ir.evaluation import value_of
from tests.ir.index_exprs import Scene, index_exprs, scenes

a, b, s = Param("a", i8), Param("b", u8), Param("s", i16)
NAMES = {p.name: p for p in (a, b, s)}
_OPS = ["add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "shr"]


def _of_i16(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(Binary, st.sampled_from(_OPS), inner, inner),
        st.builds(Select, st.builds(lambda x, y: x < y, inner, inner), inner, inner),
        inner.map(lambda e: Unary("neg", e)),
        inner.map(lambda e: Call("abs", (e,), i16)),
        inner.map(lambda e: Cast(i16, Cast(u8, e))),
    )


leaves = st.sampled_from([Cast(i16, a), Cast(i16, b), s]) | st.integers(-9, 300).map(
    lambda n: Const(n, i16)
)
data_exprs = st.recursive(leaves, _of_i16, max_leaves=6)


@given(data_exprs, st.integers(-128, 127), st.integers(0, 255), st.integers(-(2**15), 2**15 - 1))
def test_data_lies_in_its_range(e: Expr, x: int, y: int, z: int):
    lo, hi = fold(e, range_of)
    assert lo is not None
    assert hi is not None
    assert lo <= value_of(e, {"a": x, "b": y, "s": z}) <= hi


@given(index_exprs, scenes())
def test_an_index_lies_in_its_range_under_facts(e: Expr, scene: Scene):
    lo, hi = scene.facts.known.range_of_term(e)
    for point, value in scene.values(e):
        assert lo is None or lo <= value, point  # type: ignore[operator]
        assert hi is None or value <= hi, point  # type: ignore[operator]


def test_ranges_are_tight_where_nothing_wraps():
    byte = Cast(index, b)
    facts = Facts.none.with_range("i", 0, 10)
    i = Var("i")
    cases = {
        byte * 2 - 1: (-1, 509),
        byte // 16: (0, 15),
        i % 16: (0, 9),
        i % 4: (0, 3),
        -i: (-9, 0),
        Size("N") + 3: (3, None),
        i * i: (0, 81),
    }
    for e, expected in cases.items():
        assert facts.known.range_of_term(e) == expected


def test_dtypes():
    assert dtype_range(i8) == (-128, 127)
    assert dtype_range(bool_) == (0, 1)
    assert dtype_range(f32) == (None, None)
    assert fits((0, 255), u8)
    assert not fits((0, 256), u8)
    assert not fits((0, None), i32)


def test_union_and_intersection():
    assert union((0, 3), (5, None)) == (0, None)
    assert intersect((0, None), (None, 7)) == (0, 7)
