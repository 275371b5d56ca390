"""Common sub-expressions get a name, and what a loop does not change is computed before it.

    for k: read(A.ptr + i*A.s0 + k*A.s1), i < M   ->   A.at = A.ptr + i*A.s0; i.ok = i < M
                                                       for k: read(A.at + k*A.s1), i.ok

Requires: every Access has its address.  Values of register tiles are never shared between
statements: an Assign may stand between them.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

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
    Dot,
    Kernel,
    Lanes,
    Loop,
    RandomRow,
    Read,
    Reduce,
    ReduceFirst,
    Tile,
    Write,
)
from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Name, Var
from tensorlang.ir.types import bool_
from tensorlang.ir.walk import fold, postorder, substitute


def share(kernel: Kernel) -> Kernel:
    """The same kernel with shared and loop-invariant values bound to names."""
    body = _Sharing(kernel).run()
    return replace(kernel, body=tuple(body))


@dataclass(slots=True)
class _Scope:
    """One open block: what was made in it, and the names that hold values in it."""

    is_loop: bool
    out: list[Tile] = field(default_factory=list[Tile])
    values: dict[Expr, Var] = field(default_factory=dict[Expr, Var])
    reads: dict[tuple[object, ...], str] = field(default_factory=dict[tuple[object, ...], str])


class _Sharing:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.lanes: Lanes = kernel.lanes
        self.scopes = [_Scope(is_loop=False)]
        self.level: dict[str, int] = {}
        self.renamed: dict[str, Expr] = {}
        self.plainly: dict[Expr, Expr] = {}
        self.uses = Counter(use for use, _ in _uses(kernel.body))
        self.taken = {name for tile in walk_tiles(kernel.body) for name in names_of(tile)}
        self.taken |= {name for name, _ in kernel.scalars} | {g.name for g in kernel.grid}

    def run(self) -> list[Tile]:
        self.block(self.kernel.body)
        return self.scopes[0].out

    def block(self, tiles: tuple[Tile, ...]) -> None:
        for tile in tiles:
            self.tile(tile)

    @property
    def here(self) -> int:
        return len(self.scopes) - 1

    def put(self, tile: Tile, level: int | None = None) -> None:
        """Append a statement to the current block or that of `level`, where its names then live."""
        level = self.here if level is None else level
        self.scopes[level].out.append(tile)
        for name in names_of(tile):
            self.level[name] = level

    def tile(self, tile: Tile) -> None:
        match tile:
            case Bind():
                self.bind(tile)
            case Read():
                self.read(tile)
            case Write():
                at, mask, value = self.accessed(tile.at, tile.mask, tile.value)
                self.put(replace(tile, at=at, mask=mask, value=value))
            case Declare() | Assign():
                [value] = self.rewrite(tile.value)
                self.put(replace(tile, value=value))
            case ReduceFirst():
                best, at = self.rewrite(*tile.terms)
                self.put(replace(tile, terms=(best, at)))
            case Combine():
                self.put(replace(tile, terms=self.rewrite(*tile.terms)))
            case Arrive():
                counter, _ = self.accessed(tile.at, None)
                self.put(replace(tile, at=counter))
            case Loop():
                low, extent = self.rewrite(tile.min, tile.extent)
                body = self.inside(tile.body, tile.name)
                self.put(replace(tile, min=low, extent=extent, body=body))
            case Branch():
                [condition] = self.rewrite(tile.condition)
                self.put(Branch(condition, self.inside(tile.body, None)))
            case Barrier() | Comment():
                self.put(tile)

    def inside(self, tiles: tuple[Tile, ...], loop: str | None) -> tuple[Tile, ...]:
        self.scopes.append(_Scope(is_loop=loop is not None))
        if loop is not None:
            self.level[loop] = self.here
        self.block(tiles)
        return tuple(self.scopes.pop().out)

    def read(self, tile: Read) -> None:
        at, mask = self.accessed(tile.at, tile.mask)
        plain = (*map(self.plain, at.parts), None if mask is None else self.plain(mask))
        key = (at.pointer, plain, self.lanes.of_name(tile.name))
        held = next((scope.reads[key] for scope in self.scopes if key in scope.reads), None)
        if held is not None:
            # Two Funcs read the same elements of an Input, whose values stay.
            self.renamed[tile.name] = Var(held, at.dtype)
            return
        # Not moved before its loop: that it is in bounds may be known only inside.
        self.put(replace(tile, at=at, mask=mask))
        if at.memory.constant:
            self.scopes[-1].reads[key] = tile.name

    def bind(self, tile: Bind) -> None:
        [value] = self.rewrite(tile.value, is_bound=True)
        if isinstance(value, Name) and value.free.isdisjoint(self.kernel.mutable):
            # Something moved before a loop holds it already.
            self.renamed[tile.name] = value
            return
        level = self.home([value])
        self.put(Bind(tile.name, value), level)
        if value.free.isdisjoint(self.kernel.mutable):
            self.hold(value, Var(tile.name, value.dtype), level)

    def accessed(
        self, at: Access, mask: Expr | None, *values: Expr
    ) -> tuple[Access, Expr | None, *tuple[Expr, ...]]:
        masks = () if mask is None else (mask,)
        made = list(self.rewrite(*at.parts, *masks, *values))
        at = at.with_parts([made.pop(0) for _ in at.parts])
        return (at, made.pop(0) if masks else None, *made)

    def levels(self, e: Expr) -> int:
        """The innermost block that a name of `e` belongs to."""
        return max((self.level.get(name, 0) for name in e.free), default=0)

    def home(self, roots: list[Expr]) -> int:
        """Where to compute something: before the loops that do not change it, but in its branch."""
        level = max((self.levels(e) for e in roots), default=0)
        while level < self.here and not self.scopes[level + 1].is_loop:
            level += 1
        return level

    def rewrite(self, *roots: Expr, is_bound: bool = False) -> tuple[Expr, ...]:
        """The expressions with names in place of what is shared or was moved before a loop."""
        roots = tuple(substitute(e, self.renamed) for e in roots)
        parents: dict[Expr, set[int]] = {}
        here = Counter[Expr]()
        for e in postorder(*roots):
            for child in e.children:
                parents.setdefault(child, set()).add(self.home([e]))
                here[child] += 1
        for root in roots:
            # The value of a Bind gets its name from the Bind.
            parents.setdefault(root, set()).update(() if is_bound else (self.here,))
        memo: dict[Expr, Expr] = {}

        def step(e: Expr, operands: list[Expr]) -> Expr:
            if isinstance(e, Dot | RandomRow | Reduce):
                operands[-1] = e.lane
            same = all(a is b for a, b in zip(operands, e.children, strict=True))
            made = e if same else e.rebuild(tuple(operands))
            if e.free & self.kernel.lane_names.keys() and not e.children:
                return self.lane(e) if self.uses[e] > 1 else made
            if not self.is_worth_a_name(e):
                return made
            home = self.home([e])
            moved = any(parent > home for parent in parents[e])
            mutable = not e.free.isdisjoint(self.kernel.mutable)
            count = here[e] if mutable else self.uses[e]
            is_root = is_bound and e is roots[0]
            held = None if mutable else self.find(made)
            if held is not None:
                return held
            if is_root or not (moved or count > 1) or (mutable and not count > 1):
                return made
            return self.named(made, home, mutable)

        return tuple(fold(e, step, memo) for e in roots)

    def is_worth_a_name(self, e: Expr) -> bool:
        """Not what is as short as a name: a leaf, its cast, a scalar next to a number."""
        if all(isinstance(child, Const | Name) for child in e.children):
            short = isinstance(e, Cast) or any(isinstance(c, Const) for c in e.children)
            return bool(e.children) and not (short and not self.lanes.of(e))
        return True

    def lane(self, e: Expr) -> Expr:
        """A lane that is used more than once, under the name of its loop."""
        wanted = self.kernel.lane_names[next(iter(e.free))]
        if not wanted:
            return e
        held = self.find(e)
        if held is not None:
            return held
        this = Var(self.fresh(wanted), e.dtype)
        self.lanes.declare(this.name, self.lanes.of(e))
        self.put(Bind(this.name, e), 0)
        self.hold(e, this, 0)
        return this

    def find(self, value: Expr) -> Var | None:
        plain = self.plain(value)
        return next((s.values[plain] for s in self.scopes if plain in s.values), None)

    def hold(self, value: Expr, name: Var, level: int) -> None:
        """Remember that in the block `level` a name has this value."""
        plain = self.plain(value)
        self.scopes[level].values[plain] = name
        self.plainly[name] = plain

    def plain(self, value: Expr) -> Expr:
        """The value with what its names stand for, so that equal ones are one expression."""

        def step(e: Expr, operands: list[Expr]) -> Expr:
            same = all(a is b for a, b in zip(operands, e.children, strict=True))
            return e if same else e.rebuild(tuple(operands))

        return fold(value, step, self.plainly)

    def named(self, value: Expr, home: int, mutable: bool) -> Var:
        """Bind `value` in the block `home`."""
        name = self.fresh(_name_for(value))
        this = Var(name, value.dtype)
        self.lanes.declare(name, self.lanes.of(value))
        self.put(Bind(name, value), self.here if mutable else home)
        if not mutable:
            self.hold(value, this, home)
        return this

    def fresh(self, wanted: str) -> str:
        name, count = wanted, 0
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name


def _name_for(value: Expr) -> str:
    """A name that says what the value is: A.at for an address, i.ok for a mask."""
    names = [e for e in postorder(value) if isinstance(e, Name)]
    pointers = [e.name for e in names if e.name.endswith(".ptr")]
    if pointers:
        return pointers[0].removesuffix(".ptr") + ".at"
    plain = [e.name for e in names if not _is_stride(e.name) and not e.name.startswith("lane")]
    if value.dtype is bool_:
        return f"{plain[0]}.ok" if isinstance(value, Compare) and plain else "mask"
    if not plain:
        return "part"
    match value:
        case Binary(op="floordiv", a=Binary(op="add", a=Name(name=name)), b=Const()):
            return f"{name}.tiles"
        case Binary(op="add", a=Name(name=name), b=Const(value=int(n))) if n >= 0:
            return f"{name}.plus{n}"
        case Binary(op="sub", a=Name(name=name), b=Const(value=int(n))) if n >= 0:
            return f"{name}.minus{n}"
        case Binary(op="mul") if len(names) > len(plain):
            return f"{plain[0]}.offset"
        case _:
            return plain[0].partition(".part")[0] + ".part"


def _is_stride(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last[:1] == "s" and last[1:].isdigit()


def walk_tiles(tiles: tuple[Tile, ...]) -> Iterator[Tile]:
    """Every statement, in order."""
    for tile in tiles:
        yield tile
        if isinstance(tile, Loop | Branch):
            yield from walk_tiles(tile.body)


def names_of(tile: Tile) -> tuple[str, ...]:
    """The names that a statement gives values to."""
    match tile:
        case Bind() | Read() | Declare() | Arrive() | Loop():
            return (tile.name,)
        case ReduceFirst() | Combine():
            return tile.names
        case _:
            return ()


def roots_of(tile: Tile) -> list[Expr]:
    """The expressions of a statement itself."""
    match tile:
        case Bind() | Declare() | Assign():
            return [tile.value]
        case Read() | Write():
            value = [tile.value] if isinstance(tile, Write) else []
            return [*tile.at.parts, *([] if tile.mask is None else [tile.mask]), *value]
        case ReduceFirst() | Combine():
            return list(tile.terms)
        case Arrive():
            return list(tile.at.parts)
        case Loop():
            return [tile.min, tile.extent]
        case Branch():
            return [tile.condition]
        case Barrier() | Comment():
            return []


def names_in(tiles: tuple[Tile, ...]) -> set[str]:
    """The names that statements read."""
    return {name for tile in walk_tiles(tiles) for e in roots_of(tile) for name in e.free}


def _uses(tiles: tuple[Tile, ...]) -> set[tuple[Expr, object]]:
    """Every expression with each place that uses it: a larger expression, or a statement."""
    found: set[tuple[Expr, object]] = set()
    for tile in walk_tiles(tiles):
        roots = roots_of(tile)
        if not isinstance(tile, Bind):
            found.update((root, tile) for root in roots)
        for e in postorder(*roots):
            # What a reduction says of its lane is no use of the lane's numbers.
            operands = e.children[:-1] if isinstance(e, Dot | RandomRow | Reduce) else e.children
            found.update((operand, (e, k)) for k, operand in enumerate(operands))
    return found
