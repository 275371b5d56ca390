"""split, tile, fuse, reorder, rename, serial, unroll: the shape of a nest.

Loops are named outermost first, in the order in which the nest prints.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from tensorlang.directives.base import Directive, State
from tensorlang.directives.nest import ONE, ZERO, Binding, Loop, Nest, Ragged
from tensorlang.directives.order import Order
from tensorlang.ir.expr import Binary, Const, Expr, Var
from tensorlang.ir.facts import prove_le
from tensorlang.ir.stmt import LoopKind
from tensorlang.ir.types import index

Tail = Literal["auto", "guard", "predicate", "shift_inwards", "round_up", "ragged"]
TAILS: tuple[str, ...] = get_args(Tail)


def ceil_div(a: Expr, factor: int) -> Expr:
    """(a + factor - 1) // factor, folded when a is a constant."""
    if isinstance(a, Const):
        return Const(-(-int(a.value) // factor), index)
    return (a + (factor - 1)) // factor


@dataclass(frozen=True, slots=True, eq=False)
class Split(Directive):
    """for x in [m, m + n): s   ->
    for xo in [0, ceil(n/f)): for xi in [0, f): s[x := m + xo*f + xi]

    The tail says who handles n % f: `auto`, `guard` and `predicate` mask the iterations past n;
    `shift_inwards` moves the last block back so that it ends at n (it recomputes, so pure
    definitions only); `round_up` runs and stores up to a multiple of f; `ragged` gives the inner
    loop the extent min(f, n - xo*f), so that nothing is masked (and the extent is no constant).
    """

    keyword: ClassVar[str] = "split"
    on_variants: ClassVar[bool] = True
    old: str
    outer: str
    inner: str
    factor: int
    tail: Tail = "auto"

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        old = self.loop(nest, self.old)
        self.not_a_target(state, nest, self.old)
        self.new_names(nest, self.outer, self.inner)
        self._check(nest, old)
        factor = Const(self.factor, index)
        outer, inner = Var(self.outer), Var(self.inner)
        position: Expr = outer * self.factor
        if self.tail == "shift_inwards":
            # An extent below the factor leaves no room to shift: then this acts as a guard.
            last = Binary("max", old.extent - factor, ZERO)
            position = Binary("min", position, last)
        position = position + inner
        masked = self.tail not in ("round_up", "ragged")
        guard = Var(self.old) < old.min + old.extent if masked else None
        binding = Binding(self.old, old.min + position, guard)
        ragged = Ragged(self.outer, self.factor, old.extent, ONE) if self.tail == "ragged" else None
        made = (
            replace(
                old,
                name=self.outer,
                min=ZERO,
                extent=ceil_div(old.extent, self.factor),
                ragged=None,
            ),
            replace(
                old,
                name=self.inner,
                min=ZERO,
                extent=ragged.extent if ragged else factor,
                ragged=ragged,
            ),
        )
        loops = tuple(m for loop in nest.loops for m in (made if loop is old else (loop,)))
        state.nests[stage] = replace(
            nest,
            loops=loops,
            bindings=(*nest.bindings, binding),
            sequence=nest.replaced((self.old,), (self.outer, self.inner)),
        )

    def _check(self, nest: Nest, old: Loop) -> None:
        if type(self.factor) is not int or self.factor < 1:  # pyright: ignore[reportUnnecessaryComparison]
            raise self.error(
                "factor-not-positive",
                f"cannot split {self.old!r} of {nest.stage!r} by {self.factor!r}",
                why="the factor is the number of iterations of the inner loop",
                fix="a Python int of at least 1",
                nest=nest,
            )
        if self.tail not in TAILS:
            raise self.error(
                "unknown-tail",
                f"cannot split {self.old!r} of {nest.stage!r} with tail={self.tail!r}",
                why="the tail says who handles the iterations that the factor does not divide",
                fix=f"one of {', '.join(TAILS)}",
                nest=nest,
            )
        again = nest.number > 0 and self.tail == "shift_inwards"
        past = old.reduction and self.tail == "round_up"
        if again or past:
            doing = "run some iterations twice" if again else "run iterations past the domain"
            raise self.error(
                "tail-not-legal",
                f"cannot split {self.old!r} of {nest.stage!r} with tail={self.tail!r}",
                why=f"it would {doing}, and an update changes its Func each time it runs",
                fix='tail="guard" or "predicate", which mask',
                nest=nest,
            )


@dataclass(frozen=True, slots=True, eq=False)
class Tile(Directive):
    """split(x, xo, xi, fx); split(y, yo, yi, fy); reorder(xo, yo, xi, yi)"""

    keyword: ClassVar[str] = "tile"
    on_variants: ClassVar[bool] = True
    x: str
    y: str
    xo: str
    yo: str
    xi: str
    yi: str
    x_factor: int
    y_factor: int
    tail: Tail = "auto"

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        span = self.span
        Split(self.x, self.xo, self.xi, self.x_factor, self.tail, span=span).apply(state, stage)
        Split(self.y, self.yo, self.yi, self.y_factor, self.tail, span=span).apply(state, stage)
        Reorder((self.xo, self.yo, self.xi, self.yi), span=span).apply(state, stage)


@dataclass(frozen=True, slots=True, eq=False)
class Fuse(Directive):
    """for o in [a, a + m): for i in [b, b + n): s   ->
    for t in [0, m*n): s[o := a + t // n, i := b + t % n]

    Where the inner extent is k * min(f, e - o*f) (a ragged split of o's loop), the total is exact:
    for t in [0, k*e): s[o := t // (k*f), i := t % (k*f)].
    """

    keyword: ClassVar[str] = "fuse"
    on_variants: ClassVar[bool] = True
    outer: str
    inner: str
    fused: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        outer, inner = self.loop(nest, self.outer), self.loop(nest, self.inner)
        for name in (self.outer, self.inner):
            self.not_a_target(state, nest, name)
        self.new_names(nest, self.fused)
        at = nest.loops.index(outer)
        if nest.loops[at + 1 : at + 2] != (inner,):
            raise self.error(
                "not-adjacent",
                f"cannot fuse {self.outer!r} and {self.inner!r} of {nest.stage!r}",
                why=f"{self.inner!r} is not the loop just inside {self.outer!r}",
                fix="reorder the two next to each other first, outer before inner",
                nest=nest,
            )
        ragged = self._ragged(nest, outer, inner)
        exact = inner.ragged if inner.ragged and inner.ragged.outer == outer.name else None
        # The iterations of the inner loop for one of the outer: in every group but the last.
        width = exact.times * exact.factor if exact else inner.extent
        if inner.ragged and not exact:
            # Where an iteration runs it is positive, which its form does not show.
            width = Binary("max", width, ONE)
        made = Loop(
            self.fused,
            ZERO,
            exact.times * exact.total if exact else outer.extent * inner.extent,
            outer.origins | inner.origins,
            outer.reduction or inner.reduction,
            ragged=ragged,
            span=self.span,
        )
        t = Var(self.fused)
        bindings = (
            Binding(self.outer, outer.min + t // width, _inside(outer)),
            Binding(self.inner, inner.min + t % width, _inside(inner)),
        )
        loops = (*nest.loops[:at], made, *nest.loops[at + 2 :])
        old = [name for name in (self.outer, self.inner) if name in nest.sequence]
        state.nests[stage] = replace(
            nest,
            loops=loops,
            bindings=(*nest.bindings, *bindings),
            sequence=nest.replaced(tuple(old), (self.fused,)) if old else nest.sequence,
        )

    def _ragged(self, nest: Nest, outer: Loop, inner: Loop) -> Ragged | None:
        """How the extent of the fused loop depends on a loop further out."""
        if inner.ragged and inner.ragged.outer == outer.name:
            return None
        what = f"cannot fuse {self.outer!r} and {self.inner!r} of {nest.stage!r}"
        if outer.name in nest.needed_by(inner):
            raise self.error(
                "ragged-inside",
                what,
                why=f"the extent of {self.inner!r} depends on {self.outer!r}",
                fix="fuse the loops of a ragged split before either is split again, or split with "
                "another tail",
                nest=nest,
            )
        if outer.ragged and inner.ragged:
            raise self.error(
                "two-ragged-loops",
                what,
                why="the extents of both depend on loops further out",
                fix="fuse each with the loop that its extent depends on first",
                nest=nest,
            )
        if outer.ragged:
            return replace(outer.ragged, times=_times(outer.ragged.times, inner.extent))
        if inner.ragged:
            return replace(inner.ragged, times=_times(inner.ragged.times, outer.extent))
        return None


def _inside(loop: Loop) -> Expr | None:
    """The mask of a loop of a domain that may have fewer than no points: twice less makes more."""
    if not loop.reduction or prove_le(ZERO, loop.extent):
        return None
    this = Var(loop.name)
    return (loop.min <= this) & (this < loop.min + loop.extent)


def _times(a: Expr, b: Expr) -> Expr:
    return b if a is ONE else a * b


@dataclass(frozen=True, slots=True, eq=False)
class Reorder(Directive):
    """The named loops change places so that they stand in the given order, outermost first."""

    keyword: ClassVar[str] = "reorder"
    on_variants: ClassVar[bool] = True
    order: tuple[str, ...]

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        named = [self.loop(nest, name) for name in self.order]
        if len(set(self.order)) < len(self.order):
            raise self.error(
                "loop-named-twice",
                f"cannot reorder {nest.stage!r}: a loop is named twice",
                why="each loop has one place",
                fix="name each loop once, outermost first",
                nest=nest,
            )
        queue = iter(named)
        loops = tuple(next(queue) if loop.name in self.order else loop for loop in nest.loops)
        self._check(state, nest, loops)
        state.nests[stage] = replace(nest, loops=loops)

    def _check(self, state: State, nest: Nest, loops: tuple[Loop, ...]) -> None:
        names = [loop.name for loop in loops]
        for at, loop in enumerate(loops):
            outside = sorted(nest.needed_by(loop).intersection(names[at:]))
            if outside:
                raise self.error(
                    "ragged-outside",
                    f"cannot put {loop.name!r} of {nest.stage!r} outside {outside[0]!r}",
                    why=f"its extent depends on {outside[0]!r}",
                    fix="keep it inside, or split with another tail",
                    nest=nest,
                )
        definition = state.funcs[nest.func].definitions[nest.number]
        broken = Order(definition, nest).broken_by(tuple(loop.name for loop in loops))
        if broken is not None:
            raise self.error(
                "order-matters",
                f"cannot reorder {nest.stage!r} so",
                why=f"{broken}, and the new order would exchange them",
                fix="keep the order of the loops that carry this dependence: "
                f"{', '.join(nest.sequence)}",
                nest=nest,
            )


@dataclass(frozen=True, slots=True, eq=False)
class Rename(Directive):
    """for x: s   ->   for y: s[x := y]"""

    keyword: ClassVar[str] = "rename"
    on_variants: ClassVar[bool] = True
    old: str
    new: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        self.loop(nest, self.old)
        self.not_a_target(state, nest, self.old)
        self.new_names(nest, self.new)
        nest = nest.update(self.old, lambda loop: replace(loop, name=self.new))
        bindings = (*nest.bindings, Binding(self.old, Var(self.new)))
        state.nests[stage] = replace(
            nest, bindings=bindings, sequence=nest.replaced((self.old,), (self.new,))
        )


@dataclass(frozen=True, slots=True, eq=False)
class Serial(Directive):
    """The iterations run one after the other (the default)."""

    keyword: ClassVar[str] = "serial"
    on_variants: ClassVar[bool] = True
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        self.loop(nest, self.var)
        state.nests[stage] = nest.update(
            self.var, lambda loop: replace(loop, kind=LoopKind.SERIAL, span=self.span)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Unroll(Directive):
    """for x in [m, m + n): s   ->   s[x := m]; ...; s[x := m + n - 1]     (n a constant)"""

    keyword: ClassVar[str] = "unroll"
    on_variants: ClassVar[bool] = True
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        self.loop(nest, self.var)
        state.nests[stage] = nest.update(
            self.var, lambda loop: replace(loop, kind=LoopKind.UNROLLED, span=self.span)
        )
