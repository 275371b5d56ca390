"""Stores of loop IR as statements over tiles: to registers or memory, plain or reducing lanes."""

from collections.abc import Mapping
from dataclasses import replace

from tensorlang.backends.triton.atomics import check_atomic
from tensorlang.backends.triton.context import Making, Place, Register
from tensorlang.backends.triton.masks import conjunction
from tensorlang.backends.triton.match_reductions import Dot, guarded_term, match_dot
from tensorlang.backends.triton.prefixes import scanned
from tensorlang.backends.triton.tiles import (
    Access,
    Assign,
    Declare,
    Lane,
    Reduce,
    ReduceFirst,
    Tile,
    Write,
)
from tensorlang.backends.triton.values import (
    access,
    lanes_of_access,
    movable,
    register_value,
    value_of,
    variable,
)
from tensorlang.errors import InternalError
from tensorlang.ir.associativity import associative_operator, multiply_add
from tensorlang.ir.expr import Binary, Call, Cast, Compare, Const, Expr, Load, Select, Var
from tensorlang.ir.functions import identity
from tensorlang.ir.linear import Linear, expanded, integer, to_linear
from tensorlang.ir.stmt import Store
from tensorlang.ir.types import f32, i64, index
from tensorlang.ir.walk import rewrite, substitute


def make_store(store: Store, place: Place, making: Making, number: int) -> None:
    """The statements of one Store; `number` is that of its stage, 0 for a pure definition."""
    indices = tuple(value_of(e, place, making) for e in store.indices)
    register = making.registers.get(store.buffer)
    owned = register.outer if register else making.memories[store.buffer].outer
    named = {*making.lanes.of(*indices), *owned}
    reduced = tuple(lane for lane in place.lanes if lane not in named)
    over = {g for g in place.guards if set(making.lanes.of(g)) & set(reduced)}
    plain = tuple(g for g in place.guards if g not in over)
    if store.atomic and register is None:
        making.out.append(atomic_update(store, indices, reduced, place, making))
        return
    after: list[Tile] = []
    prefix = scanned(store, indices, place, making)
    if prefix is not None:
        values, after = prefix
    elif reduced:
        guards = tuple(g for g in place.guards if g in over)
        values = _reduced_values(store, indices, reduced, guards, place, making)
    else:
        values = tuple(value_of(e, place, making) for e in _contracted(store))
    if register is not None:
        _assign(register, indices, values, plain, making, number)
    else:
        _write(store, indices, values, plain, place, making)
    making.out += after


def _contracted(store: Store) -> tuple[Expr, ...]:
    """The values, f[i] + a*b being one multiply-add: a reduction may round it once."""
    factors = multiply_add(store.buffer, store.indices, store.values)
    if factors is None:
        return store.values
    dtype = store.values[0].dtype
    return (Call("fma", (*factors, Load(store.buffer, store.indices, 0, dtype)), dtype),)


def atomic_update(
    store: Store, indices: tuple[Expr, ...], reduced: tuple[Lane, ...], place: Place, making: Making
) -> Write:
    """memory op= term, the term reduced along the lanes that share an element."""
    found = associative_operator(store.buffer, store.indices, store.values)
    if found is None:
        raise InternalError(f"an atomic store to '{store.buffer}' is no known update")
    op, (term,) = found
    check_atomic(store.buffer, op, term.dtype)
    over = {g for g in place.guards if set(making.lanes.of(g)) & set(reduced)}
    value = value_of(term, place, making)
    if reduced:
        guards = tuple(g for g in place.guards if g in over)
        value = _along(op, guarded_term(value, guards, identity(op, value.dtype)), reduced)
    plain = tuple(g for g in place.guards if g not in over)
    at = access(making.memories[store.buffer], 0, indices, place, making)
    return Write(at, value, conjunction(plain), operator=op)


def _write(
    store: Store,
    indices: tuple[Expr, ...],
    values: tuple[Expr, ...],
    guards: tuple[Expr, ...],
    place: Place,
    making: Making,
) -> None:
    memory = making.memories[store.buffer]
    for component, value in enumerate(_steady(values, store.buffer, making)):
        at = access(memory, component, indices, place, making)
        at, needed = _at_first(at, value, guards, making)
        mask = conjunction(_up_to_padding(guard, at, making) for guard in needed)
        making.out.append(Write(at, value, mask, movable(at, needed, place, making)))


def _at_first(
    at: Access, value: Expr, guards: tuple[Expr, ...], making: Making
) -> tuple[Access, tuple[Expr, ...]]:
    """Along a whole dimension of which only the first element is read, only that is written."""
    memory, offsets = at.memory, list(at.offsets)
    for dim in memory.firsts[at.component] if memory.firsts else ():
        lanes = making.lanes.of(offsets[dim])
        if len(lanes) != 1 or making.expand(offsets[dim]) is not lanes[0].var:
            continue
        [lane] = lanes
        others = [e for k, e in enumerate(offsets) if k != dim]
        own = [guard for guard in guards if lane in making.lanes.of(guard)]
        alone = all(making.lanes.of(guard) == lanes for guard in own)
        if alone and lane not in making.lanes.of(value, *others):
            offsets[dim] = integer(0)
            guards = tuple(guard for guard in guards if guard not in set(own))
    return replace(at, offsets=tuple(offsets)), guards


def _up_to_padding(guard: Expr, at: Access, making: Making) -> Expr:
    """offset < extent as offset < the extent in memory: a whole number of wide stores."""
    memory = at.memory
    padded = [dim for dim, n in enumerate(memory.padding) if n > 1]
    if not padded or not isinstance(guard, Compare) or guard.op != "lt":
        return guard
    for dim in padded:
        offset, extent, n = at.offsets[dim], memory.extents[dim], memory.padding[dim]
        apart = _form(guard.b - guard.a, making) - _form(extent - offset, making)
        if not apart.terms and apart.constant == 0:
            return Compare("lt", offset, (extent + (n - 1)) // n * n)
    return guard


def _form(e: Expr, making: Making) -> Linear:
    return expanded(to_linear(making.expand(e)))


def _steady(values: tuple[Expr, ...], func: str, making: Making) -> tuple[Expr, ...]:
    """The values, bound to names when there are several: each may read what another replaces."""
    if len(values) == 1:
        return values
    bound: list[Expr] = []
    for component, value in enumerate(values):
        name = making.fresh(f"{func}_new{component}")
        making.bind_value(name, value)
        bound.append(Var(name, value.dtype))
    return tuple(bound)


def _assign(
    register: Register,
    indices: tuple[Expr, ...],
    values: tuple[Expr, ...],
    guards: tuple[Expr, ...],
    making: Making,
    number: int,
) -> None:
    lanes = lanes_of_access(register, indices, making)
    if register.lanes is None:
        register.lanes = lanes
    canonical = {g: _by_dimension(g, register, lanes, making) for g in guards}
    if register.defined is None and number == 0:
        register.defined = frozenset(canonical.values())
        needed: list[Expr] = []
    else:
        # Beyond the guards of the pure definition the tile holds nothing that anyone reads.
        defined = register.defined or frozenset()
        needed = [g for g in guards if canonical[g] not in defined]
    keep = conjunction(needed)
    for component, value in enumerate(_steady(values, register.func, making)):
        name = variable(register, component, indices, making)
        dtype = register.dtypes[component]
        made = value if value.dtype is dtype else Cast(dtype, value)
        making.lanes.declare(name, register.lanes)
        if keep is not None:
            made = Select(keep, made, register_value(register, component, indices, making))
        _set(register, name, made, lanes, making)


def _set(
    register: Register, name: str, value: Expr, lanes: tuple[Lane, ...], making: Making
) -> None:
    if name not in register.declared:
        if making.out is register.home and lanes == register.lanes and name not in value.free:
            register.declared.add(name)
            making.out.append(Declare(name, value.dtype, value))
            return
        making.declare_before(register, name, value.dtype)
    making.out.append(Assign(name, value, lanes))


def _by_dimension(guard: Expr, register: Register, lanes: tuple[Lane, ...], making: Making) -> Expr:
    """The guard over the tile's axes instead of the lanes of one stage."""
    axes = {lane.var.name: Var(f"axis{k}") for k, lane in enumerate(lanes)}
    return substitute(making.expand(guard), axes)


def _reduced_values(
    store: Store,
    indices: tuple[Expr, ...],
    reduced: tuple[Lane, ...],
    guards: tuple[Expr, ...],
    place: Place,
    making: Making,
) -> tuple[Expr, ...]:
    found = associative_operator(store.buffer, store.indices, store.values)
    if found is None:
        raise InternalError(f"lanes of '{store.buffer}' are reduced by no known operator")
    op, terms = found
    loads = [Load(store.buffer, store.indices, c, v.dtype) for c, v in enumerate(store.values)]
    current = tuple(value_of(load, place, making) for load in loads)
    made = tuple(value_of(term, place, making) for term in terms)
    if op == "argmin" or op == "argmax":
        places = _first(op, made, reduced, guards, making, store.buffer)
        held = dict(zip((*terms, *loads), (*places, *current), strict=True))
        # What the update does with one term it does with the best of all.
        return tuple(value_of(_replaced(v, held), place, making) for v in store.values)
    dot = match_dot(made[0], current[0], reduced, guards, making.lanes, making.masks)
    if op == "add" and isinstance(dot, Dot):
        _orient(dot, making)
        return (dot,)
    if op == "add" and not isinstance(dot, Dot) and dot.why:
        making.note(
            f"the sum of products of '{store.buffer}' is multiplied and added without the matrix "
            f"unit: {dot.why}; tile it so that the matrix unit can take it"
        )
    term = guarded_term(made[0], guards, identity(op, made[0].dtype))
    return (Binary(op, current[0], _along(op, term, reduced)),)


def _along(op: str, term: Expr, lanes: tuple[Lane, ...]) -> Expr:
    """The term reduced along the lanes; narrow floats are combined in f32."""
    dtype = term.dtype
    narrow = dtype.is_float and dtype.bits < 32
    result = Cast(f32, term) if narrow else term
    for lane in reversed(lanes):
        result = Reduce(op, result, lane.var)  # type: ignore[arg-type]
    return Cast(dtype, result) if narrow else result


def _orient(dot: Dot, making: Making) -> None:
    """Read the factors in the order in which the dot takes their axes."""
    acc = making.lanes.of_name(dot.acc.name)  # type: ignore[attr-defined]
    [k] = making.lanes.of(dot.lane)
    for factor, order in ((dot.a, (*acc[:-1], k)), (dot.b, (*acc[:-2], k, acc[-1]))):
        for name in factor.free:
            lanes = making.lanes.of_name(name)
            if name in making.masks and set(lanes) == set(order):
                making.lanes.declare(name, order)


def _first(
    op: str,
    terms: tuple[Expr, ...],
    lanes: tuple[Lane, ...],
    guards: tuple[Expr, ...],
    making: Making,
    func: str,
) -> tuple[Expr, Expr]:
    """The best of the terms along lanes, and the first place that has it."""
    best, here = terms
    lowest = identity("max" if op == "argmax" else "min", best.dtype)
    names = making.fresh(f"{func}_best"), making.fresh(f"{func}_at")
    position = _short_place(here, guards)
    if position is None:
        position = guarded_term(here, guards, Const(i64.highest, here.dtype))
    made = (guarded_term(best, guards, lowest), position)
    making.out.append(ReduceFirst(names, op, made, lanes))  # type: ignore[arg-type]
    kept = [lane for lane in making.lanes.of(*made) if lane not in lanes]
    for name in names:
        making.lanes.declare(name, kept)
    return Var(names[0], best.dtype), here.dtype(Var(names[1], position.dtype))


def _replaced(e: Expr, values: Mapping[Expr, Expr]) -> Expr:
    return rewrite(e, lambda node: values.get(node, node))


def _short_place(here: Expr, guards: tuple[Expr, ...]) -> Expr | None:
    """A place that is an index, as such, where every one that a guard excludes comes later.

    It is compared in 32 bits where indices have these.
    """
    if not isinstance(here, Cast) or here.a.dtype is not index:
        return None
    bounds = [g for g in guards if isinstance(g, Compare) and g.op == "lt" and g.a is here.a]
    return here.a if len(bounds) == len(guards) else None
