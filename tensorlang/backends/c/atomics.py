"""Atomic updates as C: one fetch-and-op, or compare-and-swap until nobody came between."""

from dataclasses import replace

from tensorlang.backends.c.context import Cell, Scope, Unit
from tensorlang.backends.c.expressions import SCALAR, Expressions
from tensorlang.backends.c.loads import from_stored, to_stored
from tensorlang.backends.c.types import SCALARS, stored
from tensorlang.backends.c.values import Value
from tensorlang.errors import InternalError
from tensorlang.ir.associativity import associative_operator
from tensorlang.ir.stmt import Store

_FETCH = ("add", "and", "or", "xor")


def write_atomic(store: Store, scope: Scope, unit: Unit) -> None:
    """buffer[indices] = buffer[indices] op e, in one step and in one lane."""
    found = associative_operator(store.buffer, store.indices, store.values)
    if found is None:
        raise InternalError(f"an atomic store to {store.buffer!r} is no known update")
    op, (term,) = found
    storage = unit.storages[store.buffer]
    dtype = storage.dtypes[0]
    expressions = Expressions(unit, scope)
    offset = storage.offset(store.indices, 0)
    if op in _FETCH and not dtype.is_float and not dtype.is_bool:
        place, value = expressions.write((offset, SCALAR), (term, SCALAR))
        element = to_stored(value, dtype, unit)
        at = f"&{storage.pointers[0]}[{place.text}]"
        unit.code.line(f"__atomic_fetch_{op}({at}, {element.text}, __ATOMIC_RELAXED);")
        return
    (place,) = expressions.write((offset, SCALAR))
    with unit.code.block():
        _swap(store, place.text, scope, unit)


def _swap(store: Store, place: str, scope: Scope, unit: Unit) -> None:
    """Combine with what is there, and try again where another thread has changed it meanwhile."""
    storage = unit.storages[store.buffer]
    held, dtype = stored(storage.dtypes[0]), storage.dtypes[0]
    type_name = SCALARS[held.element]
    at, seen, old, new = (unit.names.fresh(name) for name in ("at", "seen", "old", "new"))
    unit.code.line(f"{type_name} *const {at} = &{storage.pointers[0]}[{place}];")
    unit.code.line(f"{type_name} {seen};")
    unit.code.line(f"__atomic_load({at}, &{seen}, __ATOMIC_RELAXED);")
    with unit.code.block("for (;;)"):
        value = from_stored(Value(seen, held), dtype, unit)
        unit.code.line(f"const {unit.type_of(value)} {old} = {value.text};")
        # What the update loads is the value that was seen.
        cell = Cell(store.buffer, 0, scope.at_first_lane(storage.places(store.indices)), 1, old)
        inside = replace(scope, cells=(*scope.cells, cell))
        (made,) = Expressions(unit, inside).write((store.values[0], SCALAR))
        unit.code.line(f"{type_name} {new} = {to_stored(made, dtype, unit).text};")
        order = "true, __ATOMIC_RELAXED, __ATOMIC_RELAXED"
        unit.code.line(f"if (__atomic_compare_exchange({at}, &{seen}, &{new}, {order})) break;")
