"""Expressions of loop IR as expressions over tiles: loads become Reads, or names of registers."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from math import copysign, frexp, gcd

from tensorlang.backends.triton.context import Making, Place, Register
from tensorlang.backends.triton.masks import conjunction, conjuncts, in_bounds, with_lane
from tensorlang.backends.triton.tiles import Access, Inverse, Lane, Memory, Part, RandomRow, Read
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Name,
    Promise,
    Select,
    Size,
    Var,
)
from tensorlang.ir.linear import Linear, expanded, to_expr, to_linear
from tensorlang.ir.types import f32, i64, index
from tensorlang.ir.walk import fold, loads_of, postorder


def value_of(e: Expr, place: Place, making: Making) -> Expr:
    """`e` over tile names; what it loads is read first."""

    def step(node: Expr, operands: list[Expr]) -> Expr:
        match node:
            case Name(name=name):
                return place.names.get(name, node)
            case Load():
                return _load(node, tuple(operands), place, making)
            case Promise():
                return operands[0]
            case Call(function="random_uniform"):
                return _random(operands[0], operands[1], making)
            case Binary(op="div", b=Const(value=float(c)), dtype=dtype) if _is_a_power_of_two(c):
                return Binary("mul", operands[0], Const(1.0 / c, dtype))
            case Binary(op="div", b=Cast(a=Size() as size)) if extent := making.exactly(size):
                return Binary("mul", operands[0], Inverse(extent, node.dtype))
            case _:
                same = all(a is b for a, b in zip(operands, node.children, strict=True))
                return node if same else node.rebuild(tuple(operands))

    memo: dict[Expr, Expr] = {}
    for select, load in _masked_loads(e):
        condition, *indices = (fold(part, step, memo) for part in (select.condition, *load.indices))
        value = _load_where(load, condition, tuple(indices), place, making)
        if value is not None:
            memo[select] = value
    for load in loads_of(*_still_needed(e, memo)):
        # In the order in which they are written, which is not that of `fold`.
        fold(load, step, memo)
    return fold(e, step, memo)


def _masked_loads(e: Expr) -> Iterator[tuple[Select, Load]]:
    """The selects of an element or 0, in order of their conditions' loads."""
    for node in postorder(e):
        match node:
            case Select(a=Load() as load, b=Const(value=value)) if value == 0 and not load.reads - {
                load.buffer
            }:
                if copysign(1.0, float(value)) > 0 and not node.condition.reads:
                    yield node, load
            case _:
                pass


def _still_needed(e: Expr, memo: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """What of an expression is to be evaluated: the operands of what is known are not."""
    found: list[Expr] = []
    seen: set[Expr] = set()
    stack = [e]
    while stack:
        node = stack.pop()
        if node in seen or node in memo:
            continue
        seen.add(node)
        if isinstance(node, Load):
            found.append(node)
        stack += reversed(node.children)
    return tuple(found)


def _load_where(
    load: Load, condition: Expr, indices: tuple[Expr, ...], place: Place, making: Making
) -> Expr | None:
    """select(condition, load, 0) as a read that the condition masks, if it has no other lanes.

    What the condition says of the indices needs no test of its own.
    """
    memory = making.memories.get(load.buffer)
    if load.buffer in making.registers or memory is None or not memory.constant:
        return None
    lanes = making.lanes.of(*indices)
    if not set(making.lanes.of(condition)) <= set(lanes):
        return None
    return _load(load, indices, place, making, conjuncts(condition))


def _random(seed: Expr, at: Expr, making: Making) -> Expr:
    """Random numbers: of consecutive words of one stream where `at` is a number plus a lane."""
    position = at.a if isinstance(at, Cast) and at.dtype is i64 else at
    lanes = making.lanes.of(position)
    if position.dtype is index and len(lanes) == 1 and not making.lanes.of(seed):
        [lane] = lanes
        form = expanded(to_linear(making.expand(position)))
        rest = form.without(lane.var)
        first = to_expr(rest)
        if form.terms.get(lane.var) == 1 and not making.lanes.of(first):
            return RandomRow(seed, Cast(i64, first), lane.var, _multiple_of(rest, making))
    return Call("random_uniform", (seed, at), f32)


def _is_a_power_of_two(c: float) -> bool:
    """Whether to divide by it is to multiply by its inverse, which is a number too."""
    return frexp(abs(c))[0] == 0.5 and 2.0**-100 < abs(c) < 2.0**100


def _multiple_of(form: Linear, making: Making) -> int | str:
    """A number, or the extent of a lane that the call makes exact, that divides the form."""
    number = gcd(form.constant, *form.terms.values())
    shared = set[Expr]().union(*map(_factors, form.terms)) if form.constant == 0 else set[Expr]()
    for factor in shared:
        extent = making.exactly(factor)
        if extent and all(factor in _factors(atom) for atom in form.terms):
            return extent
    return number


def _factors(e: Expr) -> set[Expr]:
    match e:
        case Binary(op="mul", a=a, b=b):
            return _factors(a) | _factors(b)
        case _:
            return {e}


def _load(
    load: Load,
    indices: tuple[Expr, ...],
    place: Place,
    making: Making,
    conditions: Sequence[Expr] = (),
) -> Expr:
    register = making.registers.get(load.buffer)
    if register is not None:
        return register_value(register, load.component, indices, making)
    memory = making.memories[load.buffer]
    at = access(memory, load.component, indices, place, making)
    known_there = place
    for condition in conditions:
        known_there = known_there.knowing(known_there.facts.assuming(condition))
    bounds = [*conditions, *needed_bounds(at, known_there)]
    mask = conjunction(bounds)
    key = (memory, load.component, at.offsets, mask)
    # An Input keeps its values; what the program itself writes is read anew.
    known = making.find(key) if memory.constant else None
    if known is None:
        known = making.fresh(load.buffer)
        making.lanes.declare(known, making.lanes.of(*at.offsets))
        making.masks[known] = frozenset(bounds)
        making.out.append(Read(known, at, mask))
        making.remember(key, known)
    return Var(known, load.dtype)


def access(
    memory: Memory, component: int, indices: tuple[Expr, ...], place: Place, making: Making
) -> Access:
    """The elements of memory that `indices` name, relative to its origin."""
    making.used_memories[memory] = None
    offsets: list[Expr] = []
    for dim, e in enumerate(indices):
        offset = _ascending(e, making) if e.dtype.name == "index" else Cast(index, e)
        if memory.origin:
            offset = _difference(offset, memory.origin[dim], making)
        if memory.fold and memory.fold[dim]:
            offset = offset % memory.fold[dim]
        offsets.append(offset)
    return Access(memory, component, (*memory.owner, *offsets))


def _ascending(e: Expr, making: Making) -> Expr:
    """An index over lanes in reverse as what it is of the lane: N - 1 - (N - 1 - lane)."""
    whole = making.expand(e)
    if whole.free.isdisjoint(making.reversed):
        return e
    return to_expr(expanded(to_linear(whole)))


def _difference(e: Expr, low: Expr, making: Making) -> Expr:
    """e - low: what the names stand for where that is a single term, else over the names."""
    full = expanded(to_linear(making.expand(e)) - to_linear(making.expand(low)))
    if len(full.terms) <= 1:
        return to_expr(full)
    return to_expr(expanded(to_linear(e) - to_linear(low)))


def needed_bounds(at: Access, place: Place) -> list[Expr]:
    """The bounds of the buffer that are not proved of these offsets."""
    return [test for test in _bounds(at) if not place.facts.proves(test)]


def _bounds(at: Access) -> list[Expr]:
    own = at.offsets[len(at.memory.owner) :]
    return [t for pair in zip(own, at.memory.extents, strict=True) for t in in_bounds(*pair)]


def movable(at: Access, guards: tuple[Expr, ...], place: Place, making: Making) -> int:
    """How many of the serial loops around it an access may be moved out of, under its guards."""
    count = 0
    under = {making.expand(guard) for guard in guards}
    tests = [test for test in map(making.expand, _bounds(at)) if test not in under]
    for outside in reversed(place.loops):
        known = reduce(with_lane, place.lanes, outside)
        if not all(known.proves(test) for test in tests):
            break
        count += 1
    return count


def register_value(
    register: Register, component: int, indices: tuple[Expr, ...], making: Making
) -> Expr:
    """The variable that holds these elements, its axes named by the lanes that read it."""
    name = variable(register, component, indices, making)
    lanes = lanes_of_access(register, indices, making)
    dtype = register.dtypes[component]
    if lanes == register.lanes:
        return Var(name, dtype)
    parts = tuple(_parts(register, indices, lanes, making))
    alias = making.fresh(f"{name}.as", (name, lanes, parts))
    making.aliases[alias] = name
    making.parts[alias] = parts
    making.mutable.add(alias)
    making.lanes.declare(alias, lanes)
    return Var(alias, dtype)


def _parts(
    register: Register, indices: tuple[Expr, ...], lanes: tuple[Lane, ...], making: Making
) -> Iterator[Part]:
    """Which part of each axis is read, where that is not the whole of it."""
    outer = len(register.outer)
    for axis, dim in enumerate(register.placement.axes, outer):
        whole, part = (register.lanes or lanes)[axis].extent, lanes[axis].extent
        if isinstance(whole, int) and isinstance(part, int) and part < whole:
            first = _offset(indices[dim], register.mins[dim], making)
            yield Part(axis, first // part, whole // part)


def _offset(e: Expr, low: Expr, making: Making) -> int:
    """The constant in e - low."""
    return expanded(to_linear(making.expand(e)) - to_linear(making.expand(low))).constant


def variable(register: Register, component: int, indices: tuple[Expr, ...], making: Making) -> str:
    """The name of the variable for a component, at the constant point that `indices` name."""
    point = tuple(
        _offset(e, low, making)
        for dim, (e, low) in enumerate(zip(indices, register.mins, strict=True))
        if dim not in register.placement.axes
    )
    key = (component, point)
    if key not in register.variables:
        parts = [register.func]
        parts += [str(component)] if len(register.dtypes) > 1 else []
        parts += [str(p) for p in point] if any(point) else []
        name = register.variables[key] = making.fresh("_".join(parts))
        making.mutable.add(name)
    return register.variables[key]


def lanes_of_access(
    register: Register, indices: tuple[Expr, ...], making: Making
) -> tuple[Lane, ...]:
    """The lanes of an access, in the order of the tile's axes."""
    own = [making.lanes.of(indices[dim]) for dim in register.placement.axes]
    return (*register.outer, *(lane for lanes in own for lane in lanes))
