"""Which updates of tuples are proven associative, with what identity, and whether they commute."""

from collections.abc import Callable

import pytest

from tensorlang.ir.expr import Expr, Load, Var
from tensorlang.ir.functions import minimum
from tensorlang.ir.tuple_operators import tuple_operator
from tensorlang.ir.types import DType, f32, i32, u8

Update = Callable[..., tuple[Expr, ...]]
POINT = (Var("x"),)
PROVEN: dict[str, tuple[int, Update, tuple[int, ...], bool]] = {
    "sums": (2, lambda x, y, a, b: (x + a, y + a * a), (0, 0), True),
    "count": (2, lambda x, y, a, b: (x + 1, y - a), (0, 0), True),
    "sum and product": (2, lambda x, y, a, b: (a + x, b * y), (0, 1), True),
    "complex": (2, lambda x, y, a, b: (x * a - y * b, b * x + y * a), (1, 0), True),
    "affine": (2, lambda x, y, a, b: (a * x, a * y + b), (1, 0), False),
    "affine inside": (2, lambda x, y, a, b: (x * a, x * b + y), (1, 0), False),
    "dual": (2, lambda x, y, a, b: (x * a, x * b + y * a), (1, 0), True),
    "matrix": (
        4,
        lambda x, y, z, w, a, b, c, d: (
            *(x * a + y * c, x * b + y * d),
            *(z * a + w * c, z * b + w * d),
        ),
        (1, 0, 0, 1),
        False,
    ),
}
NOT_PROVEN: dict[str, Update] = {
    "difference": lambda x, y, a, b: (a - x, y + b),
    "crossed": lambda x, y, a, b: (y + a, x + b),
    "square": lambda x, y, a, b: (x * x + a, y + b),
    "fibonacci": lambda x, y, a, b: (x + y, x),
    "three terms": lambda x, y, a, b: (x * a + b, y * b + a),
    "no polynomial": lambda x, y, a, b: (minimum(x, a) + y, y + b),
}


def update(make: Update, n: int, dtype: DType = i32) -> tuple[Expr, ...]:
    elements = [Load("f", POINT, k, dtype) for k in range(n)]
    terms = [Load(name, (Var("r"),), 0, dtype) for name in "abcd"[:n]]
    return make(*elements, *terms)


@pytest.mark.parametrize("name", PROVEN)
@pytest.mark.parametrize("dtype", [i32, u8], ids=str)
def test_an_associative_polynomial_is_proven(name: str, dtype: DType) -> None:
    n, make, start, commutes = PROVEN[name]
    found = tuple_operator("f", POINT, update(make, n, dtype))
    assert found is not None
    operator, terms = found
    assert operator.start == start
    assert operator.is_commutative == commutes
    assert len(terms) == n
    # What is combined of partial results is an update of the same operator.
    again = tuple_operator("f", POINT, operator.combine(update(lambda *e: e[:n], n), terms))
    assert again is None or again[0].values == operator.values


@pytest.mark.parametrize("name", NOT_PROVEN)
def test_what_is_not_associative_is_not_proven(name: str) -> None:
    assert tuple_operator("f", POINT, update(NOT_PROVEN[name], 2)) is None


@pytest.mark.parametrize("name", PROVEN)
def test_of_floats_the_equations_hold_over_the_reals_only(name: str) -> None:
    n, make, start, commutes = PROVEN[name]
    values = update(make, n, f32)
    assert tuple_operator("f", POINT, values) is None
    found = tuple_operator("f", POINT, values, of_reals=True)
    assert found is not None
    operator, terms = found
    assert operator.is_commutative == commutes
    assert [e.value for e in operator.identity([f32] * n)] == list(start)
    assert all(e.dtype is f32 for e in (*terms, *operator.combine(terms, terms)))


@pytest.mark.parametrize(
    "make",
    [
        lambda x, y, a, b: (x + a, x - x + y + b),
        lambda x, y, a, b: (x + a, y + b + x * 0),
        NOT_PROVEN["fibonacci"],
    ],
    ids=["cancels", "times 0", "fibonacci"],
)
def test_of_floats_nothing_is_left_out_that_could_be_infinite(make: Update) -> None:
    assert tuple_operator("f", POINT, update(make, 2, f32), of_reals=True) is None


def test_one_float_is_reduced_by_a_known_operator_or_in_order() -> None:
    x, a = (Load(name, POINT, 0, f32) for name in "fa")
    assert tuple_operator("f", POINT, (x - a,), of_reals=True) is None


def test_an_element_somewhere_else_is_no_part_of_the_polynomial() -> None:
    x, y = (Load("f", POINT, k, i32) for k in range(2))
    elsewhere = Load("f", (Var("x") + 1,), 1, i32)
    assert tuple_operator("f", POINT, (x + elsewhere, y)) is None
