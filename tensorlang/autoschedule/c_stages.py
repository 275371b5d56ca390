"""The loops of one stage on C: which one becomes vectors, which ones stand inside the others."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tensorlang.algorithm import Algorithm, Definition, FuncRecord, exprs_of_definition
from tensorlang.autoschedule.extents import Extents
from tensorlang.ir.associativity import associative_operator
from tensorlang.ir.expr import Binary, Expr, Load, Name
from tensorlang.ir.walk import loads_of
from tensorlang.schedule import Schedule, Stage
from tensorlang.target import Target

# Vectors of sums that are held while a reduction runs.
_HELD = 4
# A reduction shorter than this is not worth the sum across a vector at its end.
_SHORT = 32


@dataclass(frozen=True, slots=True)
class Product:
    """func[.., row, .., column] += a * b, where b knows the column and not the row.

    So a tile of rows and columns needs few loads: each a serves all columns, each b all rows.
    """

    row: str
    column: str
    reductions: tuple[str, ...]
    b: Expr


def product_of(func: FuncRecord) -> Product | None:
    """The product that the one update of a Func sums up, if it is one."""
    if len(func.definitions) != 2 or len(func.dtypes) != 1 or None in func.definitions[1].pure:
        return None
    update = func.definitions[1]
    found = associative_operator(func.name, update.indices, update.values)
    if found is None or found[0] != "add" or update.domain is None:
        return None
    if update.domain.where is not None:
        return None
    term, column = found[1][0], update.pure[-1] if update.pure else None
    if not isinstance(term, Binary) or term.op != "mul" or column is None:
        return None
    for a, b in ((term.a, term.b), (term.b, term.a)):
        rows = [v for v in update.pure[:-1] if v and v not in _names(b)]
        if rows and column not in _names(a) and _run_along(b, column):
            return Product(rows[-1], column, update.domain.names, b)
    return None


def _names(e: Expr) -> set[str]:
    return {name for load in loads_of(e) for index in load.indices for name in index.free}


def _run_along(e: Expr, name: str) -> bool:
    """Whether each load that knows the name has it in its last index, and nowhere else."""
    loads = [x for x in loads_of(e) if any(name in index.free for index in x.indices)]
    return bool(loads) and all(
        name in x.indices[-1].free and not any(name in index.free for index in x.indices[:-1])
        for x in loads
    )


class Stages:
    """Writes the inner loops of stages into a schedule."""

    def __init__(self, schedule: Schedule, extents: Extents, target: Target) -> None:
        self.schedule, self.extents, self.target = schedule, extents, target

    def stage(self, func: FuncRecord, number: int) -> Stage:
        """The stage of that number."""
        stage = self.schedule[func.name]
        return stage.update(number - 1) if number else stage

    def lanes(self, func: FuncRecord) -> int:
        """Elements of the widest component in one vector register."""
        widest = max(dtype.bits for dtype in func.dtypes)
        return max(self.target.vector_bits // widest, 1)

    def fresh(self, func: FuncRecord, number: int, base: str) -> str:
        """A name that no loop of the stage has."""
        nest = self.schedule.state.nests[func.name, number]
        taken = {*nest.names(), *(b.name for b in nest.bindings)}
        while base in taken:
            base += "_"
        return base

    def vectorize(self, func: FuncRecord, number: int, single: Collection[str] = ()) -> str | None:
        """Vectors along the memory of a stage; the loop that they take, if one is left whole.

        Args: single: the pure Vars that have one value where the Func is computed.
        """
        definition = func.definitions[number]
        lane = definition.pure[-1] if definition.pure else None
        if _is_skewed(self.schedule.algorithm, func):
            return None
        if definition.domain is None:
            if lane is None or lane in single:
                return None
            self.stage(func, number).vectorize(lane)
            return lane
        across = lane is not None and lane not in single and _runs_across(func, definition, lane)
        if across and lane is not None and None not in definition.pure:
            return self._columns(func, number, lane)
        self._tree(func, number)
        return None

    def _columns(self, func: FuncRecord, number: int, lane: str) -> str:
        """A few vectors of sums are held while the reduction runs."""
        definition = func.definitions[number]
        assert definition.domain is not None
        stage, width = self.stage(func, number), _HELD * self.lanes(func)
        outer = [v for v in definition.pure[:-1] if v is not None]
        if self._length(func, lane, definition) > width:
            wide, narrow = (self.fresh(func, number, f"{lane}_{part}") for part in "oi")
            stage.split(lane, wide, narrow, width)
            outer.append(wide)
            lane = narrow
        stage.reorder(*outer, *self.reductions(func, number), lane).vectorize(lane)
        return lane

    def _length(self, func: FuncRecord, name: str, definition: Definition) -> int:
        return self.extents.shape(func)[definition.pure.index(name)]

    def reductions(self, func: FuncRecord, number: int) -> list[str]:
        """The loops of a stage that reduce, as directives call them."""
        nest = self.schedule.state.nests[func.name, number]
        return [loop.name for loop in nest.loops if loop.reduction]

    def _tree(self, func: FuncRecord, number: int) -> None:
        """A long associative reduction along memory: vectors of partial results."""
        definition = func.definitions[number]
        found = associative_operator(func.name, definition.indices, definition.values)
        if found is None or len(func.dtypes) != 1 or definition.domain is None:
            return
        name, _, extent = definition.domain.dims[-1]
        loads = [load for load in loads_of(*found[1]) if load.indices]
        runs = any(_is_along(load, name) for load in loads)
        if runs and definition.domain.where is None and self.extents.of(extent) >= _SHORT:
            self.stage(func, number).vectorize(self.reductions(func, number)[-1])


def _is_skewed(algorithm: Algorithm, func: FuncRecord) -> bool:
    """Whether somebody touches the Func at points such as [i, i + k]: its rows are not alike.

    Then how long a row is may depend on the loop that computes it, and vectors have one length.
    """
    everything = [e for f in algorithm.funcs for d in f.definitions for e in exprs_of_definition(d)]
    touched = [load.indices for load in loads_of(*everything) if load.buffer == func.name]
    touched += [d.indices for d in func.definitions]
    fixed = {name.name for name in (*algorithm.sizes, *algorithm.params)}
    return any(
        not (at[-1].free - fixed).isdisjoint(name for e in at[:-1] for name in _moved_by(e))
        for at in touched
        if at
    )


def _moved_by(e: Expr) -> Iterator[str]:
    """The names that an index follows; what is read at a place from data lies anywhere anyway."""
    stack = [e]
    while stack:
        part = stack.pop()
        if isinstance(part, Name):
            yield part.name
        elif not isinstance(part, Load):
            stack.extend(part.children)


def _runs_across(func: FuncRecord, definition: Definition, lane: str) -> bool:
    """Whether more loads run along the last pure Var than along the domain's last variable."""
    assert definition.domain is not None
    last = definition.domain.names[-1]
    found = loads_of(*definition.values)
    loads = [load for load in found if load.indices and load.buffer != func.name]
    return sum(_is_along(x, lane) for x in loads) >= sum(_is_along(x, last) for x in loads)


def _is_along(load: Load, name: str) -> bool:
    return name in load.indices[-1].free
