"""Substitute the definition of an inlined Func wherever it is read."""

from dataclasses import replace

from tensorlang.ir.expr import Expr, Load, Var
from tensorlang.ir.stmt import (
    Allocate,
    Block,
    Let,
    Program,
    Stage,
    Stmt,
    Store,
    map_children,
    map_exprs,
    walk,
)
from tensorlang.ir.walk import rewrite, substitute
from tensorlang.lower.plan import Plan


def inline_funcs(program: Program, plan: Plan) -> Program:
    """f[i + 1]   ->   e[x := i + 1]     for f[x] = e inlined; f's loops and storage go

    Producers come first, so that each Func is substituted complete and once.
    Requires: every Func at root.  Not its job: choosing what to inline.
    """
    body = program.body
    for func in plan.algorithm.funcs:
        if plan.placements[func.name].inline:
            store = _definition(body, func.name)
            body = _inline(_remove(body, func.name), store)
    return program if body is program.body else replace(program, body=body)


def _definition(body: Stmt, func: str) -> Store:
    return next(s for s in walk(body) if isinstance(s, Store) and s.buffer == func)


def _remove(stmt: Stmt, func: str) -> Stmt:
    match stmt:
        case Let() if stmt.var.startswith(f"{func}."):
            return _remove(stmt.body, func)
        case Allocate() if stmt.buffer.name == func:
            return _remove(stmt.body, func)
        case Stage() if stmt.func == func:
            return Block(())
        case Let() | Allocate() | Block():
            return map_children(stmt, lambda child: _remove(child, func))
        case _:
            return stmt


def _inline(stmt: Stmt, store: Store) -> Stmt:
    names = [v.name for v in store.indices if isinstance(v, Var)]
    memo: dict[Expr, Expr] = {}

    def rule(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer == store.buffer:
            return substitute(store.values[e.component], dict(zip(names, e.indices, strict=True)))
        return e

    def inlined(e: Expr) -> Expr:
        return rewrite(e, rule, memo) if store.buffer in e.reads else e

    def visit(s: Stmt) -> Stmt:
        return map_children(map_exprs(s, inlined), visit)

    return visit(stmt)
