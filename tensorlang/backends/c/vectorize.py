"""Vectorized loops as lanes: loop IR -> loop IR whose vectorized loops are each one vector wide.

After this pass a loop of kind VECTORIZED has a constant extent, that of one vector, and what stands
in it runs in all its lanes at once.  Of a nest of vectorized loops one becomes the lanes; the
others become blocks held in registers, or serial loops.

    vectorized i in [0, 128): vectorized j in [0, N): if j < M: C[i, j] = ...
->  if N - 1 < M:  for i: for j_8: vectorized j in [j_8*8, +8): C[i, j] = ...  and the rest
    else:          the same over j in [0, min(N, M))
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tensorlang.backends.c.accumulate import accumulated
from tensorlang.backends.c.interior import interior
from tensorlang.backends.c.lanes import (
    choose_lane,
    is_accumulation,
    is_worth_a_mask,
    lanes_for,
)
from tensorlang.backends.c.machine import Machine
from tensorlang.backends.c.nest import (
    Nest,
    holds_everywhere,
    in_order,
    open_nest,
    range_of,
    scalar_guards,
    trimmed,
    without_single_iterations,
)
from tensorlang.backends.c.private import private_to_lanes
from tensorlang.backends.c.rewriting import all_of, either, guarded, has_vectorized, replace_names
from tensorlang.backends.c.steps import in_whole_steps, with_narrow_clamps
from tensorlang.backends.c.strips import Strip, in_strips, never_negative
from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.facts import Facts
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import For, If, Let, LoopKind, Stmt, Store, block, map_children


def vectorize(stmt: Stmt, machine: Machine, facts: Facts = Facts.none) -> Stmt:
    """Make every vectorized loop one vector wide."""
    if isinstance(stmt, For) and stmt.kind is LoopKind.VECTORIZED:
        nest = open_nest(stmt, facts)
        if not isinstance(nest.core, Store) and has_vectorized(nest.core):
            return _outer_serial(stmt, machine, facts)
        return _versions(nest, machine)
    inside = _inside(stmt, facts)
    return map_children(stmt, lambda child: vectorize(child, machine, inside))


def _inside(stmt: Stmt, facts: Facts) -> Facts:
    """What is known in the body of a statement."""
    match stmt:
        case For():
            return facts.with_range(stmt.var, stmt.min, stmt.extent)
        case Let():
            return facts.with_value(stmt.var, stmt.value)
        case If():
            return facts.assume(stmt.condition)
        case _:
            return facts


def _outer_serial(stmt: Stmt, machine: Machine, facts: Facts) -> Stmt:
    """The outer loops serial, since further vectorized loops inside are the ones to use."""
    match stmt:
        case For(kind=LoopKind.VECTORIZED) | Let() | If():
            body = _outer_serial(stmt.body, machine, _inside(stmt, facts))
            made = replace(stmt, body=body)
            return replace(made, kind=LoopKind.SERIAL) if isinstance(made, For) else made
        case _:
            return vectorize(stmt, machine, facts)


def _versions(nest: Nest, machine: Machine) -> Stmt:
    """One version for where all guards hold, without them, and one that keeps within bounds."""
    outer, nest = scalar_guards(without_single_iterations(nest))
    condition, free = holds_everywhere(nest)
    fast = _ordered(free, machine)
    slow = _ordered(trimmed(nest), machine) if condition is not None else fast
    return guarded(outer, either(condition, fast, slow))


def _ordered(nest: Nest, machine: Machine) -> Stmt:
    lane = choose_lane(nest.loops, nest.core, machine)
    body = guarded(nest.guards, nest.core)
    if lane is None:
        return in_order(nest.loops, body)
    width = lanes_for(nest.core, lane.var, machine)
    if isinstance(lane.extent, Const):
        width = min(width, 1 << (int(lane.extent.value).bit_length() - 1))
    others = [loop for loop in nest.loops if loop is not lane]
    if width < 2:
        return in_order(nest.loops, body)
    lane = never_negative(lane, nest.facts)
    if lane.reduction and is_accumulation(lane, nest.core):
        assert isinstance(nest.core, Store)
        return accumulated(lane, others, nest.guards, nest.core, width)
    if isinstance(nest.core, Store):
        return _tiled(lane, others, nest, width, machine)
    return in_order(others, _lane_strips(lane, width, nest, machine))


def _lane_strips(lane: For, width: int, nest: Nest, machine: Machine) -> Stmt:
    """The loop in vectors; the last in part, where that is cheaper than one by one."""
    body = guarded(nest.guards, nest.core)
    masked = is_worth_a_mask(nest.core, lane.var, width, machine)
    return in_strips(lane, [width], _lanes_over(lane, body), masked=masked)


def _lanes_over(lane: For, body: Stmt) -> Callable[[Strip], Stmt]:
    """The body in the lanes of each strip; where no clamp acts, without the clamps."""

    def over(strip: Strip) -> Stmt:
        if strip.width == 1:
            return replace_names(body, {lane.var: strip.first})
        conditions, free = interior(body, lane.var, {lane.var: strip.range})
        slow = _in_lanes(lane, strip, body)
        return either(all_of(conditions), _in_lanes(lane, strip, free), slow)

    return over


def _in_lanes(lane: For, strip: Strip, body: Stmt) -> Stmt:
    """One vector's worth of the loop."""
    if strip.width == 1:
        return replace_names(body, {lane.var: strip.first})
    body = strip.masked(lane.var, with_narrow_clamps(body))
    stepped = in_whole_steps(body, lane.var, strip.first, strip.width)
    inside = private_to_lanes(stepped, lane.var, strip.first, strip.width)
    return replace(lane, min=strip.first, extent=integer(strip.width), body=inside)


def _tiled(lane: For, others: Sequence[For], nest: Nest, width: int, machine: Machine) -> Stmt:
    """Pure loops outside, reduction loops inside a block of rows and vectors held in registers."""
    core = nest.core
    assert isinstance(core, Store)
    rows = [loop for loop in others if not loop.reduction]
    reductions = [loop for loop in others if loop.reduction]
    body = guarded(nest.guards, core)
    is_update = any(core.buffer in value.reads for value in core.values)
    if not is_update:
        return in_order(others, _lane_strips(lane, width, nest, machine))
    row = rows.pop() if rows else None
    height, vectors = _block(row, lane, width, machine, unrolled=not reductions)
    if row is not None and height > 1:
        row = never_negative(row, nest.facts)

    def columns(at: Sequence[Expr]) -> Callable[[Strip], Stmt]:
        def over(strip: Strip) -> Stmt:
            ranges = {loop.var: range_of(loop) for loop in reductions} | {lane.var: strip.range}
            if row is not None:
                ranges[row.var] = (at[0], at[-1])
            conditions, free = interior(body, lane.var, ranges)
            slow = tile_of(body, at, strip)
            return either(all_of(conditions), tile_of(free, at, strip), slow)

        return over

    def tile_of(inside: Stmt, at: Sequence[Expr], strip: Strip) -> Stmt:
        copies = [
            _in_lanes(lane, part, inside if row is None else replace_names(inside, {row.var: i}))
            for i in at
            for part in strip.parts(width)
        ]
        return in_order(reductions, block(*copies))

    def block_of_rows(strip: Strip | None) -> Stmt:
        at = [] if strip is None else [p.first for p in strip.parts(1)]
        return in_strips(lane, [vectors * width, width], columns(at or [integer(0)]))

    tile = block_of_rows(None) if row is None else in_strips(row, [height], block_of_rows)
    return in_order(rows, tile)


# Fewer copies of a statement than this are written out rather than looped over.
_MOST_COPIES = 16


def _block(
    row: For | None, lane: For, width: int, machine: Machine, *, unrolled: bool
) -> tuple[int, int]:
    """How many rows and vectors of accumulators stay in registers at a time."""
    columns = int(lane.extent.value) // width if isinstance(lane.extent, Const) else None
    rows = 1 if row is None else int(row.extent.value) if isinstance(row.extent, Const) else None
    if columns and rows and columns * rows <= _MOST_COPIES:
        return rows, columns
    if unrolled:
        return 1, 1
    # Each step also needs the vectors of one operand and one broadcast of the other.
    budget = machine.vector_registers - 4
    if rows == 1:
        return 1, _divisor(columns, min(8, budget))
    height = _divisor(rows, 4)
    return height, _divisor(columns, max(1, budget // height))


def _divisor(n: int | None, most: int) -> int:
    """The largest divisor of n up to `most`, if it is at least half of that; else `most`."""
    if n is None:
        # A power of two, so that dividing by it is a shift.
        return 1 << (most.bit_length() - 1)
    best = max(d for d in range(1, min(n, most) + 1) if n % d == 0)
    return best if 2 * best >= min(n, most) else min(n, most)
