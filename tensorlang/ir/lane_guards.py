"""Guards of lanes as forms in the loop around them: for all lanes, or for any."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Compare, Expr, Var
from tensorlang.ir.linear import Linear, to_linear
from tensorlang.ir.stmt import For, If, Let, LoopKind, Stmt, children_of
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute


@dataclass(frozen=True, slots=True)
class Scope:
    """Between a loop and a guard in it: the first and last value of each loop, innermost last.

    Args: guards: the conditions around, of which data may need some to lie inside its array.
    """

    ranges: Mapping[str, tuple[Linear, Linear]] = field(
        default_factory=dict[str, tuple[Linear, Linear]]
    )
    lanes: frozenset[str] = frozenset()
    values: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    guards: tuple[Expr, ...] = ()

    def inside(self, stmt: Stmt) -> "Scope":
        match stmt:
            case Let() if stmt.value.dtype is index:
                value = substitute(stmt.value, self.values)
                return replace(self, values={**self.values, stmt.var: value})
            case For():
                first = substitute(stmt.min, self.values)
                last = first + substitute(stmt.extent, self.values) - 1
                is_lane = stmt.kind is LoopKind.VECTORIZED
                return Scope(
                    {**self.ranges, stmt.var: (to_linear(first), to_linear(last))},
                    self.lanes | {stmt.var} if is_lane else self.lanes,
                    {name: e for name, e in self.values.items() if name != stmt.var},
                    self.guards,
                )
            case If():
                found = (substitute(c, self.values) for c in conjuncts_of(stmt.condition))
                return replace(self, guards=(*self.guards, *found))
            case _:
                return self


def conditions_of(stmt: Stmt, scope: Scope) -> Iterator[tuple[Expr, Scope]]:
    """Every condition in a statement that has to hold by itself, and where it stands."""
    if isinstance(stmt, If):
        for condition in conjuncts_of(stmt.condition):
            yield condition, scope
    inside = scope.inside(stmt)
    for child in children_of(stmt):
        yield from conditions_of(child, inside)


def slacks_of(
    condition: Expr, scope: Scope, inputs: frozenset[str] = frozenset()
) -> list[Linear] | None:
    """Forms all of which are >= 0 just where a comparison of indices holds; None of others.

    Args: inputs: the arrays that it may read.
    """
    if not isinstance(condition, Compare) or condition.op not in ("lt", "le"):
        return None
    expanded = Compare(condition.op, *(substitute(e, scope.values) for e in condition.children))
    if condition.a.dtype is not index or not expanded.reads <= inputs:
        return None
    step = -(condition.op == "lt")
    pairs = _comparisons(expanded.a, expanded.b)
    return [(to_linear(b) - to_linear(a)).shifted(step) for a, b in pairs]


def _comparisons(a: Expr, b: Expr) -> Iterator[tuple[Expr, Expr]]:
    """max(a, b) <= min(c, d) as the comparisons of which it is the conjunction."""
    if isinstance(a, Binary) and a.op == "max":
        for side in a.children:
            yield from _comparisons(side, b)
    elif isinstance(b, Binary) and b.op == "min":
        for side in b.children:
            yield from _comparisons(a, side)
    else:
        yield a, b


def extreme(
    form: Linear, scope: Scope, joined: set[str], *, largest: bool = False
) -> Linear | None:
    """The smallest, or largest, value of a form over the loops of the scope.

    Args: joined: receives those that it mentions.
    """
    for name in reversed(list(scope.ranges)):
        first, last = scope.ranges[name]
        step = form.terms.get(Var(name), 0)
        if step:
            joined.add(name)
            form = form.without(Var(name)).plus(first if (step > 0) is not largest else last, step)
    hidden = any(not scope.ranges.keys().isdisjoint(atom.free) for atom in form.terms)
    return None if hidden else form
