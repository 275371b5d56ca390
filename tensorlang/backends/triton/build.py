"""Loop IR of one launch -> tile IR.

    gpu_block v in [0, e)          v is a program id
    for v in [a, +e)               Loop(v, a, e)
    vectorized v in [a, +e)        v = a + lane, with a guard lane < e unless e is a power of two
    let v = e                      Bind(v, e)
    if c                           Branch for the parts of c that are scalars, guards for the others
    allocate f                     nothing for registers; a workspace for scratch
    f[i] = e                       Write, Assign, Reduce, Dot (stores.py)
    the last to arrive             Arrive, and a Branch of what it does (arrival.py)

A vectorized loop around a serial one is sunk into it: its iterations run in step, and bounds that
differ by lane run to the largest of them under a guard.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tensorlang.backends.triton.context import Making, Outside, Place, Register
from tensorlang.backends.triton.copies import original
from tensorlang.backends.triton.early import reads_first
from tensorlang.backends.triton.masks import Knowledge, conjunction, conjuncts, with_lane
from tensorlang.backends.triton.match_reductions import serial_reductions
from tensorlang.backends.triton.match_scans import scans_in
from tensorlang.backends.triton.spans import Spans, measure_spans
from tensorlang.backends.triton.storage import (
    InRegisters,
    InScratch,
    next_power_of_two,
    place_buffers,
)
from tensorlang.backends.triton.stores import make_store
from tensorlang.backends.triton.tiles import (
    Arrive,
    Branch,
    Comment,
    Grid,
    Kernel,
    Lane,
    Loop,
    Memory,
    Reduce,
    Scratch,
    Write,
)
from tensorlang.backends.triton.values import access, value_of
from tensorlang.errors import InternalError
from tensorlang.ir.expr import Compare, Const, Expr, Select, Var
from tensorlang.ir.linear import integer
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Block,
    For,
    If,
    Let,
    LoopKind,
    Stage,
    Stmt,
    Store,
    walk,
)
from tensorlang.ir.types import DType, i32

_SERIAL = (LoopKind.SERIAL, LoopKind.UNROLLED)


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """The loops of one kernel, before they are tiles.

    Args:
        grid: the loops of `body` whose iterations are programs, outermost first.
        outside: what the host's names stand for.
        exact: the symbolic extents that the call's sizes make powers of two.
        units: the arrays that descriptors reach in this call, and their dimension of unit stride.
        kept: the scalars that the text takes even if it has no use for them.
    """

    name: str
    body: Stmt
    grid: tuple[For, ...]
    memories: Mapping[str, Memory]
    scalars: Mapping[str, DType]
    outside: Mapping[str, Expr]
    facts: Knowledge
    exact: frozenset[str] = frozenset()
    units: Mapping[str, int] = field(default_factory=dict[str, int])
    kept: frozenset[str] = frozenset()
    # What the last program of each group does when all have done theirs; see arrival.py.
    last: "Launch | None" = None

    @property
    def whole(self) -> Stmt:
        """All that a program may do."""
        return self.body if self.last is None else Block((self.body, self.last.body))


def build(launch: Launch) -> Kernel:
    """The tile IR of one launch."""
    spans = measure_spans(launch.whole, frozenset(launch.scalars), launch.facts.facts)
    scans = scans_in(launch.whole)
    serialised = dict(serial_reductions(launch.whole, {scan.loop for scan in scans.values()}))
    serialised |= {
        loop: "its extent has no bound outside the program"
        for loop, span in spans.loops.items()
        if span is None
    }
    spans.loops.update(dict.fromkeys(serialised))
    placements = place_buffers(launch.whole, spans, scans)
    making = Making(launch.memories, placements, launch.exact, scans)
    for name in launch.scalars:
        making.fresh(name)
    builder = _Builder(making, launch, spans)
    for loop, why in serialised.items():
        making.note(f"the vectorized loop '{loop.var}' runs serially: {why}")
    place = Place(dict(launch.outside), facts=launch.facts)
    builder.visit(launch.body, place, 0)
    if launch.last is not None:
        builder.finish(launch.last, place)
    return Kernel(
        launch.name,
        tuple(builder.grid),
        tuple(m for m in making.memories.values() if m in making.used_memories),
        tuple(launch.scalars.items()),
        making.lanes,
        tuple(making.out),
        dict(making.extents),
        making.aliases,
        frozenset(making.mutable),
        making.lane_names,
        making.loops,
        making.warps,
        making.thread_registers,
        tuple(making.scratch),
        tuple(making.notes),
        making.parts,
        launch.units,
        counters=tuple(builder.counters),
        combiners=making.combiners,
        dependent=making.dependent,
    )


class _Builder:
    """Walks the statements of one launch."""

    def __init__(self, making: Making, launch: Launch, spans: Spans) -> None:
        self.making, self.launch, self.spans = making, launch, spans
        self.grid: list[Grid] = []
        # The programs that loops of the last part run in.
        self.held: dict[For, Grid] = {}
        self.counters: list[Memory] = []
        self.title = ""
        self.reversed = {scan.loop for scan in making.scans.values() if scan.reverse}

    def finish(self, last: Launch, place: Place) -> None:
        """The last part, by the last program to arrive of those that differ in the inmost loop."""
        *group, parts = self.grid
        number: Expr = integer(0)
        count: Expr = integer(1)
        for grid in group:
            number = simplify(number * grid.extent + Var(grid.name))
            count = simplify(count * grid.extent)
        counter = Memory(self.making.fresh("arrived"), (i32,), (), (count,))
        self.making.memories[counter.parameter] = counter
        self.counters.append(counter)
        at = access(counter, 0, (number,), place, self.making)
        before = self.making.fresh("before")
        self.making.out.append(Arrive(before, at))
        self.held = dict(zip(last.grid, group, strict=True))
        with self.making.block() as body:
            self.making.out.append(Write(at, Const(0, i32), None))
            self.visit(last.body, place, 0)
        arrived = Compare("eq", Var(before), simplify(parts.extent - 1))
        merge = reads_first(body, self.making.mutable, self.making.expand)
        self.making.out.append(Branch(arrived, merge))

    def visit(self, stmt: Stmt, place: Place, stage: int) -> None:
        """Append what `stmt` becomes; `stage` is the number of the stage around it."""
        match stmt:
            case Block():
                for s in stmt.statements:
                    self._titled(s)
                    self.visit(s, place, stage)
            case Stage():
                self._stage(stmt, place)
            case Let():
                value = value_of(stmt.value, place, self.making)
                bound, place = self.making.bind(stmt.var, value, place)
                self.visit(stmt.body, place.named(stmt.var, bound), stage)
            case If():
                self._if(stmt, place, stage)
            case For():
                self._for(stmt, place, stage)
            case Allocate():
                self._allocate(stmt, place)
                self.visit(stmt.body, place, stage)
            case Store():
                make_store(stmt, place, self.making, stage)
            case Assert():
                pass

    def _stage(self, stmt: Stage, place: Place) -> None:
        """A stage under its title; one with others inside gets it where its own part begins."""
        outer, self.title = self.title, ""
        if has_stages(stmt.body):
            self.title = _title(stmt)
        else:
            self.making.out.append(Comment(_title(stmt)))
        self.visit(stmt.body, place, stmt.number)
        self.title = outer

    def _titled(self, stmt: Stmt) -> None:
        if self.title and not has_stages(stmt):
            self.making.out.append(Comment(self.title))
            self.title = ""

    def _if(self, stmt: If, place: Place, stage: int) -> None:
        parts = conjuncts(value_of(stmt.condition, place, self.making))
        parts = [part for part in parts if not place.facts.proves(part)]
        lanes = [part for part in parts if self.making.lanes.of(part)]
        scalar = conjunction(part for part in parts if part not in set(lanes))
        place = place.guarded(*lanes)
        if scalar is None:
            self.visit(stmt.body, place, stage)
            return
        inside = place.knowing(place.facts.assuming(scalar))
        with self.making.block() as body:
            self.visit(stmt.body, inside, stage)
        self.making.out.append(Branch(scalar, tuple(body)))

    def _for(self, loop: For, place: Place, stage: int) -> None:
        self._hints(loop)
        span = self.spans.loops.get(loop)
        low = value_of(loop.min, place, self.making)
        extent = value_of(loop.extent, place, self.making)
        if isinstance(extent, Const) and extent.value == 1 and loop not in self.launch.grid:
            bound, place = self.making.bind(loop.var, low, place)
            self.visit(loop.body, place.named(loop.var, bound), stage)
        elif loop in self.held or loop in self.launch.grid:
            self._program(loop, low, extent, place, stage)
        elif span is not None:
            self._lane(loop, low, extent, span, place, stage)
        else:
            if loop.kind in (LoopKind.PARALLEL, LoopKind.GPU_BLOCK):
                self.making.note(
                    f"the {loop.kind.value} loop '{loop.var}' is not outermost: serial"
                )
            self._serial(loop, low, extent, place, stage)

    def _hints(self, loop: For) -> None:
        hints = dict(loop.hints)
        self.making.warps = max(self.making.warps, int(hints.get("warps", 0)))
        registers = int(hints.get("registers", 0))
        self.making.thread_registers = max(self.making.thread_registers, registers)
        self.making.dependent |= "dependent" in hints

    def _program(self, loop: For, low: Expr, extent: Expr, place: Place, stage: int) -> None:
        if loop in self.held:
            name = self.held[loop].name
        else:
            name = self.making.fresh(loop.var)
            self.grid.append(Grid(name, extent))
        program = Var(name)
        place = place.ranged(name, integer(0), self.making.expand(extent))
        self._body_with(loop, low, program, place, stage)

    def _body_with(self, loop: For, low: Expr, count: Expr, place: Place, stage: int) -> None:
        """The body with the loop's variable at low + count."""
        if isinstance(low, Const) and low.value == 0:
            value, wanted = count, loop.var
        else:
            value, wanted = low + count, loop.var
        bound, place = self.making.bind(wanted, value, place)
        self.visit(loop.body, place.named(loop.var, bound), stage)

    def _lane(
        self, loop: For, low: Expr, extent: Expr, span: Expr, place: Place, stage: int
    ) -> None:
        lane = self.making.new_lane(len(place.lanes), self._padded(loop.var, span))
        self.making.loops.setdefault(lane, loop.var)
        self.making.lane_of[loop] = lane
        place = replace(place, lanes=(*place.lanes, lane))
        exact = isinstance(extent, Const) and lane.extent == extent.value
        if lane.extent in self.launch.exact:
            exact = self.making.expand(extent) is span
        facts = with_lane(place.facts, lane)
        if exact:
            facts = place.facts.ranged(lane.var.name, integer(0), extent)
        starts_at_zero = isinstance(low, Const) and low.value == 0
        value = lane.var if starts_at_zero else low + lane.var
        if loop in self.reversed:
            self.making.reversed.add(lane.var.name)
            value, starts_at_zero = simplify(low + extent - 1 - lane.var), False
        bound, place = self.making.bind(loop.var, value, place.knowing(facts))
        if not exact:
            place = place.guarded(Compare("lt", bound if starts_at_zero else lane.var, extent))
        self.visit(loop.body, place.named(loop.var, bound), stage)

    def _padded(self, var: str, extent: Expr) -> int | str:
        if isinstance(extent, Const):
            return next_power_of_two(int(extent.value))
        for name, known in self.making.extents.items():
            if known is extent:
                return name
        base = extent.name if hasattr(extent, "name") else var  # type: ignore[attr-defined]
        name = self.making.fresh(f"{base}_P2")
        self.making.extents[name] = extent
        return name

    def _serial(self, loop: For, low: Expr, extent: Expr, place: Place, stage: int) -> None:
        lanes = self.making.lanes.of(low, extent)
        if lanes:
            self._in_step(loop, low, extent, place, stage)
            return
        name = self.making.fresh(loop.var, "loop")
        outside = Outside(name, low, self.making.out, place)
        inside = place.in_loop(outside).ranged(name, *map(self.making.expand, (low, extent)))
        with self.making.block() as body:
            self.visit(loop.body, inside.named(loop.var, Var(name)), stage)
        stages = dict(loop.hints).get("stages", 0)
        self.making.out.append(Loop(name, low, extent, tuple(body), int(stages)))

    def _in_step(self, loop: For, low: Expr, extent: Expr, place: Place, stage: int) -> None:
        """A loop whose bounds differ by lane: low + 0, 1, ... up to the largest extent."""
        longest = extent
        guard = conjunction(place.guards)
        if guard is not None:
            longest = Select(guard, extent, integer(0))
        for lane in reversed(self.making.lanes.of(longest)):
            longest = Reduce("max", longest, lane.var)
        name = self.making.fresh(f"{loop.var}.step", "loop")
        count = Var(name)
        place = place.in_loop().ranged(name, integer(0), self.making.expand(longest))
        with self.making.block() as body:
            inside = place
            if self.making.lanes.of(extent):
                inside = place.guarded(Compare("lt", count, extent))
            self._body_with(loop, low, count, inside, stage)
        self.making.out.append(Loop(name, integer(0), longest, tuple(body)))

    def _allocate(self, stmt: Allocate, place: Place) -> None:
        buffer, making = stmt.buffer, self.making
        mins = tuple(value_of(d.min, place, making) for d in buffer.dims)
        match making.placements[buffer.name]:
            case InRegisters() as placement:
                making.registers[buffer.name] = Register(
                    buffer.name,
                    buffer.dtypes,
                    placement,
                    place.lanes,
                    mins,
                    making.out,
                    len(making.out),
                )
            case InScratch(why=why):
                self._scratch(stmt, mins, why, place)

    def _scratch(self, stmt: Allocate, mins: tuple[Expr, ...], why: str, place: Place) -> None:
        buffer, making = stmt.buffer, self.making
        extents = tuple(value_of(d.extent, place, making) for d in buffer.dims)
        shape = tuple(e for e in self.spans.buffers[buffer.name] if e is not None)
        if len(shape) < len(extents):
            raise InternalError(f"an extent of '{buffer.name}' has no bound outside the program")
        making.note(
            f"'{original(buffer.name)}' is kept in scratch memory, because {why}; "
            f"compute it at its consumer's own tile, or inline it, to keep it in registers"
        )
        owner = (Var(PROGRAM), *(lane.var for lane in place.lanes))
        memory = Memory(
            making.fresh(buffer.name),
            buffer.dtypes,
            mins,
            extents,
            buffer.fold,
            owner=owner,
            outer=place.lanes,
        )
        fold = buffer.fold or (0,) * len(shape)
        kept = tuple(f or e for f, e in zip(fold, shape, strict=True))
        making.memories[buffer.name] = memory
        making.scratch.append(Scratch(memory, tuple(_sizes(place.lanes)) + kept))


PROGRAM = "program"


def _sizes(lanes: Sequence[Lane]) -> list[int | str]:
    return [lane.extent for lane in lanes]


def has_stages(stmt: Stmt) -> bool:
    """Whether any stage stands in the statement."""
    return any(isinstance(s, Stage) for s in walk(stmt))


def _title(stage: Stage) -> str:
    return stage.func if stage.number == 0 else f"{stage.func}, update {stage.number - 1}"
