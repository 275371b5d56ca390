"""The gradient of attention, derived from its definition, in two steps.

    rows[b, h, i] = (level, total, grad_total)    of each query, by the forward pass once more
    grad_q, grad_k, grad_v ...                    from weights that are formed again by the level

Attention does not depend on the level that is subtracted from a row's exponents, so that no
gradient goes through the largest score.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensorlang.algorithm import Definition, FuncRecord
from tensorlang.autodiff import gradients
from tensorlang.autodiff.renaming import renamed_reads
from tensorlang.closing import close_records
from tensorlang.directives.rolling_group import producers_first
from tensorlang.ir.expr import Expr, Load, Var
from tensorlang.ir.types import DType
from tensorlang.ir.walk import rewrite
from tensorlang.pipeline import Pipeline

# What is kept of a query: the level of its exponents, their sum, and the gradient of that.
KEPT = ("level", "total", "grad_total")
ROW, ROWS = "row_", "rows"


def attention_gradients(forward: Pipeline, wrt: Sequence[str]) -> Pipeline:
    """The gradient of `attention(...)` with respect to the Inputs named."""
    narrow = forward.algorithm.inputs[2].dtype
    kept_in: dict[str, DType] = {}
    if narrow.bits < 32:
        # Products with these use the matrix unit.
        kept_in = {f.name: narrow for f in forward.algorithm.funcs if f.name in ("dot", "out_sum")}
    derived = gradients(forward, wrt, dtypes=kept_in, constant=("top", "level")).algorithm
    records = {f.name: f for f in derived.funcs}
    # The forward pass is a copy of its own: what it computes again is scheduled on its own.
    own = {name: f"{ROW}{name}" for name in records}
    copies = [_reading(f, own, own[f.name]) for f in records.values()]
    kept = [name for name in KEPT if name in records]
    rows = _rows([f for name in kept for f in copies if f.name == own[name]])
    places = {name: k for k, name in enumerate(kept)}
    rest = [_of_rows(f, places) for f in records.values() if f.name not in (*KEPT, "top")]
    funcs = producers_first(replace(derived, funcs=(*copies, rows, *rest))).funcs
    return Pipeline.of(close_records("attention_gradients", derived.inputs, funcs, derived.outputs))


def _reading(func: FuncRecord, names: dict[str, str], name: str) -> FuncRecord:
    """The Func under another name, which reads others under theirs."""
    definitions = tuple(renamed_reads(d, names) for d in func.definitions)
    return replace(func, name=name, home=None, definitions=definitions)


def _rows(kept: Sequence[FuncRecord]) -> FuncRecord:
    """rows[b, h, i] = (level, total, grad_total)"""
    dims = kept[0].dims
    at = tuple(map(Var, dims))
    values = tuple(Load(f.name, at, 0, f.dtypes[0]) for f in kept)
    definition = Definition(at, values, dims)
    return FuncRecord(ROWS, dims, tuple(v.dtype for v in values), (definition,))


def _of_rows(func: FuncRecord, places: Mapping[str, int]) -> FuncRecord:
    """The Func with what is kept of a query read from `rows`."""

    def rule(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer in places:
            return Load(ROWS, e.indices, places[e.buffer], e.dtype)
        return e

    def read(definition: Definition) -> Definition:
        values = tuple(rewrite(e, rule) for e in definition.values)
        return replace(definition, values=values)

    return replace(func, home=None, definitions=tuple(map(read, func.definitions)))
