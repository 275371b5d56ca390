"""What a statement mentions: names that it does not bind itself, and buffers."""

from collections import Counter
from collections.abc import Iterator, Mapping

from tensorlang.ir.expr import Expr, Name
from tensorlang.ir.stmt import For, If, Let, Stmt, Store, children_of, exprs_of
from tensorlang.ir.walk import postorder


def mentions(stmt: Stmt) -> Mapping[str, int]:
    """For each free name how many operands of expressions it is."""
    found = stmt.found.get(mentions)
    if found is None:
        counts: Counter[str] = Counter()
        for child in children_of(stmt):
            counts.update(mentions(child))
        if isinstance(stmt, (For, Let)):
            counts.pop(stmt.var, None)
        for e in exprs_of(stmt):
            counts.update(_uses(e))
        found = stmt.found[mentions] = counts
    return found


def mentioning(stmt: Stmt, name: str) -> Iterator[Stmt]:
    """The statement and those below it in which the name, as it stands outside, is free."""
    stack = [stmt]
    while stack:
        top = stack.pop()
        if name in mentions(top):
            yield top
            if not (isinstance(top, (For, Let)) and top.var == name):
                stack.extend(reversed(children_of(top)))


def _uses(e: Expr) -> Iterator[str]:
    if isinstance(e, Name):
        yield e.name
    for node in postorder(e):
        for child in node.children:
            if isinstance(child, Name):
                yield child.name


def touches(stmt: Stmt, buffer: str) -> bool:
    """Whether the statement loads from or stores to `buffer`."""
    return buffer in touched(stmt)


def touched(stmt: Stmt) -> frozenset[str]:
    """The buffers that a statement loads from or stores to."""
    found = stmt.found.get(touched)
    if found is None:
        parts = [frozenset((stmt.buffer,))] if isinstance(stmt, Store) else []
        parts += [e.reads for e in exprs_of(stmt) if e.reads]
        # A list, not a generator: what nests deeply may not recurse through C.
        parts += [touched(child) for child in children_of(stmt)]
        # What only binds a name touches what its body does.
        found = parts[0] if len(parts) == 1 else frozenset[str]().union(*parts)
        stmt.found[touched] = found
    return found


_NOTHING = frozenset[str]()


def names_needed(body: Stmt, buffer: str) -> Mapping[Stmt, frozenset[str]]:
    """For what touches the buffer in `body`: the free names that say where, and whether, it does.

    Most of the Lets around an access bind names that it does not need.
    """
    needed: dict[Stmt, frozenset[str]] = {}
    _need(body, buffer, needed)
    return needed


def _need(stmt: Stmt, buffer: str, needed: dict[Stmt, frozenset[str]]) -> frozenset[str]:
    if not touches(stmt, buffer):
        return _NOTHING
    parts = [_need(child, buffer, needed) for child in children_of(stmt)]
    inner = parts[0] if len(parts) == 1 else _NOTHING.union(*parts)
    is_used = isinstance(stmt, (For, If)) or (isinstance(stmt, Let) and stmt.var in inner)
    is_store = isinstance(stmt, Store) and stmt.buffer == buffer
    own = [e.free for e in exprs_of(stmt) if is_used or is_store or buffer in e.reads]
    if own:
        bound = (stmt.var,) if isinstance(stmt, (For, Let)) else ()
        inner = inner.difference(bound).union(*own)
    needed[stmt] = inner
    return inner
