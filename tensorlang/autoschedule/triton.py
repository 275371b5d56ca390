"""A schedule for Triton from formulas: tiles from shapes, dtypes and the facts of the target.

Each root Func becomes a kernel of one of six shapes:

    contraction   a tile of rows and columns a program: triton_matmul.py
    vectors       products of a matrix and a vector, a few rows a program: triton_vectors.py
    columns       sums over rows, lanes along columns, in parts: triton_columns.py
    rows          a row a program, its reductions inside it, the whole row in lanes
    scan          a whole row at once, or tiles one after the other: triton_scan.py
    reduction     an output that is itself a reduction: lanes along the unit stride
    pointwise     a tile of the innermost dimensions a program
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tensorlang.algorithm import Algorithm, FuncRecord
from tensorlang.autoschedule.analysis import (
    Contraction,
    contraction_of,
    is_reduction,
    sources_of,
)
from tensorlang.autoschedule.extents import Extents
from tensorlang.autoschedule.numbers import find_again
from tensorlang.autoschedule.placing import Groups, Home, group_funcs
from tensorlang.autoschedule.triton_columns import Columns
from tensorlang.autoschedule.triton_matmul import Matmul, power_of_two
from tensorlang.autoschedule.triton_outputs import join_outputs
from tensorlang.autoschedule.triton_scan import (
    LONGEST_ROW,
    scan_shape,
    schedule_inside,
    schedule_scan,
)
from tensorlang.autoschedule.triton_vectors import VectorProducts
from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.walk import loads_of
from tensorlang.schedule import Schedule, Stage
from tensorlang.target import Target

# Registers of a multiprocessor.  Rows of 8 warps fill it by two at most, of 128 registers a thread:
# the compiler likes to take a few more, and then one row is read while nothing else runs.
_REGISTERS = 65536
_WARPS_OF_A_PAIR = 8
# Points of a tile of what has no reduction; a dimension that is rather unrolled than a loop.
_POINTS, _SHORT = 1024, 4
# The longest row that one program holds in registers at once.
_LONGEST_ROW = 32768


def schedule_triton(algorithm: Algorithm, target: Target, sizes: Mapping[str, int]) -> Schedule:
    """The schedule; `sizes` are the Sizes that are known (others are taken for large)."""
    schedule = Schedule(algorithm)
    extents = Extents(algorithm, sizes)
    joined = join_outputs(schedule, extents)
    groups = group_funcs(schedule.state.algorithm, joined.leaders)
    kernels = _Kernels(schedule, extents, target)
    vectors = {r: list(groups.members(r)) for r in groups.roots if kernels.is_of_vectors(r, groups)}
    find_again(schedule, groups, extents, vectors)
    for root in groups.roots:
        func = schedule.state.funcs[root]
        if root in kernels.inside or root in joined.leaders:
            continue
        if companions := joined.companions(root):
            kernels.schedule_rows(func, groups, companions)
            continue
        if root not in kernels.extents.outputs:
            schedule[root].compute_root()
        kernels.schedule_root(func, groups)
    kernels.share_loops()
    return schedule


class _Kernels:
    """Schedules root Funcs, one kernel each."""

    def __init__(self, schedule: Schedule, extents: Extents, target: Target) -> None:
        self.schedule, self.extents, self.target = schedule, extents, target
        # The scans that are computed in the rows of another root.
        self.inside: set[str] = set()
        # The roots that are computed point by point, in order.
        self._points: list[FuncRecord] = []

    def is_of_vectors(self, root: str, groups: Groups) -> bool:
        """Whether a root is made of products of matrices and vectors."""
        funcs = self.schedule.state.funcs
        members = [funcs[name] for name in groups.members(root)]
        return VectorProducts.of(self.schedule, self.extents, funcs[root], members) is not None

    def schedule_root(self, func: FuncRecord, groups: Groups) -> None:
        members = groups.members(func.name)
        if not members and self._scan_inside(func, groups):
            return
        inner = [self.schedule.state.funcs[name] for name in members]
        product = contraction_of(inner[0]) if len(inner) == 1 else None
        if product is not None and product.rows and product.columns and func.is_pure:
            made = Matmul(self.schedule, self.extents, self.target, func, inner[0], product)
            made.run(members[inner[0].name].vars)
        elif pair := _pair_of(func, inner):
            (first, found), second = pair
            made = Matmul(self.schedule, self.extents, self.target, func, first, found, second)
            made.run(members[first.name].vars)
        elif products := VectorProducts.of(self.schedule, self.extents, func, inner):
            products.run()
        elif columns := Columns.of(
            self.schedule, self.extents, func, dict(zip(members, inner, strict=True))
        ):
            columns.run()
        elif members and not any(home.vars for home in members.values()):
            self._one_row(func, inner)
        elif members:
            self._rows(func, members)
        elif func.is_pure:
            self._pointwise(func)
        elif (scan := scan_shape(func)) is not None:
            self._pointwise(func)
            schedule_scan(self.schedule, self.extents, func, scan)
        else:
            self._updates(func)

    def schedule_rows(self, func: FuncRecord, groups: Groups, companions: Sequence[str]) -> None:
        """A row a program, with other outputs of the same rows beside it."""
        self._rows(func, groups.members(func.name))
        *blocks, last = func.dims
        for name in companions:
            stage = self.schedule[name].gpu_blocks(*blocks)
            if last in self.schedule.state.funcs[name].dims:
                stage.vectorize(last)
            stage.compute_with(func.name, blocks[-1])

    def _scan_inside(self, func: FuncRecord, groups: Groups) -> bool:
        """A row a program, with the one scan that is read there, where registers hold it."""
        found = [name for name, home in groups.recurrences.items() if home.root == func.name]
        scan = scan_shape(self.schedule.state.funcs[found[0]]) if len(found) == 1 else None
        if scan is None or len(func.dims) < 2:
            return False
        made, home = self.schedule.state.funcs[found[0]], groups.recurrences[found[0]].vars
        shape = dict(zip(func.dims, self.extents.shape(func), strict=True))
        length = shape[home[scan.dim]]
        inner = func.dims[func.dims.index(home[scan.dim]) + 1 :]
        if length > LONGEST_ROW or any(shape[v] > 1 for v in inner):
            return False
        schedule_inside(self.schedule, made, scan, func, home, length)
        self.inside.add(made.name)
        return True

    def _rows(self, func: FuncRecord, members: Mapping[str, Home]) -> None:
        """A point of the outer dimensions a program; reductions and the rest of the row inside."""
        outer = {v for home in members.values() for v in home.vars}
        blocks = [v for v in func.dims if v in outer]
        lanes = [v for v in func.dims if v not in outer]
        shape = dict(zip(func.dims, self.extents.shape(func), strict=True))
        row = 1
        for v in lanes:
            row *= shape[v]
        stage = self.schedule[func.name]
        if not lanes:
            # Nothing of the row is kept: it is as long as the longest that is reduced.
            row = max(self._reduced(name) for name in members)
        stage.reorder(*blocks, *lanes)
        warps = _warps_for(row)
        stage.gpu_blocks(*blocks).gpu_warps(warps)
        if warps == _WARPS_OF_A_PAIR:
            stage.gpu_registers(_REGISTERS // (2 * 32 * warps))
        self._lanes(stage, lanes, shape)
        for name in members:
            self._reduce(name, self.schedule[name].compute_at(func.name, blocks[-1]))

    def _reduce(self, name: str, made: Stage) -> None:
        """The reductions of a Func with the last loop of their domain in lanes."""
        for number, definition in enumerate(self.schedule.state.funcs[name].definitions):
            if definition.domain is not None and is_reduction(name, definition):
                dims = [(name, self.extents.of(n)) for name, _, n in definition.domain.dims]
                self._lanes(made.update(number - 1), [d for d, _ in dims[-1:]], dict(dims))

    def _one_row(self, func: FuncRecord, members: Sequence[FuncRecord]) -> None:
        """Numbers that all points read: found by the one program of a row, else once for all."""
        shape = self.extents.shape(func)
        if len(shape) == 1 and shape[0] <= _LONGEST_ROW:
            width = power_of_two(shape[0])
            stage = self.schedule[func.name].split(func.dims[0], "row", "lane", width)
            stage.gpu_blocks("row").gpu_warps(_warps_for(width)).vectorize("lane")
            for member in members:
                self._reduce(member.name, self.schedule[member.name].compute_at(func.name, "row"))
            return
        for member in members:
            self._reduce(member.name, self.schedule[member.name].compute_root())
        self._pointwise(func)

    def _reduced(self, name: str) -> int:
        """How many terms in lanes a reduction has."""
        domains = (d.domain for d in self.schedule.state.funcs[name].definitions)
        return max(self.extents.of(domain.dims[-1][2]) for domain in domains if domain is not None)

    def _lanes(self, stage: Stage, lanes: Sequence[str], extents: Mapping[str, int]) -> None:
        """The last loop whole in lanes, or in pieces where it is too long; others stay serial."""
        if not lanes:
            return
        lane = lanes[-1]
        if extents[lane] > _LONGEST_ROW:
            stage.split(lane, f"{lane}_o", f"{lane}_i", 8192).vectorize(f"{lane}_i")
        else:
            stage.vectorize(lane)

    def _pointwise(self, func: FuncRecord) -> None:
        """A tile of 1,024 points a program, as wide as the innermost dimension allows.

        What lies between rows and columns of a tile and is short, as the two halves of rope, is
        unrolled: what they share is read once.
        """
        if not func.dims:
            return
        shape = dict(zip(func.dims, self.extents.shape(func), strict=True))
        if func.is_pure:
            self._points.append(func)
        stage = self.schedule[func.name]
        *blocks, last = func.dims
        width = min(_POINTS, power_of_two(shape[last]))
        lanes, short = ["lane"], list[str]()
        stage.split(last, "block", "lane", width)
        if width < _POINTS:
            fixed = self._fixed(func)
            while blocks and blocks[-1] in fixed and shape[blocks[-1]] <= _SHORT:
                short.insert(0, blocks.pop())
        if width < _POINTS and blocks:
            rows = min(_POINTS // width, power_of_two(shape[blocks[-1]]))
            stage.split(blocks[-1], "rows", "row", rows)
            blocks[-1], lanes = "rows", ["row", "lane"]
        stage.reorder(*blocks, "block", *short, *lanes)
        stage.gpu_blocks(*blocks, "block").gpu_warps(4)
        for loop in short:
            stage.unroll(loop)
        for lane in lanes:
            stage.vectorize(lane)

    def share_loops(self) -> None:
        """Outputs of one shape that read the same arrays are computed side by side, and read once.

        blocks { f }; blocks { g }   ->   blocks { f; g }
        """
        outputs = dict(self.schedule.algorithm.outputs)
        first: dict[Any, tuple[FuncRecord, set[str]]] = {}
        # In the order of the algorithm: nothing may need what comes after it.
        order = {f.name: k for k, f in enumerate(self.schedule.algorithm.funcs)}
        for func in sorted(self._points, key=lambda f: order.get(f.name, -1)):
            if func.name not in outputs or not func.dims:
                continue
            read = sources_of(self.schedule.state.algorithm, func.name)
            key = outputs[func.name], func.dims
            leader, known = first.setdefault(key, (func, read))
            if leader is not func and read & known and not read & set(outputs):
                self.schedule[func.name].compute_with(leader.name, "block")

    def _fixed(self, func: FuncRecord) -> set[str]:
        """The dimensions whose extents are numbers."""
        shape = self.extents.outputs.get(func.name, ())
        return {v for v, n in zip(func.dims, shape, strict=False) if isinstance(n, Const)}

    def _updates(self, func: FuncRecord) -> None:
        """An output that is itself a reduction: its stages in one kernel, lanes where loads run."""
        if not func.dims:
            self._reduce(func.name, self.schedule[func.name])
            return
        update = func.definitions[-1]
        shape = dict(zip(func.dims, self.extents.shape(func), strict=True))
        across = _loads_run_along(update.values, {v for v in update.pure if v})
        for number, definition in enumerate(func.definitions):
            stage = self.schedule[func.name]
            stage = stage.update(number - 1) if number else stage
            pure = [v for v in definition.pure if v is not None]
            if len(pure) < len(func.dims):
                # It scatters or scans: the points of its domain run in order.
                if pure:
                    stage.gpu_blocks(*pure)
                return
            domain = definition.domain.dims if definition.domain else ()
            if across:
                stage.split(pure[-1], "block", "lane", min(256, power_of_two(shape[func.dims[-1]])))
                stage.reorder(*pure[:-1], "block", *(name for name, _, _ in domain), "lane")
                stage.gpu_blocks(*pure[:-1], "block").vectorize("lane")
            else:
                stage.gpu_blocks(*pure)
                lengths = {name: self.extents.of(n) for name, _, n in domain}
                if is_reduction(func.name, definition):
                    self._lanes(stage, list(lengths)[-1:], lengths)
            if number and pure == list(func.dims):
                stage.compute_with(func.name, "block" if across else pure[-1])


def _pair_of(
    func: FuncRecord, members: Sequence[FuncRecord]
) -> tuple[tuple[FuncRecord, Contraction], tuple[FuncRecord, Contraction]] | None:
    """Two products of the same rows that a Func makes something of, as of a gate and a value."""
    found = [(f, c) for f in members if (c := contraction_of(f)) is not None]
    if len(members) != 2 or len(found) != 2 or not func.is_pure or len(func.dims) != 2:
        return None
    # The product that is defined first is the one in whose loop the other runs.
    second, first = found
    is_pair = all(c.rows and c.columns and not c.batch and c.narrow for _, c in found)
    same = first[1].k_extent is second[1].k_extent
    rows = set(first[1].operands) & set(second[1].operands)
    return (first, second) if is_pair and same and rows else None


def _loads_run_along(values: Sequence[Expr], pure: set[str]) -> bool:
    """Whether a pure Var, and not one that is reduced over, is the last index of most loads."""
    votes = 0
    for load in loads_of(*values):
        if load.indices:
            votes += 1 if load.indices[-1].free & pure else -1
    return votes > 0


def _warps_for(row: int) -> int:
    """1 to 4 warps to 4,096 elements a row, 8 to 16,384, then 16."""
    return (
        1 if row <= 512 else 2 if row <= 1024 else 4 if row <= 4096 else 8 if row <= 16384 else 16
    )
