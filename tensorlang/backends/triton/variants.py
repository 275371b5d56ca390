"""Texts of a kernel for what the sizes of a call make true: where they fit, no mask is needed.

    N is a power of two      a tile over all of N has exactly N elements
    M is a multiple of 128   (M + 127)//128 is M.of128, with M = M.of128*128 in every proof
    A fits a descriptor      boxes of A instead of pointers to its elements, where asked for

Which of these matter is read off the general text: its symbolic tile axes, and the divisors under
which it rounds sizes up.  A variant is generated when a call first brings such sizes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tensorlang.backends.triton.build import Launch, build
from tensorlang.backends.triton.descriptors import wanted
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.generate import generate, text_of
from tensorlang.backends.triton.masks import Knowledge, plain_sizes
from tensorlang.backends.triton.share import names_in, roots_of, walk_tiles
from tensorlang.backends.triton.tiles import Kernel, Memory, Read, Tile, Write
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Size
from tensorlang.ir.linear import integer
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import For, Stmt, map_children, map_exprs, walk
from tensorlang.ir.types import index
from tensorlang.ir.walk import postorder, substitute
from tensorlang.target import Target


@dataclass(frozen=True, slots=True)
class Multiple:
    """A size is a multiple of a number."""

    size: str
    of: int

    @property
    def quotient(self) -> Size:
        return Size(f"{self.size}.of{self.of}")


@dataclass(frozen=True, slots=True)
class Exact:
    """The extent of a symbolic tile axis is a power of two."""

    extent: str


@dataclass(frozen=True, slots=True)
class Described:
    """An array, named by its pointer, fits a descriptor; `unit` is its dimension of unit stride."""

    pointer: str
    unit: int


Assumption = Multiple | Exact | Described


def assumptions_of(text: KernelText) -> tuple[Multiple | Exact, ...]:
    """What would spare a kernel masks if it were true."""
    kernel = text.kernel
    if not text.extents and not any(_is_masked(tile) for tile in walk_tiles(kernel.body)):
        return ()
    whole = {name for row in text.extents for name in row[2].free}
    roots = [e for tile in walk_tiles(kernel.body) for e in roots_of(tile)]
    roots += [g.extent for g in kernel.grid]
    # A size that only the grid depends on is not given to the kernel, and spares it nothing.
    given = {name for _, name, _ in text.scalars} - whole
    multiples = {m for m in _rounded_up(roots) if m.size in given}
    exact = [Exact(name) for _, name, _ in text.extents]
    return (*exact, *sorted(multiples, key=_order))


def _is_masked(tile: Tile) -> bool:
    return isinstance(tile, Read | Write) and tile.mask is not None


def _order(multiple: Multiple) -> tuple[str, int]:
    return multiple.size, multiple.of


def _rounded_up(roots: list[Expr]) -> Iterator[Multiple]:
    """The sizes and divisors of (size + n - 1)//n."""
    for e in postorder(*roots):
        match e:
            case Binary(
                op="floordiv",
                a=Binary(op="add", a=Size(name=name), b=Const(value=int(more))),
                b=Const(value=int(n)),
            ) if more == n - 1:
                yield Multiple(name, n)
            case _:
                pass


def holds(
    assumption: Multiple | Exact, sizes: Mapping[str, int], extents: Mapping[str, int]
) -> bool:
    """Whether a call's sizes, and the exact extents of its tile axes, make it true."""
    if isinstance(assumption, Multiple):
        return sizes[assumption.size] % assumption.of == 0
    extent = extents[assumption.extent]
    return extent > 0 and extent & (extent - 1) == 0


def usual_text(launch: Launch, target: Target) -> KernelText:
    """The text for sizes that fit no tile, and arrays that are rows after rows in memory."""
    kernel = build(launch)
    # The host gives every text of a kernel the same scalars.
    kept = frozenset(names_in(kernel.body)) & frozenset(launch.scalars)
    units = _units(usually_held(kernel))
    return text_of(replace(kernel, units=units), replace(launch, kept=kept), target)


def usually_held(kernel: Kernel) -> frozenset[Assumption]:
    """That every array fits a descriptor for which the schedule asks for one."""
    return frozenset(Described(m.pointer(c), m.rank - 1) for m, c in wanted(kernel))


def variant(launch: Launch, target: Target, held: frozenset[Assumption]) -> KernelText:
    """The text of a launch for calls in which all of `held` is true."""
    launch = replace(
        launch,
        exact=frozenset(a.extent for a in held if isinstance(a, Exact)),
        units=_units(held),
    )
    # Of two divisors of one size the larger says more wherever it is a multiple of the other.
    largest = {m.size: m for m in sorted(_multiples(held), key=_divisor)}
    return generate(_divided(launch, largest), target) if largest else generate(launch, target)


def _units(held: frozenset[Assumption]) -> dict[str, int]:
    return {a.pointer: a.unit for a in held if isinstance(a, Described)}


def _divisor(multiple: Multiple) -> int:
    return multiple.of


def _multiples(held: frozenset[Assumption]) -> list[Multiple]:
    return [a for a in held if isinstance(a, Multiple)]


def quotients(held: frozenset[Assumption], sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes that only variants have."""
    return {m.quotient.name: sizes[m.size] // m.of for m in _multiples(held)}


def _divided(launch: Launch, multiples: Mapping[str, Multiple]) -> Launch:
    """The launch with each size replaced by its quotient times the divisor."""
    values: dict[str, Expr] = {
        name: Binary("mul", m.quotient, integer(m.of)) for name, m in multiples.items()
    }

    def rule(e: Expr) -> Expr:
        if e.free.isdisjoint(values):
            return e
        made = substitute(e, values)
        return simplify(made) if made.dtype is index else made

    def rewrite(stmt: Stmt) -> Stmt:
        return map_children(map_exprs(stmt, rule), rewrite)

    body = rewrite(launch.body)
    loops = {loop.var for loop in launch.grid}
    kinds = {loop.kind for loop in launch.grid}
    grid = [s for s in walk(body) if isinstance(s, For) and s.var in loops and s.kind in kinds]
    scalars = {**launch.scalars, **{m.quotient.name: index for m in multiples.values()}}
    memories = {name: _rewritten(memory, rule) for name, memory in launch.memories.items()}
    return replace(
        launch,
        body=body,
        grid=tuple(grid),
        scalars=scalars,
        memories=memories,
        facts=_knowing(launch.facts, values, multiples),
        last=None if launch.last is None else _divided(launch.last, multiples),
    )


# Quotients of the witness of a variant: larger than a tile, so that a bound by one fails.
_SAMPLE = 1009


def _knowing(
    known: Knowledge, values: Mapping[str, Expr], multiples: Mapping[str, Multiple]
) -> Knowledge:
    """What was known, that each size is its multiple, and a witness of such sizes."""
    facts = known.facts
    for name, value in values.items():
        facts = facts.assume(Compare("eq", Size(name), value))
    sizes = {name: _SAMPLE * m.of for name, m in multiples.items()}
    sizes |= {m.quotient.name: _SAMPLE for m in multiples.values()}
    return Knowledge(facts, {**plain_sizes(known), **sizes})


def _rewritten(memory: Memory, rule: Callable[[Expr], Expr]) -> Memory:
    origin, extents = (tuple(map(rule, part)) for part in (memory.origin, memory.extents))
    return replace(memory, origin=origin, extents=extents)
