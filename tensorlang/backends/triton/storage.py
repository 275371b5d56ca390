"""Registers or scratch: where a Func computed inside a program lives.

A buffer is a register tile when every access to it names, in each dimension, either the whole
dimension by one lane (index - min is a lane of the dimension's own extent) or a constant point of
it.  Reading it transposed or broadcast is then a permutation of axes.  What reads a tile of at most
two axes may also name an aligned part of a dimension (a lane plus a multiple of its extent, as an
unrolled loop over halves does), which is split off.  Any other access (a stencil,
a gather, a serial loop over it) needs memory that all threads of the program see: scratch.

Requires: loop IR of one kernel.  Not its job: the order of the axes of what is read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tensorlang.backends.triton.match_scans import LoopScan
from tensorlang.backends.triton.spans import Spans
from tensorlang.ir.expr import Const, Expr, Var
from tensorlang.ir.linear import expanded, to_linear
from tensorlang.ir.stmt import (
    Allocate,
    Buffer,
    For,
    Let,
    Stmt,
    Store,
    children_of,
    exprs_of,
)
from tensorlang.ir.walk import loads_of, substitute

# Axes of a tile of which parts are split off.
MOST_AXES = 2

Point = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class InRegisters:
    """Dimensions that are axes, in the order of the tile's axes; the others are constant points."""

    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InScratch:
    """Why: the access that registers cannot serve."""

    why: str


Placement = InRegisters | InScratch


@dataclass(slots=True)
class _Seen:
    """What the accesses to one buffer have shown so far."""

    buffer: Buffer
    mins: tuple[Expr, ...]
    spans: tuple[Expr | None, ...]
    # For each dimension: None before the first access, then whether it is a lane.
    is_lane: list[bool | None]
    axes: tuple[int, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """What names stand for in terms of loop variables, and the extent of each lane."""

    values: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    lanes: Mapping[str, Expr] = field(default_factory=dict[str, Expr])

    def expand(self, e: Expr) -> Expr:
        return substitute(e, self.values)

    def with_value(self, name: str, value: Expr) -> "Environment":
        return Environment({**self.values, name: self.expand(value)}, self.lanes)

    def with_loop(self, loop: For, span: Expr | None, *, reverse: bool = False) -> "Environment":
        """A loop of one iteration is its minimum; a lane is the minimum and a name of its own.

        Args: reverse: the lane counts from the last iteration.
        """
        extent = self.expand(loop.extent)
        if isinstance(extent, Const) and extent.value == 1:
            return self.with_value(loop.var, loop.min)
        if span is None:
            return self.with_value(loop.var, Var(loop.var))
        lane = Var(f"{loop.var}.lane")
        value = loop.min + loop.extent - 1 - lane if reverse else loop.min + lane
        made = self.with_value(loop.var, value)
        return Environment(made.values, {**made.lanes, lane.name: span})


def place_buffers(
    body: Stmt, spans: Spans, scans: Mapping[Store, LoopScan] | None = None
) -> dict[str, Placement]:
    """The placement of every buffer that `body` allocates; loops without a span are no lanes.

    Args: scans: the stores that are scans along a loop.
    """
    seen: dict[str, _Seen] = {}
    _visit(body, Environment(), seen, spans, scans or {})
    return {
        name: InScratch(s.failure) if s.failure else InRegisters(s.axes) for name, s in seen.items()
    }


def _visit(
    stmt: Stmt,
    env: Environment,
    seen: dict[str, _Seen],
    spans: Spans,
    scans: Mapping[Store, LoopScan],
) -> None:
    found = scans.get(stmt) if isinstance(stmt, Store) else None
    # What a tile of all points of a scan takes from the points before them are its own lanes.
    starts = found is not None and found.scan.begins is not None
    for e in found.scan.terms if found is not None and starts else exprs_of(stmt):
        _loads(e, env, seen)
    match stmt:
        case Allocate(buffer=buffer):
            mins = tuple(env.expand(d.min) for d in buffer.dims)
            found = _Seen(buffer, mins, spans.buffers[buffer.name], [None] * len(mins))
            if any(buffer.fold):
                found.failure = "it is folded into a ring"
            if buffer.name in seen:
                # The same buffer in another part of a loop that was split.
                found.failure = found.failure or seen[buffer.name].failure
            seen[buffer.name] = found
        case Store() if stmt.buffer in seen:
            _access(seen[stmt.buffer], stmt.indices, env, is_store=True)
        case Let():
            env = env.with_value(stmt.var, stmt.value)
        case For():
            reverse = any(scan.loop is stmt and scan.reverse for scan in scans.values())
            env = env.with_loop(stmt, spans.loops.get(stmt), reverse=reverse)
        case _:
            pass
    for child in children_of(stmt):
        _visit(child, env, seen, spans, scans)


def _loads(e: Expr, env: Environment, seen: dict[str, _Seen]) -> None:
    for load in loads_of(e):
        if load.buffer in seen:
            _access(seen[load.buffer], load.indices, env, is_store=False)


def _access(seen: _Seen, indices: tuple[Expr, ...], env: Environment, *, is_store: bool) -> None:
    if seen.failure:
        return
    lanes: list[tuple[int, str]] = []
    for dim, (e, low) in enumerate(zip(indices, seen.mins, strict=True)):
        splits = not is_store and len(seen.mins) <= MOST_AXES
        lane, failure = _lane_of(env.expand(e), low, seen.spans[dim], env, splits=splits)
        is_lane = lane is not None
        if not failure and seen.is_lane[dim] not in (None, is_lane):
            failure = "is read both as a whole and at a point"
        if failure:
            seen.failure = f"dimension {dim} {failure}"
            return
        seen.is_lane[dim] = is_lane
        if lane is not None:
            lanes.append((dim, lane))
    names = [lane for _, lane in lanes]
    if len(set(names)) != len(names):
        seen.failure = "one lane indexes two of its dimensions"
    elif is_store and not seen.axes:
        order = list(env.lanes)
        seen.axes = tuple(dim for dim, _ in sorted(lanes, key=lambda pair: order.index(pair[1])))


def _lane_of(
    e: Expr, low: Expr, span: Expr | None, env: Environment, *, splits: bool
) -> tuple[str | None, str]:
    """The lane that runs over the whole dimension, or None at a constant point; else a failure.

    Args: splits: a lane over an aligned part of the dimension will do.
    """
    offset = expanded(to_linear(e) - to_linear(low))
    if not offset.terms:
        inside = isinstance(span, Const) and 0 <= offset.constant < int(span.value)
        return None, "" if inside else "is indexed outside its region"
    [(atom, coefficient), *more] = offset.terms.items()
    if more or coefficient != 1 or not isinstance(atom, Var):
        return None, "is not indexed by a lane of its own"
    if atom.name not in env.lanes:
        return None, "is indexed by a serial loop"
    if splits and span is not None and _is_part(offset.constant, env.lanes[atom.name], span):
        return atom.name, ""
    if offset.constant:
        return None, "is not indexed by a lane of its own"
    if span is None or padded(env.lanes[atom.name]) is not padded(span):
        return None, "has another extent than the lane that indexes it"
    return atom.name, ""


def _is_part(first: int, extent: Expr, span: Expr) -> bool:
    """Whether first, ..., first + extent - 1 is one of the equal parts of a whole in halves."""
    if not isinstance(extent, Const) or not isinstance(span, Const):
        return False
    part, whole = int(extent.value), int(span.value)
    are_powers = all(n > 0 and n & (n - 1) == 0 for n in (part, whole))
    return are_powers and part < whole and first % part == 0 and 0 <= first < whole


def padded(extent: Expr) -> Expr:
    """The extent as a tile axis has it: a constant goes up to the next power of two."""
    if isinstance(extent, Const):
        return Const(next_power_of_two(int(extent.value)), extent.dtype)
    return extent


def next_power_of_two(n: int) -> int:
    """The smallest power of two >= n, at least 1."""
    return 1 << max(n - 1, 0).bit_length()


def allocations(body: Stmt) -> Iterator[Buffer]:
    """Every buffer allocated in `body`, outermost first."""
    stack = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, Allocate):
            yield stmt.buffer
        stack.extend(reversed(children_of(stmt)))
