"""The loops of one stage, as its schedule has made them so far.

A nest starts as the default nest (pure Vars in index order, then RDom variables) and directives
rewrite it.  Loops are outermost first.  A loop that was split or fused away is recovered from the
loops that took its place by a Binding, and the iterations that its extent does not have are masked
by the Binding's guard.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tensorlang.algorithm import Definition, FuncRecord
from tensorlang.ir.expr import Binary, Const, Expr, Var
from tensorlang.ir.stmt import Hints, LoopKind
from tensorlang.ir.types import index
from tensorlang.span import Span

ZERO, ONE = Const(0, index), Const(1, index)


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """The extent times * min(factor, total - outer*factor) of a loop inside the loop `outer`.

    Over all of `outer` it adds up to times * total: no iteration is masked.
    """

    outer: str
    factor: int
    total: Expr
    times: Expr

    @property
    def extent(self) -> Expr:
        rest = self.total - Var(self.outer) * self.factor
        short = Binary("min", Const(self.factor, index), rest)
        return short if self.times is ONE else self.times * short


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """One loop.  `origins`: the dimensions it comes from; `reduction`: one is an RDom variable."""

    name: str
    min: Expr
    extent: Expr
    origins: frozenset[str]
    reduction: bool = False
    kind: LoopKind = LoopKind.SERIAL
    hints: Hints = ()
    ragged: Ragged | None = None
    span: Span | None = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """name stands for value; where `guard` is false the iteration is not one of the loop's."""

    name: str
    value: Expr
    guard: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """The loops of a stage where `condition` holds, and that of no variant before."""

    condition: Expr
    nest: "Nest"
    span: Span | None = field(default=None, kw_only=True, repr=False)


# The conditions that lead to a variant, from the outside in; none: to the stage itself.
Conditions: TypeAlias = tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """The loops of stage `number` of `func`.

    `bindings` are in the order of the directives.  A binding may use names that later ones bind, so
    they are evaluated last to first.
    """

    func: str
    number: int
    loops: tuple[Loop, ...]
    bindings: tuple[Binding, ...] = ()
    # The loops that come from the domain, in the order in which the definition runs them.
    sequence: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    # Iterations that update one element at once do so by atomic operations.
    atomic: bool = False
    # What a call is told for which no variant is; None: these loops are for it.
    failing: str | None = None

    @property
    def stage(self) -> str:
        return stage_name(self.func, self.number)

    def names(self) -> tuple[str, ...]:
        return tuple(loop.name for loop in self.loops)

    def find(self, name: str) -> Loop | None:
        return next((loop for loop in self.loops if loop.name == name), None)

    def everywhere(self) -> "tuple[Nest, ...]":
        """This nest, and those of all its variants."""
        return (self, *(n for v in self.variants for n in v.nest.everywhere()))

    def at(self, path: Conditions) -> "Nest | None":
        """The nest of the variant that these conditions lead to; None: there is none."""
        if not path:
            return self
        found = next((v.nest for v in self.variants if v.condition is path[0]), None)
        return found and found.at(path[1:])

    def with_at(self, path: Conditions, nest: "Nest") -> "Nest":
        """This nest with another in the place of a variant."""
        if not path:
            return nest
        variants = tuple(
            replace(v, nest=v.nest.with_at(path[1:], nest)) if v.condition is path[0] else v
            for v in self.variants
        )
        return replace(self, variants=variants)

    def needed_by(self, loop: Loop) -> frozenset[str]:
        """The loops on which the range of a loop depends, also through what was split or fused."""
        values = {binding.name: binding.value for binding in self.bindings}
        found: set[str] = set()
        waiting = [*loop.min.free, *loop.extent.free]
        while waiting:
            name = waiting.pop()
            if name in values:
                waiting.extend(values[name].free)
            elif self.find(name) is not None:
                found.add(name)
        return frozenset(found)

    def update(self, name: str, change: Callable[[Loop], Loop]) -> "Nest":
        """The nest with one loop changed."""
        loops = tuple(change(loop) if loop.name == name else loop for loop in self.loops)
        return replace(self, loops=loops)

    def replaced(self, old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
        """`sequence` with `new` where the first of `old` stands, and without the rest of them."""
        if old[0] not in self.sequence:
            return tuple(name for name in self.sequence if name not in old)
        at = self.sequence.index(old[0])
        kept = [name for name in self.sequence if name not in old]
        return (*kept[:at], *new, *kept[at:])

    def show(self) -> str:
        """`for y in [0, H): for x_o in ...: f`, one line, for errors."""
        loops = "".join(f"{_keyword(loop.kind)} {loop.name}: " for loop in self.loops)
        return f"{loops}{self.stage}"


def _keyword(kind: LoopKind) -> str:
    return "for" if kind is LoopKind.SERIAL else kind.value


def stage_name(func: str, number: int) -> str:
    """As a schedule writes it: `C`, `C.update(0)`."""
    return func if number == 0 else f"{func}.update({number - 1})"


def region_name(func: str, dim: str, part: str) -> str:
    """The name, bound by Let, of a part of the region of a Func: min, extent, first or last."""
    return f"{func}.{dim}.{part}"


def default_nest(func: FuncRecord, number: int) -> Nest:
    """The loops of a stage before any directive."""
    definition = func.definitions[number]
    loops = [
        _pure_loop(func, definition, k) for k, v in enumerate(definition.pure) if v is not None
    ]
    if definition.domain is not None:
        for name, low, extent in definition.domain.dims:
            loops.append(Loop(name, low, extent, frozenset((name,)), reduction=True))
    sequence = tuple(loop.name for loop in loops if loop.reduction)
    return Nest(func.name, number, tuple(loops), sequence=sequence)


def _pure_loop(func: FuncRecord, definition: Definition, position: int) -> Loop:
    name, dim = definition.pure[position] or "", func.dims[position]
    low = Var(region_name(func.name, dim, "min"))
    extent = Var(region_name(func.name, dim, "extent"))
    return Loop(name, low, extent, frozenset((name,)))
