"""compute_inline, compute_root, compute_at, store_root, store_at: where a Func is made and kept."""

from dataclasses import dataclass, replace
from typing import ClassVar

from tensorlang.directives.base import ROOT, Directive, Level, Merge, Placement, State


def _place(directive: Directive, state: State, stage: tuple[str, int], level: Level) -> None:
    func = stage[0]
    if stage[1] > 0:
        raise directive.error(
            "placement-of-update",
            f"cannot place an update of {func!r} alone",
            why="all stages of a Func are computed at one place",
            fix=f"s[{func}].{directive.text()}",
        )
    if func in {name for name, _ in state.algorithm.outputs} and level != ROOT:
        raise directive.error(
            "output-not-root",
            f"cannot place {func!r} inside another Func",
            why=f"{func!r} is an output, and outputs are computed at root",
            fix="leave it at root, or add a Func that copies it",
        )
    if level != ROOT:
        _check_level(directive, state, func, level)


def _check_level(directive: Directive, state: State, func: str, level: Level) -> None:
    if level.func == func or level.func not in state.funcs:
        raise directive.error(
            "unknown-func",
            f"cannot place {func!r} inside {level.func!r}",
            why=f"{level.func!r} is "
            + ("itself" if level.func == func else "no Func of the Pipeline"),
            fix=f"its consumers are {', '.join(state.algorithm.consumers(func)) or 'none'}",
        )
    nests = tuple(n for nest in state.stages(level.func) for n in nest.everywhere())
    if not any(nest.find(level.loop) for nest in nests):
        names = dict.fromkeys(name for nest in nests for name in nest.names())
        raise directive.error(
            "unknown-loop",
            f"cannot place {func!r} at {level.loop!r} of {level.func!r}: it has no such loop",
            why="a directive names the loops that stand when it is applied",
            fix=f"the loops of {level.func!r} are {', '.join(names) or 'none'}",
            nest=nests[-1],
        )


@dataclass(frozen=True, slots=True, eq=False)
class ComputeInline(Directive):
    """Substitute the definition wherever the Func is read (the default of a pure Func)."""

    keyword: ClassVar[str] = "compute_inline"

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        func = state.funcs[stage[0]]
        if not func.is_pure:
            raise self.error(
                "inline-with-update",
                f"cannot inline {func.name!r}",
                why="it has update definitions, which have no value to substitute",
                fix="compute_at a loop of its consumer, or compute_root",
            )
        if func.name in {name for name, _ in state.algorithm.outputs}:
            raise self.error(
                "output-not-root",
                f"cannot inline {func.name!r}",
                why="it is an output, and outputs are computed at root",
                fix="leave it at root",
            )
        state.placements[func.name] = Placement(inline=True, span=self.span)


@dataclass(frozen=True, slots=True, eq=False)
class ComputeRoot(Directive):
    """Compute all of the Func that is needed once, before its consumers."""

    keyword: ClassVar[str] = "compute_root"

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _place(self, state, stage, ROOT)
        state.placements[stage[0]] = Placement(ROOT, span=self.span)


@dataclass(frozen=True, slots=True, eq=False)
class ComputeAt(Directive):
    """for v: s   ->   for v: { compute what s needs of the Func; s }"""

    keyword: ClassVar[str] = "compute_at"
    func: str
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        level = Level(self.func, self.var)
        _place(self, state, stage, level)
        old = state.placements.get(stage[0], Placement())
        state.placements[stage[0]] = replace(old, compute=level, inline=False, span=self.span)


@dataclass(frozen=True, slots=True, eq=False)
class ComputeWith(Directive):
    """for i: a; for i: b   ->   for i: { a; b }     this stage in the loops of the one before it

    `func` is the Func in the loops of whose last stage this one runs: of an update its own, so that
    initialisation and update share a loop nest; else one at the same place, of which neither reads
    the other.  Places inside loops that were brought together before are the same.  Both have the
    same loops down to `var`, which both have.  A Func that both read is computed once for both at
    such a loop: compute_at(func, var).
    See: Halide's Stage::compute_with.
    """

    keyword: ClassVar[str] = "compute_with"
    func: str
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        name, number = stage
        if self.func not in state.funcs:
            raise self.error(
                "unknown-func",
                f"cannot compute {state.nests[stage].stage!r} with {self.func!r}",
                why=f"{self.func!r} is no Func of the Pipeline",
                fix="name a Func at the same place",
            )
        if self.func == name and number == 0:
            raise self.error(
                "unknown-func",
                f"cannot compute {name!r} with itself",
                why="its pure definition comes first",
                fix=f"s[{name}].update(0).compute_with({name}, ...)",
            )
        self.loop(state.nests[stage], self.var)
        last = number - 1 if self.func == name else len(state.funcs[self.func].definitions) - 1
        into = (self.func, last)
        self.loop(state.nests[into], self.var)
        merge = Merge(stage, into, self.var, self.span)
        state.merges = (*(m for m in state.merges if m.stage != stage), merge)


@dataclass(frozen=True, slots=True, eq=False)
class StoreAt(Directive):
    """Keep the Func's storage outside the loop that computes it: at `var` of `func`.

    Several iterations of the loops between then share it.
    """

    keyword: ClassVar[str] = "store_at"
    func: str
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        level = Level(self.func, self.var)
        _place(self, state, stage, level)
        old = state.placements.get(stage[0], Placement())
        state.placements[stage[0]] = replace(old, store=level, span=old.span or self.span)


@dataclass(frozen=True, slots=True, eq=False)
class StoreRoot(Directive):
    """Keep the Func's storage outside all loops."""

    keyword: ClassVar[str] = "store_root"

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _place(self, state, stage, ROOT)
        old = state.placements.get(stage[0], Placement())
        state.placements[stage[0]] = replace(old, store=ROOT, span=old.span or self.span)
