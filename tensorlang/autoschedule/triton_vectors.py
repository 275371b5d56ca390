"""Products of a matrix and a vector, for Triton: reading the matrix is all that counts.

A program has a few rows, `_STEP` partial sums of each to the end, and every load of its rows in
flight.  Products that one Func makes something of are computed side by side, and so are the
numbers that their vector is made of, such as the level of a norm: each program finds them again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tensorlang.algorithm import FuncRecord
from tensorlang.autoschedule.analysis import Contraction, contraction_of, is_reduction
from tensorlang.autoschedule.extents import Extents
from tensorlang.ir.expr import Const
from tensorlang.ir.walk import loads_of
from tensorlang.schedule import Schedule

# Partial sums of a row, as far as they divide it; the longest row whose steps are unrolled.
_STEPS = (1024, 512, 256)
_LONGEST = 1 << 14
# Rows of a program, over all its products, and its warps: measured on Hopper.
_ROWS, _WARPS = 2, 4


@dataclass(frozen=True, slots=True)
class VectorProducts:
    """`func` is made of `products` at their own point; `numbers` are what these read of no row."""

    schedule: Schedule
    func: FuncRecord
    products: tuple[tuple[FuncRecord, Contraction], ...]
    numbers: tuple[FuncRecord, ...]
    depth: int

    @staticmethod
    def of(
        schedule: Schedule, extents: Extents, func: FuncRecord, members: Sequence[FuncRecord]
    ) -> "VectorProducts | None":
        """None where something else than such products is computed inside `func`."""
        found = [(f, contraction_of(f)) for f in members if f.dims]
        products = [(f, c) for f, c in found if c is not None and _is_of_vector(c)]
        numbers = tuple(f for f in members if not f.dims)
        is_all = len(products) == len(found) > 0 and len(func.dims) == 1
        depths = {c.k_extent for _, c in products}
        if not is_all or len(depths) != 1 or not all(map(_is_one_sum, numbers)):
            return None
        (depth,) = depths
        if not isinstance(depth, Const) or depth.value > _LONGEST or depth.value % _STEPS[-1]:
            return None
        return VectorProducts(schedule, func, tuple(products), numbers, int(depth.value))

    def run(self) -> None:
        """blocks of rows { numbers; for each product: partial sums, their sum; func }"""
        stage = self.schedule[self.func.name]
        rows = max(1, _ROWS // len(self.products))
        stage.split(self.func.dims[0], "rows", "row", rows).gpu_blocks("rows").gpu_warps(_WARPS)
        stage.vectorize("row")
        for func, product in self.products:
            self._product(func, product)
        for func in self.numbers:
            number = self.schedule[func.name].compute_at(self.func.name, "rows")
            for loop in _loops(func):
                number.update(0).vectorize(loop)

    def _product(self, func: FuncRecord, product: Contraction) -> None:
        """sum over lanes of the sums over steps: sum_u[row, lane] += w[row, k] * x[k]"""
        (row,), k = func.dims, product.k
        step = next(n for n in _STEPS if self.depth % n == 0)
        outer, lane = f"{k}_step", f"{k}_lane"
        update = self.schedule[func.name].update(0).split(k, outer, lane, step)
        partial = update.rfactor(lane, "u").name
        self.schedule[func.name].compute_at(self.func.name, "rows").vectorize(row)
        self.schedule[func.name].update(0).vectorize(row).vectorize(lane)
        sums = self.schedule[partial].compute_at(self.func.name, "rows").reorder(row, "u")
        sums.vectorize(row).vectorize("u")
        sums.update(0).reorder(outer, row, "u").unroll(outer).vectorize(row).vectorize("u")
        for matrix in _matrices(func, product, self.schedule):
            self.schedule[matrix].cache("evict_first")


def _is_of_vector(product: Contraction) -> bool:
    """Whether one factor has no dimension but the one that is summed over."""
    return bool(product.rows) != bool(product.columns) and not product.batch


def _loops(func: FuncRecord) -> tuple[str, ...]:
    """The loops that the one update of a Func runs over."""
    domain = func.definitions[1].domain if len(func.definitions) == 2 else None
    return domain.names if domain is not None else ()


def _is_one_sum(func: FuncRecord) -> bool:
    """Whether a number is reduced over one loop."""
    return len(_loops(func)) == 1 and is_reduction(func.name, func.definitions[1])


def _matrices(func: FuncRecord, product: Contraction, schedule: Schedule) -> list[str]:
    """The Inputs that are read once in all: those at an index that the row is part of."""
    row = set(product.rows) | set(product.columns)
    given = {a.name for a in schedule.algorithm.inputs}
    loads = loads_of(*func.definitions[1].values)
    return list(dict.fromkeys(x.buffer for x in loads if x.buffer in given and x.free & row))
