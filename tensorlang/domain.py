"""Reduction domains, and the surface nodes that stand for their variables and for reductions.

Surface nodes live only while an algorithm is written: taking a definition (func.py) replaces a RVar
by its Var, and a Reduction by a read of the Func that it becomes.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tensorlang.algorithm import Domain
from tensorlang.errors import DefinitionError
from tensorlang.ir.expr import Expr, Operand, Operators, as_expr, check_name
from tensorlang.ir.interning import node
from tensorlang.ir.types import DType, index
from tensorlang.ir.walk import postorder


@node
class RVar(Expr):
    """A variable of a reduction domain."""

    domain: Domain
    axis: int

    def __post_init__(self) -> None:
        self._set(index)
        object.__setattr__(self, "free", frozenset((self.name,)))

    @property
    def name(self) -> str:
        return self.domain.dims[self.axis][0]

    def __str__(self) -> str:
        return self.name


@node
class Reduction(Expr):
    """The reduction `op` of `body` over a domain, inside a larger expression.

    `body` is no operand: the reduction becomes a Func of its own, which takes it.
    """

    op: str
    body: Expr
    domain: Domain
    initial: Expr | None
    dtype: DType

    def __post_init__(self) -> None:
        self._set(self.dtype)
        bound = frozenset(name for name, _, _ in self.domain.dims)
        object.__setattr__(self, "free", self.body.free - bound)


@node
class Scan(Expr):
    """op of `body` at all points of a domain of one dimension up to and including this one."""

    op: str
    body: Expr
    domain: Domain
    dtype: DType

    def __post_init__(self) -> None:
        self._set(self.dtype)
        object.__setattr__(self, "free", self.body.free)


class RDom(Operators):
    """A reduction domain of one or more dimensions; one of one dimension is itself its variable.

    RDom("k", K)               k = 0, ..., K - 1
    RDom("r", (0, 3), (0, 3))  (min, extent) pairs: r[0] and r[1], the last innermost

    Args:
        name: names the variable, or the variables `name_0`, `name_1`, ...
        dims: an extent (int, Size or expression of them), or a pair (min, extent).
    See: Halide's RDom.
    """

    __slots__ = ("domain",)

    def __init__(self, name: str, *dims: Operand | tuple[Operand, Operand]) -> None:
        check_name(name, "RDom")
        if not dims:
            raise DefinitionError(
                "rdom-without-dims",
                f"RDom {name!r} has no dimension",
                why="a reduction runs over at least one variable",
                fix=f'RDom("{name}", K), or RDom("{name}", (min, extent), ...)',
            )
        names = [name] if len(dims) == 1 else [f"{name}_{k}" for k in range(len(dims))]
        pairs = [_range(name, d) for d in dims]
        self.domain = Domain(
            name,
            tuple(
                (n, extent_of(low, f"RDom {name!r}"), extent_of(extent, f"RDom {name!r}"))
                for n, (low, extent) in zip(names, pairs, strict=True)
            ),
        )

    @staticmethod
    def over(domain: Domain) -> "RDom":
        """The RDom of a record."""
        made = object.__new__(RDom)
        made.domain = domain
        return made

    def where(self, condition: Operand) -> "RDom":
        """The domain without the points at which `condition` (over its variables) is false."""
        test = as_expr(condition)
        if not test.dtype.is_bool:
            raise DefinitionError(
                "condition-not-bool",
                f"where takes a condition, not a {test.dtype}",
                why="it chooses points of the domain",
                fix="compare, as in r.where(r[0] <= r[1])",
            )
        old = self.domain.where
        return RDom.over(replace(self.domain, where=test if old is None else old & test))

    def __getitem__(self, axis: int) -> RVar:
        if not isinstance(axis, int) or not 0 <= axis < len(self.domain.dims):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DefinitionError(
                "rdom-axis",
                f"RDom {self.domain.name!r} has no variable {axis!r}",
                why=f"it has {len(self.domain.dims)} dimension(s), numbered from 0",
                fix=", ".join(f"{self.domain.name}[{k}]" for k in range(len(self.domain.dims))),
            )
        return RVar(self.domain, axis)

    def __len__(self) -> int:
        return len(self.domain.dims)

    def __iter__(self) -> Iterator[RVar]:  # type: ignore[override]
        return (RVar(self.domain, axis) for axis in range(len(self.domain.dims)))

    def as_expr(self) -> Expr:
        if len(self.domain.dims) != 1:
            raise DefinitionError(
                "rdom-axis",
                f"RDom {self.name!r} has {len(self)} dimensions and is no variable",
                why="only a domain of one dimension is itself its variable",
                fix=", ".join(f"{self.domain.name}[{k}]" for k in range(len(self.domain.dims))),
            )
        return RVar(self.domain, 0)

    @property
    def name(self) -> str:
        return self.domain.name

    def __repr__(self) -> str:
        return f"RDom({self.domain.name!r})"


def _range(name: str, dim: Any) -> tuple[Operand, Operand]:
    """The (min, extent) of a dimension."""
    if not issubclass(type(dim), tuple):
        return (0, dim)
    if len(dim) != 2:
        raise DefinitionError(
            "bad-range",
            f"a dimension of RDom {name!r} is given by {len(dim)} values",
            why="a dimension has a min and an extent",
            fix=f'RDom("{name}", (min, extent)), or RDom("{name}", extent) from 0',
        )
    return dim


def shape_of(shape: Any, what: str) -> tuple[Expr, ...]:
    """A list of extents as index expressions."""
    if not issubclass(type(shape), (list, tuple)):
        raise DefinitionError(
            "bad-shape",
            f"the shape of {what} is a {type(shape).__name__}",
            why="a shape lists one extent a dimension, outermost first",
            fix="give a list, such as [M, N], or [] for a scalar",
        )
    return tuple(extent_of(n, what) for n in shape)


def extent_of(value: Operand, what: str) -> Expr:
    """An int, Size or expression of them, as an index expression."""
    e = as_expr(value, index)
    if e.dtype is not index:
        raise DefinitionError(
            "bad-extent",
            f"an extent of {what} has dtype {e.dtype}",
            why="an extent is an int, a Size or an expression of them, so that it is known before "
            "the kernel runs",
            fix='declare it as Size("N"), or give it as an int',
        )
    return e


def domains_of(*roots: Expr) -> dict[str, Domain]:
    """The domains whose variables are free in the expressions, by name; `where` beats none."""
    found: dict[str, Domain] = {}
    for e in postorder(*roots):
        inner: dict[str, Domain] = {}
        if isinstance(e, RVar):
            inner = {e.domain.name: e.domain}
        elif isinstance(e, Reduction):
            inner = domains_of(e.body)
            inner.pop(e.domain.name, None)
        for name, domain in inner.items():
            if name not in found or (found[name].where is None and domain.where is not None):
                found[name] = domain
    return found
