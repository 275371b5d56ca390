"""What only the whole schedule shows wrong."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from tensorlang.directives.order import Order
from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Binary, Const, Expr, Param, Var
from tensorlang.ir.stmt import (
    Allocate,
    Buffer,
    For,
    Let,
    LoopKind,
    Program,
    Stage,
    Stmt,
    Store,
    children_of,
    exprs_of,
    walk,
)
from tensorlang.ir.walk import loads_of, postorder, substitute
from tensorlang.lower.plan import ROOT, Level, Nest, Plan


def check_schedule(plan: Plan) -> None:
    """Refuse what no pass could lower.

    Raises: ScheduleError: gpu-blocks-apart, store-inside-compute.
    """
    for func, placement in plan.placements.items():
        if not placement.inline and placement.store is not None:
            _check_store(plan, func)
    for whole in plan.nests.values():
        for nest in whole.everywhere():
            _check_blocks(nest)
            _check_parallel(plan, nest)
    _check_variants(plan)


def _check_variants(plan: Plan) -> None:
    """A stage that shares its loops with another has one set of them.

    Raises: ScheduleError: variants-not-shared.
    """
    shared = {stage for merge in plan.merges for stage in (merge.stage, merge.into)}
    shared |= {(name, n) for group in plan.groups for name in group.members for n in (0, 1)}
    for stage in sorted(shared):
        nest = plan.nests.get(stage)
        if nest is not None and nest.variants:
            raise ScheduleError(
                "variants-not-shared",
                f"cannot specialize {nest.stage!r}",
                why="it shares its loops with another stage (compute_with, rolling_update)",
                fix="specialize the Func at whose loop both are computed",
                span=nest.variants[0].span,
                nest=nest.show(),
            )


def _check_store(plan: Plan, func: str) -> None:
    """Storage stands around the loop that computes: at an outer loop of that nest, or at root."""
    placement = plan.placements[func]
    compute, store = placement.compute, placement.store or ROOT
    if store in (ROOT, compute) or _encloses(plan, store, compute):
        return
    raise ScheduleError(
        "store-inside-compute",
        f"cannot store {func!r} at {store} and compute it at {compute}",
        why="storage has to stand around the loop that fills it",
        fix=f"store_at an outer loop of {compute.func!r}, or store_root()",
        span=placement.span,
    )


def _encloses(plan: Plan, outer: Level, inner: Level) -> bool:
    """Whether loop `outer` is around loop `inner`, through the nests in which Funcs are placed."""
    seen: set[str] = set()
    while inner != ROOT and inner.func not in seen:
        seen.add(inner.func)
        for nest in plan.stages(inner.func):
            names = nest.names()
            if outer.func == inner.func and outer.loop in names and inner.loop in names:
                return names.index(outer.loop) <= names.index(inner.loop)
        inner = plan.placements[inner.func].compute
        if inner == outer:
            return True
    return False


def _check_parallel(plan: Plan, nest: Nest) -> None:
    """A loop may have lost the serial loop outside it that kept its iterations apart."""
    definition = plan.algorithm.func(nest.func).definitions[nest.number]
    order = Order(definition, nest)
    for loop in nest.loops:
        if loop.kind in (LoopKind.SERIAL, LoopKind.UNROLLED):
            continue
        conflict = order.conflict_of(loop.name)
        associative = order.is_associative() or order.is_scan(loop.name)
        tree = loop.kind is LoopKind.VECTORIZED and associative
        if conflict is not None and not tree and not nest.atomic:
            raise ScheduleError(
                "carried-dependence",
                f"cannot run {loop.name!r} of {nest.stage!r} as {loop.kind.value}",
                why=f"{conflict}, and would run at once",
                fix=f"keep a serial loop that separates them outside {loop.name!r}",
                span=loop.span,
                nest=nest.show(),
            )


def _check_blocks(nest: Nest) -> None:
    """Program ids stand outside everything but serial loops, side by side."""
    kinds = [loop.kind for loop in nest.loops]
    if LoopKind.GPU_BLOCK not in kinds:
        return
    first = kinds.index(LoopKind.GPU_BLOCK)
    last = len(kinds) - 1 - kinds[::-1].index(LoopKind.GPU_BLOCK)
    apart = any(kind is not LoopKind.GPU_BLOCK for kind in kinds[first:last])
    inside = any(kind is not LoopKind.SERIAL for kind in kinds[:first])
    if apart or inside:
        names = ", ".join(loop.name for loop in nest.loops if loop.kind is LoopKind.GPU_BLOCK)
        raise ScheduleError(
            "gpu-blocks-apart",
            f"the gpu_blocks loops {names} of {nest.stage!r} do not stand side by side, outermost",
            why="together they are the programs of one kernel; a serial loop around them runs on "
            "the host, and nothing else may stand around or between them",
            fix="reorder them to the outside, next to each other",
            span=nest.loops[last].span,
            nest=nest.show(),
        )


def check_lanes(program: Program) -> Program:
    """Lanes have a constant extent or a whole dimension; blocks never stand inside blocks.

    Raises: ScheduleError: lanes-not-constant, nested-gpu-blocks, shared-storage.
    """
    _check(program.body, "none", {}, {})
    return program


# Each name that differs between iterations, with the loops on which it depends.
Varying: TypeAlias = Mapping[str, frozenset[str]]
# Whose gpu_blocks stand around a statement: those of its own stage, or of another one.
Blocks: TypeAlias = Literal["none", "own", "another's"]


def _check(stmt: Stmt, blocks: Blocks, varying: Varying, kept: Mapping[str, Buffer]) -> None:
    if isinstance(stmt, For):
        if stmt.kind is LoopKind.VECTORIZED:
            _check_extent(stmt, _loops_of(stmt.extent, varying))
        if stmt.kind is LoopKind.GPU_BLOCK:
            _check_nested(stmt, blocks)
        if stmt.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
            _check_shared(stmt, kept)
        blocks = "own" if stmt.kind is LoopKind.GPU_BLOCK else blocks
        varying = {**varying, stmt.var: frozenset((stmt.var,))}
    if isinstance(stmt, Let) and (loops := _loops_of(stmt.value, varying)):
        varying = {**varying, stmt.var: loops}
    if isinstance(stmt, Allocate):
        kept = {**kept, stmt.buffer.name: stmt.buffer}
    if isinstance(stmt, Stage) and blocks == "own":
        blocks = "another's"
    for child in children_of(stmt):
        _check(child, blocks, varying, kept)


def _loops_of(e: Expr, varying: Varying) -> frozenset[str]:
    return frozenset[str]().union(*(varying[name] for name in e.free & varying.keys()))


def _check_shared(loop: For, kept: Mapping[str, Buffer]) -> None:
    """Iterations that run at once never compute a Func into one storage.

    A loop of its own, or one that compute_with has put it in, gives each its elements.
    """
    func, _, name = loop.var.rpartition(".")
    inside = (s.func for s in walk(loop.body) if isinstance(s, Stage))
    theirs = (f for f in inside if f in kept and f != func)
    shared = next((f for f in theirs if not _is_apart(loop, kept[f])), None)
    if shared is not None:
        raise ScheduleError(
            "shared-storage",
            f"cannot run {name!r} of {func!r} as {loop.kind.value}: {shared!r} is kept outside it",
            why=f"iterations that run at once would each compute {shared!r} into the same storage",
            fix=f"store {shared!r} inside the loop (compute_at without store_at), or leave "
            f"{name!r} serial",
            span=loop.span,
        )


def _is_apart(loop: For, buffer: Buffer) -> bool:
    """Whether an iteration touches of a buffer only what is at the loop's own index, or in its own
    tile, in some dimension, which is no ring: there two indices may be one element.
    """
    inside = list(walk(loop.body))
    values: dict[str, Expr] = {}
    for s in (s for s in inside if isinstance(s, Let)):
        value = substitute(s.value, values)
        # A name with two values says nothing.
        values[s.var] = value if values.get(s.var, value) is value else Var(s.var)
    lanes = {s.var: 0 for s in inside if isinstance(s, For)}
    for s in (s for s in inside if isinstance(s, For)):
        lanes[s.var] = max(lanes[s.var], _end_of(s))
    stores = [s for s in inside if isinstance(s, Store) and s.buffer == buffer.name]
    exprs = [e for s in inside for e in exprs_of(s)]
    loads = [load for load in loads_of(*exprs) if load.buffer == buffer.name]
    touched = [touch.indices for touch in (*stores, *loads)]
    folds = buffer.fold or (0,) * len(buffer.dims)
    return any(
        not ring and all(_is_own(substitute(at[k], values), loop.var, lanes) for at in touched)
        for k, ring in enumerate(folds)
    )


def _end_of(loop: For) -> int:
    """The end of a loop that starts at 0, past every integer where that is no constant."""
    match loop:
        case For(min=Const(value=0), extent=Const(value=int(n))):
            return n
        case _:
            return 1 << 62


def _is_own(index: Expr, var: str, lanes: Mapping[str, int]) -> bool:
    """Whether an index is v, or v*c + lane where lane < c."""
    match index:
        case Var(name=name):
            return name == var
        case Binary(
            op="add", a=Binary(op="mul", a=Var(name=name), b=Const(value=int(c))), b=Var(name=lane)
        ):
            return name == var and lanes.get(lane, c + 1) <= c
        case _:
            return False


def _check_extent(loop: For, loops: frozenset[str]) -> None:
    varying = sorted(loops)
    chosen = any(isinstance(e, Param) for e in postorder(loop.extent))
    if isinstance(loop.extent, Const) or not (varying or chosen):
        return
    func, _, name = loop.var.rpartition(".")
    depends = ", ".join(varying) or "a Param"
    raise ScheduleError(
        "lanes-not-constant",
        f"cannot vectorize {name!r} of {func!r}: its extent is no constant",
        why=f"it depends on {depends}, and the lanes of a vector or tile are fixed",
        fix="split by a Python int and vectorize the inner loop",
        span=loop.span,
    )


def _check_nested(loop: For, blocks: Blocks) -> None:
    if blocks == "another's":
        func, _, name = loop.var.rpartition(".")
        raise ScheduleError(
            "nested-gpu-blocks",
            f"cannot run {name!r} of {func!r} as gpu_blocks: it stands inside other gpu_blocks",
            why="the programs of a kernel cannot start programs of their own",
            fix="make it serial or vectorized, or compute the Func at root",
            span=loop.span,
        )
