"""The gradient of attention, derived from what the forward pass has kept.

    weight[b, h, i, j] = exp(score - lse[b, h, i])           each a share of its row
    again[b, h, i, d]  = sum(weight * V, over=j) + (1 - sum(weight, over=j)) * out[b, h, i, d]

The weights of a row are 1 together, so that `again` is `out`; and its gradient with `lse` and `out`
as they stand is that of attention.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tensorlang.algorithm import Definition, FuncRecord, InputRecord, reads_of
from tensorlang.autodiff import gradients
from tensorlang.autodiff.renaming import renamed_reads
from tensorlang.closing import close_records
from tensorlang.directives.rolling_group import producers_first
from tensorlang.ir.expr import Binary, Cast, Const, Expr, Load, Var, cast
from tensorlang.ir.facts import Facts, prove
from tensorlang.ir.types import DType
from tensorlang.ir.walk import loads_of, rewrite
from tensorlang.pipeline import Pipeline

# What the forward pass keeps of a query: the level of its exponents with their sum in it.
LSE, OUT = "lse", "out"


def attention_gradients(forward: Pipeline, wrt: Sequence[str]) -> Pipeline:
    """The gradient of `attention(...)` with respect to the Inputs named, from `out` and `lse`."""
    narrow = forward.algorithm.inputs[0].dtype
    kept_in: dict[str, DType] = {}
    if narrow.bits < 32:
        # Products with these use the matrix unit.
        kept_in = {f.name: narrow for f in forward.algorithm.funcs if f.name in ("dot", "out_sum")}
    derived = gradients(_again(forward), wrt, dtypes=kept_in).algorithm
    funcs = _scaled_last(_with_weights(derived.funcs))
    funcs = producers_first(replace(derived, funcs=funcs)).funcs
    # It is the gradient of `out`, which the Pipeline has as an Input.
    *inputs, given = derived.inputs
    named = {given.name: f"grad_{OUT}"}
    funcs = _over_one_domain([_renamed(f, named) for f in funcs], dict(derived.outputs))
    inputs.append(replace(given, name=f"grad_{OUT}"))
    return Pipeline.of(close_records(derived.name, tuple(inputs), funcs, derived.outputs))


def _again(forward: Pipeline) -> Pipeline:
    """Attention once more, from what it has given."""
    algorithm = forward.algorithm
    out, (_, shape) = algorithm.func(OUT), algorithm.outputs[0]
    whole = algorithm.func("whole" if "whole" in {f.name for f in algorithm.funcs} else "total")
    wide = whole.dtypes[0]
    gone = {"top", "level", LSE, OUT}
    funcs = [_of_kept(f, wide) for f in algorithm.funcs if f.name not in gone]
    at = tuple(map(Var, out.dims))
    summed: Expr = Load("out_sum", at, 0, wide)
    for scale in loads_of(out.definitions[0].values[0]):
        if scale.buffer == "value_scales":
            summed = summed * cast(wide, scale)
    rest = 1.0 - Load(whole.name, at[:-1], 0, wide)
    value = cast(out.dtypes[0], summed + rest * cast(wide, Load(OUT, at, 0, out.dtypes[0])))
    again = FuncRecord("again", out.dims, out.dtypes, (Definition(at, (value,), out.dims),))
    inputs = (*algorithm.inputs, InputRecord(OUT, out.dtypes[0], shape))
    inputs += (InputRecord(LSE, wide, shape[:-1]),)
    closed = close_records(algorithm.name, inputs, (*funcs, again), (("again", shape),))
    return Pipeline.of(closed)


def _of_kept(func: FuncRecord, wide: DType) -> FuncRecord:
    """The Func with `lse` for the level of the exponents."""

    def rule(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer == "level":
            return Load(LSE, e.indices, 0, wide)
        return e

    return _rewritten(func, rule)


def _with_weights(funcs: Sequence[FuncRecord]) -> tuple[FuncRecord, ...]:
    """The Funcs that read the weights where the gradient says again what they are."""
    weight = next(f for f in funcs if f.name == "weight")
    own = weight.definitions[0]

    def rule(e: Expr) -> Expr:
        return Load("weight", own.indices, 0, weight.dtypes[0]) if e is own.values[0] else e

    return tuple(f if f is weight else _rewritten(f, rule) for f in funcs)


def _scaled_last(funcs: Sequence[FuncRecord]) -> tuple[FuncRecord, ...]:
    """sum(x * c * k), rounded   ->   sum(x * k) * c, rounded     of the gradient of the products

    One multiplication of a sum in place of one of each of its terms.
    """
    named = {f.name: f for f in funcs}
    of_dot = named.get("grad_dot")
    readers = {f.name for f in funcs if of_dot is not None and of_dot.name in reads_of(f)}
    if of_dot is None or not readers <= {"grad_q_sum", "grad_k_sum"}:
        return tuple(funcs)
    match of_dot.definitions[0].values[0]:
        case Cast(a=Binary(op="mul", a=x, b=Const() as factor), dtype=dtype):
            pass
        case _:
            return tuple(funcs)

    def rule(e: Expr) -> Expr:
        return e * factor if isinstance(e, Load) and e.buffer in readers else e

    definition = replace(of_dot.definitions[0], values=(cast(dtype, x),))
    named["grad_dot"] = replace(of_dot, definitions=(definition,))
    for name in (reader.removesuffix("_sum") for reader in readers):
        named[name] = _rewritten(named[name], rule)
    return tuple(named[f.name] for f in funcs)


def _over_one_domain(
    funcs: Sequence[FuncRecord], shapes: Mapping[str, tuple[Expr, ...]]
) -> tuple[FuncRecord, ...]:
    """The sums of keys over the queries of those of values, where a mask leaves the same of both.

    A gradient is summed over the points whose scores matter to something; here the mask says which.
    """
    found = {f.name: f for f in funcs if len(f.definitions) == 2}
    values = found.get("grad_v_sum", found.get("grad_v"))
    keys = found.get("grad_k_sum", found.get("grad_k"))
    if keys is None or values is None:
        return tuple(funcs)
    own, other = keys.definitions[1].domain, values.definitions[1].domain
    if own is None or other is None or own.where is None or own.names != other.names:
        return tuple(funcs)
    facts = Facts.none
    for dim, extent in zip(keys.dims, shapes["grad_k"], strict=True):
        facts = facts.with_range(dim, 0, extent)
    for name, low, extent in other.dims:
        facts = facts.with_range(name, low, extent)
    facts = facts.assume(own.where)
    if not all(
        prove((low <= Var(name)) & (Var(name) < low + extent), facts)
        for name, low, extent in own.dims
    ):
        return tuple(funcs)
    start, step = keys.definitions
    widened = replace(step, domain=replace(own, dims=other.dims))
    return tuple(replace(f, definitions=(start, widened)) if f is keys else f for f in funcs)


def _renamed(func: FuncRecord, names: dict[str, str]) -> FuncRecord:
    return replace(func, definitions=tuple(renamed_reads(d, names) for d in func.definitions))


def _rewritten(func: FuncRecord, rule: Callable[[Expr], Expr]) -> FuncRecord:
    definitions = tuple(
        replace(d, values=tuple(rewrite(e, rule) for e in d.values)) for d in func.definitions
    )
    return replace(func, home=None, definitions=definitions)
