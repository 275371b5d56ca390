"""The closed record of WHAT to compute: plain data over names, with no schedule in it.

    Algorithm = name, inputs, params, sizes, funcs (producers first), outputs
    Func      = name, dims, dtypes, definitions      definition 0 is pure, the rest are updates
    func[indices] = values   for every pure Var, and for every point of the domain in order

Func, Input and RDom (func.py, domain.py) write such records; a Pipeline closes over them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from tensorlang.ir.expr import Expr, Param, Size
from tensorlang.ir.types import DType
from tensorlang.ir.walk import postorder
from tensorlang.span import Span


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """A reduction domain: (name, min, extent) a dimension, and a predicate over the names."""

    name: str
    dims: tuple[tuple[str, Expr, Expr], ...]
    where: Expr | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.dims)


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """func[indices] = values, for every pure Var, and for every point of the domain in order.

    `pure[k]` is the name of the pure Var that stands as index k, or None.  `needs_point`: the
    domain must not be empty where the output is not (max without an initial value).
    """

    indices: tuple[Expr, ...]
    values: tuple[Expr, ...]
    pure: tuple[str | None, ...]
    domain: Domain | None = None
    needs_point: bool = False
    span: Span | None = field(default=None, kw_only=True, repr=False)

    @property
    def loops(self) -> tuple[str, ...]:
        """The default nest, outermost first: pure Vars in index order, then the domain's."""
        pure = tuple(v for v in self.pure if v is not None)
        return pure + self.domain.names if self.domain else pure


@dataclass(frozen=True, slots=True, eq=False)
class FuncRecord:
    """A Func: definition 0 is pure, the rest are updates; `home`: the Func it was lifted from."""

    name: str
    dims: tuple[str, ...]
    dtypes: tuple[DType, ...]
    definitions: tuple[Definition, ...]
    home: str | None = None
    span: Span | None = field(default=None, kw_only=True, repr=False)

    @property
    def is_pure(self) -> bool:
        return len(self.definitions) == 1


@dataclass(frozen=True, slots=True, eq=False)
class InputRecord:
    """An array argument."""

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    span: Span | None = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Algorithm:
    """A closed algorithm; `funcs` come producers first, `outputs` in the user's order.

    Two are equal when all but the places they were written in is.
    """

    name: str
    inputs: tuple[InputRecord, ...]
    params: tuple[Param, ...]
    sizes: tuple[Size, ...]
    funcs: tuple[FuncRecord, ...]
    outputs: tuple[tuple[str, tuple[Expr, ...]], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Algorithm) and _same(self, other)

    def __hash__(self) -> int:
        return hash((self.name, tuple(f.name for f in self.funcs), self.sizes, self.params))

    def __reduce__(self) -> tuple[Any, ...]:
        """To pickle: operands before what uses them, so that deep expressions need no recursion."""
        shapes = [e for a in self.inputs for e in a.shape] + [e for _, s in self.outputs for e in s]
        definitions = (d for f in self.funcs for d in f.definitions)
        parts = (e for d in definitions for e in exprs_of_definition(d))
        nodes = tuple(postorder(*shapes, *parts))
        return _unpickled, (nodes, *(getattr(self, f.name) for f in fields(self)))

    def func(self, name: str) -> FuncRecord:
        return next(f for f in self.funcs if f.name == name)

    def consumers(self, name: str) -> tuple[str, ...]:
        """The Funcs that read `name`, in order, without itself."""
        return tuple(f.name for f in self.funcs if f.name != name and name in reads_of(f))


def _unpickled(nodes: tuple[Expr, ...], *parts: Any) -> Algorithm:
    return Algorithm(*parts)


def _same(a: Any, b: Any) -> bool:
    """Equality of records, but for where they were written; of expressions it is identity."""
    if isinstance(a, Expr) or a is b:
        return a is b
    kind = type(a)  # pyright: ignore[reportUnknownVariableType]
    if kind is not type(b):
        return False
    if kind is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    if not isinstance(a, _RECORDS):
        return bool(a == b)
    names = (f.name for f in fields(a) if f.name != "span")
    return all(_same(getattr(a, name), getattr(b, name)) for name in names)


_RECORDS = (Algorithm, InputRecord, FuncRecord, Definition, Domain)


def reads_of(func: FuncRecord) -> frozenset[str]:
    """Every Func and Input that the definitions read, itself included when an update does."""
    found: set[str] = set()
    for definition in func.definitions:
        for e in exprs_of_definition(definition):
            found |= e.reads
    return frozenset(found)


def exprs_of_definition(definition: Definition) -> Iterator[Expr]:
    """The indices, values and domain expressions of a definition."""
    yield from definition.indices
    yield from definition.values
    if definition.domain is not None:
        for _, low, extent in definition.domain.dims:
            yield low
            yield extent
        if definition.domain.where is not None:
            yield definition.domain.where
