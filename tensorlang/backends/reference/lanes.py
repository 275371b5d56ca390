"""Expressions over whole arrays, for the reference: one array element, a lane, a point.

A lane whose value would be undefined (a load outside of an array, a broken promise) is not an error
yet: it carries a fault, which goes wherever the value goes and is forgotten by a Select that does
not choose it.  Only a fault that arrives at an output is raised.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tensorlang.backends import numerics
from tensorlang.errors import BoundsError, InternalError
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Name,
    Promise,
    Select,
    Unary,
)
from tensorlang.ir.printer import print_expr
from tensorlang.ir.types import DType, f64
from tensorlang.ir.walk import postorder

_where: Any = np.where  # whose overloads do not know Any


class Lanes(NamedTuple):
    """Values that broadcast against each other, and the fault of each lane (0: none), or None."""

    value: Any
    fault: Any = None


Names: TypeAlias = Mapping[str, Any]
Operation: TypeAlias = Callable[[Sequence[Lanes]], Lanes]


@dataclass(slots=True)
class Faults:
    """What went wrong somewhere, by number: 1 is the first."""

    errors: list[Callable[[], Exception]] = field(default_factory=list[Callable[[], Exception]])

    def add(self, error: Callable[[], Exception]) -> Any:
        """The number that lanes carry for an error."""
        self.errors.append(error)
        return np.int32(len(self.errors))

    def check(self, fault: Any) -> None:
        """Raise the error of the first faulty lane."""
        if fault is not None and np.any(fault):
            error = self.errors[int(np.max(fault)) - 1]
            raise error()


@dataclass(slots=True)
class Block:
    """The values of a Func over a box, or the elements of an Input: one array a component."""

    name: str
    dtypes: tuple[DType, ...]
    origin: tuple[int, ...]
    arrays: list[Any]
    is_input: bool
    fault: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.arrays[0].shape)

    @property
    def box(self) -> tuple[range, ...]:
        """The indices of each dimension."""
        return tuple([range(o, o + n) for o, n in zip(self.origin, self.shape, strict=True)])

    def place(self, box: Sequence[range]) -> tuple[slice, ...]:
        """Where the points of a box are in the arrays."""
        pairs = zip(self.origin, box, strict=True)
        return tuple([slice(r.start - o, r.stop - o) for o, r in pairs])

    def fault_at(self, at: Any) -> Any:
        """The faults of the elements at a place."""
        return np.int32(0) if self.fault is None else self.fault[at]

    def blame(self, at: Any, fault: Any) -> None:
        """Give the elements at a place these faults (None: none)."""
        if self.fault is None:
            if fault is None or not np.any(fault):
                return
            self.fault = np.zeros(self.shape, np.int32)
        self.fault[at] = 0 if fault is None else fault


class Evaluator:
    """Evaluates expressions over lanes.

    Args:
        blocks: what Loads read, by buffer.
        wide: compute floats in f64; only casts to a narrower dtype still round.
    """

    def __init__(self, blocks: Mapping[str, Block], faults: Faults, *, wide: bool) -> None:
        self.blocks = blocks
        self.faults = faults
        self.wide = wide
        self._operations: dict[Expr, Operation] = {}

    def computed(self, dtype: DType) -> DType:
        """The dtype in which values of `dtype` are computed."""
        return f64 if self.wide and dtype.is_float else dtype

    def evaluate(
        self, exprs: Iterable[Expr], names: Names, known: dict[Expr, Lanes] | None = None
    ) -> list[Lanes]:
        """The lanes of each expression; `known` holds what is known already, and grows."""
        known = {} if known is None else known
        exprs = list(exprs)
        self.fill([e for e in postorder(*exprs) if e not in known], names, known)
        return [known[e] for e in exprs]

    def numbers(self, exprs: Sequence[Expr], names: Names) -> list[int]:
        """The values of index expressions over known names."""
        return [int(lanes.value) for lanes in self.evaluate(exprs, names)]

    def fill(self, nodes: Sequence[Expr], names: Names, known: dict[Expr, Lanes]) -> None:
        """Evaluate nodes, operands first, into `known`."""
        for e in nodes:
            if isinstance(e, Name):
                known[e] = Lanes(names[e.name])
            else:
                known[e] = self._operation(e)([known[child] for child in e.children])

    def _operation(self, e: Expr) -> Operation:
        made = self._operations.get(e)
        if made is None:
            made = self._operations[e] = self._new_operation(e)
        return made

    def _new_operation(self, e: Expr) -> Operation:
        match e:
            case Const():
                constant = Lanes(numerics.constant(e.value, self.computed(e.dtype)))
                return lambda operands: constant
            case Unary():
                return _strict(numerics.unary(e.op, self.computed(e.dtype)))
            case Binary():
                return _strict(numerics.binary(e.op, self.computed(e.dtype)))
            case Compare():
                return _strict(numerics.comparison(e.op))
            case Cast():
                return _strict(self._cast(e.a.dtype, e.dtype))
            case Call():
                dtype = self.computed(e.args[0].dtype)
                return _strict(numerics.function(e.function, dtype))
            case Select():
                return _select
            case Load():
                return lambda operands: self._load(e, operands)
            case Promise():
                return lambda operands: self._promise(e, operands)
            case _:
                raise InternalError(f"{e!r} stands in no closed algorithm")

    def _cast(self, source: DType, target: DType) -> Callable[[Any], Any]:
        if not (self.wide and (source.is_float or target.is_float)):
            return numerics.cast(source, target)
        if not target.is_float:
            return numerics.cast(f64, target)
        if source.is_float and source.mantissa <= target.mantissa:
            return lambda a: a
        rounded = numerics.cast(self.computed(source), target)
        return lambda a: rounded(a).astype(np.float64)

    def _load(self, e: Load, indices: Sequence[Lanes]) -> Lanes:
        block = self.blocks[e.buffer]
        fault = _joined(indices)
        shape = block.shape
        at: list[Any] = []
        for k, (index, low, extent) in enumerate(zip(indices, block.origin, shape, strict=True)):
            place = index.value - low
            if np.size(place) and (np.min(place) < 0 or np.max(place) >= extent):
                outside = (place < 0) | (place >= extent)
                number = self.faults.add(_outside(block, k, index.value))
                fault = first_fault(fault, _where(outside, number, np.int32(0))[()])
                place = np.clip(place, 0, max(extent - 1, 0))
            at.append(place)
        array = block.arrays[e.component]
        if 0 in shape:
            # No lane has a value, and each that stands anywhere carries the fault found above.
            array, at = np.zeros((1,) * len(shape), array.dtype), [place * 0 for place in at]
        if block.fault is not None:
            fault = first_fault(fault, block.fault[tuple(at)])
        return Lanes(self._carried(array[tuple(at)], block, e.component), fault)

    def _carried(self, stored: Any, block: Block, component: int) -> Any:
        if not block.is_input:
            return stored
        dtype = block.dtypes[component]
        value = numerics.unpack(dtype)(stored)
        return value.astype(np.float64) if self.wide and dtype.is_float else value

    def _promise(self, e: Promise, operands: Sequence[Lanes]) -> Lanes:
        a, low, high = (operand.value for operand in operands)
        broken = (a < low) | (a > high)
        fault = _joined(operands)
        if np.any(broken):
            shown = np.asarray(a)[np.asarray(broken)] if np.ndim(a) else a
            number = self.faults.add(_promise_broken(e, int(np.ravel(shown)[0])))
            fault = first_fault(fault, _where(broken, number, np.int32(0))[()])
        return Lanes(a, fault)


def _strict(operation: Callable[..., Any]) -> Operation:
    """An operation that needs all of its operands."""

    def run(operands: Sequence[Lanes]) -> Lanes:
        return Lanes(operation(*[x.value for x in operands]), _joined(operands))

    return run


def _select(operands: Sequence[Lanes]) -> Lanes:
    condition, a, b = operands
    value = _where(condition.value, a.value, b.value)[()]
    if condition.fault is None and a.fault is None and b.fault is None:
        return Lanes(value)
    zero = np.int32(0)
    chosen = _where(
        condition.value,
        zero if a.fault is None else a.fault,
        zero if b.fault is None else b.fault,
    )[()]
    return Lanes(value, first_fault(condition.fault, chosen))


def _joined(operands: Sequence[Lanes]) -> Any:
    fault = None
    for x in operands:
        fault = first_fault(fault, x.fault)
    return fault


def first_fault(a: Any, b: Any) -> Any:
    """The faults of lanes that need both."""
    if a is None:
        return b
    return a if b is None else _where(a != 0, a, b)[()]


def _outside(block: Block, dim: int, index: Any) -> Callable[[], Exception]:
    low, high = int(np.min(index)), int(np.max(index))
    name, extent = block.name, block.shape[dim]

    def error() -> Exception:
        if not block.is_input:
            return InternalError(
                f"the reference needs {name!r} at {low} to {high} of dimension {dim}, "
                f"and computed {extent} from {block.origin[dim]}"
            )
        return BoundsError(
            "region-outside-array",
            f"Input {name!r} is too small in dimension {dim}: indices {low} to {high} are needed, "
            f"and it has 0 to {extent - 1}",
            why="the outputs read it outside its shape",
            fix="pass a larger array, ask for a smaller output, or give it a boundary condition "
            "such as repeat_edge",
        )

    return error


def _promise_broken(e: Promise, value: int) -> Callable[[], Exception]:
    return lambda: BoundsError(
        "promise-broken",
        f"a promised value is {value}, which is not in its range",
        why=f"the algorithm promises that {print_expr(e.a)} lies in "
        f"[{print_expr(e.lo)}, {print_expr(e.hi)}]",
        fix="pass data for which it holds, or use clamp, which makes it hold",
    )
