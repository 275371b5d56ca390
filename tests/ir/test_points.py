"""Whether a domain has a point."""

import pytest

from tensorlang.calling.evaluate import evaluate
from tensorlang.ir.expr import Const, Expr, Size, Var
from tensorlang.ir.points import has_point
from tensorlang.ir.types import index

r, i, N = Var("r"), Var("i"), Size("N")


@pytest.mark.parametrize(
    "where", [None, r <= i, (r <= i) & (i < r + 3), (i < 4) & (r > i - 2), r == i - 1]
)
def test_it_is_what_looking_at_every_point_finds(where: Expr | None) -> None:
    found = has_point("r", Const(1, index), N, where)
    assert found is not None
    for n in range(5):
        for at in range(-3, 8):
            names = {"N": n, "i": at}
            points = range(1, 1 + n)
            held = [where is None or evaluate(where, {**names, "r": p}) for p in points]
            assert bool(evaluate(found, names)) == any(held)


@pytest.mark.parametrize("where", [2 * r <= i, (r <= i) | (r > 5), r * r <= i])
def test_what_is_not_plain_is_left_to_the_loop(where: Expr) -> None:
    assert has_point("r", Const(0, index), N, where) is None
