"""The first program of a schedule: every Func at root, its stages one after the other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tensorlang.algorithm import Definition, FuncRecord, exprs_of_definition
from tensorlang.directives.nest import Loop, Nest, region_name
from tensorlang.directives.order import Order, scan_over
from tensorlang.ir.accesses import REGION_PARTS
from tensorlang.ir.expr import Const, Expr, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.regions import infer_regions
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import (
    Allocate,
    Block,
    Buffer,
    Dim,
    For,
    Hints,
    If,
    Let,
    LoopKind,
    Program,
    Stage,
    Stmt,
    Store,
    block,
)
from tensorlang.ir.types import DType, index
from tensorlang.ir.walk import loads_of, substitute
from tensorlang.ir.widening import widened
from tensorlang.lower.plan import Plan, Storage

ZERO, ONE = Const(0, index), Const(1, index)
NOTHING = Block(())


def build_nests(plan: Plan) -> Program:
    """Every Func at root: allocate f { stages of f; the Funcs after it }.

    Ensures: a program that runs: each Func covers the whole region that all its consumers need.
    Not its job: placement, inlining, tight regions.
    """
    algorithm = plan.algorithm
    shapes = dict(algorithm.outputs)
    body: Stmt = Block(())
    for func in reversed(algorithm.funcs):
        shape = shapes.get(func.name)
        first = 1 if _is_replaced(plan, func) else 0
        nests = list(enumerate(plan.stages(func.name)))[first:]
        body = block(*(_stage(func, n, nest) for n, nest in nests), body)
        body = _region(plan, func, shape, body)
    inputs = tuple(_whole(plan, a.name, (a.dtype,), a.shape) for a in algorithm.inputs)
    outputs = tuple(
        _whole(plan, name, algorithm.func(name).dtypes, shape) for name, shape in algorithm.outputs
    )
    # What the schedule asks of regions is about those where the Funcs are computed.
    body = infer_regions(body, plan.outputs)
    return Program(algorithm.name, algorithm.sizes, algorithm.params, inputs, outputs, body)


def _is_replaced(plan: Plan, func: FuncRecord) -> bool:
    """Whether a scan gives every point its value, so that nobody sees the pure definition."""
    scan = func.definitions[min(1, len(func.definitions) - 1)]
    if scan.domain is None or len(scan.domain.dims) != 1:
        return False
    shared = {stage for merge in plan.merges for stage in (merge.stage, merge.into)}
    start = plan.nests[func.name, 0]
    if (func.name, 0) in shared or start.variants or start.failing is not None:
        return False
    ((name, low, extent),) = scan.domain.dims
    found = scan_over(func.name, scan, name)
    if found is None or found.begins is None:
        return False
    ends = (low, low + extent - ONE)
    for dim, (v, e) in enumerate(zip(scan.pure, scan.indices, strict=True)):
        if v is None:
            least, most = (simplify(substitute(e, {name: end})) for end in ends[:: found.steps])
            needed = _extent_needed(plan, func, dim)
            if needed is None or least is not ZERO or most is not simplify(needed - ONE):
                return False
    return True


def _extent_needed(plan: Plan, func: FuncRecord, dim: int) -> Expr | None:
    """The n of which [0, n) is all that is needed along a dimension, where that is plain to see."""
    shapes = dict(plan.algorithm.outputs)
    if func.name in shapes:
        return shapes[func.name][dim]
    found: set[Expr] = set()
    for name in plan.algorithm.consumers(func.name):
        consumer, shape = plan.algorithm.func(name), shapes.get(name)
        exprs = [e for d in consumer.definitions for e in exprs_of_definition(d)]
        for load in (load for load in loads_of(*exprs) if load.buffer == func.name):
            at = load.indices[dim]
            if shape is None or not isinstance(at, Var) or at.name not in consumer.dims:
                return None
            found.add(shape[consumer.dims.index(at.name)])
    return found.pop() if len(found) == 1 else None


def _whole(plan: Plan, name: str, dtypes: tuple[DType, ...], shape: tuple[Expr, ...]) -> Buffer:
    """The buffer of an Input or an output."""
    dims = tuple(Dim(ZERO, n) for n in shape)
    return Buffer(name, dtypes, dims, hints=plan.hints.get(name, ()))


def _region(plan: Plan, func: FuncRecord, shape: tuple[Expr, ...] | None, body: Stmt) -> Stmt:
    """The Lets of the region of a Func, and its storage where it is no output."""
    if shape is None:
        dims = tuple(
            Dim(Var(region_name(func.name, d, "min")), Var(region_name(func.name, d, "extent")))
            for d in func.dims
        )
        body = Allocate(_buffer(plan, func, dims), body)
        shape = (ZERO,) * len(func.dims)
    rules = plan.widenings.get(func.name, ())
    for at, extent in reversed(list(enumerate(shape))):
        region = widened((ZERO, extent, ZERO, extent - ONE), at, rules, Facts.none)
        for part, value in reversed(list(zip(REGION_PARTS, region, strict=True))):
            body = Let(region_name(func.name, func.dims[at], part), value, body)
    return body


def _buffer(plan: Plan, func: FuncRecord, dims: tuple[Dim, ...]) -> Buffer:
    storage = plan.storage.get(func.name, Storage())
    aligned: Hints = tuple((f"align{k}", n) for k, n in storage.aligned)
    hints = aligned + plan.hints.get(func.name, ())
    return Buffer(func.name, func.dtypes, dims, storage.memory, hints=hints)


@dataclass(slots=True)
class _Inside:
    """What stands just inside one loop of a nest: values bound there, then conditions."""

    lets: list[tuple[str, Expr]]
    guards: list[Expr]


def _stage(func: FuncRecord, number: int, nest: Nest) -> Stage:
    """The loops of one stage."""
    body = _variants(func, func.definitions[number], nest)
    return Stage(func.name, number, body, span=func.definitions[number].span)


def _variants(func: FuncRecord, definition: Definition, nest: Nest) -> Stmt:
    """if c: loops of its variant; if ~c: the others"""
    body = _loops(func, definition, nest) if nest.failing is None else NOTHING
    for variant in reversed(nest.variants):
        chosen = If(variant.condition, _variants(func, definition, variant.nest))
        body = block(chosen, If(~variant.condition, body)) if body is not NOTHING else chosen
    return body


def _loops(func: FuncRecord, definition: Definition, nest: Nest) -> Stmt:
    """The loops of one nest, with each binding and guard just inside the last loop it needs."""
    qualified = {name: Var(f"{func.name}.{name}") for name in _names(nest)}
    inside = _inside(func, definition, nest)
    order = Order(definition, nest)
    values = tuple(substitute(v, qualified) for v in definition.values)
    indices = tuple(substitute(i, qualified) for i in definition.indices)
    atomic = nest.atomic and any(_is_shared(loop, order, definition) for loop in nest.loops)
    body: Stmt = Store(func.name, indices, values, atomic, span=definition.span)
    for depth in range(len(nest.loops), -1, -1):
        body = _wrap(body, inside[depth], qualified)
        if depth:
            loop = nest.loops[depth - 1]
            body = For(
                f"{func.name}.{loop.name}",
                substitute(loop.min, qualified),
                substitute(loop.extent, qualified),
                loop.kind,
                body,
                loop.reduction and order.carries(loop.name),
                loop.hints,
                span=loop.span,
            )
    return body


def _is_shared(loop: Loop, order: Order, definition: Definition) -> bool:
    """Whether iterations of the loop that run at once may update one element."""
    if loop.kind in (LoopKind.SERIAL, LoopKind.UNROLLED):
        return False
    # Lanes that all update one element are a tree reduction.
    scattered = any(e.reads for e in definition.indices) or loop.kind is not LoopKind.VECTORIZED
    return scattered and order.conflict_of(loop.name) is not None


def _names(nest: Nest) -> Iterable[str]:
    yield from nest.names()
    yield from (binding.name for binding in nest.bindings)


def _inside(func: FuncRecord, definition: Definition, nest: Nest) -> list[_Inside]:
    """What stands inside loop d - 1 (0: outside all loops)."""
    inside = [_Inside([], []) for _ in range(len(nest.loops) + 1)]
    depths = {loop.name: d + 1 for d, loop in enumerate(nest.loops)}
    # A binding may use loops that were themselves bound by a later directive: last to first.
    for binding in reversed(nest.bindings):
        depth = _depth(binding.value, depths)
        depths[binding.name] = depth
        inside[depth].lets.append((binding.name, binding.value))
        if binding.guard is not None:
            inside[_depth(binding.guard, depths)].guards.append(binding.guard)
    for guard in (*_needed(func, definition), *_where(definition)):
        inside[_depth(guard, depths)].guards.append(guard)
    return inside


def _depth(e: Expr, depths: Mapping[str, int]) -> int:
    return max((depths[name] for name in e.free if name in depths), default=0)


def _needed(func: FuncRecord, definition: Definition) -> Iterable[Expr]:
    """first <= v <= last for every pure Var: what is allocated may be more than what is needed."""
    for dim, name in zip(func.dims, definition.pure, strict=True):
        if name is not None:
            yield Var(region_name(func.name, dim, "first")) <= Var(name)
            yield Var(name) <= Var(region_name(func.name, dim, "last"))


def _where(definition: Definition) -> Iterable[Expr]:
    if definition.domain is not None and definition.domain.where is not None:
        yield definition.domain.where


def _wrap(body: Stmt, inside: _Inside, qualified: Mapping[str, Expr]) -> Stmt:
    for guard in reversed(inside.guards):
        body = If(substitute(guard, qualified), body)
    for name, value in reversed(inside.lets):
        body = Let(str(qualified[name]), substitute(value, qualified), body)
    return body
