import time

from hypothesis import given

from tensorlang.ir.expr import Binary, Const, Expr, Load, Param, Size, Unary, Var
from tensorlang.ir.types import f32, index
from tensorlang.ir.walk import fold, loads_of, postorder, rewrite, substitute
from tensorlang.testing.exprs import exprs

i, j, k = Var("i"), Var("j"), Var("k")
x = Param("x", f32)


def doublings(count: int) -> Expr:
    e: Expr = x
    for _ in range(count):
        e = e + e
    return e


def chain(length: int) -> Expr:
    e: Expr = i
    for _ in range(length):
        e = j + e
    return e


@given(exprs())
def test_postorder_gives_each_node_once_and_operands_first(e: Expr):
    order = list(postorder(e))
    place = {part: at for at, part in enumerate(order)}
    assert len(place) == len(order)
    assert order[-1] is e
    assert all(place[child] < place[part] for part in order for child in part.children)


def test_postorder_of_several_roots_shares_what_they_share():
    order = list(postorder(i + j, (i + j) * k))
    assert [id(e) for e in order] == [id(e) for e in (i, j, i + j, k, (i + j) * k)]


def test_fold_visits_a_shared_node_once():
    visits: list[Expr] = []

    def depth(e: Expr, operands: list[int]) -> int:
        visits.append(e)
        return 1 + max(operands, default=0)

    assert fold(doublings(20), depth) == 21
    assert len(visits) == 21


def test_fold_keeps_its_memo_between_calls():
    memo: dict[Expr, int] = {}
    count = 0

    def size(e: Expr, operands: list[int]) -> int:
        nonlocal count
        count += 1
        return 1 + sum(operands)

    assert fold(i + j, size, memo) == 3
    assert fold((i + j) * (i + j), size, memo) == 7
    assert count == 4


@given(exprs())
def test_rewriting_nothing_gives_the_same_object(e: Expr):
    assert rewrite(e, lambda part: part) is e


def test_rewrite_applies_the_rule_to_operands_first():
    def less(e: Expr) -> Expr:
        # a + 0 -> a
        return e.a if isinstance(e, Binary) and e.b is Const(0, index) else e

    assert rewrite(((i + 0) + 0) * (j + 0), less) is i * j


def test_substitution_is_simultaneous():
    assert substitute(i + j * 2, {"i": j, "j": i}) is j + i * 2
    assert substitute(i + 1, {"i": i + 1}) is i + 1 + 1


def test_substitution_reaches_sizes_params_and_indices():
    e = Load("A", (i + Size("M"),), 0, f32) * x
    values = {"i": Const(3, index), "M": k, "x": Const(2.0, f32)}
    assert substitute(e, values) is Load("A", (3 + k,), 0, f32) * 2.0


@given(exprs())
def test_what_does_not_mention_a_name_stays_the_same_object(e: Expr):
    assert substitute(e, {"nowhere": i}) is e
    assert substitute(e, {}) is e


def test_substitution_leaves_shared_parts_shared():
    e = substitute(doublings(200), {"x": x * 2.0})
    assert sum(1 for _ in postorder(e)) == 203


def test_walks_do_not_recurse_and_visit_shared_nodes_once():
    start = time.perf_counter()
    for e, depth in ((chain(20_000), 20_001), (doublings(500), 501)):
        assert sum(1 for _ in postorder(e)) in (depth, depth + 1)
        assert fold(e, lambda _, operands: 1 + max(operands, default=0)) == depth
        assert rewrite(e, lambda part: part) is e
        assert substitute(e, {"i": k, "x": Unary("neg", x)}) is not e
    assert time.perf_counter() - start < 10


def test_loads_are_found_wherever_they_stand_once_each():
    inner = Load("B", (i,), 0, index)
    outer = Load("A", (inner,), 0, f32)
    assert [e.buffer for e in loads_of(outer + outer, x)] == ["B", "A"]
    assert list(loads_of(x, i + j)) == []
