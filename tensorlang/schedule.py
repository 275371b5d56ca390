"""HOW to compute: a Schedule is an ordered list of directives over one algorithm, as plain data."""

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from tensorlang.algorithm import Algorithm
from tensorlang.directives import DIRECTIVES, Conditions, Directive, State, hardware
from tensorlang.directives.bounds import AlignBounds, Bound, BoundExtent
from tensorlang.directives.copies import CloneIn, In
from tensorlang.directives.factoring import Merge, RFactor
from tensorlang.directives.hardware import (
    Cache,
    DependentLaunch,
    GpuRegisters,
    GpuWarps,
    LoadWith,
    PipelineLoop,
    Prefetch,
    StoreWith,
    WarpSpecialize,
)
from tensorlang.directives.loops import Fuse, Rename, Reorder, Serial, Split, Tail, Tile, Unroll
from tensorlang.directives.nest import Nest
from tensorlang.directives.parallel import Atomic, GpuBlocks, Parallel, Vectorize
from tensorlang.directives.placement import (
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    ComputeWith,
    StoreAt,
    StoreRoot,
)
from tensorlang.directives.rolling import RollingUpdate
from tensorlang.directives.storage import AlignStorage, FoldStorage, Memory, StoreIn
from tensorlang.directives.variants import Specialize, SpecializeFail
from tensorlang.errors import InternalError, ScheduleError
from tensorlang.ir.expr import Operand, as_expr
from tensorlang.ir.loop_nest import loop_nest
from tensorlang.ir.types import index
from tensorlang.recursion import deep_recursion
from tensorlang.schedule_text import (
    MISFITS,
    check_arguments,
    check_stage,
    check_update,
    directive_of,
    misfit,
)
from tensorlang.span import caller_span
from tensorlang.text.calls import HEADER, DirectiveCall


class Named(Protocol):
    """A Var, an RDom variable, a Func or an Input: what a directive takes by its name."""

    @property
    def name(self) -> str: ...


class HasAlgorithm(Protocol):
    """A Pipeline: what a Schedule is made for."""

    @property
    def algorithm(self) -> Algorithm: ...


LoopName: TypeAlias = str | Named
FuncName: TypeAlias = str | Named


@dataclass(frozen=True, slots=True)
class Applied:
    """A directive, and the stage, or the variant of one, that it was applied to."""

    func: str
    number: int
    directive: Directive
    path: Conditions = ()


class Schedule:
    """The directives of a Pipeline, in the order in which they were applied.

    s = Schedule(blur)
    s[blur_y].tile(y, x, yo, xo, yi, xi, 8, 64).vectorize(xi).parallel(yo)
    s[blur_x].compute_at(blur_y, xo).vectorize(x)

    `print(s)` shows it as text that `Schedule.parse` reads back.  Two Schedules are equal when
    their algorithm and their text are.
    """

    __slots__ = ("_inputs", "_state", "algorithm", "applied")

    def __init__(self, pipeline: HasAlgorithm | Algorithm) -> None:
        self.algorithm: Algorithm = _algorithm_of(pipeline)
        self.applied: tuple[Applied, ...] = ()
        self._state = State(self.algorithm)
        self._inputs = {a.name for a in self.algorithm.inputs}

    def __getitem__(self, func: FuncName) -> "Stage":
        name = _name(func)
        check_stage(self._state, name, 0)
        return Stage(self, name, 0)

    @property
    def state(self) -> State:
        """The nests and placements that the directives make."""
        return self._state

    def apply(self, func: str, number: int, directive: Directive, path: Conditions = ()) -> None:
        """Check a directive and add it; a directive that is refused changes nothing.

        Args: path: the conditions of the variant that it is for.
        """
        check_arguments(directive)
        if func in self._inputs and not directive.on_inputs:
            raise directive.error(
                "input-has-no-loops",
                f"cannot {directive.keyword} the Input {func!r}",
                why="it is given by the call, and nothing computes it",
                fix=f"schedule a copy of it: s[{func}].in_(consumer)",
            )
        if isinstance(directive, Specialize) and func not in self._inputs:
            if self._state.nests[func, number].at((*path, directive.condition)) is not None:
                return  # It leads to the variant that is there.
        before = self._state.snapshot()
        try:
            self._state.apply(directive, (func, number), path)
        except ScheduleError:
            self._state.restore(before)
            raise
        self.applied = (*self.applied, Applied(func, number, directive, path))

    def copy(self) -> "Schedule":
        """A Schedule with the same directives, which can then go its own way."""
        return _replayed(self.algorithm, self.applied)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> "Schedule":
        return self.copy()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<Schedule of {self.algorithm.name!r}: {len(self.applied)} directives>"

    def _lines(self) -> Iterable[str]:
        nothing: tuple[str, int, Conditions] = ("", -1, ())
        line, stage = "", nothing
        for a in self.applied:
            if not _is_same(stage, a):
                if line:
                    yield line
                line = f"s[{a.func}]" + (f".update({a.number - 1})" if a.number else "")
                line += "".join(f".{Specialize(condition).text()}" for condition in a.path)
            stage = (a.func, a.number, a.path)
            line += f".{a.directive.text()}"
            if isinstance(a.directive, Specialize):
                stage = (a.func, a.number, (*a.path, a.directive.condition))
            made = a.directive.makes(a.func)
            if made is not None:
                yield f"{made} = {line}"
                line, stage = "", nothing
        if line:
            yield line

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return self.algorithm == other.algorithm and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((self.algorithm.name, str(self)))

    def to_python(self) -> str:
        """The schedule as a Python program over the Funcs' names, with the Vars that it needs."""
        names = dict.fromkeys(v for a in self.applied for v in _loop_names(a.directive))
        preamble = [f'{name} = Var("{name}")' for name in names]
        return "\n".join([*preamble, f"s = Schedule({self.algorithm.name})", *self._lines()]) + "\n"

    @staticmethod
    def parse(
        text: str, pipeline: HasAlgorithm | Algorithm, path: str = "<schedule>"
    ) -> "Schedule":
        """The Schedule that `text` (as printed by `str`) describes, for `pipeline`.

        Raises: ParseError: unexpected-text, unknown-version, unknown-func, unknown-directive,
            bad-arguments; ScheduleError: as each directive does, and algorithm-changed where
            several Funcs or loops are missing.  All point into the text.
        """
        algorithm = _algorithm_of(pipeline)
        # lark is loaded where a text is first read.
        from tensorlang.text.schedules import parse_directives

        return Schedule.of_calls(algorithm, parse_directives(text, path))

    @staticmethod
    def of_calls(algorithm: Algorithm, calls: Iterable[DirectiveCall]) -> "Schedule":
        """The Schedule that the calls of a text write."""
        return _written(algorithm, (_applied(c, algorithm) for c in calls))

    def on(self, pipeline: HasAlgorithm | Algorithm) -> "Schedule":
        """The same directives, by name, on another algorithm, such as this one after a change.

        Raises: ScheduleError: algorithm-changed, with each Func and loop that is missing; or as the
            directive does that is not legal there.
        """
        algorithm = _algorithm_of(pipeline)
        return _written(algorithm, self.applied)

    def save(self, path: str | Path) -> None:
        """Write the schedule as text, with the version of its language in the first line."""
        Path(path).write_text(f"{HEADER}\n{self}\n", encoding="utf-8")

    @staticmethod
    def load(path: str | Path, pipeline: HasAlgorithm | Algorithm) -> "Schedule":
        """The Schedule that was saved to `path`, for `pipeline`; see `parse`."""
        return Schedule.parse(Path(path).read_text(encoding="utf-8"), pipeline, str(path))

    def __reduce__(self) -> tuple[Any, ...]:
        return _replayed, (self.algorithm, self.applied)

    def loop_nest(self) -> str:
        """The loops as pseudo-code, outermost first, with what is computed where."""
        from tensorlang.lower import lower_stages

        with deep_recursion():
            return loop_nest(lower_stages(self._state))


class Stage:
    """One stage of a Func in a Schedule: what directives are called on.  They chain."""

    __slots__ = ("_func", "_number", "_path", "_schedule")

    def __init__(self, schedule: Schedule, func: str, number: int, path: Conditions = ()) -> None:
        self._schedule, self._func, self._number, self._path = schedule, func, number, path

    def __repr__(self) -> str:
        return f"<stage {self._number} of {self._func!r}: {self.nest.show()}>"

    @property
    def nest(self) -> Nest:
        """Its loops, as the directives have made them so far."""
        found = self._schedule.state.nests[self._func, self._number].at(self._path)
        if found is None:
            raise InternalError(f"{self._func!r} has lost a variant")
        return found

    def update(self, number: int = 0) -> "Stage":
        """The update definition `number`, counted from 0, as the stage to schedule."""
        check_update(self._schedule.state, self._func, number)
        return Stage(self._schedule, self._func, number + 1)

    def _apply(self, directive: Directive) -> "Stage":
        directive = replace(directive, span=caller_span())
        self._schedule.apply(self._func, self._number, directive, self._path)
        return self

    def split(
        self, old: LoopName, outer: LoopName, inner: LoopName, factor: int, *, tail: Tail = "auto"
    ) -> "Stage":
        return self._apply(Split(_name(old), _name(outer), _name(inner), factor, tail))

    def tile(
        self,
        x: LoopName,
        y: LoopName,
        xo: LoopName,
        yo: LoopName,
        xi: LoopName,
        yi: LoopName,
        x_factor: int,
        y_factor: int,
        *,
        tail: Tail = "auto",
    ) -> "Stage":
        x, y, xo, yo, xi, yi = map(_name, (x, y, xo, yo, xi, yi))
        return self._apply(Tile(x, y, xo, yo, xi, yi, x_factor, y_factor, tail))

    def fuse(self, outer: LoopName, inner: LoopName, fused: LoopName) -> "Stage":
        return self._apply(Fuse(_name(outer), _name(inner), _name(fused)))

    def reorder(self, *order: LoopName) -> "Stage":
        return self._apply(Reorder(tuple(map(_name, order))))

    def rename(self, old: LoopName, new: LoopName) -> "Stage":
        return self._apply(Rename(_name(old), _name(new)))

    def serial(self, var: LoopName) -> "Stage":
        return self._apply(Serial(_name(var)))

    def unroll(self, var: LoopName) -> "Stage":
        return self._apply(Unroll(_name(var)))

    def parallel(self, var: LoopName) -> "Stage":
        return self._apply(Parallel(_name(var)))

    def vectorize(self, var: LoopName) -> "Stage":
        return self._apply(Vectorize(_name(var)))

    def gpu_blocks(self, *vars: LoopName) -> "Stage":
        return self._apply(GpuBlocks(tuple(map(_name, vars))))

    def atomic(self) -> "Stage":
        return self._apply(Atomic())

    def compute_inline(self) -> "Stage":
        return self._apply(ComputeInline())

    def compute_root(self) -> "Stage":
        return self._apply(ComputeRoot())

    def compute_at(self, func: FuncName, var: LoopName) -> "Stage":
        return self._apply(ComputeAt(_name(func), _name(var)))

    def compute_with(self, func: FuncName, var: LoopName) -> "Stage":
        return self._apply(ComputeWith(_name(func), _name(var)))

    def store_at(self, func: FuncName, var: LoopName) -> "Stage":
        return self._apply(StoreAt(_name(func), _name(var)))

    def store_root(self) -> "Stage":
        return self._apply(StoreRoot())

    def store_in(self, memory: Memory) -> "Stage":
        return self._apply(StoreIn(memory))

    def fold_storage(self, dim: LoopName, factor: int) -> "Stage":
        return self._apply(FoldStorage(_name(dim), factor))

    def align_storage(self, dim: LoopName, alignment: int) -> "Stage":
        return self._apply(AlignStorage(_name(dim), alignment))

    def bound(self, var: LoopName, min: Operand, extent: Operand) -> "Stage":
        return self._apply(Bound(_name(var), as_expr(min, index), as_expr(extent, index)))

    def bound_extent(self, var: LoopName, extent: Operand) -> "Stage":
        return self._apply(BoundExtent(_name(var), as_expr(extent, index)))

    def align_bounds(self, var: LoopName, modulus: int, remainder: int = 0) -> "Stage":
        return self._apply(AlignBounds(_name(var), modulus, remainder))

    def specialize(self, condition: Operand) -> "Stage":
        made = Specialize(as_expr(condition))
        self._apply(made)
        return Stage(self._schedule, self._func, self._number, (*self._path, made.condition))

    def specialize_fail(self, message: str) -> "Stage":
        return self._apply(SpecializeFail(message))

    def rfactor(self, var: LoopName, factored: LoopName, *, merge: Merge = "kernel") -> "Derived":
        return self._make(RFactor(_name(var), _name(factored), merge))

    def rolling_update(self, func: FuncName, var: LoopName) -> "Stage":
        return self._apply(RollingUpdate(_name(func), _name(var)))

    def in_(self, *consumers: FuncName) -> "Derived":
        return self._make(In(tuple(map(_name, consumers))))

    def clone_in(self, *consumers: FuncName) -> "Derived":
        return self._make(CloneIn(tuple(map(_name, consumers))))

    def _make(self, directive: Directive) -> "Derived":
        self._apply(directive)
        made = directive.makes(self._func)
        if made is None:
            raise InternalError(f"{directive.keyword} makes no Func")
        return Derived(made)

    def pipeline(self, var: LoopName, stages: int = 2) -> "Stage":
        return self._apply(PipelineLoop(_name(var), stages))

    def gpu_warps(self, warps: int) -> "Stage":
        return self._apply(GpuWarps(warps))

    def gpu_registers(self, registers: int) -> "Stage":
        return self._apply(GpuRegisters(registers))

    def gpu_dependent_launch(self) -> "Stage":
        return self._apply(DependentLaunch())

    def warp_specialize(self, var: LoopName) -> "Stage":
        return self._apply(WarpSpecialize(_name(var)))

    def prefetch(self, func: FuncName, at: LoopName, offset: int = 1) -> "Stage":
        return self._apply(Prefetch(_name(func), _name(at), offset))

    def load_with(self, access: hardware.Access) -> "Stage":
        return self._apply(LoadWith(access))

    def store_with(self, access: hardware.Access) -> "Stage":
        return self._apply(StoreWith(access))

    def cache(self, policy: hardware.Policy) -> "Stage":
        return self._apply(Cache(policy))


@dataclass(frozen=True, slots=True)
class Derived:
    """A Func that a directive made; it lives in the Schedule, which names it: `s[derived]`."""

    name: str

    def __str__(self) -> str:
        return self.name


# The manual page of a directive is the docstring of its class, beside its check and application.
for _keyword, _directive in DIRECTIVES.items():
    getattr(Stage, _keyword).__doc__ = _directive.__doc__


def _algorithm_of(pipeline: HasAlgorithm | Algorithm) -> Algorithm:
    found = pipeline if isinstance(pipeline, Algorithm) else getattr(pipeline, "algorithm", None)
    if not isinstance(found, Algorithm):
        raise ScheduleError(
            "not-a-pipeline",
            f"a Schedule of a {type(pipeline).__name__}",
            why="a schedule is over the Funcs of one Pipeline",
            fix="Schedule(pipeline)",
        )
    return found


def _name(thing: object) -> str:
    name = thing if isinstance(thing, str) else getattr(thing, "name", None)
    if not isinstance(name, str):
        raise ScheduleError(
            "not-a-name",
            f"{thing!r} names no loop or Func",
            why="directives take Vars, RDom variables, Funcs, or their names",
            fix='give a Var such as Var("xo"), or the string "xo"',
        )
    return name


# The arguments of directives that are names of Funcs, or words of their own.
_NO_LOOPS = ("func", "consumers", "access", "policy", "memory", "message", "span")


def _loop_names(directive: Directive) -> Iterable[str]:
    for f in fields(directive):
        value = getattr(directive, f.name)
        if f.name in _NO_LOOPS or f.default is not MISSING:
            continue
        yield from (v for v in (value if isinstance(value, tuple) else (value,)) if type(v) is str)  # type: ignore[misc]


def _replayed(algorithm: Algorithm, applied: tuple[Applied, ...]) -> Schedule:
    made = Schedule(algorithm)
    for a in applied:
        made.apply(a.func, a.number, a.directive, a.path)
    return made


def _applied(call: DirectiveCall, algorithm: Algorithm) -> Applied:
    """What a call of a text applies, and where."""
    outer = (directive_of(c, algorithm) for c in call.inside)
    path = tuple(d.condition for d in outer if isinstance(d, Specialize))
    return Applied(call.func, call.number, directive_of(call, algorithm), path)


def _is_same(stage: tuple[str, int, Conditions], a: Applied) -> bool:
    """Whether a directive goes on where a chain stands."""
    same = (a.func, a.number, len(a.path)) == (stage[0], stage[1], len(stage[2]))
    return same and all(x is y for x, y in zip(a.path, stage[2], strict=True))


def _written(algorithm: Algorithm, steps: Iterable[Applied]) -> Schedule:
    """The directives applied in order; all that names what the algorithm lacks is one error."""
    made = Schedule(algorithm)
    missing: dict[tuple[str, int], ScheduleError] = {}
    for a in steps:
        if (a.func, a.number) in missing:
            continue  # What follows on such a stage may lack what the directive would have made.
        try:
            check_stage(made.state, a.func, a.number, a.directive.span)
            made.apply(a.func, a.number, a.directive, a.path)
        except ScheduleError as error:
            if error.code not in MISFITS:
                raise
            missing[a.func, a.number] = error
    if missing:
        raise misfit(algorithm, list(missing.values()))
    return made
