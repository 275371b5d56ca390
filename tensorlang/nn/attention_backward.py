"""The gradient of attention, derived from its definition, in two steps; then its schedule.

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
from tensorlang.errors import InternalError
from tensorlang.ir.expr import Expr, Load, Var
from tensorlang.ir.types import DType
from tensorlang.ir.walk import rewrite
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule, Stage

# What is kept of a query: the level of its exponents, their sum, and the gradient of that.
KEPT = ("level", "total", "grad_total")
ROW, ROWS = "row_", "rows"
_GRADIENTS = ("grad_q", "grad_k", "grad_v")


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
    rows = _kept_rows([f for name in kept for f in copies if f.name == own[name]])
    places = {name: k for k, name in enumerate(kept)}
    rest = [_of_rows(f, places) for f in records.values() if f.name not in (*KEPT, "top")]
    funcs = producers_first(replace(derived, funcs=(*copies, rows, *rest))).funcs
    return Pipeline.of(close_records("attention_gradients", derived.inputs, funcs, derived.outputs))


def _reading(func: FuncRecord, names: dict[str, str], name: str) -> FuncRecord:
    """The Func under another name, which reads others under theirs."""
    definitions = tuple(renamed_reads(d, names) for d in func.definitions)
    return replace(func, name=name, home=None, definitions=definitions)


def _kept_rows(kept: Sequence[FuncRecord]) -> FuncRecord:
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


def backward(
    pipeline: Pipeline,
    target: str,
    *,
    queries: int = 64,
    keys: int = 64,
    warps: int = 4,
    stages: int = 2,
) -> Schedule | None:
    """What is kept of the rows as `flash` would, then each gradient in a kernel of its own.

    blocks of (h, b, io) { for slices of keys { row_dot; ...; row_out_sum }; rows }
    blocks of (b, h, io) { for slices of keys { dot; grad_weight; grad_dot; grad_q_sum }; grad_q }
    blocks of (b, g, jo) { for slices of queries { ...; grad_k_sum }; grad_k }, grad_v alike

    Weights are formed again in each of them.  None for f32 and f64, which no matrix unit takes: a
    formula does as well.
    """
    funcs = {f.name for f in pipeline.algorithm.funcs}
    wide = [name for name, _ in pipeline.algorithm.outputs
            if name in _GRADIENTS and f"{name}_sum" not in funcs]  # fmt: skip
    if target != "triton" or wide:
        return None
    schedule = Schedule(pipeline)
    _rows(schedule, queries, keys, warps, stages)
    if "grad_out_sum" in funcs:
        copied = schedule["grad_out_sum"].compute_root().split("i", "io", "ii", queries)
        copied.gpu_blocks("b", "h", "io").vectorize("ii").vectorize("d")
    for name in _GRADIENTS:
        if name in funcs:
            tile, step = (queries, keys) if name == "grad_q" else (keys, queries)
            _gradient(schedule, name, tile, step, warps, stages)
    return schedule


def _rows(schedule: Schedule, queries: int, keys: int, warps: int, stages: int) -> None:
    """level, total and grad_total of a tile of queries, in one pass over the keys."""
    funcs = {f.name for f in schedule.algorithm.funcs}
    rows = schedule["rows"].compute_root().split("i", "io", "ii", queries)
    rows.reorder("h", "b", "io", "ii").gpu_blocks("h", "b", "io").vectorize("ii").gpu_warps(warps)
    anchor, domain = ("row_out_sum", "r2") if "row_out_sum" in funcs else ("row_total", "r1")
    step = schedule[anchor].compute_at("rows", "io").update(0).split(domain, "ro", "ri", keys)
    features = ("d",) if domain == "r2" else ()
    step.reorder("ro", "b", "h", "i", *features, "ri").pipeline("ro", stages)
    schedule["row_top"].rolling_update(anchor, "ro")
    between = [f"row_{name}" for name in ("score", "weight") if f"row_{name}" in funcs]
    for name in ("row_dot", *between):
        schedule[name].compute_at(anchor, "ro").vectorize("i").vectorize("j")
    schedule["row_dot"].update(0).vectorize("i").vectorize("j").vectorize("e")
    for name, reduced in (("row_top", "r0"), ("row_total", "r1"), ("row_out_sum", "r2")):
        if name in funcs:
            loops = ("i", "d") if name == "row_out_sum" else ("i",)
            own = "ri" if name == anchor else reduced
            _vectorized(schedule[name], *loops)
            _vectorized(schedule[name].update(0), *loops, own)
    if "row_grad_total" in funcs:
        _vectorized(schedule["row_grad_total"].compute_at("rows", "io"), "i")
        _vectorized(schedule["row_grad_total"].update(0), "i", "d")


def _gradient(schedule: Schedule, name: str, tile: int, step: int, warps: int, stages: int) -> None:
    """One gradient: a tile of it a program, the sum over slices of the other sequence."""
    summed = f"{name}_sum"
    dims = schedule.state.funcs[name].dims
    batch, head, row, feature = dims
    out = schedule[name].split(row, "to", "ti", tile).reorder(head, batch, "to", "ti", feature)
    out.gpu_blocks(head, batch, "to").gpu_warps(warps).vectorize("ti").vectorize(feature)
    *pure, row_of_sum, feature_of_sum = schedule.state.funcs[summed].dims
    _vectorized(schedule[summed].compute_at(name, "to"), row_of_sum, feature_of_sum)
    update = schedule[summed].update(0)
    domain = schedule.state.funcs[summed].definitions[1].domain
    if domain is None:
        raise InternalError(f"{summed} is no sum")
    *heads, last = domain.names
    update.split(last, "so", "si", step)
    update.reorder(*heads, "so", *pure, row_of_sum, feature_of_sum, "si").pipeline("so", stages)
    _vectorized(update, row_of_sum, feature_of_sum, "si")
    for own in _own_pairs(schedule, summed):
        func = schedule.state.funcs[own]
        _vectorized(schedule[own].compute_at(summed, "so"), *func.dims[2:])
        if not func.is_pure:
            inner = func.definitions[1].domain
            names = () if inner is None else inner.names
            _vectorized(schedule[own].update(0), *func.dims[2:], *names)


def _own_pairs(schedule: Schedule, reader: str) -> list[str]:
    """The Funcs of pairs of a query and a key that a sum needs, as copies that no other reads."""
    pairs = {"dot", "score", "weight"}
    pairs |= {f"grad_{name}" for name in pairs}
    mine, found = {reader}, list[str]()
    for func in reversed(schedule.state.algorithm.funcs):
        readers = schedule.state.algorithm.consumers(func.name)
        used = [name for name in readers if name in mine]
        if func.name in pairs and used:
            shared = len(used) < len(readers)
            own = schedule[func.name].clone_in(*used).name if shared else func.name
            mine.add(own)
            found.append(own)
    return found


def _vectorized(stage: Stage, *loops: str) -> None:
    for loop in loops:
        stage.vectorize(loop)
