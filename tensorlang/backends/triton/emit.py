"""Tile IR as the text of one Triton kernel."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tensorlang.backends.triton.dialect import Identifiers, triton_dtype
from tensorlang.backends.triton.emit_expr import REDUCERS, ExprPrinter, Frame
from tensorlang.backends.triton.limits import Limits
from tensorlang.backends.triton.masks import Knowledge, with_lane
from tensorlang.backends.triton.share import names_in, walk_tiles
from tensorlang.backends.triton.tiles import (
    SHARED,
    Access,
    Arrive,
    Assign,
    Barrier,
    Bind,
    Box,
    Branch,
    Combine,
    Comment,
    Declare,
    Kernel,
    Loop,
    Memory,
    Read,
    ReduceFirst,
    Tile,
    Write,
    pointer_var,
    stride_var,
)
from tensorlang.ir.expr import Binary, Const, Expr, Var
from tensorlang.ir.linear import expanded, integer, to_expr, to_linear
from tensorlang.ir.types import DType

_INDENT = "    "

# What the policies of `cache` are to Triton.
_EVICT_FIRST, _EVICT_LAST = 'eviction_policy="evict_first"', 'eviction_policy="evict_last"'
_LOAD_POLICIES = {
    "evict_first": _EVICT_FIRST, "evict_last": _EVICT_LAST, "streaming": _EVICT_FIRST,
    # What other programs wrote is not looked for in the cache of one multiprocessor.
    SHARED: 'cache_modifier=".cg"',
}  # fmt: skip
_STORE_POLICIES = {
    "evict_first": _EVICT_FIRST, "evict_last": _EVICT_LAST, "streaming": 'cache_modifier=".cs"'
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class KernelText:
    """A kernel as text, and what its parameters are, in order.

    Args:
        pointers: of each parameter for an array, the memory and component that it points to.
        boxes: those of them that are descriptors, by parameter.
        strides: of each stride parameter, the memory and dimension; components share them not.
        scalars: sizes, params and host variables.
        extents: compile-time extents of lanes and the exact ones that they round up.
    """

    kernel: Kernel
    limits: Limits
    name: str
    text: str
    pointers: tuple[tuple[str, Memory, int], ...]
    boxes: Mapping[str, Box]
    scalars: tuple[tuple[str, str, DType], ...]
    strides: tuple[tuple[str, Memory, int, int], ...]
    extents: tuple[tuple[str, str, Expr], ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """All parameters, in the order of the kernel's signature."""
        groups = (self.pointers, self.scalars, self.strides, self.extents)
        return (*(row[0] for group in groups for row in group), "INDEX")


def emit(kernel: Kernel, facts: Knowledge, limits: Limits, kept: frozenset[str]) -> KernelText:
    """The kernel as a `@triton.jit` function; it takes the scalars `kept` in any case."""
    return _Emitter(kernel, facts, limits, kept).run()


class _Emitter:
    def __init__(
        self, kernel: Kernel, facts: Knowledge, limits: Limits, kept: frozenset[str]
    ) -> None:
        self.kernel, self.limits = kernel, limits
        self.names = Identifiers({kernel.name: kernel.name})
        self.facts = facts
        for grid in kernel.grid:
            self.facts = self.facts.ranged(grid.name, integer(0), grid.extent)
        bound = [t.value for t in walk_tiles(kernel.body) if isinstance(t, Bind)]
        for lane in kernel.lanes.of(*bound):
            self.facts = with_lane(self.facts, lane)
        self.lines: list[str] = []
        self.used = names_in(kernel.body) | kept
        for grid in kernel.grid[1:]:
            self.used |= grid.extent.free
        if len(kernel.grid) == 1:
            self.names.same("program", kernel.grid[0].name)

    def run(self) -> KernelText:
        pointers = tuple(self._pointers())
        boxes = {self.names[box.name]: box for box in self.kernel.boxes}
        scalars = tuple((self.names[n], n, t) for n, t in self.kernel.scalars if n in self.used)
        strides = tuple(self._strides())
        symbolic = self.kernel.lanes.symbolic
        extents = [(n, e) for n, e in self.kernel.extents.items() if n in symbolic]
        rows = tuple((self.names[n], n, e) for n, e in extents)
        for alias, tile in self.kernel.aliases.items():
            self.names.same(alias, tile)
        for box in self.kernel.boxes:
            name, array = self.names[box.name], self.names[box.memory.pointer(box.component)]
            self._line(1, f"# {name}: a descriptor of {array}, boxes of {box.shape}")
        if self.kernel.dependent:
            self._line(1, "rt.after_the_kernel_before()")
        self._prologue(1)
        self._block(self.kernel.body, 1)
        made = KernelText(
            self.kernel, self.limits, self.kernel.name, "", pointers, boxes, scalars, strides, rows
        )
        lines = [*self._combiners(), *self._header(made), *self.lines]
        return replace(made, text="\n".join(lines) + "\n")

    def _pointers(self) -> Iterator[tuple[str, Memory, int]]:
        for memory in self.kernel.memories:
            for component in range(len(memory.dtypes)):
                pointer = pointer_var(memory.pointer(component))
                if pointer.name in self.used:
                    yield self.names[pointer.name], memory, component
                for box in self.kernel.boxes:
                    if box.memory is memory and box.component == component:
                        yield self.names[box.name], memory, component

    def _strides(self) -> Iterator[tuple[str, Memory, int, int]]:
        for memory in self.kernel.memories:
            for component in range(len(memory.dtypes)):
                for dim in range(memory.rank):
                    stride = stride_var(memory.pointer(component), dim)
                    if stride.name in self.used:
                        yield self.names[stride.name], memory, component, dim

    def _header(self, made: KernelText) -> Iterator[str]:
        groups = [
            ", ".join(row[0] for row in made.pointers),
            ", ".join(row[0] for row in made.scalars),
            ", ".join(row[0] for row in made.strides),
            ", ".join(
                [*(f"{row[0]}: tl.constexpr" for row in made.extents), "INDEX: tl.constexpr"]
            ),
        ]
        yield "@triton.jit"
        whole = f"def {made.name}({', '.join(filter(None, groups))}):"
        if len(whole) <= 100:
            yield whole
            return
        yield f"def {made.name}("
        yield from (f"{_INDENT}{group}," for group in groups if group)
        yield "):"

    def _prologue(self, depth: int) -> None:
        """Program ids; several are taken from one, the last being the fastest."""
        grid = self.kernel.grid
        program = "tl.program_id(0).to(INDEX)"
        if len(grid) == 1:
            if self.used & {grid[0].name, "program"}:
                self._line(depth, f"{self.names[grid[0].name]} = {program}")
            return
        if not grid:
            if "program" in self.used:
                self._line(depth, f"{self.names['program']} = {program}")
            return
        self._line(depth, f"{self.names['program']} = {program}")
        printer = self._printer()
        rest: Expr = Var("program")
        self.facts = self.facts.ranged("program", integer(0), _product(g.extent for g in grid))
        printer = self._printer()
        values: list[str] = []
        for g in reversed(grid[1:]):
            value = printer.text(Binary("mod", rest, g.extent))
            values.append(f"{self.names[g.name]} = {value}")
            rest = Binary("floordiv", rest, g.extent)
        self._line(depth, f"{self.names[grid[0].name]} = {printer.text(rest)}")
        for line in reversed(values):
            self._line(depth, line)

    def _printer(self) -> ExprPrinter:
        return ExprPrinter(self.kernel.lanes, self.names, self.facts, self.kernel.parts)

    def _line(self, depth: int, text: str) -> None:
        self.lines.append(_INDENT * depth + text)

    def _call(self, depth: int, function: str, arguments: list[str]) -> None:
        """A call on one line, or with an argument a line."""
        whole = f"{function}({', '.join(arguments)})"
        if len(whole) + len(_INDENT) * depth <= 100:
            self._line(depth, whole)
            return
        self._line(depth, f"{function}(")
        for argument in arguments:
            self._line(depth + 1, f"{argument},")
        self._line(depth, ")")

    def _block(self, tiles: Iterable[Tile], depth: int) -> None:
        """The statements, under what the loops and names around them say."""
        outside = self.facts
        count = len(self.lines)
        for tile in tiles:
            self._tile(tile, depth)
            if isinstance(tile, Bind):
                self.facts = self.facts.valued(tile.name, tile.value)
        if len(self.lines) == count:
            self._line(depth, "pass")
        self.facts = outside

    def _tile(self, tile: Tile, depth: int) -> None:
        printer = self._printer()
        match tile:
            case Bind():
                frame = self.kernel.lanes.of_name(tile.name)
                value = printer.bound(tile.value, frame)
                self._line(depth, f"{self.names[tile.name]} = {value}")
            case Read():
                self._read(tile, depth, printer)
            case Write():
                self._write(tile, depth, printer)
            case Declare():
                frame = self.kernel.lanes.of_name(tile.name)
                value = printer.whole(tile.value, frame)
                self._line(depth, f"{self.names[tile.name]} = {value}")
            case Assign():
                value = printer.whole(tile.value, tile.lanes)
                self._line(depth, f"{self.names[tile.name]} = {value}")
            case ReduceFirst():
                self._reduce_first(tile, depth, printer)
            case Combine():
                self._combine(tile, depth, printer)
            case Arrive():
                assert tile.at.address is not None
                counter = printer.text(tile.at.address)
                add = f'tl.atomic_add({counter}, 1, sem="acq_rel")'
                self._line(depth, f"{self.names[tile.name]} = {add}")
            case Loop():
                self._loop(tile, depth, printer)
            case Branch():
                self._line(depth, f"if {printer.text(tile.condition)}:")
                outside, self.facts = self.facts, self.facts.assuming(tile.condition)
                self._block(tile.body, depth + 1)
                self.facts = outside
            case Barrier():
                self._line(depth, f"tl.debug_barrier()  # {tile.why}")
            case Comment():
                self._line(depth, f"# {tile.text}")

    def _read(self, tile: Read, depth: int, printer: ExprPrinter) -> None:
        frame = self.kernel.lanes.of_name(tile.name)
        if tile.at.box is not None:
            self._line(depth, f"{self.names[tile.name]} = {self._unboxed(tile.at, frame, printer)}")
            return
        assert tile.at.address is not None
        parts = [printer.text(tile.at.address, frame)]
        if tile.mask is not None:
            zero = "0.0" if tile.at.dtype.is_float else "0"
            parts += [f"mask={printer.text(tile.mask, frame)}", f"other={zero}"]
        if tile.at.memory.cache:
            parts.append(_LOAD_POLICIES[tile.at.memory.cache])
        self._call(depth, f"{self.names[tile.name]} = tl.load", parts)

    def _write(self, tile: Write, depth: int, printer: ExprPrinter) -> None:
        if tile.at.box is not None:
            self._write_box(tile.at, tile.value, depth, printer)
            return
        assert tile.at.address is not None
        lanes = self.kernel.lanes.of(tile.at.address)
        value = tile.value
        if tile.operator:
            text = printer.whole(value, lanes)
        else:
            stored = printer.typed(value, lanes) if isinstance(value, Const) else None
            text = (stored or printer.placed(value, lanes)).text
        parts = [printer.text(tile.at.address, lanes), text]
        if tile.mask is not None:
            parts.append(f"mask={printer.text(tile.mask, lanes)}")
        if tile.operator:
            parts.append('sem="relaxed"')
        elif tile.at.memory.cache in _STORE_POLICIES:
            parts.append(_STORE_POLICIES[tile.at.memory.cache])
        self._call(depth, f"tl.atomic_{tile.operator}" if tile.operator else "tl.store", parts)

    def _unboxed(self, at: Access, frame: Frame, printer: ExprPrinter) -> str:
        """A box as a tile with the axes of the frame."""
        assert at.box is not None
        own = tuple(lane for lane in at.lanes if lane is not None)
        policy = f", {_LOAD_POLICIES[at.memory.cache]}" if at.memory.cache else ""
        text = f"{self.names[at.box.name]}.load([{_listed(at.offsets, printer)}]{policy})"
        if len(own) < len(at.lanes):
            text = f"tl.reshape({text}, {printer.shape(own)})"
        if own == frame:
            return text
        order = tuple(own.index(lane) for lane in frame)
        return f"tl.trans({text})" if len(order) == 2 else f"tl.permute({text}, {order})"

    def _write_box(self, at: Access, value: Expr, depth: int, printer: ExprPrinter) -> None:
        assert at.box is not None
        own = tuple(lane for lane in at.lanes if lane is not None)
        text = printer.whole(value, own)
        if len(own) < len(at.lanes):
            text = f"tl.reshape({text}, {at.box.shape})"
        function = f"{self.names[at.box.name]}.store"
        self._call(depth, function, [f"[{_listed(at.offsets, printer)}]", text])

    def _reduce_first(self, tile: ReduceFirst, depth: int, printer: ExprPrinter) -> None:
        frame = self.kernel.lanes.of(*tile.terms, *(lane.var for lane in tile.lanes))
        names = ", ".join(self.names[name] for name in tile.names)
        values = [printer.whole(term, frame) for term in tile.terms]
        for lane in reversed(tile.lanes):
            axis = frame.index(lane)
            self._call(depth, f"{names} = rt.{tile.op}", [*values, str(axis)])
            frame = tuple(other for other in frame if other != lane)
            values = [self.names[name] for name in tile.names]

    def _combine(self, tile: Combine, depth: int, printer: ExprPrinter) -> None:
        frame = self.kernel.lanes.of(*tile.terms, tile.lane.var)
        values = [printer.whole(term, frame) for term in tile.terms]
        given = [*values, str(frame.index(tile.lane))]
        single = tile.op not in self.kernel.combiners
        if single:
            function = f"rt.{'running_' if tile.running else ''}{REDUCERS[tile.op]}"
        else:
            function = "tl.associative_scan" if tile.running else "tl.reduce"
            given = [f"({', '.join(values)})", given[-1], self._combiner(tile.op)]
        if tile.running:
            given.append(str(tile.reverse) if single else f"reverse={tile.reverse}")
        names = ", ".join(self.names[name] for name in tile.names)
        self._call(depth, f"{names} = {function}", given)

    def _combiner(self, name: str) -> str:
        """The function of an operator, which no other kernel of the module has."""
        return f"{self.kernel.name}_{self.names[name]}"

    def _combiners(self) -> Iterator[str]:
        """Operators of tuples, as functions of the elements of two tuples."""
        for name, (operator, dtype) in self.kernel.combiners.items():
            sides = [
                [Var(f"{side}{k}", dtype) for k in range(len(operator.values))] for side in "ab"
            ]
            arguments = ", ".join(e.name for side in sides for e in side)
            values = (self._printer().text(e) for e in operator.combine(*sides))
            made = ", ".join(f"({value}).to({triton_dtype(dtype)})" for value in values)
            yield "@triton.jit"
            yield f"def {self._combiner(name)}({arguments}):"
            yield f"{_INDENT}return {made}"
            yield ""
            yield ""

    def _loop(self, tile: Loop, depth: int, printer: ExprPrinter) -> None:
        low, high = tile.min, to_expr(expanded(to_linear(tile.min + tile.extent)))
        if isinstance(low, Const) and low.value == 0:
            high = tile.extent
        parts = [printer.text(low), printer.text(high)]
        if tile.stages:
            parts.append(f"num_stages={tile.stages}")
        if depth == 1 and _is_flat(tile):
            parts.append("flatten=True")
        self._line(depth, f"for {self.names[tile.name]} in tl.range({', '.join(parts)}):")
        outside = self.facts
        self.facts = self.facts.ranged(tile.name, tile.min, tile.extent)
        self._block(tile.body, depth + 1)
        self.facts = outside


def _product(extents: Iterable[Expr]) -> Expr:
    whole: Expr = integer(1)
    for extent in extents:
        whole = whole * extent
    return whole


def _is_flat(loop: Loop) -> bool:
    """Whether a loop over tiles holds one loop, with which Triton can make one loop of it.

    The loads of the next tile then begin while this one is stored.
    """
    inner = [tile for tile in walk_tiles(loop.body) if isinstance(tile, Loop | Branch | Barrier)]
    return len(inner) == 1 and isinstance(inner[0], Loop) and inner[0].stages > 1


def _listed(parts: Iterable[Expr], printer: ExprPrinter) -> str:
    return ", ".join(printer.text(part) for part in parts)
