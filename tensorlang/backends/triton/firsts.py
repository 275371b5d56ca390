"""Dimensions along which only the first element of a component is ever read.

    f[x, d] = (m[x], O[x, d]);  ... f[x, 0].0 ... f[x, d].1 ...

Partial results of a group share the dimensions of its anchor, and some do not vary along them all.
Component 0 above is written at d = 0 alone (stores.py): else each of its values is written for
every d.
"""

from collections.abc import Mapping

from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.stmt import Allocate, Program, exprs_of, walk
from tensorlang.ir.walk import loads_of


def firsts_of(program: Program) -> Mapping[str, tuple[frozenset[int], ...]]:
    """For every allocated Func of several components: for each, the dimensions read at 0 only."""
    several = {
        s.buffer.name: s.buffer
        for s in walk(program.body)
        if isinstance(s, Allocate) and len(s.buffer.dtypes) > 1
    }
    found = {
        name: [{k for k, d in enumerate(b.dims) if _is_zero(d.min)} for _ in b.dtypes]
        for name, b in several.items()
    }
    for stmt in walk(program.body) if several else ():
        for load in loads_of(*exprs_of(stmt)):
            if load.buffer in found:
                zeros = {k for k, e in enumerate(load.indices) if _is_zero(e)}
                found[load.buffer][load.component] &= zeros
    return {name: tuple(map(frozenset, dims)) for name, dims in found.items()}


def _is_zero(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 0
