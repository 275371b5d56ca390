"""What every directive is: plain data, with its check, its application and its text."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar

from tensorlang.algorithm import Algorithm, FuncRecord
from tensorlang.directives.nest import Conditions, Loop, Nest, default_nest
from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.expr_text import print_bare, print_expr
from tensorlang.ir.stmt import Hints
from tensorlang.ir.widening import Widening
from tensorlang.span import Span


@dataclass(frozen=True, slots=True)
class Level:
    """A place in a nest: just inside loop `loop` of Func `func`; root when both are empty."""

    func: str = ""
    loop: str = ""

    def __str__(self) -> str:
        return f"{self.func}, {self.loop}" if self.func else "root"


ROOT = Level()


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a Func is computed and stored; `inline`: substituted into its consumers."""

    compute: Level = ROOT
    store: Level | None = None
    inline: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Storage:
    """How a Func is kept; `folds` and `aligned` are (dimension, count) pairs."""

    memory: str = "auto"
    folds: tuple[tuple[int, int], ...] = ()
    aligned: tuple[tuple[int, int], ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Merge:
    """Stage `stage` runs in the loops of stage `into`, down to `loop`."""

    stage: tuple[str, int]
    into: tuple[str, int]
    loop: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Rolling:
    """`func` is rolled into the reduction `into`, in slices of its loop `loop`."""

    func: str
    into: str
    loop: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a State can go back to: directives replace values, and never change them."""

    algorithm: Algorithm
    nests: Mapping[tuple[str, int], Nest]
    placements: Mapping[str, Placement]
    storage: Mapping[str, Storage]
    hints: Mapping[str, Hints]
    widenings: Mapping[str, tuple[Widening, ...]]
    merges: tuple[Merge, ...]
    rolling: tuple[Rolling, ...]


class State:
    """What the directives applied so far have made: a nest a stage, a placement a Func.

    `algorithm` is the Pipeline's with the Funcs that rfactor, in_ and clone_in made.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm
        self.nests: dict[tuple[str, int], Nest] = {
            (f.name, n): default_nest(f, n)
            for f in algorithm.funcs
            for n in range(len(f.definitions))
        }
        self.placements: dict[str, Placement] = {}
        self.storage: dict[str, Storage] = {}
        # Hints on an Input or a Func as a buffer.
        self.hints: dict[str, Hints] = {}
        # What is asked of the regions of Funcs.
        self.widenings: dict[str, tuple[Widening, ...]] = {}
        self.merges: tuple[Merge, ...] = ()
        self.rolling: tuple[Rolling, ...] = ()

    @property
    def funcs(self) -> Mapping[str, FuncRecord]:
        """The Funcs by name, derived ones included."""
        return {f.name: f for f in self.algorithm.funcs}

    def snapshot(self) -> Snapshot:
        """What `restore` goes back to."""
        return Snapshot(
            self.algorithm,
            dict(self.nests),
            dict(self.placements),
            dict(self.storage),
            dict(self.hints),
            dict(self.widenings),
            self.merges,
            self.rolling,
        )

    def restore(self, saved: Snapshot) -> None:
        """Undo all that was applied since the snapshot."""
        self.algorithm, self.merges, self.rolling = saved.algorithm, saved.merges, saved.rolling
        self.nests, self.placements = dict(saved.nests), dict(saved.placements)
        self.storage, self.hints = dict(saved.storage), dict(saved.hints)
        self.widenings = dict(saved.widenings)

    def insert(self, made: FuncRecord, before: str, *changed: FuncRecord) -> None:
        """Add a derived Func just before the Func `before`, and replace those that changed."""
        new = {f.name: f for f in changed}
        funcs: list[FuncRecord] = []
        for f in self.algorithm.funcs:
            if f.name == before:
                funcs.append(made)
            funcs.append(new.get(f.name, f))
        self.algorithm = replace(self.algorithm, funcs=tuple(funcs))
        for number in range(len(made.definitions)):
            self.nests[made.name, number] = default_nest(made, number)

    def apply(self, directive: "Directive", stage: tuple[str, int], path: Conditions = ()) -> None:
        """Apply a directive to a stage, or to the variant of it that `path` leads to."""
        if not path:
            directive.apply(self, stage)
            return
        whole = self.nests[stage]
        variant = whole.at(path)
        if variant is None or not directive.on_variants:
            raise directive.error(
                "not-on-a-variant",
                f"cannot {directive.keyword} where {print_expr(path[-1], told=True)} alone",
                why="there is no such variant"
                if variant is None
                else "a variant has loops of its own; what is about the Func is about all of them",
                fix=f"specialize {whole.stage!r} on it first"
                if variant is None
                else f"s[{stage[0]}].{directive.text()}",
                nest=whole,
            )
        self.nests[stage] = variant
        directive.apply(self, stage)
        self.nests[stage] = whole.with_at(path, self.nests[stage])

    def stages(self, func: str) -> tuple[Nest, ...]:
        """The nests of all the stages of a Func, in order."""
        return tuple(self.nests[func, n] for n in range(len(self.funcs[func].definitions)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Directive:
    """One directive on one stage.  Fields are its arguments, in the order of its text form.

    Two directives are equal when they are written alike; so subclasses say eq=False.
    """

    keyword: ClassVar[str] = ""
    # Whether an Input may stand in the place of a Func.
    on_inputs: ClassVar[bool] = False
    # Whether it is about the loops of one variant, and not about the Func as a whole.
    on_variants: ClassVar[bool] = False
    span: Span | None = field(default=None, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        # By what is written: expressions are not compared by ==.
        return isinstance(other, Directive) and self.text() == other.text()

    def __hash__(self) -> int:
        return hash(self.text())

    def makes(self, func: str) -> str | None:
        """The name of the Func that the directive makes when applied to `func`, if it makes one."""
        return None

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        """Check it against what stands, and change `state`."""
        raise NotImplementedError

    def text(self) -> str:
        """As it is written: `split(x, xo, xi, 8, tail="guard")`."""
        parts: list[str] = []
        for f in fields(self):
            if f.name == "span":
                continue
            value: Any = getattr(self, f.name)
            if isinstance(value, Expr):
                bare = isinstance(value, Const)
                parts.append(print_bare(value) if bare else print_expr(value, told=True))
            elif f.default is not MISSING:
                if value != f.default:
                    parts.append(f"{f.name}={_quoted(value)}")
            elif isinstance(value, tuple):
                parts.extend(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
            else:
                parts.append(str(value))
        return f"{self.keyword}({', '.join(parts)})"

    def error(
        self, code: str, what: str, *, why: str, fix: str, nest: Nest | None = None
    ) -> ScheduleError:
        """A ScheduleError at the line that wrote this directive."""
        shown = nest.show() if nest is not None else None
        return ScheduleError(code, what, why=why, fix=fix, span=self.span, nest=shown)

    def position(self, state: State, stage: tuple[str, int], name: str) -> int:
        """The position of a dimension of the stage's Func, or a ScheduleError (unknown-dim)."""
        func = stage[0]
        dims = state.funcs[func].dims
        if name not in dims:
            raise self.error(
                "unknown-dim",
                f"cannot {self.keyword} along {name!r} of {func!r}",
                why="a Func has the dimensions of its pure definition",
                fix=f"one of {', '.join(dims) or 'none: it is a scalar'}",
            )
        return dims.index(name)

    def scalar(self, state: State, e: Expr) -> None:
        """Check that the call knows the expression before anything runs (not-a-scalar)."""
        names = {x.name for x in (*state.algorithm.sizes, *state.algorithm.params)}
        unknown = sorted((e.free - names) | e.reads)
        if unknown:
            known = ", ".join(sorted(names)) or "none"
            raise self.error(
                "not-a-scalar",
                f"{self.keyword} takes no expression of {', '.join(map(repr, unknown))}",
                why="it has to be known when the kernel is called, before anything runs",
                fix=f"use the Sizes and Params of the Pipeline: {known}",
            )

    def loop(self, nest: Nest, name: str) -> Loop:
        """The loop of that name, or a ScheduleError (unknown-loop) that lists the loops."""
        found = nest.find(name)
        if found is None:
            gone = any(binding.name == name for binding in nest.bindings)
            raise self.error(
                "unknown-loop",
                f"cannot {self.keyword} {name!r} of {nest.stage!r}: it has no such loop",
                why=f"{name!r} was split or fused into other loops by an earlier directive"
                if gone
                else "a directive names the loops that stand when it is applied",
                fix=f"the loops of {nest.stage!r} are {', '.join(nest.names()) or 'none'}",
                nest=nest,
            )
        return found

    def not_a_target(self, state: State, nest: Nest, name: str) -> None:
        """Check that no Func is computed or stored at the loop that is about to go."""
        level = Level(nest.func, name)
        for func, placement in state.placements.items():
            if level in (placement.compute, placement.store):
                raise self.error(
                    "loop-in-use",
                    f"cannot {self.keyword} {name!r} of {nest.stage!r}: {func!r} is placed there",
                    why="a loop at which a Func is computed or stored has to stay",
                    fix=f"{self.keyword} it first, and then place {func!r} at one of the new loops",
                    nest=nest,
                )

    def new_names(self, nest: Nest, *names: str) -> None:
        """Check that the loops to be made have names of their own."""
        taken = {b.name for b in nest.bindings} | set(nest.names())
        for k, name in enumerate(names):
            if name in taken or name in names[:k]:
                raise self.error(
                    "loop-name-taken",
                    f"cannot {self.keyword}: {name!r} already names a loop of {nest.stage!r}",
                    why="each loop of a stage, also one that was split or fused away, has a name "
                    "of its own",
                    fix="choose another name",
                    nest=nest,
                )


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
