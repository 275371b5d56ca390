"""A matrix product and what is done with it, for Triton.

    large       a tile of rows and columns a program, walked in groups that share operands in the
                L2; persistent where there are more tiles than multiprocessors
    few rows    the columns are the operand with 64 rows of the tensor core, and K is split over
                programs until they fill the chip; the last of a tile merges

All through tensor descriptors where the target has them and rows are whole 16 bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, prod

from tensorlang.algorithm import FuncRecord
from tensorlang.autoschedule.analysis import Contraction
from tensorlang.autoschedule.extents import Extents
from tensorlang.schedule import Schedule, Stage
from tensorlang.target import Target


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


def boxed(
    tile: Tile, product: Contraction, out_bytes: int, target: Target, products: int = 1
) -> tuple[Tile, int]:
    """The tile with as many stages as shared memory holds, and the parts of its epilogue.

    The result passes through shared memory on its way out: a large one goes in halves.

    Args: products: of the same rows, each with columns of its own.
    """
    parts = 2 if tile.rows * tile.columns > 128 * 128 else 1
    columns = tile.columns * product.bytes_b * products
    stage = (tile.rows * product.bytes_a + columns) * tile.depth
    out = tile.rows * tile.columns * out_bytes // parts
    stages = (target.shared_memory - _RESERVED - out) // stage
    return replace(tile, stages=max(2, min(4, stages))), parts


# Rows that the narrow side of a tensor core takes, and the K from which it pays to treat them so.
_FEW_ROWS = 64
_LONG_K = 1024
_COLUMNS = 64
# Steps of K that a part has at least: enough to keep its loads ahead.
_STEPS_OF_A_PART = 4


# Two products of one tile of rows: together as much as the largest tile.
_TILE_OF_TWO = Tile(128, 128, 64, 8, 3)


@dataclass(frozen=True)
class Matmul:
    """`inner` is the product, `func` what is made of it at its own point.

    Args: second: another product of the same rows with other columns, such as a gate's.
    """

    schedule: Schedule
    extents: Extents
    target: Target
    func: FuncRecord
    inner: FuncRecord
    product: Contraction
    second: tuple[FuncRecord, Contraction] | None = None

    def run(self, home: Sequence[str]) -> None:
        """Schedule it; `home`: the product's dimensions in the names of `func`."""
        names = dict(zip(self.inner.dims, home, strict=True))
        update = self.inner.definitions[1]
        pure = dict(zip((v or "" for v in update.pure), self.inner.dims, strict=True))
        row, column = (names[pure[v[-1]]] for v in (self.product.rows, self.product.columns))
        shape = dict(zip(self.func.dims, self.extents.shape(self.func), strict=True))
        back = {names[d]: d for d in self.inner.dims}
        loops = {names[d]: v for v, d in pure.items()}
        sides = (
            _Side(row, back[row], loops[row], shape[row]),
            _Side(column, back[column], loops[column], shape[column]),
        )
        others = {v: n for v, n in shape.items() if v not in (row, column)}
        few = shape[row] <= _FEW_ROWS and self.second is None
        if not others and few and self.depth >= _LONG_K:
            self._few_rows(*sides)
        else:
            self._tiles(*sides, others)

    @cached_property
    def depth(self) -> int:
        """K."""
        return self.extents.of(self.product.k_extent)

    @property
    def widest(self) -> int:
        """Bytes of an element of the wider operand."""
        return max(self.product.bytes_a, self.product.bytes_b)

    def _tiles(self, row: "_Side", column: "_Side", others: dict[str, int]) -> None:
        tile = choose_tile(row.extent, column.extent, self.target, prod(others.values()))
        if self.second is not None and tile.columns > _TILE_OF_TWO.columns:
            tile = _TILE_OF_TWO
        tile = replace(tile, depth=tile.depth * 2 // self.widest)
        stage = self.schedule[self.func.name]
        parts = 1
        boxes = self._takes_boxes(tile)
        if boxes:
            out = self.func.dtypes[0].bits // 8
            tile, parts = boxed(tile, self.product, out, self.target, 1 + bool(self.second))
        stage.tile(row.var, column.var, "row_o", "col_o", "row_i", "col_i", tile.rows, tile.columns)
        stage.split("row_o", "group", "row_g", 8, tail="ragged")
        stage.reorder(*others, "group", "col_o", "row_g", "row_i", "col_i")
        stage.fuse("col_o", "row_g", "in_group").fuse("group", "in_group", "tile")
        at, lane = "tile", "col_i"
        programs = ceil(row.extent / tile.rows) * ceil(column.extent / tile.columns)
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
        made = self.schedule[self.inner.name].compute_at(self.func.name, at)
        made.vectorize(row.dim).vectorize(column.dim)
        self._steps(made.update(0), self.product.k, (row.loop, column.loop), tile)
        operands = dict.fromkeys(self.product.operands)
        if self.second is not None:
            self._beside(*self.second, at, tile)
            operands |= dict.fromkeys(self.second[1].operands)
        if boxes:
            self._through_boxes(tuple(operands))
            stage.store_with("descriptor")

    def _beside(self, func: FuncRecord, product: Contraction, at: str, tile: Tile) -> None:
        """for steps of K { the first product; func }: they share what they read of the rows."""
        made = self.schedule[func.name].compute_at(self.func.name, at)
        for dim in func.dims:
            made.vectorize(dim)
        lanes = [v for v in func.definitions[1].pure if v is not None]
        update = made.update(0).split(product.k, "k_o", "k_i", tile.depth)
        update.reorder("k_o", *lanes, "k_i")
        for lane in (*lanes, "k_i"):
            update.vectorize(lane)
        update.compute_with(self.inner.name, "k_o")

    def _steps(self, update: Stage, k: str, lanes: Sequence[str], tile: Tile) -> None:
        """Steps of K in order, their loads ahead of a dot over the lanes."""
        update.split(k, "k_o", "k_i", tile.depth).reorder("k_o", *lanes, "k_i")
        for lane in (*lanes, "k_i"):
            update.vectorize(lane)
        update.pipeline("k_o", tile.stages)

    def _few_rows(self, row: "_Side", column: "_Side") -> None:
        """Tiles of 64 columns by all rows, the columns first; K in as many parts as fill the chip.

        for each tile, part of K: partial[u, tile] = sum over its K; the last of a tile adds up
        """
        tile = Tile(max(16, power_of_two(row.extent)), _COLUMNS, 256 // self.widest, 4, 4)
        programs = ceil(column.extent / tile.columns)
        most = min(self.target.sms // programs, self.depth // (_STEPS_OF_A_PART * tile.depth))
        stage = self.schedule[self.func.name]
        self._columns_first(stage, row.var, column.var, tile, ())
        made = self.schedule[self.inner.name].compute_at(self.func.name, "tile")
        made.reorder(column.dim, row.dim).vectorize(column.dim).vectorize(row.dim)
        lanes = (column.loop, row.loop)
        if most < 2:
            self._steps(made.update(0), self.product.k, lanes, tile)
        else:
            made.update(0).split(
                self.product.k, "part", "k_p", ceil(self.depth / most / tile.depth) * tile.depth
            )
            sums = made.update(0).rfactor("part", "u", merge="last").name
            made.update(0).reorder("part", *lanes).vectorize(lanes[0]).vectorize(lanes[1])
            # What is stored of the partial sums is a copy of the tile that a program holds.
            stored = self.schedule[sums].in_(self.inner.name).name
            copy = self.schedule[stored].compute_root()
            self._columns_first(copy, row.dim, column.dim, tile, ("u",))
            partial = self.schedule[sums].compute_at(stored, "u")
            partial.reorder(column.dim, row.dim, "u").vectorize(column.dim).vectorize(row.dim)
            partial.update(0).reorder("u", *lanes, "k_p")
            self._steps(partial.update(0), "k_p", lanes, tile)
        if self._takes_boxes(replace(tile, rows=_LEAST_BOX)):
            self._through_boxes(self.product.operands)

    def _columns_first(
        self, stage: Stage, row: str, column: str, tile: Tile, inner: tuple[str, ...]
    ) -> None:
        """for each tile and `inner`, a program with columns, then rows, in lanes."""
        stage.tile(row, column, "row_o", "col_o", "row_i", "col_i", tile.rows, tile.columns)
        stage.reorder("col_o", "row_o", *inner, "col_i", "row_i").fuse("col_o", "row_o", "tile")
        stage.gpu_blocks("tile", *inner).gpu_warps(tile.warps).vectorize("col_i").vectorize("row_i")

    def _through_boxes(self, operands: Sequence[str]) -> None:
        for operand in operands:
            self.schedule[operand].load_with("descriptor")

    def _takes_boxes(self, tile: Tile) -> bool:
        """Whether tiles should go through descriptors: large ones, of rows of whole 16 bytes."""
        sizes = {a.name: a.shape for a in self.extents.inputs}
        widths = zip(
            self.product.operands, (self.product.bytes_a, self.product.bytes_b), strict=False
        )
        rows = [self.extents.of(sizes[a][-1]) * n % 16 for a, n in widths if a in sizes]
        return (
            self.target.descriptors
            and min(tile.rows, tile.columns) >= _LEAST_BOX
            and self.product.narrow
            and not any(rows)
        )


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of the product: its Var in `func`, its dimension and loop in the product."""

    var: str
    dim: str
    loop: str
    extent: int


def power_of_two(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()
