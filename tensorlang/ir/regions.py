"""The region of each Func that its consumers need, from the loads that stand in a program.

A region is four names a dimension, bound by Let around the Func's stages:

    f.x.min, f.x.extent     what its loops run over
    f.x.first, f.x.last     what is needed: the rest is computed by no iteration (a guard)

Its storage has the same region; where it is kept outside the loop that computes it, it has names
of its own: f.x.low and f.x.count.

Two intervals are found for every index.  The loose one lets every loop run over its whole range, so
that the extent of a tile comes out constant; the tight one also uses guards, `where` and select.
Where the tight extent is constant, or the loose one is not, the region is the tight one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tensorlang.errors import DefinitionError
from tensorlang.ir.accesses import (
    REGION_PARTS,
    STORAGE_PARTS,
    Access,
    accesses_of,
    is_region_name,
)
from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.facts import Facts
from tensorlang.ir.interval import Interval, bounds_of, union
from tensorlang.ir.interval_arithmetic import EVERYWHERE
from tensorlang.ir.simplify import simplify
from tensorlang.ir.sliding import Around, slide
from tensorlang.ir.stmt import Block, For, If, Let, Stage, Stmt, children_of, map_children, walk
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute
from tensorlang.ir.widening import Fixed, Region, Widening, widened

ZERO, ONE = Const(0, index), Const(1, index)
# What a schedule asks of the regions of Funcs.
Widenings: TypeAlias = Mapping[str, tuple[Widening, ...]]
# The dimensions of Funcs that are rings.
Folds: TypeAlias = Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """What stands around a statement: facts, loops and values, and the storage of Funcs."""

    outputs: frozenset[str]
    known: bool = False
    widenings: Widenings = field(default_factory=dict[str, tuple[Widening, ...]])
    # Extents that are constants, by name, where the regions that stand are known.
    extents: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    facts: Facts = Facts.none
    around: tuple[Around, ...] = ()
    # For a Func kept outside its compute loop: what stands outside its storage.
    kept: tuple[tuple[str, "_Place"], ...] = ()
    folds: Folds = field(default_factory=dict[str, frozenset[int]])
    # The Funcs whose stages come later: no index here can be told from their elements.
    to_come: frozenset[str] = frozenset()

    def within(self, lets: list[Let]) -> "_Place":
        """The place inside the Lets of a region whose values stay."""
        facts, extents = self.facts, dict(self.extents)
        for let in lets:
            facts = facts.with_value(let.var, let.value)
            if isinstance(let.value, Const):
                extents[let.var] = let.value
        return replace(self, facts=facts, extents=extents)

    def inside(self, stmt: Stmt) -> "_Place":
        match stmt:
            case Let():
                facts = self.facts.with_value(stmt.var, stmt.value)
            case For():
                facts = self.facts.with_range(stmt.var, stmt.min, stmt.extent)
            case If():
                facts = self.facts.assume(stmt.condition)
            case _:
                return self
        return replace(self, facts=facts, around=(*self.around, stmt))


def infer_regions(
    body: Stmt,
    outputs: frozenset[str],
    *,
    known: bool = False,
    widenings: Widenings | None = None,
    folds: Folds | None = None,
) -> Stmt:
    """Every region shrunk to what is needed where its Func is computed; an output's stays whole.

    Args:
        known: the regions that stand are good already, and may be used for those inside them.
        widenings: what a schedule asks of the regions.
        folds: the dimensions of Funcs whose storage is to be a ring.
    """
    funcs = frozenset(stmt.func for stmt in walk(body) if isinstance(stmt, Stage))
    return _infer(body, _Place(outputs, known, widenings or {}, folds=folds or {}, to_come=funcs))


def _infer(stmt: Stmt, place: _Place) -> Stmt:
    if isinstance(stmt, Let) and (opened := _open(stmt, place.outputs)) is not None:
        func, lets, inner = opened
        if place.known:
            place = place.within(lets)
        if lets[0].var.endswith(STORAGE_PARTS[0]):
            place = replace(place, kept=(*place.kept, (func, place)))
            return _bind(func, lets, _infer(inner, place), place, len(STORAGE_PARTS))
        return _bind(func, lets, _infer(inner, place), place, len(REGION_PARTS))
    if not _holds_region(stmt):
        return stmt
    if isinstance(stmt, Block):
        return _infer_each(stmt, place)
    inside = place.inside(stmt)
    return map_children(stmt, lambda child: _infer(child, inside))


def _holds_region(stmt: Stmt) -> bool:
    """Whether a region of a Func is bound in the statement."""
    if _holds_region not in stmt.found:
        # A list, not a generator: what nests deeply may not recurse through C.
        below = [_holds_region(child) for child in children_of(stmt)]
        here = isinstance(stmt, Let) and is_region_name(stmt.var)
        stmt.found[_holds_region] = here or True in below
    return stmt.found[_holds_region]


def _infer_each(whole: Block, place: _Place) -> Stmt:
    """Statements in their order: the stages that stand before one have run there."""
    made: list[Stmt] = []
    for stmt in whole.statements:
        made.append(_infer(stmt, place))
        if isinstance(stmt, Stage):
            place = replace(place, to_come=place.to_come - {stmt.func})
    same = all(new is old for new, old in zip(made, whole.statements, strict=True))
    return whole if same else Block(tuple(made))


def _bind(func: str, lets: list[Let], inner: Stmt, place: _Place, parts: int) -> Stmt:
    """The Lets with the values that `inner` needs."""
    dims = tuple(let.var.split(".")[1] for let in lets[::parts])
    accesses = accesses_of(inner, func, dims, place.to_come)
    regions = _regions(accesses, func, dims, place)
    outside = dict(place.kept).get(func)
    if parts == len(REGION_PARTS) and outside is not None:
        around = place.around[len(outside.around) :]
        rings = place.folds.get(func, frozenset())
        regions = slide(regions, _sliding(accesses), rings, around, outside.facts, place.facts)
    rules = place.widenings.get(func, ())
    if parts == len(STORAGE_PARTS):
        # An extent is that of one iteration, which does not hold for what several of them keep.
        rules = tuple(r for r in rules if not (isinstance(r, Fixed) and r.min is None))
    regions = [widened(region, k, rules, place.facts) for k, region in enumerate(regions)]
    values = [value for region in regions for value in region[:parts]]
    for let, value in reversed(list(zip(lets, values, strict=True))):
        same = let.value is value and let.body is inner
        inner = let if same else Let(let.var, value, inner)
    return inner


def _open(stmt: Let, outputs: frozenset[str]) -> tuple[str, list[Let], Stmt] | None:
    """A Func, the Lets of its region or storage, and what stands inside; None: another Let."""
    func, _, part = stmt.var.rpartition(".")
    parts = REGION_PARTS if part == REGION_PARTS[0] else STORAGE_PARTS
    func = func.rpartition(".")[0]
    if part != parts[0] or not func or func in outputs:
        return None
    lets: list[Let] = []
    inner: Stmt = stmt
    while isinstance(inner, Let) and _is_part(inner.var, func, parts):
        lets.append(inner)
        inner = inner.body
    return func, lets, inner


def _is_part(name: str, func: str, parts: tuple[str, ...]) -> bool:
    return name.startswith(f"{func}.") and name.count(".") == 2 and name.endswith(parts)


def _sliding(accesses: list[Access]) -> frozenset[int]:
    """The dimensions in which every stage stores only to the part of the region that it runs over.

    An update f[r] = f[r] + e would be applied again to what an earlier iteration has computed.
    """
    stores = [a for a in accesses if a.is_store]
    dims = range(len(stores[0].loose)) if stores else ()
    return frozenset(k for k in dims if all(a.loose[k] is None for a in stores))


def _regions(
    accesses: list[Access], func: str, dims: tuple[str, ...], place: _Place
) -> list[Region]:
    """The region of each dimension of a Func that the accesses need.

    An update's index may depend on a loop over another dimension of the region, as in f[i, i + 1]:
    that dimension comes first.
    """
    parts = {f"{func}.{d}.{part}": d for d in dims for part in (*REGION_PARTS, *STORAGE_PARTS)}
    known = dict.fromkeys(parts, EVERYWHERE)
    found: dict[int, Region] = {}
    while len(found) < len(dims):
        waiting = [k for k in range(len(dims)) if k not in found]
        unknown = {name for name, d in parts.items() if dims.index(d) not in found}
        ready = (k for k in waiting if unknown.isdisjoint(_names_in(accesses, k)))
        dim = next(ready, waiting[0])
        found[dim] = _region(accesses, dim, func, place, known)
        for part, value in zip(REGION_PARTS, found[dim], strict=True):
            known[f"{func}.{dims[dim]}.{part}"] = Interval(value, value)
    return [found[k] for k in range(len(dims))]


def _names_in(accesses: list[Access], dim: int) -> set[str]:
    """The names in the intervals of one dimension."""
    intervals = (i for a in accesses for i in (a.loose[dim], a.tight[dim]) if i is not None)
    return {name for i in intervals for end in (i.lo, i.hi) if end is not None for name in end.free}


def _region(
    accesses: list[Access], dim: int, func: str, place: _Place, known: Mapping[str, Interval]
) -> Region:
    """Args: known: the region as far as it is found: its names stand further inside."""
    facts = place.facts
    loose: Interval | None = None
    tight: Interval | None = None
    for access in accesses:
        wide, narrow = access.loose[dim], access.tight[dim]
        if wide is None or narrow is None:
            continue
        if not is_bounded(narrow):
            raise unbounded_index(f"Func {func!r}", dim, access)
        wide, narrow = _outside(wide, known), _outside(narrow, known)
        if not is_bounded(narrow):
            raise _circular_region(func, dim, access)
        loose = wide if loose is None else union(loose, wide, facts)
        tight = narrow if tight is None else union(tight, narrow, facts)
    if loose is None or tight is None or tight.lo is None or tight.hi is None:
        return ZERO, ZERO, ZERO, Const(-1, index)
    first, last = simplify(tight.lo, facts), simplify(tight.hi, facts)
    extent = _count(first, last, place)
    if isinstance(extent, Const) or loose.lo is None or loose.hi is None:
        return first, extent, first, last
    whole = _count(loose.lo, loose.hi, place)
    if isinstance(whole, Const):
        return simplify(loose.lo, facts), whole, first, last
    return first, extent, first, last


def _outside(found: Interval, known: Mapping[str, Interval]) -> Interval:
    """The interval without the names of the region that it is to give.

    Of t % n, where t runs over a part of that region, both n - 1 and the last t are upper bounds,
    and only the first is of use here.
    """
    lo, hi = found.lo, found.hi
    if lo is not None and not lo.free.isdisjoint(known):
        lo = bounds_of(lo, known).lo
    if hi is not None and not hi.free.isdisjoint(known):
        hi = bounds_of(hi, known).hi
    return found if lo is found.lo and hi is found.hi else Interval(lo, hi)


def _count(first: Expr, last: Expr, place: _Place) -> Expr:
    """last - first + 1."""
    count = simplify(last - first + 1, place.facts)
    return simplify(substitute(count, place.extents), place.facts) if place.extents else count


def is_bounded(interval: Interval) -> bool:
    """Whether both ends are known; all the numbers of 32 bits are as good as none."""
    return all(
        end is not None and not (isinstance(end, Const) and abs(int(end.value)) >= 2**31 - 1)
        for end in (interval.lo, interval.hi)
    )


def unbounded_index(what: str, dim: int, access: Access) -> DefinitionError:
    """The error for an index that depends on data and that nothing bounds."""
    return DefinitionError(
        "unbounded-index",
        f"index {dim} of {what} depends on data and is bounded by nothing",
        why="which part of it is needed must be known before anything runs",
        fix="bound it: clamp(e, 0, N - 1), a select that guards it, or promise(e, 0, N - 1)",
        span=access.span,
    )


def _circular_region(func: str, dim: int, access: Access) -> DefinitionError:
    return DefinitionError(
        "circular-region",
        f"the updates of {func!r} need more of dimension {dim} the more of it they compute",
        why="an update runs over all that is needed of the dimension of a pure Var, and so it may "
        "need more of another; here that leads back to the first",
        fix="use a variable of an RDom, whose range is its own, in one of the updates",
        span=access.span,
    )
