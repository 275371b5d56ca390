"""Copies that unrolling made: each buffer under its own name, each statement its own object.

    {allocate f: s} {allocate f: t}   ->   {allocate f: s} {allocate f.copy1: t[f := f.copy1]}

What follows knows a buffer by its name and a loop by its identity, and the copies of one loop may
want storage of different extents.
"""

from collections.abc import Mapping
from dataclasses import replace

from tensorlang.ir.expr import Expr, Load
from tensorlang.ir.stmt import Allocate, Program, Stmt, Store, map_children, map_exprs
from tensorlang.ir.walk import rewrite


def tell_copies_apart(program: Program) -> Program:
    """The program with every allocation and every statement told apart from all others."""
    body = _Copies().visit(program.body, {})
    return program if body is program.body else replace(program, body=body)


def original(name: str) -> str:
    """What a buffer was called before its copies were told apart."""
    return name.partition(_COPY)[0]


# Names of the language have no dot, and those of loops no such part.
_COPY = ".copy"


class _Copies:
    def __init__(self) -> None:
        self.seen: set[Stmt] = set()
        # How often each buffer has been allocated.
        self.allocated: dict[str, int] = {}

    def visit(self, stmt: Stmt, names: Mapping[str, str]) -> Stmt:
        """`names`: what the buffers allocated around are called now, where that is not the same."""
        is_copy = stmt in self.seen
        self.seen.add(stmt)
        if names:
            stmt = _renamed(stmt, names)
        if isinstance(stmt, Allocate):
            old = stmt.buffer.name
            count = self.allocated[old] = self.allocated.get(old, -1) + 1
            if count:
                names = {**names, old: f"{old}{_COPY}{count}"}
                stmt = replace(stmt, buffer=replace(stmt.buffer, name=names[old]))
        made = map_children(stmt, lambda child: self.visit(child, names))
        return replace(made) if is_copy and made is stmt else made


def _renamed(stmt: Stmt, names: Mapping[str, str]) -> Stmt:
    def rule(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer in names:
            return Load(names[e.buffer], e.indices, e.component, e.dtype)
        return e

    stmt = map_exprs(stmt, lambda e: e if e.reads.isdisjoint(names) else rewrite(e, rule))
    if isinstance(stmt, Store) and stmt.buffer in names:
        return replace(stmt, buffer=names[stmt.buffer])
    return stmt
