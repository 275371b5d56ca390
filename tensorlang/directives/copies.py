"""in_, clone_in: a Func of its own between a Func or an Input and some of its consumers."""

from dataclasses import dataclass, replace
from typing import ClassVar

from tensorlang.algorithm import Definition, FuncRecord
from tensorlang.directives.base import Directive, State
from tensorlang.ir.expr import Expr, Load, Var
from tensorlang.ir.types import DType
from tensorlang.ir.walk import rewrite


@dataclass(frozen=True, slots=True, eq=False)
class In(Directive):
    """g[x] = ... f[x + 1] ...   ->   f_in_g[x] = f[x]; g[x] = ... f_in_g[x + 1] ...

    The consumers named (all, if none is) read a copy of `f`, which has a schedule of its own:
    placed at a tile of the consumer it stages, packs or transposes what that tile reads.
    `s[Input].in_(g)` is legal; the dimensions of a copy of an Input are `_0`, `_1`, ...
    See: Halide's Func::in.
    """

    keyword: ClassVar[str] = "in_"
    on_inputs: ClassVar[bool] = True
    consumers: tuple[str, ...]

    def makes(self, func: str) -> str:
        return "_".join((func, "in", *self.consumers))

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        func, name = stage[0], self.makes(stage[0])
        dims, dtypes = shape_of(state, func)
        consumers = check_consumers(self, state, func, name)
        key = tuple(Var(d) for d in dims)
        values = tuple(Load(func, key, k, t) for k, t in enumerate(dtypes))
        copy = FuncRecord(
            name, dims, dtypes, (Definition(key, values, dims, span=self.span),), span=self.span
        )
        redirect(state, func, copy, consumers)


@dataclass(frozen=True, slots=True, eq=False)
class CloneIn(Directive):
    """g[x] = ... f[x] ...   ->   g[x] = ... f_clone_in_g[x] ...     with the definitions of f again

    The consumers named compute `f` for themselves, under a schedule of their own.
    See: Halide's Func::clone_in.
    """

    keyword: ClassVar[str] = "clone_in"
    consumers: tuple[str, ...]

    def makes(self, func: str) -> str:
        return "_".join((func, "clone_in", *self.consumers))

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        func, name = stage[0], self.makes(stage[0])
        consumers = check_consumers(self, state, func, name)
        record = state.funcs[func]
        definitions = tuple(_reading(d, func, name) for d in record.definitions)
        clone = replace(record, name=name, definitions=definitions, home=None)
        redirect(state, func, clone, consumers)


def shape_of(state: State, name: str) -> tuple[tuple[str, ...], tuple[DType, ...]]:
    """The dimensions and dtypes of a Func or an Input."""
    if name in state.funcs:
        return state.funcs[name].dims, state.funcs[name].dtypes
    record = next(a for a in state.algorithm.inputs if a.name == name)
    return tuple(f"_{k}" for k in range(len(record.shape))), (record.dtype,)


def check_consumers(directive: In | CloneIn, state: State, func: str, name: str) -> tuple[str, ...]:
    """The consumers named, or all; each has to read `func`."""
    readers = state.algorithm.consumers(func)
    wrong = [c for c in directive.consumers if c not in readers]
    if wrong or not readers:
        raise directive.error(
            "not-a-consumer",
            f"cannot make {name!r}: {', '.join(map(repr, wrong)) or 'nothing'} reads no {func!r}",
            why=f"{directive.keyword} stands between {func!r} and Funcs that read it",
            fix=f"the consumers of {func!r} are {', '.join(readers) or 'none'}",
        )
    if name in state.funcs:
        raise directive.error(
            "func-name-taken",
            f"there is a {name!r} already",
            why=f"the same {directive.keyword} was applied before",
            fix=f"schedule s[{name}]",
        )
    return directive.consumers or readers


def redirect(state: State, func: str, copy: FuncRecord, consumers: tuple[str, ...]) -> None:
    """Let the consumers read `copy` in place of `func`."""
    changed = [
        replace(f, definitions=tuple(_reading(d, func, copy.name) for d in f.definitions))
        for f in state.algorithm.funcs
        if f.name in consumers
    ]
    first = next(f.name for f in state.algorithm.funcs if f.name in consumers)
    state.insert(copy, first, *changed)


def _reading(definition: Definition, old: str, new: str) -> Definition:
    """The definition with loads of `old` made loads of `new`."""

    def rule(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer == old:
            return Load(new, e.indices, e.component, e.dtype)
        return e

    domain = definition.domain
    if domain is not None and domain.where is not None:
        domain = replace(domain, where=rewrite(domain.where, rule))
    return replace(
        definition,
        indices=tuple(rewrite(e, rule) for e in definition.indices),
        values=tuple(rewrite(e, rule) for e in definition.values),
        domain=domain,
    )
