"""Which reductions of an algorithm roll together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensorlang.algorithm import Algorithm, Domain, FuncRecord, reads_of
from tensorlang.ir.expr import Expr, Load, Var
from tensorlang.ir.walk import rewrite, substitute


def members_of(algorithm: Algorithm, rolled: FuncRecord, anchor: FuncRecord) -> tuple[str, ...]:
    """The rolled Func, and every reduction over its domain that reads it, up to the anchor."""
    producers = producers_of(algorithm)
    return tuple(
        f.name
        for f in algorithm.funcs
        if f.name == rolled.name
        or (
            rolled.name in producers[f.name]
            and same_domain(rolled, f)
            and anchor.name not in producers[f.name]
        )
    )


def between(algorithm: Algorithm, members: Sequence[str]) -> tuple[FuncRecord, ...]:
    """The Funcs on a path from one member to another."""
    producers = producers_of(algorithm)
    needed = frozenset[str]().union(*(producers[m] for m in members))
    return tuple(
        f
        for f in algorithm.funcs
        if f.name in needed and f.name not in members and not producers[f.name].isdisjoint(members)
    )


def producers_of(algorithm: Algorithm) -> Mapping[str, frozenset[str]]:
    """Everything that each Func needs, itself left out."""
    found: dict[str, frozenset[str]] = {}
    for f in algorithm.funcs:
        direct = reads_of(f) - {f.name}
        found[f.name] = direct.union(*(found.get(name, frozenset[str]()) for name in direct))
    return found


def same_domain(a: FuncRecord, b: FuncRecord) -> bool:
    """Whether the one update of each runs over one dimension with the same points."""
    if len(a.definitions) != 2 or len(b.definitions) != 2:
        return False
    first, second = a.definitions[1].domain, b.definitions[1].domain
    if first is None or second is None or len(first.dims) != 1 or len(second.dims) != 1:
        return False
    (_, low, extent), (_, other_low, other_extent) = first.dims[0], second.dims[0]
    return low is other_low and extent is other_extent and _where(first) is _where(second)


def _where(domain: Domain) -> Expr | None:
    """The predicate over one name for the variable, so that two of them can be one object."""
    if domain.where is None:
        return None
    return substitute(domain.where, {domain.names[0]: Var("_point")})


def expanded(root: Expr, definitions: Mapping[str, FuncRecord]) -> Expr:
    """`root` with the pure Funcs named replaced by their definitions."""

    def rule(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer in definitions:
            func = definitions[e.buffer]
            values = dict(zip(func.dims, e.indices, strict=True))
            whole = substitute(func.definitions[0].values[e.component], values)
            return expanded(whole, definitions)
        return e

    return rewrite(root, rule)


def producers_first(algorithm: Algorithm) -> Algorithm:
    """The algorithm with the Funcs that its outputs need, each after those that it reads."""
    funcs = {f.name: f for f in algorithm.funcs}
    needed = _reached(funcs, [name for name, _ in algorithm.outputs])
    order = _reached(funcs, [name for name in funcs if name in needed])
    return replace(algorithm, funcs=tuple(funcs[name] for name in order))


def _reached(funcs: Mapping[str, FuncRecord], names: Sequence[str]) -> dict[str, None]:
    """The names and all that they read, each after what it reads."""
    found: dict[str, None] = {}
    stack = [(name, False) for name in reversed(names)]
    while stack:
        name, opened = stack.pop()
        if opened:
            found[name] = None
        elif name in funcs and name not in found:
            stack.append((name, True))
            reads = reads_of(funcs[name]) - {name}
            stack.extend((f, False) for f in reversed(list(funcs)) if f in reads)
    return found
