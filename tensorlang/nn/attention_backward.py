"""The gradient of attention, derived from what the forward pass has kept; then its schedule.

    weight[b, h, i, j] = exp(score - lse[b, h, i])           each a share of its row
    again[b, h, i, d]  = sum(weight * V, over=j) + (1 - sum(weight, over=j)) * out[b, h, i, d]

The weights of a row are 1 together, so that `again` is `out`; and its gradient with `lse` and `out`
as they stand is that of attention.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tensorlang.algorithm import Definition, FuncRecord, InputRecord, reads_of
from tensorlang.autodiff import gradients
from tensorlang.autodiff.renaming import renamed_reads
from tensorlang.closing import close_records
from tensorlang.directives.rolling_group import producers_first
from tensorlang.errors import InternalError
from tensorlang.ir.expr import Binary, Cast, Const, Expr, Load, Var, cast
from tensorlang.ir.facts import Facts, prove
from tensorlang.ir.types import DType
from tensorlang.ir.walk import loads_of, rewrite
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule, Stage

# What the forward pass keeps of a query: the level of its exponents with their sum in it.
LSE, OUT = "lse", "out"
_GRADIENTS = ("grad_q", "grad_k", "grad_v")
# Queries of which one program has the sums.
_ROWS = 32


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows of a gradient that one program has, and those of the other sequence that it takes."""

    rows: int
    step: int
    warps: int
    stages: int


def attention_gradients(forward: Pipeline, wrt: Sequence[str]) -> Pipeline:
    """The gradient of `attention(...)` with respect to the Inputs named, from `out` and `lse`."""
    narrow = forward.algorithm.inputs[2].dtype
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


def backward(
    pipeline: Pipeline,
    target: str,
    *,
    keys: Tile | None = None,
    queries: Tile | None = None,
    descriptors: bool = True,
) -> Schedule | None:
    """The gradients of keys and values in one kernel, that of queries in another.

    blocks of (h, b, io) { grad_total }
    blocks of (b, h, io) { for slices of keys { dot; weight; grad_weight; grad_dot; grad_q_sum } }
    blocks of (b, g, jo) { for slices of queries { dot; weight; grad_v_sum; grad_weight; grad_dot;
                                                   grad_k_sum }; grad_v; grad_k }

    There the tiles of scores have the keys as rows, as the sums have, so that the matrix unit takes
    weights from registers.  None for f32 and f64, which no matrix unit takes: a formula does as
    well.

    Args:
        keys, queries: the tiles of the two kernels; None: what was best on an H200.
        descriptors: whether tensor memory access reads and writes the tiles, where arrays fit.
    """
    funcs = {f.name for f in pipeline.algorithm.funcs}
    names = [name for name, _ in pipeline.algorithm.outputs if name in _GRADIENTS]
    if target != "triton" or any(f"{name}_sum" not in funcs for name in names):
        return None
    schedule = Schedule(pipeline)
    if descriptors:
        for record in pipeline.algorithm.inputs:
            if record.name in ("q", "k", "v", "grad_out"):
                schedule[record.name].load_with("descriptor")
    if "grad_total" in funcs:
        _row_sums(schedule)
    for group in _kernels(pipeline, names):
        by_keys = group[0] != "grad_q"
        tile = keys if by_keys else queries
        _kernel(schedule, group, tile or _tile_of(pipeline, by_keys), descriptors)
    return schedule


def _tile_of(pipeline: Pipeline, by_keys: bool) -> Tile:
    """64 rows are what one group of four warps multiplies, two of which fit a multiprocessor."""
    features = pipeline.algorithm.inputs[0].shape[-1]
    width = int(features.value) if isinstance(features, Const) else 128
    if width > 128:
        return Tile(64, 32, 8, 2)
    if width <= 64:
        return Tile(64, 64, 4, 3) if by_keys else Tile(128, 64, 8, 3)
    return Tile(64, 64, 4, 2)


def _kernels(pipeline: Pipeline, names: Sequence[str]) -> list[list[str]]:
    """Which gradients have a kernel together: sums over one domain."""
    found: dict[tuple[object, ...], list[str]] = {}
    for name in sorted(names, reverse=True):
        domain = pipeline.algorithm.func(f"{name}_sum").definitions[1].domain
        if domain is None:
            raise InternalError(f"{name}_sum is no sum")
        key = tuple(part for _, low, extent in domain.dims for part in (id(low), id(extent)))
        found.setdefault((name == "grad_q", *key), []).append(name)
    return list(found.values())


def _row_sums(schedule: Schedule) -> None:
    """What the weights of a query have in common, by rows."""
    func = "grad_whole" if "grad_whole" in schedule.state.funcs else "grad_total"
    rows = schedule[func].compute_root().split("i", "io", "ii", _ROWS)
    rows.reorder("h", "b", "io", "ii").gpu_blocks("h", "b", "io").vectorize("ii")
    update = schedule[func].update(0).split("i", "io", "ii", _ROWS)
    update.reorder("h", "b", "io", "ii", "d").gpu_blocks("h", "b", "io")
    _vectorized(update, "ii", "d").compute_with(func, "io")


def _kernel(schedule: Schedule, names: Sequence[str], tile: Tile, descriptors: bool) -> None:
    """Gradients of which a program has a tile each: one loop over slices of the other sequence."""
    first, summed = names[0], f"{names[0]}_sum"
    for name in names:
        batch, head, row, feature = schedule.state.funcs[name].dims
        out = schedule[name].split(row, "to", "ti", tile.rows)
        out.reorder(head, batch, "to", "ti", feature).gpu_blocks(head, batch, "to")
        _vectorized(out, "ti", feature).gpu_warps(tile.warps)
        if descriptors:
            out.store_with("descriptor")
    for name in names:
        own = f"{name}_sum"
        *pure, row, feature = schedule.state.funcs[own].dims
        _vectorized(schedule[own].compute_at(first, "to"), row, feature)
        domain = schedule.state.funcs[own].definitions[1].domain
        if domain is None:
            raise InternalError(f"{own} is no sum")
        *heads, last = domain.names
        update = schedule[own].update(0).split(last, "so", "si", tile.step)
        update.reorder(*heads, "so", *pure, row, feature, "si").pipeline("so", tile.stages)
        _vectorized(update, row, feature, "si")
        if name != first:
            schedule[name].compute_with(first, "to")
            update.compute_with(summed, "so")
    by_keys = first != "grad_q"
    sums = [f"{name}_sum" for name in names]
    pairs = _own_pairs(schedule, sums)
    for func in pairs:
        stage = schedule[func].compute_at(summed, "so")
        batch, head, query, key = schedule.state.funcs[func].dims
        axes = (key, query) if by_keys else (query, key)
        _vectorized(stage.reorder(batch, head, *axes), *axes)
        if not schedule.state.funcs[func].is_pure:
            inner = schedule.state.funcs[func].definitions[1].domain
            names_ = () if inner is None else inner.names
            update = schedule[func].update(0).reorder(batch, head, *axes, *names_)
            _vectorized(update, *axes, *names_)
    held, passing = (("k", "v"), ("q", "grad_out_sum"))[:: 1 if by_keys else -1]
    for arrays, level in ((held, (first, "to")), (passing, (summed, "so"))):
        for array in arrays:
            copy = _copied(schedule, array, {*sums, *pairs})
            if copy is not None:
                _vectorized(schedule[copy].compute_at(*level), *schedule.state.funcs[copy].dims[2:])


def _copied(schedule: Schedule, array: str, readers: Collection[str]) -> str | None:
    """A tile of an Input, or of what is read like one, for these readers alone."""
    algorithm = schedule.state.algorithm
    users = algorithm.consumers(array)
    mine = [name for name in users if name in readers]
    if not mine:
        return None
    if array not in schedule.state.funcs:
        return schedule[array].in_(*mine).name
    return schedule[array].clone_in(*mine).name if len(mine) < len(users) else array


def _own_pairs(schedule: Schedule, readers: Sequence[str]) -> list[str]:
    """The Funcs of pairs of a query and a key that sums need, as copies that no other reads."""
    pairs = {"dot", "score", "weight"}
    pairs |= {f"grad_{name}" for name in pairs}
    mine, found = set(readers), list[str]()
    for func in reversed(schedule.state.algorithm.funcs):
        users = schedule.state.algorithm.consumers(func.name)
        used = [name for name in users if name in mine]
        if func.name in pairs and used:
            is_shared = len(used) < len(users)
            own = schedule[func.name].clone_in(*used).name if is_shared else func.name
            mine.add(own)
            found.append(own)
    return found


def _vectorized(stage: Stage, *loops: str) -> Stage:
    for loop in loops:
        stage.vectorize(loop)
    return stage
