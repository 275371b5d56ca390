"""Which updates combine their terms by an associative operator."""

import pytest

from tensorlang.ir.associativity import associative_operator
from tensorlang.ir.expr import Compare, Expr, Load, Select, Var
from tensorlang.ir.functions import isnan
from tensorlang.ir.types import f32, i64

p, k = Var("p"), Var("k")
OLD, AT = (Load("f", (p,), c, t) for c, t in ((0, f32), (1, i64)))
TERM, HERE = Load("A", (p, k), 0, f32), i64(k)
BETTER = (OLD < TERM) | (isnan(TERM) & ~isnan(OLD))
EQUAL = Compare("eq", TERM, OLD) | (isnan(TERM) & isnan(OLD))


@pytest.mark.parametrize("better", [BETTER, BETTER | (EQUAL & (HERE < AT))])
def test_of_equal_values_the_first_or_the_one_of_the_smaller_place_wins(better: Expr):
    values = Select(better, TERM, OLD), Select(better, HERE, AT)
    assert associative_operator("f", (p,), values) == ("argmax", (TERM, HERE))


@pytest.mark.parametrize(
    "better",
    [
        BETTER | (EQUAL & (AT < HERE)),
        BETTER | (Compare("eq", TERM, TERM) & (HERE < AT)),
        OLD < TERM,
    ],
)
def test_another_order_of_pairs_is_not_proved(better: Expr):
    values = Select(better, TERM, OLD), Select(better, HERE, AT)
    assert associative_operator("f", (p,), values) is None
