"""Stores as C: to memory, or to the variable that holds an element for a while."""

from dataclasses import replace

from tensorlang.backends.c.context import Cell, Scope, Unit
from tensorlang.backends.c.expressions import SCALAR, VECTOR, Expressions
from tensorlang.backends.c.loads import Loads, from_stored, to_stored
from tensorlang.backends.c.storage import Storage
from tensorlang.backends.c.types import CType, carried, stored
from tensorlang.backends.c.values import ATOM, Value, address, as_mask, widened
from tensorlang.ir.associativity import multiply_add
from tensorlang.ir.expr import Expr
from tensorlang.ir.linear import to_expr
from tensorlang.ir.stmt import Store
from tensorlang.ir.types import DType


def write_store(store: Store, scope: Scope, unit: Unit) -> None:
    """buffer[indices] = values, in one lane or in all of them."""
    varies = scope.lane is not None and _varies(store, scope)
    if not varies:
        _Writer(store, scope, unit).scalar()
    elif all(_is_contiguous(store, k, scope, unit) for k in range(len(store.values))):
        _Writer(store, scope, unit).vector()
    else:
        _Writer(store, scope, unit).scattered()


def _varies(store: Store, scope: Scope) -> bool:
    exprs: list[Expr] = [*store.indices, *store.values]
    if scope.mask is not None:
        exprs.append(scope.mask)
    return any(scope.varies(e) for e in exprs)


def _is_contiguous(store: Store, component: int, scope: Scope, unit: Unit) -> bool:
    assert scope.lane is not None
    storage = unit.storages[store.buffer]
    return storage.step_of(store.indices, component, scope.lane.name) == 1


class _Writer:
    """Writes one Store."""

    def __init__(self, store: Store, scope: Scope, unit: Unit) -> None:
        self._store = store
        self._scope = scope
        self._unit = unit
        self._storage = unit.storages[store.buffer]
        is_sum = multiply_add(store.buffer, store.indices, store.values) is not None
        fused = store.values[0] if is_sum and unit.machine.has_fma else None
        self._expressions = Expressions(unit, scope, fused=fused, under=scope.mask)
        self._loads = Loads(unit, scope)

    def scalar(self) -> None:
        """One element."""
        count = len(self._store.values)
        wanted = (*self._offsets(), *self._store.values)
        written = self._expressions.write(*((e, SCALAR) for e in wanted))
        places, values = written[:count], written[count:]
        for k, value in enumerate(self._apart(values)):
            cell = self._cell(k, vector=False)
            if cell is not None:
                self._unit.code.line(f"{cell.variable} = {value.text};")
                continue
            element = to_stored(value, self._storage.dtypes[k], self._unit)
            self._unit.code.line(f"{self._storage.pointers[k]}[{places[k].text}] = {element.text};")

    def _offsets(self) -> list[Expr]:
        """Where each component goes."""
        indices = self._store.indices
        return [self._storage.offset(indices, k) for k in range(len(self._store.values))]

    def vector(self) -> None:
        """Consecutive elements, one a lane."""
        lane = self._scope.lane
        assert lane is not None
        count = len(self._store.values)
        wanted = [(offset, SCALAR) for offset in self._offsets()]
        wanted += [(value, VECTOR) for value in self._store.values]
        if self._scope.mask is not None:
            wanted.append((self._scope.mask, VECTOR))
        written = self._expressions.write(*wanted)
        places, values = written[:count], written[count : 2 * count]
        mask = written[-1] if self._scope.mask is not None else None
        for k, value in enumerate(self._apart(values)):
            wide = widened(value, lane.width, self._unit.prelude)
            cell = self._cell(k, vector=True)
            if cell is not None:
                self._to_cell(cell, wide, mask)
            else:
                element = to_stored(wide, self._storage.dtypes[k], self._unit)
                self._to_memory(k, places[k], element, mask)

    def _to_cell(self, cell: Cell, value: Value, mask: Value | None) -> None:
        prelude = self._unit.prelude
        if value.is_bool:
            value = as_mask(value, 8, prelude)
        text = value.text
        if mask is not None:
            chosen = as_mask(widened(mask, cell.lanes, prelude), value.type.bits, prelude)
            select = prelude.helper("select", value.type)
            text = f"{select}({chosen.text}, {value.text}, {cell.variable})"
        self._unit.code.line(f"{cell.variable} = {text};")

    def _to_memory(self, k: int, place: Value, element: Value, mask: Value | None) -> None:
        prelude = self._unit.prelude
        at = address(self._storage.pointers[k], place)
        if mask is None:
            streams = self._store.buffer in self._unit.to_stream
            self._unit.streamed |= {self._store.buffer} if streams else set()
            store = prelude.helper("stream" if streams else "store", element.type)
            self._unit.code.line(f"{store}({at}, {element.text});")
            return
        chosen = as_mask(widened(mask, element.type.lanes, prelude), element.type.bits, prelude)
        store = prelude.helper("store_where", element.type)
        self._unit.code.line(f"{store}({chosen.text}, {at}, {element.text});")

    def scattered(self) -> None:
        """Elements anywhere, one lane after another."""
        lane, unit = self._scope.lane, self._unit
        assert lane is not None
        name = unit.names.fresh(lane.var.rpartition(".")[2])
        first = self._scope.renamed.get(lane.var) or unit.names[lane.var]
        values = self._expressions.write(*((value, VECTOR) for value in self._store.values))
        wide = [self._named(widened(v, lane.width, unit.prelude)) for v in values]
        head = f"for (int64_t {name} = {first}; {name} < {first} + {lane.width}; ++{name})"
        with unit.code.block(head):
            renamed = {**self._scope.renamed, lane.var: name}
            inner = replace(self._scope, lane=None, mask=None, renamed=renamed)
            self._scattered_lane(wide, f"{name} - {first}", inner)

    def _scattered_lane(self, wide: list[Value], at: str, inner: Scope) -> None:
        unit = self._unit
        expressions = Expressions(unit, inner)
        if self._scope.mask is not None:
            unit.code.line(f"if (!({expressions.scalar(self._scope.mask)})) continue;")
        places = [expressions.scalar(offset) for offset in self._offsets()]
        for k, value in enumerate(wide):
            lane = Value(f"{value.text}[{at}]", value.type.scalar, is_bool=value.is_bool)
            element = to_stored(lane, self._storage.dtypes[k], unit)
            text = f"{element.text} != 0" if value.is_bool else element.text
            unit.code.line(f"{self._storage.pointers[k]}[{places[k]}] = {text};")

    def _apart(self, values: list[Value]) -> list[Value]:
        """The values of a tuple are all computed before the first is stored."""
        return values if len(values) == 1 else [self._named(value) for value in values]

    def _named(self, value: Value) -> Value:
        name = self._unit.names.fresh("t")
        self._unit.code.line(f"const {self._unit.type_of(value)} {name} = {value.text};")
        return replace(value, text=name, binds=ATOM, unrounded="")

    def _cell(self, component: int, *, vector: bool) -> Cell | None:
        store = self._store
        return self._loads.cell(store.buffer, component, store.indices, vector=vector)


def read_cell(cell: Cell, scope: Scope, unit: Unit, *, shared: bool = False) -> Cell:
    """Load the cell into a variable of its own; of lanes that take no part, nothing is read.

    Args: shared: it is only read, and stays in a register from its first use to its last.
    """
    dtype = unit.storages[cell.buffer].dtypes[cell.component]
    held, pointer, offset = _place(cell, scope, unit)
    mask = _mask_of(cell, held, scope, unit)
    if cell.lanes == 1:
        element = Value(f"{pointer}[{offset.text}]", held)
    elif mask is None:
        load = unit.prelude.helper("load", held)
        element = Value(f"{load}({address(pointer, offset)})", held)
    else:
        load = unit.prelude.helper("load_where", held)
        element = Value(f"{load}({mask.text}, {address(pointer, offset)})", held)
    value = from_stored(element, dtype, unit)
    if shared:
        kept = unit.prelude.helper("kept", value.type)
        value = replace(value, text=f"{kept}({value.text})")
    return _declared(cell, value, unit)


def declare_cell(cell: Cell, storage: Storage, unit: Unit) -> Cell:
    """A variable for a cell that is nowhere in memory."""
    value = _value_of(cell, storage.dtypes[cell.component])
    nothing = f"{unit.prelude.helper('splat', value.type)}(0)"
    return _declared(cell, replace(value, text=nothing), unit)


def _declared(cell: Cell, value: Value, unit: Unit) -> Cell:
    name = unit.names.fresh(f"{cell.buffer.rpartition('.')[2]}_held")
    unit.code.line(f"{unit.type_of(value)} {name} = {value.text};")
    return replace(cell, variable=name)


def write_cell(cell: Cell, scope: Scope, unit: Unit) -> None:
    """Store the cell's variable; of lanes that take no part, nothing is written."""
    dtype = unit.storages[cell.buffer].dtypes[cell.component]
    held, pointer, offset = _place(cell, scope, unit)
    element = to_stored(_value_of(cell, dtype), dtype, unit)
    mask = _mask_of(cell, held, scope, unit)
    if cell.lanes == 1:
        unit.code.line(f"{pointer}[{offset.text}] = {element.text};")
    elif mask is None:
        store = unit.prelude.helper("store", held)
        unit.code.line(f"{store}({address(pointer, offset)}, {element.text});")
    else:
        store = unit.prelude.helper("store_where", held)
        unit.code.line(f"{store}({mask.text}, {address(pointer, offset)}, {element.text});")


def _mask_of(cell: Cell, held: CType, scope: Scope, unit: Unit) -> Value | None:
    """The lanes of a cell that take part; None is all of them."""
    if scope.mask is None or cell.lanes == 1:
        return None
    (mask,) = Expressions(unit, scope).write((scope.mask, VECTOR))
    return as_mask(widened(mask, cell.lanes, unit.prelude), held.bits, unit.prelude)


def _value_of(cell: Cell, dtype: DType) -> Value:
    type_ = carried(dtype, cell.lanes)
    if dtype.is_bool and cell.lanes > 1:
        type_ = CType("i8", cell.lanes)
    return Value(cell.variable, type_, is_bool=dtype.is_bool)


def _place(cell: Cell, scope: Scope, unit: Unit) -> tuple[CType, str, Value]:
    """What is stored there, and where: a pointer and an offset from it."""
    storage = unit.storages[cell.buffer]
    places = tuple(map(to_expr, cell.places))
    from_zero = replace(storage, mins=storage.zeros, fold=())
    outside = Expressions(unit, replace(scope, lane=None, mask=None))
    (offset,) = outside.write((from_zero.offset(places, cell.component), SCALAR))
    held = stored(storage.dtypes[cell.component], cell.lanes)
    return held, storage.pointers[cell.component], offset
