"""Names that hold one value become one name, and accesses get their addresses.

    D.i = io*128 + lane                 (gone: C.i holds it)
    read A[C.i, k]                      read A.ptr + C.i*A.s0 + k*A.s1

The terms of an address stand in the order of the loops that change them, outermost first, so that
what an inner loop does not change is one expression, which `share` moves before the loop.
"""

from collections.abc import Sequence
from dataclasses import replace

from tensorlang.backends.triton.tiles import (
    Access,
    Arrive,
    Assign,
    Barrier,
    Bind,
    Branch,
    Combine,
    Comment,
    Declare,
    Kernel,
    Loop,
    Read,
    ReduceFirst,
    Tile,
    Write,
    pointer_var,
    stride_var,
)
from tensorlang.ir.expr import Binary, Const, Expr, Name, Var
from tensorlang.ir.linear import Linear, to_expr, to_linear
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute


def give_addresses(kernel: Kernel) -> Kernel:
    """The kernel with one name a value, and an address in every access."""
    return replace(kernel, body=tuple(_Addressing(kernel).block(kernel.body, 0)))


class _Addressing:
    def __init__(self, kernel: Kernel) -> None:
        self.mutable, self.lanes = kernel.mutable, kernel.lanes
        self.renamed: dict[str, Expr] = {}
        # How many loops are open around the innermost one that changes a name.
        self.depth: dict[str, int] = {}
        self.held: list[dict[Expr, Expr]] = [{}]

    def block(self, tiles: Sequence[Tile], depth: int) -> list[Tile]:
        self.held.append({})
        made = [self.tile(tile, depth) for tile in tiles]
        self.held.pop()
        return [tile for tile in made if tile is not None]

    def tile(self, tile: Tile, depth: int) -> Tile | None:
        match tile:
            case Bind():
                return self.bind(tile, depth)
            case Read() | Write():
                return self.access(tile, depth)
            case Declare() | Assign():
                self.depth[tile.name] = depth
                return replace(tile, value=self.now(tile.value))
            case ReduceFirst():
                self.depth.update(dict.fromkeys(tile.names, depth))
                best, at = map(self.now, tile.terms)
                return replace(tile, terms=(best, at))
            case Combine():
                self.depth.update(dict.fromkeys(tile.names, depth))
                return replace(tile, terms=tuple(map(self.now, tile.terms)))
            case Arrive():
                self.depth[tile.name] = depth
                at = tile.at.with_parts([*map(self.now, tile.at.parts)])
                return replace(tile, at=replace(at, address=self.address(at)))
            case Loop():
                low, extent = self.now(tile.min), self.now(tile.extent)
                self.depth[tile.name] = depth + 1
                body = tuple(self.block(tile.body, depth + 1))
                return replace(tile, min=low, extent=extent, body=body)
            case Branch():
                body = tuple(self.block(tile.body, depth))
                return Branch(self.now(tile.condition), body)
            case Barrier() | Comment():
                return tile

    def now(self, e: Expr) -> Expr:
        """`e` with the names that stand for others replaced."""
        return substitute(e, self.renamed)

    def bind(self, tile: Bind, depth: int) -> Bind | None:
        value = self.now(tile.value)
        if self.is_short(value):
            self.renamed[tile.name] = value
            return None
        if value.free.isdisjoint(self.mutable):
            holder = value if isinstance(value, Name) else self.find(value)
            if holder is not None:
                self.renamed[tile.name] = holder
                return None
            self.held[-1][value] = Var(tile.name, value.dtype)
            depth = self.of(value)
        self.depth[tile.name] = depth
        return Bind(tile.name, value)

    def is_short(self, e: Expr) -> bool:
        """A scalar name with a number added or multiplied, such as io*128."""
        if not isinstance(e, Binary) or e.op not in ("add", "sub", "mul") or e.dtype is not index:
            return False
        kinds = {type(child) for child in e.children}
        return (
            Const in kinds
            and all(isinstance(c, Const | Name) for c in e.children)
            and (not self.lanes.of(e) and e.free.isdisjoint(self.mutable))
        )

    def find(self, value: Expr) -> Expr | None:
        return next((held[value] for held in self.held if value in held), None)

    def of(self, e: Expr) -> int:
        return max((self.depth.get(name, 0) for name in e.free), default=0)

    def access(self, tile: Read | Write, depth: int) -> Tile:
        at = tile.at.with_parts([*map(self.now, tile.at.parts)])
        if at.box is None:
            at = replace(at, address=self.address(at))
        mask = None if tile.mask is None else self.now(tile.mask)
        if isinstance(tile, Write):
            return replace(tile, at=at, mask=mask, value=self.now(tile.value))
        steady = at.memory.constant
        self.depth[tile.name] = max(map(self.of, at.parts)) if steady else depth
        return replace(tile, at=at, mask=mask)

    def address(self, at: Access) -> Expr:
        """pointer + offset*stride + ..."""
        name = at.memory.pointer(at.component)
        terms: list[tuple[int, int, Expr]] = []
        moves: dict[int, Expr] = {}
        for dim, offset in enumerate(map(self.now, at.offsets)):
            # A tile with a name has one address, which a second read of it shares.
            held = self.find(offset)
            still, moving = self.parts(offset if held is None else held)
            if not (isinstance(still, Const) and still.value == 0):
                terms.append((self.of(still), dim, still * stride_var(name, dim)))
            if moving is not None:
                term = moving * stride_var(name, dim)
                depth = self.of(moving)
                moves[depth] = moves[depth] + term if depth in moves else term
        # The scalars by which one loop moves a tile are one number.
        terms += [(depth, len(at.offsets), move) for depth, move in moves.items()]
        whole: Expr = pointer_var(name)
        for _, _, term in sorted(terms, key=lambda t: t[:2]):
            whole = whole + term
        return whole

    def parts(self, offset: Expr) -> tuple[Expr, Expr | None]:
        """Of a tile that a loop moves as a whole, i + r - 1: the tile, and the scalar by which.

        The loop then adds one number to the addresses that were computed before it.
        """
        if not self.lanes.of(offset) or not isinstance(offset, Binary):
            return offset, None
        form = to_linear(offset)
        still = {a: n for a, n in form.terms.items() if self.lanes.of(a)}
        moving = {a: n for a, n in form.terms.items() if not self.lanes.of(a)}
        deep = max((self.of(a) for a in moving), default=0)
        if not still or not moving or max(map(self.of, still)) >= deep:
            return offset, None
        return to_expr(Linear(0, still)), to_expr(Linear(form.constant, moving))
