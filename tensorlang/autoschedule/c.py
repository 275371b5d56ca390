"""A schedule for C from formulas: places from footprints, loops from the shape of each stage.

A root Func gets one of four nests:

    product     a tile of a matrix product in registers, over packed panels of its second factor
    windows     strips of rows in parallel; inside, each row of a producer is computed once
    rows        rows, or blocks of rows, in parallel; what they read is computed for each
    plain       outermost loop parallel, innermost in vectors

See: `c_groups` for what is computed where, `c_stages` for the vectors of a stage.
"""

from collections.abc import Mapping

from tensorlang.algorithm import Algorithm, FuncRecord
from tensorlang.autoschedule.c_groups import Group, Groups, Place
from tensorlang.autoschedule.c_stages import Product, Stages, product_of
from tensorlang.autoschedule.extents import Extents
from tensorlang.ir.expr import Load
from tensorlang.schedule import Schedule, Stage
from tensorlang.target import Target

# Rows of a strip: at least this many, and so many that few rows of windows are computed twice.
_STRIP, _WORTH = 32, 8
# Rows of a block that share what a matrix product reads.
_BLOCK = 32
# Rows and vectors of a product's tile that, with what it loads, fit 16 registers: a panel that is
# packed is read in one stream, so that three vectors of it may be read at a time.
_PACKED, _TILE, _SMALL = (4, 3), (6, 2), (4, 2)
# Elements of a piece of a one-dimensional Func.
_PIECE = 8192


def schedule_c(algorithm: Algorithm, target: Target, sizes: Mapping[str, int]) -> Schedule:
    """The schedule; `sizes` are the Sizes that are known (others are taken for large)."""
    schedule = Schedule(algorithm)
    extents = Extents(algorithm, sizes)
    groups = Groups(algorithm, extents, target)
    nests = _Nests(schedule, extents, target)
    for func in reversed(algorithm.funcs):
        if func.name in groups.inlined and not func.is_pure:
            continue
        group = groups.roots.get(func.name)
        if group is not None:
            nests.schedule_root(func, group)
    return schedule


class _Nests:
    """Schedules root Funcs and what is computed inside them."""

    def __init__(self, schedule: Schedule, extents: Extents, target: Target) -> None:
        self.schedule, self.extents, self.target = schedule, extents, target
        self.stages = Stages(schedule, extents, target)

    def schedule_root(self, func: FuncRecord, group: Group) -> None:
        """The nest of a root Func."""
        if func.name not in self.extents.outputs:
            self.schedule[func.name].compute_root()
        members = [self.schedule.state.funcs[name] for name in group.members]
        product = product_of(members[0]) if len(members) == 1 else None
        if product is not None and _is_own_point(func, group.members[members[0].name]):
            self._product(func, members[0], product)
        elif members:
            self._rows(func, group)
        else:
            self._plain(func)

    # --------------------------------------------------------------------------------- product

    def _product(self, func: FuncRecord, inner: FuncRecord, product: Product) -> None:
        """func reads the product at its own point: the tile is finished while it is held."""
        pure = inner.definitions[1].pure
        row, column = (func.dims[pure.index(v)] for v in (product.row, product.column))
        packed = self._packs(product)
        rows, vectors = _PACKED if packed else _TILE
        stage, width = self.schedule[func.name], vectors * self.stages.lanes(inner)
        names = [self.stages.fresh(func, 0, f"{v}_{part}") for part in "oi" for v in (row, column)]
        row_o, column_o, row_i, column_i = names
        # The last tile is computed whole, over some of what the one before it did.
        tail = "shift_inwards"
        stage.tile(row, column, row_o, column_o, row_i, column_i, rows, width, tail=tail)
        others = [v for v in func.dims if v not in (row, column)]
        outer = [*others, column_o] if packed else [column_o, *others]
        stage.reorder(*outer, row_o, row_i, column_i)
        task = self._fused(func, stage, outer)
        stage.parallel(task).unroll(row_i).vectorize(column_i)
        rows_of_inner, columns_of_inner = (
            inner.dims[pure.index(v)] for v in (product.row, product.column)
        )
        made = self.schedule[inner.name].compute_at(func.name, row_o)
        made.unroll(rows_of_inner).vectorize(columns_of_inner)
        loops = self.stages.reductions(inner, 1)
        step = made.update(0).reorder(
            *loops, *(v for v in pure if v and v not in (product.row, product.column)),
            product.row, product.column,
        )  # fmt: skip
        step.unroll(product.row).vectorize(product.column)
        if packed:
            assert isinstance(product.b, Load)
            copy = self.schedule[product.b.buffer].in_(inner.name)
            panel = self.schedule[copy].compute_at(func.name, task)
            panel.vectorize(self.schedule.state.funcs[copy.name].dims[-1])

    def _packs(self, product: Product) -> bool:
        """Whether the second factor is read from an array, over one long reduction."""
        inputs = {a.name for a in self.schedule.algorithm.inputs}
        return (
            isinstance(product.b, Load)
            and product.b.buffer in inputs
            and len(product.reductions) == 1
        )

    def _fused(self, func: FuncRecord, stage: Stage, loops: list[str]) -> str:
        """One loop for several, outermost first."""
        first = loops[0]
        for loop in loops[1:]:
            task = self.stages.fresh(func, 0, "task")
            stage.fuse(first, loop, task)
            first = task
        return first

    # ------------------------------------------------------------------------------------ rows

    def _rows(self, func: FuncRecord, group: Group) -> None:
        """Rows or strips of rows in parallel, and the members at the loops they were placed at."""
        stage = self.schedule[func.name]
        loops = {d: func.dims[d] for d in group.order}
        homes = dict(loops)
        windows = dict(group.windows())
        split = next((place.level for place in windows.values()), None)
        if split is None:
            split = self._blocked(group)
        strip = None
        if split is not None:
            dim = func.dims[split]
            strip, row = (self.stages.fresh(func, 0, f"{dim}_{part}") for part in "oi")
            stage.split(dim, strip, row, self._height(windows))
            loops[split] = f"{strip} {row}"
            homes[split] = row if windows else strip
        order = [name for d in group.order for name in loops[d].split()]
        if list(group.order) != sorted(group.order):
            stage.reorder(*order, func.dims[-1])
        self._parallel(func, stage, order, {homes[p.level] for p in group.members.values()})
        stage.vectorize(func.dims[-1])
        for name, place in group.members.items():
            self._member(self.schedule.state.funcs[name], place, func, homes, strip)

    def _parallel(self, func: FuncRecord, stage: Stage, order: list[str], homes: set[str]) -> None:
        """The outermost loop with enough iterations for all cores."""
        extents = dict(zip(func.dims, self.extents.shape(func), strict=True))
        outermost = order[0]
        few = extents.get(outermost, self.target.cores * 2) < self.target.cores * 2
        stage.parallel(order[1] if few and len(order) > 1 and outermost not in homes else outermost)

    def _height(self, windows: Mapping[str, Place]) -> int:
        """Rows of a strip, a power of two."""
        most = max((place.window - 1 for place in windows.values()), default=0)
        return max(_STRIP, 1 << (most * _WORTH - 1).bit_length()) if windows else _BLOCK

    def _blocked(self, group: Group) -> int | None:
        """The loop whose rows share a matrix product's second factor, to be run in blocks."""
        for name, place in group.members.items():
            product = product_of(self.schedule.state.funcs[name])
            if product is not None:
                followed = place.reach[self._dim(name, product.row)]
                if followed is not None and followed.dim == place.level:
                    return place.level
        return None

    def _dim(self, name: str, var: str) -> int:
        return self.schedule.state.funcs[name].definitions[1].pure.index(var)

    def _member(
        self,
        func: FuncRecord,
        place: Place,
        root: FuncRecord,
        homes: Mapping[int, str],
        strip: str | None,
    ) -> None:
        """A Func at the loop of its place, with storage for its window outside."""
        made = self.schedule[func.name]
        if place.window > 1 and strip is not None:
            rows = next(
                k for k, follows in enumerate(place.reach) if follows and follows.dim == place.level
            )
            ring = 1 << (place.window - 1).bit_length()
            made.store_at(root.name, strip).fold_storage(func.dims[rows], ring)
        home = homes[place.level]
        made.compute_at(root.name, home)
        blocked = strip is not None and home == strip
        single = {
            func.dims[k]
            for k, follows in enumerate(place.reach)
            if follows is not None and follows.spread == 0 and follows.dim in homes
            if not (blocked and follows.dim == place.level)
        }
        product = product_of(func) if blocked else None
        for number in range(len(func.definitions)):
            if number == 1 and product is not None:
                self._tile(func, product)
            else:
                self.stages.vectorize(func, number, single)

    def _tile(self, func: FuncRecord, product: Product) -> None:
        """The update of a product inside a block: tiles of it are held over the reduction."""
        step = self.schedule[func.name].update(0)
        names = [self.stages.fresh(func, 1, f"{v}_{part}")
                 for part in "oi" for v in (product.row, product.column)]  # fmt: skip
        row_o, column_o, row_i, column_i = names
        rows, vectors = _SMALL
        width = vectors * self.stages.lanes(func)
        loops = self.stages.reductions(func, 1)
        step.tile(product.row, product.column, row_o, column_o, row_i, column_i, rows, width)
        others = [v for v in func.definitions[1].pure if v not in (product.row, product.column)]
        step.reorder(*(v for v in others if v), column_o, row_o, *loops, row_i, column_i)
        step.unroll(row_i).vectorize(column_i)

    # ----------------------------------------------------------------------------------- plain

    def _plain(self, func: FuncRecord) -> None:
        """A Func alone: its outermost loop in parallel."""
        for number, definition in enumerate(func.definitions):
            stage = self.stages.stage(func, number)
            pure = [v for v in definition.pure if v is not None]
            product = product_of(func) if number == 1 else None
            if product is not None:
                self._tile(func, product)
                self.stages.stage(func, 1).parallel(next(v for v in self._outer_loops(func, 1)))
            elif len(pure) == 1 and definition.domain is None and len(func.dims) == 1:
                self._pieces(func, number, pure[0], stage)
            elif pure:
                lane = self.stages.vectorize(func, number)
                outer = [v for v in self._outer_loops(func, number) if v != lane]
                if outer:
                    stage.parallel(outer[0])

    def _outer_loops(self, func: FuncRecord, number: int) -> list[str]:
        """The loops over pure Vars, outermost first."""
        nest = self.schedule.state.nests[func.name, number]
        return [loop.name for loop in nest.loops if not loop.reduction]

    def _pieces(self, func: FuncRecord, number: int, name: str, stage: Stage) -> None:
        """A single long dimension in pieces."""
        if self.extents.shape(func)[0] <= _PIECE // 2:
            stage.vectorize(name)
            return
        piece, lane = (self.stages.fresh(func, number, f"{name}_{part}") for part in "oi")
        stage.split(name, piece, lane, _PIECE).parallel(piece).vectorize(lane)


def _is_own_point(func: FuncRecord, place: Place) -> bool:
    """Whether a member is read at every dimension of the root, in order, and nowhere else."""
    own = [f.dim for f in place.reach if f is not None and f.spread == 0]
    return own == list(range(len(func.dims)))
