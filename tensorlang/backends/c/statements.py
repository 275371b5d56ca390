"""Statements as C."""

from dataclasses import replace
from pathlib import PurePath

from tensorlang.backends.c.allocations import Allocations, is_small
from tensorlang.backends.c.atomics import write_atomic
from tensorlang.backends.c.cells import cells_of, shared_loads, stores_to, with_fixed_places
from tensorlang.backends.c.context import Cell, Lane, Scope, Unit
from tensorlang.backends.c.division import range_over
from tensorlang.backends.c.expressions import Expressions
from tensorlang.backends.c.prefetching import write_prefetches
from tensorlang.backends.c.register_tiles import tile_cells
from tensorlang.backends.c.rewriting import otherwise, replace_names
from tensorlang.backends.c.sequence import Opening, sequence_of
from tensorlang.backends.c.stores import declare_cell, read_cell, write_cell, write_store
from tensorlang.backends.c.streaming import write_fence
from tensorlang.backends.c.types import SCALARS, carried, stored
from tensorlang.ir.expr import Binary, Const, Expr, Name
from tensorlang.ir.linear import to_expr, to_linear
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Stage,
    Stmt,
    Store,
)
from tensorlang.ir.types import index

# In how many turns threads take the iterations of a parallel loop: enough to even out, and few
# beside the work.
_TURNS = 512


class Statements:
    """Writes the statements of one program."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._code = unit.code
        self._allocations = Allocations(unit)

    def write_all(self, body: Stmt, scope: Scope) -> None:
        """Write a whole program."""
        previous: Stmt | None = None
        for part in sequence_of(body):
            if not isinstance(part, Opening):
                slow = otherwise(previous, part)
                self._one_of_many(part, slow, scope)
                previous = part
            elif isinstance(part.stmt, Let):
                scope = self._named(part.stmt, scope)
            else:
                self._allocated_at_top(part.stmt.buffer, scope)

    def write(self, stmt: Stmt, scope: Scope, *, alone: bool = True) -> None:
        """Write one statement and all below it.

        Args: alone: whether nothing else stands in the C block, so that names need no other.
        """
        match stmt:
            case Block():
                self._block(stmt, scope)
            case Stage():
                self._code.line(f"// {_title(stmt)}")
                self.write(stmt.body, scope, alone=alone)
            case For(kind=LoopKind.VECTORIZED) | Let() | Allocate() if not alone:
                with self._code.block():
                    self.write(stmt, scope)
            case For():
                self._loop(stmt, scope)
            case Let():
                self._let(stmt, scope)
            case If():
                self._if(stmt, scope)
            case Allocate():
                self._allocate(stmt, scope)
            case Store(atomic=True) if scope.lane is not None:
                self._each_lane(stmt, scope)
            case Store(atomic=True):
                write_atomic(stmt, scope, self._unit)
            case Store():
                write_store(stmt, scope, self._unit)
            case Assert():
                pass  # checked by the call, before anything runs

    def _block(self, stmt: Block, scope: Scope) -> None:
        if len(stmt.statements) == 1:
            self.write(stmt.statements[0], scope)
            return
        previous: Stmt | None = None
        for s in stmt.statements:
            self._one_of_many(s, otherwise(previous, s), scope)
            # What differs from lane to lane is a mask, and has no other side.
            previous = None if isinstance(s, If) and scope.varies(s.condition) else s

    def _one_of_many(self, stmt: Stmt, slow: Stmt | None, scope: Scope) -> None:
        """A statement among others; `slow`: what it is the other side of the last If for."""
        if slow is None:
            self.write(stmt, scope, alone=False)
        else:
            with self._code.else_block():
                self.write(slow, scope)

    def _scalar(self, e: Expr, scope: Scope) -> str:
        return Expressions(self._unit, scope).scalar(e)

    # Loops

    def _loop(self, loop: For, scope: Scope) -> None:
        if scope.varies(loop.min) or scope.varies(loop.extent):
            self._each_lane(loop, scope)
        elif loop.kind is LoopKind.VECTORIZED and scope.lane is None:
            self._lanes(loop, scope)
        elif loop.kind in (LoopKind.PARALLEL, LoopKind.GPU_BLOCK):
            self._parallel(loop, scope)
        else:
            self._serial(loop, scope)

    def _lanes(self, loop: For, scope: Scope) -> None:
        assert isinstance(loop.extent, Const)
        lane = Lane(loop.var, int(loop.extent.value), loop.min)
        name = self._unit.names[loop.var]
        self._code.line(f"const int64_t {name} = {self._scalar(loop.min, scope)};")
        self.write(loop.body, replace(scope, lane=lane))

    def _parallel(self, loop: For, scope: Scope) -> None:
        if scope.in_parallel:
            self._unit.note(
                f"the {loop.kind.value} loop '{loop.var}' runs serially: it stands inside another "
                "that is parallel, and not directly, or its bounds differ there; fuse the two for "
                "more parallelism"
            )
        elif not self._unit.machine.has_openmp:
            self._unit.note(
                f"the {loop.kind.value} loop '{loop.var}' runs serially: the C compiler has no "
                "OpenMP; install it (libomp for clang) or another compiler"
            )
        else:
            self._in_threads(loop, replace(scope, in_parallel=True))
            return
        self._serial(loop, scope)

    def _in_threads(self, loop: For, scope: Scope) -> None:
        self._unit.threads = self._unit.threads or self._unit.names.fresh("threads")
        team = f"num_threads({self._unit.threads})"
        turns = f"schedule(dynamic{self._iterations_a_turn(loop, scope)})"
        if not stores_to(self._unit.to_stream, loop):
            self._counted(loop, scope, pragma=f"omp parallel for {team} {turns}")
            return
        self._code.pragma(f"omp parallel {team}")
        with self._code.block():
            self._counted(loop, scope, pragma=f"omp for nowait {turns}")
            write_fence(self._code)

    def _serial(self, loop: For, scope: Scope) -> None:
        cells = cells_of(loop, scope, self._unit)
        if not cells:
            fixed = with_fixed_places(loop)
            cells = cells_of(fixed, scope, self._unit) if fixed is not loop else ()
            loop = fixed if cells else loop
        if not cells:
            held = {cell.buffer for cell in scope.cells}
            self._counted(loop, scope, shares=bool(held) and stores_to(held, loop))
        elif isinstance(loop.extent, Const):
            self._around_cells(loop, scope, cells)
        else:
            # An empty loop must not touch what it does not update.
            with self._code.block(f"if ({self._scalar(loop.extent, scope)} > 0)"):
                self._around_cells(loop, scope, cells)

    def _around_cells(self, loop: For, scope: Scope, cells: tuple[Cell, ...]) -> None:
        held = tuple(read_cell(cell, scope, self._unit) for cell in cells)
        self._counted(loop, replace(scope, cells=(*scope.cells, *held)), shares=True)
        for cell in held:
            write_cell(cell, scope, self._unit)

    def _counted(self, loop: For, scope: Scope, *, pragma: str = "", shares: bool = False) -> None:
        name = self._unit.names[loop.var]
        end = to_expr(to_linear(loop.min) + to_linear(loop.extent))
        first, last = self._scalar(loop.min, scope), self._scalar(end, scope)
        if not isinstance(end, (Const, Name)):
            bound = self._unit.names.fresh(f"{name}_end")
            self._code.line(f"const int64_t {bound} = {last};")
            last = bound
        if pragma:
            self._code.pragma(pragma)
        low = range_over(loop.min, scope)[0]
        inside = scope.natural | {loop.var} if low is not None and low >= 0 else scope.natural
        with self._code.block(f"for (int64_t {name} = {first}; {name} < {last}; ++{name})"):
            scope = replace(scope, natural=inside)
            write_prefetches(loop, last, scope, self._unit)
            shared = shared_loads(loop, scope, self._unit) if shares else ()
            held = tuple(read_cell(cell, scope, self._unit, shared=True) for cell in shared)
            self.write(loop.body, replace(scope, cells=(*scope.cells, *held)))

    def _iterations_a_turn(self, loop: For, scope: Scope) -> str:
        """How many iterations a thread takes at a time, where one may be too short for a turn."""
        if not isinstance(loop.extent, Const):
            most = self._unit.prelude.helper("max", carried(index))
            return f", {most}({self._scalar(loop.extent // _TURNS, scope)}, 1)"
        count = int(loop.extent.value) // _TURNS
        return f", {count}" if count > 1 else ""

    def _each_lane(self, stmt: Stmt, scope: Scope) -> None:
        """The statement for one lane after another."""
        lane = scope.lane
        assert lane is not None
        name = self._unit.names.fresh(lane.var.rpartition(".")[2])
        first = scope.renamed.get(lane.var) or self._unit.names[lane.var]
        self._unit.note(
            f"the vectorized loop '{lane.var}' is partly scalar: what it does differs in shape "
            "from lane to lane; vectorize another loop"
        )
        head = f"for (int64_t {name} = {first}; {name} < {first} + {lane.width}; ++{name})"
        with self._code.block(head):
            renamed = {**scope.renamed, lane.var: name}
            inner = replace(scope, lane=None, mask=None, renamed=renamed)
            self.write(stmt if scope.mask is None else If(scope.mask, stmt), inner)

    # Names and conditions

    def _let(self, stmt: Let, scope: Scope) -> None:
        if scope.varies(stmt.value):
            if stmt.value.reads:
                self._each_lane(stmt, scope)
            else:
                self.write(replace_names(stmt.body, {stmt.var: stmt.value}), scope)
            return
        self.write(stmt.body, self._named(stmt, scope))

    def _named(self, stmt: Let, scope: Scope) -> Scope:
        """Declare the variable of a Let."""
        name = self._unit.names[stmt.var]
        text = self._scalar(stmt.value, scope)
        type_name = SCALARS[carried(stmt.value.dtype).element]
        self._code.line(f"const {type_name} {name} = {text};")
        low = range_over(stmt.value, scope)[0]
        if low is not None and low >= 0 and stmt.value.dtype is index:
            return replace(scope, natural=scope.natural | {stmt.var})
        return scope

    def _if(self, stmt: If, scope: Scope) -> None:
        if not scope.varies(stmt.condition):
            with self._code.block(f"if ({self._scalar(stmt.condition, scope)})"):
                self.write(stmt.body, scope)
        elif stmt.condition.reads and not isinstance(stmt.body, Store):
            # What the condition reads may change before all of the body has used it.
            self._each_lane(stmt, scope)
        else:
            both = (
                stmt.condition if scope.mask is None else Binary("and", scope.mask, stmt.condition)
            )
            self.write(stmt.body, replace(scope, mask=both))

    # Memory

    def _allocate(self, stmt: Allocate, scope: Scope) -> None:
        if is_small(stmt.buffer):
            cells = tile_cells(stmt, scope, self._unit.machine)
            if cells:
                storage = self._allocations.laid_out(stmt.buffer, scope)
                cells = tuple(declare_cell(cell, storage, self._unit) for cell in cells)
                scope = replace(scope, cells=(*scope.cells, *cells))
            else:
                self._allocations.on_stack(stmt.buffer, scope)
            self.write(stmt.body, scope)
            return
        pointers = self._allocations.on_heap(stmt.buffer, scope, declare=True)
        with self._code.block(f"if ({' && '.join(pointers)})"):
            self.write(stmt.body, scope)
        with self._code.else_block():
            if scope.in_parallel:
                self._code.pragma("omp atomic write")
            self._code.line("status = OUT_OF_MEMORY;")
        for pointer in pointers:
            self._code.line(f"free({pointer});")

    def _allocated_at_top(self, buffer: Buffer, scope: Scope) -> None:
        """A buffer that lives to the end of the program."""
        if is_small(buffer):
            self._allocations.on_stack(buffer, scope)
            return
        pointers = self._allocations.on_heap(buffer, scope, declare=False)
        for pointer, dtype in zip(pointers, buffer.dtypes, strict=True):
            self._unit.freed_last.append((stored(dtype).name, pointer))
        refused = " || ".join(f"!{pointer}" for pointer in pointers)
        with self._code.block(f"if ({refused})"):
            self._code.line("status = OUT_OF_MEMORY;")
            self._code.line("goto end;")


def _title(stage: Stage) -> str:
    what = "definition" if stage.number == 0 else f"update {stage.number - 1}"
    if stage.span is None:
        return f"{stage.func}: {what}"
    return f"{stage.func}: {what}  ({PurePath(stage.span.path).name}:{stage.span.line})"
