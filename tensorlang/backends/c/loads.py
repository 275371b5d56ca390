"""Loads as C: scalars, contiguous vectors, values held in variables; each under its guard."""

from dataclasses import replace

from tensorlang.backends.c.context import Cell, Scope, Unit
from tensorlang.backends.c.steps import steps_of, window_of
from tensorlang.backends.c.types import CType, carried, is_rounded, stored
from tensorlang.backends.c.values import ATOM, LOOSE, SUM, Value, address, as_mask, converted
from tensorlang.ir.expr import Const, Expr, Load
from tensorlang.ir.types import DType, tf32


class Loads:
    """Writes the loads of one statement."""

    def __init__(self, unit: Unit, scope: Scope) -> None:
        self._unit = unit
        self._scope = scope
        self._offsets: dict[Load, Expr] = {}
        self._contiguous: dict[Load, bool] = {}
        self._steps: dict[Load, list[int] | None] = {}

    def offset(self, load: Load) -> Expr:
        """The position of the element in its buffer."""
        if load not in self._offsets:
            self._offsets[load] = self._unit.storages[load.buffer].offset(
                load.indices, load.component
            )
        return self._offsets[load]

    def is_contiguous(self, load: Load) -> bool:
        """Whether neighbouring lanes read neighbouring elements."""
        if load not in self._contiguous:
            assert self._scope.lane is not None
            storage = self._unit.storages[load.buffer]
            step = storage.step_of(load.indices, load.component, self._scope.lane.name)
            self._contiguous[load] = step == 1
        return self._contiguous[load]

    def steps(self, load: Load) -> list[int] | None:
        """How far each lane's element is from the first lane's, where two vectors hold them all."""
        if load not in self._steps:
            steps = self._known_steps(load) if self._unit.machine.has_shuffles else None
            few = steps is not None and window_of(steps, len(steps)) is not None
            self._steps[load] = steps if few else None
        return self._steps[load]

    def _known_steps(self, load: Load) -> list[int] | None:
        lane = self._scope.lane
        assert lane is not None
        storage = self._unit.storages[load.buffer]
        far = [0] * lane.width
        strides = storage.strides[load.component]
        for place, stride in zip(storage.places(load.indices), strides, strict=True):
            if lane.var not in place.free:
                continue
            known = steps_of(place, lane.var, lane.first, lane.width)
            if known is None or not isinstance(stride, Const):
                return None
            far = [a + b * int(stride.value) for a, b in zip(far, known[1], strict=True)]
        return far

    def shuffled(self, load: Load, offset: Value) -> Value:
        """Elements at known steps: one or two vectors, and of them an element for each lane."""
        steps = self.steps(load)
        window = window_of(steps, len(steps)) if steps else None
        assert steps is not None
        assert window is not None
        lanes, apart = window
        low, held = min(steps), stored(load.dtype, lanes)
        function = self._unit.prelude.helper("load", held)
        self._unit.prelude.type(held.of(len(steps)))
        vectors = [
            f"{function}({address(self._pointer(load), _shifted(offset, low + k))})"
            for k in (0, apart)
        ]
        taken = [s - low if s - low < lanes else s - low - apart + lanes for s in steps]
        picked = f"{', '.join(vectors)}, {', '.join(map(str, taken))}"
        text = f"__builtin_shufflevector({picked})"
        return from_stored(Value(text, held.of(len(steps))), load.dtype, self._unit)

    def held(self, load: Load, *, vector: bool) -> Value | None:
        """The variable that holds what is loaded, if one does."""
        cell = self.cell(load.buffer, load.component, load.indices, vector=vector)
        if cell is None:
            return None
        type_ = carried(load.dtype, cell.lanes)
        if load.dtype.is_bool and cell.lanes > 1:
            type_ = CType("i8", cell.lanes)
        return Value(cell.variable, type_, ATOM, load.dtype.is_bool)

    def cell(
        self, buffer: str, component: int, indices: tuple[Expr, ...], *, vector: bool
    ) -> Cell | None:
        """The cell of that element or vector."""
        mine = [c for c in self._scope.cells if (c.buffer, c.component) == (buffer, component)]
        if not mine:
            return None
        lanes = self._scope.lane.width if vector and self._scope.lane else 1
        places = self._scope.at_first_lane(self._unit.storages[buffer].places(indices))
        return next((c for c in mine if c.lanes == lanes and c.is_at(places)), None)

    def scalar(self, load: Load, offset: Value, guard: Value | None = None) -> Value:
        """pointer[offset]; 0 where the guard does not hold."""
        element = Value(f"{self._pointer(load)}[{offset.text}]", stored(load.dtype))
        value = from_stored(element, load.dtype, self._unit)
        if guard is None:
            return value
        if guard.type.lanes > 1:
            function = self._unit.prelude.helper("any", guard.type)
            guard = Value(f"{function}({guard.text})", CType("bool"))
        return replace(value, text=f"{guard.within(SUM)} ? {value.text} : 0", binds=LOOSE)

    def vector(self, load: Load, offset: Value, guard: Value | None = None) -> Value:
        """Consecutive elements; 0 in lanes where the guard does not hold."""
        assert self._scope.lane is not None
        prelude = self._unit.prelude
        held = stored(load.dtype, self._scope.lane.width)
        at = address(self._pointer(load), offset)
        if guard is None:
            text = f"{prelude.helper('load', held)}({at})"
        elif guard.type.lanes == 1:
            nothing = f"{prelude.helper('splat', held)}(0)"
            text = f"({guard.within(SUM)} ? {prelude.helper('load', held)}({at}) : {nothing})"
        else:
            mask = as_mask(guard, held.bits, prelude)
            text = f"{prelude.helper('load_where', held)}({mask.text}, {at})"
        return from_stored(Value(text, held), load.dtype, self._unit)

    def _pointer(self, load: Load) -> str:
        return self._unit.storages[load.buffer].pointers[load.component]


def _shifted(offset: Value, by: int) -> Value:
    sign = "-" if by < 0 else "+"
    text = f"{offset.within(SUM)} {sign} {abs(by)}"
    return replace(offset, text=text, binds=SUM) if by else offset


def from_stored(element: Value, dtype: DType, unit: Unit) -> Value:
    """What an array holds -> what is carried."""
    lanes, prelude = element.type.lanes, unit.prelude
    if dtype.is_bool:
        if lanes == 1:
            return Value(f"{element.text} != 0", CType("bool"), LOOSE, is_bool=True)
        mask = prelude.type(CType("i8", lanes))
        return Value(f"({mask})({element.text} != 0)", CType("i8", lanes), SUM, is_bool=True)
    if not is_rounded(dtype) or dtype is tf32:
        return element
    function = prelude.helper(f"f32_from_{dtype.name}", element.type)
    return Value(f"{function}({element.text})", carried(dtype, lanes))


def to_stored(value: Value, dtype: DType, unit: Unit) -> Value:
    """What is carried -> what an array holds."""
    lanes, prelude = value.type.lanes, unit.prelude
    if dtype.is_bool:
        if lanes == 1:
            return Value(value.text, stored(dtype), value.binds)
        byte = converted(as_mask(value, 8, prelude), CType("i8", lanes), prelude)
        name = prelude.type(stored(dtype, lanes))
        return Value(f"({name})(-{byte.within(ATOM)})", stored(dtype, lanes))
    if not is_rounded(dtype) or dtype is tf32:
        return value
    function = prelude.helper(f"{dtype.name}_from_f32", value.type)
    # The f8s are looked up by their exact bits; the others round while they are narrowed.
    text = value.text if dtype.bits == 8 else value.unrounded or value.text
    return Value(f"{function}({text})", stored(dtype, lanes))
