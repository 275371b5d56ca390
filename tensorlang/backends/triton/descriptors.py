"""Tiles that a tensor descriptor moves whole (TMA), where the schedule asks for one.

    read A[row*128 + lane, k*64 + lane'], in bounds   ->   read box A[row*128, k*64] of 128 x 64
    write D[row*128 + lane, ...] = v, in bounds       ->   write box D[row*128, ...] = v

A box is filled with 0 outside the array and stores nothing there, so that it needs the array's own
bounds as its mask and no others.  Requires: no addresses yet.  See: CUDA's cuTensorMapEncodeTiled;
`tl.make_tensor_descriptor`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tensorlang.backends.triton.masks import conjuncts, in_bounds
from tensorlang.backends.triton.share import walk_tiles
from tensorlang.backends.triton.tiles import (
    Access,
    Bind,
    Box,
    Branch,
    Kernel,
    Lane,
    Loop,
    Memory,
    Read,
    Tile,
    Write,
)
from tensorlang.ir.expr import Compare, Expr
from tensorlang.ir.linear import Linear, expanded, to_expr, to_linear
from tensorlang.ir.types import DType
from tensorlang.ir.walk import substitute

# Bytes to which a descriptor aligns pointers, strides and boxes.
ALIGNMENT = 16
RANKS = range(2, 6)


def use_descriptors(kernel: Kernel) -> Kernel:
    """The kernel with boxes in place of the accesses of `kernel.units` that allow it."""
    if not kernel.units:
        return kernel
    boxing = _Boxing(kernel)
    body = tuple(boxing.block(kernel.body))
    notes = (*kernel.notes, *boxing.notes)
    return replace(kernel, body=body, boxes=tuple(boxing.boxes.values()), notes=notes)


def wanted(kernel: Kernel) -> Iterator[tuple[Memory, int]]:
    """The arrays, by component, that the schedule wants to reach through descriptors."""
    accesses = (t for t in walk_tiles(kernel.body) if isinstance(t, Read | Write))
    asked = {(t.at.memory, t.at.component) for t in accesses if is_asked(t)}
    for memory in kernel.memories:
        for component in range(len(memory.dtypes)):
            if (memory, component) in asked:
                yield memory, component


def is_asked(tile: Read | Write) -> bool:
    """Whether the schedule asks for a descriptor here."""
    memory = tile.at.memory
    if isinstance(tile, Write) and tile.operator:
        return False
    return (memory.load_with if isinstance(tile, Read) else memory.store_with) == "descriptor"


def fits(shape: Sequence[int], strides: Sequence[int], unit: int, bits: int) -> bool:
    """Whether the strides (in elements) of an array are what a descriptor takes."""
    apart = [stride * bits // 8 for dim, stride in enumerate(strides) if dim != unit]
    return (
        strides[unit] == 1 and all(s > 0 and s % ALIGNMENT == 0 for s in apart) and 0 not in shape
    )


class _RefusedError(Exception):
    """Why an access is by pointers."""


class _Boxing:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.lanes = kernel, kernel.lanes
        # What names of tiles hold, over scalars; and what all names hold.
        self.values: dict[str, Expr] = {}
        self.whole: dict[str, Expr] = {}
        self.boxes: dict[tuple[object, ...], Box] = {}
        self.notes: dict[str, None] = {}
        accesses = [t for t in walk_tiles(kernel.body) if isinstance(t, Read | Write)]
        read = {t.at.pointer for t in accesses if isinstance(t, Read)}
        self.both = read & {t.at.pointer for t in accesses if isinstance(t, Write)}

    def block(self, tiles: Sequence[Tile]) -> Iterator[Tile]:
        for tile in tiles:
            match tile:
                case Bind():
                    self.whole[tile.name] = substitute(tile.value, self.whole)
                    if self.lanes.of(tile.value):
                        self.values[tile.name] = self.opened(tile.value)
                    yield tile
                case Loop() | Branch():
                    yield replace(tile, body=tuple(self.block(tile.body)))
                case Read() | Write() if is_asked(tile) and tile.at.pointer in self.kernel.units:
                    yield self.tried(tile)
                case _:
                    yield tile

    def opened(self, e: Expr) -> Expr:
        """`e` over scalars and plain lanes: names of tiles replaced by what they hold."""
        return substitute(e, self.values)

    def tried(self, tile: Read | Write) -> Tile:
        """The access through a box, or as it is with a note of the reason."""
        try:
            at = self.boxed(tile.at, tile.mask)
        except _RefusedError as why:
            doing = "loaded" if isinstance(tile, Read) else "stored"
            self.notes[f"'{tile.at.pointer}' is {doing} by pointers: {why}"] = None
            return tile
        return replace(tile, at=at, mask=None)

    def boxed(self, at: Access, mask: Expr | None) -> Access:
        memory, dtype = at.memory, at.dtype
        if memory.rank not in RANKS or memory.owner or any(memory.fold):
            raise _RefusedError("a descriptor is of an array of 2 to 5 dimensions")
        if at.pointer in self.both:
            raise _RefusedError("the kernel both reads and writes it")
        if dtype.is_bool:
            raise _RefusedError("a descriptor has no elements of bool")
        self.check_mask(at, mask)
        unit = self.kernel.units[at.pointer]
        dims = (*(d for d in range(memory.rank) if d != unit), unit)
        sides = [self.side(at.offsets[dim]) for dim in dims]
        lanes = tuple(lane for _, lane in sides)
        self.check_lanes(lanes)
        corner = tuple(to_expr(form) for form, _ in sides)
        last = expanded(to_linear(substitute(corner[-1], self.whole)))
        check_last(last, lanes[-1], dtype)
        box = self.box(at, dims, tuple(1 if n is None else int(n.extent) for n in lanes))
        return replace(at, offsets=corner, box=box, lanes=lanes)

    def check_mask(self, at: Access, mask: Expr | None) -> None:
        tests = [
            t for pair in zip(at.offsets, at.memory.extents, strict=True) for t in in_bounds(*pair)
        ]
        own = {_plain(self.opened(test)) for test in tests}
        if mask is not None and any(
            _plain(self.opened(part)) not in own for part in conjuncts(mask)
        ):
            raise _RefusedError("it is masked by more than its own bounds")

    def side(self, offset: Expr) -> tuple[Linear, Lane | None]:
        """The corner of a box along one dimension, and the lane that runs along it."""
        form = expanded(to_linear(self.opened(offset)))
        lanes = self.lanes.of(offset)
        if not lanes:
            return to_linear(offset), None
        [*others, lane] = lanes
        rest = form.without(lane.var) if lane.var in form.terms else form
        if others or form.terms.get(lane.var) != 1 or self.lanes.of(to_expr(rest)):
            raise _RefusedError("an index is not a number and one loop in lanes")
        if isinstance(lane.extent, str):
            raise _RefusedError(
                f"a loop in lanes has the extent {self.kernel.extents[lane.extent]!r}"
            )
        return rest, lane

    def check_lanes(self, lanes: Sequence[Lane | None]) -> None:
        own = [lane for lane in lanes if lane is not None]
        if len(set(own)) < len(own):
            raise _RefusedError("one loop in lanes runs along two dimensions")

    def box(self, at: Access, dims: tuple[int, ...], shape: tuple[int, ...]) -> Box:
        key = (at.memory, at.component, dims, shape)
        if key not in self.boxes:
            count = sum(1 for other in self.boxes.values() if other.memory is at.memory)
            name = f"{at.pointer}.box{count or ''}"
            self.boxes[key] = Box(name, at.memory, at.component, dims, shape)
        return self.boxes[key]


def check_last(corner: Linear, lane: Lane | None, dtype: DType) -> None:
    """The unit stride: a box has at least 16 bytes along it, and begins at a multiple of them."""
    elements = ALIGNMENT * 8 // dtype.bits
    if lane is None or int(lane.extent) < elements:
        raise _RefusedError(f"its tile has less than {ALIGNMENT} bytes along the unit stride")
    if corner.constant % elements or any(c % elements for c in corner.terms.values()):
        raise _RefusedError(f"its tile does not begin at a multiple of {ALIGNMENT} bytes")


def _plain(test: Expr) -> tuple[str, Expr]:
    """A comparison as one that equals it in any other form."""
    if not isinstance(test, Compare):
        return "", test
    return test.op, to_expr(expanded(to_linear(test.b - test.a)))
