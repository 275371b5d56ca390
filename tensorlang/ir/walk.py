"""Walking expressions: iterative, and once per shared node."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from tensorlang.ir.expr import Expr, Load

T = TypeVar("T")


def postorder(*roots: Expr) -> Iterator[Expr]:
    """Every distinct node below `roots`, operands before what uses them."""
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        e, opened = stack.pop()
        if opened:
            yield e
        elif e not in seen:
            seen.add(e)
            stack.append((e, True))
            stack.extend((child, False) for child in reversed(e.children) if child not in seen)


def fold(root: Expr, step: Callable[[Expr, list[T]], T], memo: dict[Expr, T] | None = None) -> T:
    """step(node, results of its operands), bottom-up; `memo` carries results between calls."""
    memo = {} if memo is None else memo
    if root in memo:
        return memo[root]
    stack = [root]
    while stack:
        e = stack[-1]
        if e in memo:
            stack.pop()
            continue
        missing = [child for child in e.children if child not in memo]
        if missing:
            stack.extend(missing)
            continue
        memo[e] = step(e, [memo[child] for child in e.children])
        stack.pop()
    return memo[root]


def rewrite(root: Expr, rule: Callable[[Expr], Expr], memo: dict[Expr, Expr] | None = None) -> Expr:
    """Replace every node by `rule` of it, operands first; an unchanged node stays itself."""

    def step(e: Expr, operands: list[Expr]) -> Expr:
        changed = any(a is not b for a, b in zip(operands, e.children, strict=True))
        return rule(e.rebuild(tuple(operands)) if changed else e)

    return fold(root, step, memo)


def substitute(root: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace the names in `values`, leaving alone what does not mention them."""
    if values.keys().isdisjoint(root.free):
        return root
    names = root.free & values.keys()
    memo: dict[Expr, Expr] = {}
    for e in _mentioning(root, names):
        if not e.children:
            memo[e] = values[e.name]  # type: ignore[attr-defined]
            continue
        memo[e] = e.rebuild(tuple(memo.get(child, child) for child in e.children))
    return memo[root]


def _mentioning(root: Expr, names: AbstractSet[str]) -> Iterator[Expr]:
    seen: set[Expr] = set()
    stack = [(root, False)]
    while stack:
        e, opened = stack.pop()
        if opened:
            yield e
        elif e not in seen and not e.free.isdisjoint(names):
            seen.add(e)
            stack.append((e, True))
            stack.extend((child, False) for child in e.children)


def loads_of(*roots: Expr) -> Iterator[Load]:
    """Every distinct Load below `roots`."""
    for e in postorder(*(root for root in roots if root.reads)):
        if isinstance(e, Load):
            yield e
