"""A schedule for Triton from formulas: tiles from shapes, dtypes and the facts of the target.

Each root Func becomes a kernel of one of four shapes:

    contraction   a tile of rows and columns a program, the K loop pipelined around a dot
    rows          a row a program, its reductions inside it, the whole row in lanes
    reduction     an output that is itself a reduction: lanes along the unit stride
    pointwise     a tile of the innermost dimensions a program
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from tensorlang.algorithm import Algorithm, FuncRecord
from tensorlang.autoschedule.analysis import Contraction, contraction_of, is_reduction
from tensorlang.autoschedule.extents import Extents
from tensorlang.autoschedule.placing import Home, group_funcs
from tensorlang.ir.expr import Expr
from tensorlang.ir.walk import loads_of
from tensorlang.schedule import Schedule, Stage
from tensorlang.target import Target

# Registers of a multiprocessor.  Rows of 8 warps fill it by two at most, of 128 registers a thread:
# the compiler likes to take a few more, and then one row is read while nothing else runs.
_REGISTERS = 65536
_WARPS_OF_A_PAIR = 8
# The longest row that one program holds in registers at once.
_LONGEST_ROW = 32768


def schedule_triton(algorithm: Algorithm, target: Target, sizes: Mapping[str, int]) -> Schedule:
    """The schedule; `sizes` are the Sizes that are known (others are taken for large)."""
    schedule = Schedule(algorithm)
    groups = group_funcs(algorithm)
    kernels = _Kernels(schedule, Extents(algorithm, sizes), target)
    for root in groups.roots:
        func = schedule.state.funcs[root]
        if root not in kernels.extents.outputs:
            schedule[root].compute_root()
        kernels.schedule_root(func, groups.members(root))
    return schedule


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile of a contraction, its depth that of 16-bit factors, and how a program runs it."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int


# Tiles that keep a tensor core busy, largest first; measured on Hopper.
_TILES = (
    Tile(128, 256, 64, 8, 3),
    Tile(128, 128, 64, 4, 3),
    Tile(64, 128, 64, 4, 4),
    Tile(64, 64, 64, 4, 4),
    Tile(32, 64, 64, 4, 5),
    Tile(16, 64, 128, 4, 5),
)


def choose_tile(m: int, n: int, target: Target, products: int = 1) -> Tile:
    """The tile with the least time: waves of programs over the chip, each as long as its tile.

    A smaller tile loads more per operation, so it is charged for its perimeter.

    Args: products: how many matrices of m rows and n columns there are.
    """

    def cost(tile: Tile) -> float:
        programs = products * ceil(m / tile.rows) * ceil(n / tile.columns)
        waves = ceil(programs / target.sms)
        perimeter = (tile.rows + tile.columns) / (tile.rows * tile.columns)
        return waves * tile.rows * tile.columns * (1 + 24 * perimeter)

    return min(_TILES, key=cost)


# The least side of a tile that goes through tensor descriptors: smaller ones gain nothing by it.
_LEAST_BOX = 64
# Bytes of shared memory that barriers and descriptors take.
_RESERVED = 2048


def boxed(tile: Tile, product: Contraction, out_bytes: int, target: Target) -> tuple[Tile, int]:
    """The tile with as many stages as shared memory holds, and the parts of its epilogue.

    The result passes through shared memory on its way out: a large one goes in halves.
    """
    parts = 2 if tile.rows * tile.columns > 128 * 128 else 1
    stage = (tile.rows * product.bytes_a + tile.columns * product.bytes_b) * tile.depth
    out = tile.rows * tile.columns * out_bytes // parts
    stages = (target.shared_memory - _RESERVED - out) // stage
    return replace(tile, stages=max(2, min(4, stages))), parts


class _Kernels:
    """Schedules root Funcs, one kernel each."""

    def __init__(self, schedule: Schedule, extents: Extents, target: Target) -> None:
        self.schedule, self.extents, self.target = schedule, extents, target

    def schedule_root(self, func: FuncRecord, members: Mapping[str, Home]) -> None:
        inner = [self.schedule.state.funcs[name] for name in members]
        product = contraction_of(inner[0]) if len(inner) == 1 else None
        if product is not None and product.rows and product.columns and func.is_pure:
            self._contraction(func, inner[0], members[inner[0].name].vars, product)
        elif members:
            self._rows(func, members)
        elif func.is_pure:
            self._pointwise(func)
        else:
            self._updates(func)

    def _contraction(
        self, func: FuncRecord, inner: FuncRecord, home: tuple[str, ...], product: Contraction
    ) -> None:
        """func reads the product at its own point: the epilogue is applied to the tile."""
        shape = dict(zip(func.dims, self.extents.shape(func), strict=True))
        update = inner.definitions[1]
        # The product's Vars in the consumer's names: it is read at the consumer's own point.
        names = dict(zip(inner.dims, home, strict=True))
        pure = dict(zip((v or "" for v in update.pure), inner.dims, strict=True))
        row, column = (names[pure[vars[-1]]] for vars in (product.rows, product.columns))
        products = prod(n for v, n in shape.items() if v not in (row, column))
        tile = choose_tile(shape[row], shape[column], self.target, products)
        tile = replace(tile, depth=tile.depth * 2 // max(product.bytes_a, product.bytes_b))
        stage = self.schedule[func.name]
        others = [v for v in func.dims if v not in (row, column)]
        parts = 1
        boxes = self._takes_boxes(tile, product)
        if boxes:
            tile, parts = boxed(tile, product, func.dtypes[0].bits // 8, self.target)
        stage.tile(row, column, "row_o", "col_o", "row_i", "col_i", tile.rows, tile.columns)
        stage.split("row_o", "group", "row_g", 8, tail="ragged")
        stage.reorder(*others, "group", "col_o", "row_g", "row_i", "col_i")
        stage.fuse("col_o", "row_g", "in_group").fuse("group", "in_group", "tile")
        at, lane = "tile", "col_i"
        programs = ceil(shape[row] / tile.rows) * ceil(shape[column] / tile.columns)
        if boxes and not others and programs > self.target.sms:
            stage.split("tile", "turn", "program", self.target.sms)
            stage.reorder("program", "turn", "row_i", "col_i").gpu_blocks("program")
            at = "turn"
        else:
            stage.gpu_blocks(*others, "tile")
        if parts > 1:
            stage.split("col_i", "part", "col_p", tile.columns // parts).unroll("part")
            stage.reorder("part", "row_i", "col_p")
            lane = "col_p"
        stage.vectorize("row_i").vectorize(lane).gpu_warps(tile.warps)
        made = self.schedule[inner.name].compute_at(func.name, at)
        back = {names[d]: d for d in inner.dims}
        made.vectorize(back[row]).vectorize(back[column])
        step = made.update(0)
        step.split(product.k, "k_o", "k_i", tile.depth)
        lanes = [v for v, d in pure.items() if names[d] in (row, column)]
        step.reorder("k_o", *lanes, "k_i")
        for lane in (*lanes, "k_i"):
            step.vectorize(lane)
        step.pipeline("k_o", tile.stages)
        if boxes:
            for operand in product.operands:
                self.schedule[operand].load_with("descriptor")
            stage.store_with("descriptor")

    def _takes_boxes(self, tile: Tile, product: Contraction) -> bool:
        """Whether tiles should go through descriptors: large ones, of rows of whole 16 bytes."""
        sizes = {a.name: a.shape for a in self.extents.inputs}
        widths = zip(product.operands, (product.bytes_a, product.bytes_b), strict=False)
        rows = [self.extents.of(sizes[a][-1]) * n % 16 for a, n in widths if a in sizes]
        return (
            self.target.descriptors
            and min(tile.rows, tile.columns) >= _LEAST_BOX
            and product.narrow
            and not any(rows)
        )

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
        if not blocks:
            return self._pointwise(func)
        stage.reorder(*blocks, *lanes)
        warps = _warps_for(row)
        stage.gpu_blocks(*blocks).gpu_warps(warps)
        if warps == _WARPS_OF_A_PAIR:
            stage.gpu_registers(_REGISTERS // (2 * 32 * warps))
        self._lanes(stage, lanes, shape)
        for name in members:
            made = self.schedule[name].compute_at(func.name, blocks[-1])
            for number, definition in enumerate(self.schedule.state.funcs[name].definitions):
                if definition.domain is not None and is_reduction(name, definition):
                    dims = [(name, self.extents.of(n)) for name, _, n in definition.domain.dims]
                    self._lanes(made.update(number - 1), [d for d, _ in dims[-1:]], dict(dims))
        return None

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
        """A tile of 1,024 points a program, as wide as the innermost dimension allows."""
        if not func.dims:
            return
        shape = self.extents.shape(func)
        stage = self.schedule[func.name]
        width = min(1024, _power_of_two(shape[-1]))
        blocks = [*func.dims[:-1]]
        lanes = ["lane"]
        stage.split(func.dims[-1], "block", "lane", width)
        if width < 1024 and blocks:
            stage.split(blocks[-1], "rows", "row", 1024 // width)
            blocks[-1], lanes = "rows", ["row", "lane"]
        stage.reorder(*blocks, "block", *lanes).gpu_blocks(*blocks, "block").gpu_warps(4)
        for lane in lanes:
            stage.vectorize(lane)

    def _updates(self, func: FuncRecord) -> None:
        """An output that is itself a reduction: its stages in one kernel, lanes where loads run."""
        if not func.dims:
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
                stage.split(
                    pure[-1], "block", "lane", min(256, _power_of_two(shape[func.dims[-1]]))
                )
                stage.reorder(*pure[:-1], "block", *(name for name, _, _ in domain), "lane")
                stage.gpu_blocks(*pure[:-1], "block").vectorize("lane")
            else:
                stage.gpu_blocks(*pure)
                lengths = {name: self.extents.of(n) for name, _, n in domain}
                if is_reduction(func.name, definition):
                    self._lanes(stage, list(lengths)[-1:], lengths)
            if number and pure == list(func.dims):
                stage.compute_with(func.name, "block" if across else pure[-1])


def _loads_run_along(values: Sequence[Expr], pure: set[str]) -> bool:
    """Whether a pure Var, and not one that is reduced over, is the last index of most loads."""
    votes = 0
    for load in loads_of(*values):
        if load.indices:
            votes += 1 if load.indices[-1].free & pure else -1
    return votes > 0


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def _warps_for(row: int) -> int:
    """1 to 4 warps to 4,096 elements a row, 8 to 16,384, then 16."""
    return (
        1 if row <= 512 else 2 if row <= 1024 else 4 if row <= 4096 else 8 if row <= 16384 else 16
    )
