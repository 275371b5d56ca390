"""Loop IR: what a schedule makes of an algorithm.

    Program = Program(name, sizes, params, inputs, outputs, body)
    Stmt = Block(statements)
         | Stage(func, number, body)              marks a definition (0) or update (1 ..) of a Func
         | For(var, min, extent, kind, body)      var from min to min + extent - 1
         | Let(var, value, body)                  var stands for value in body
         | If(condition, body)
         | Allocate(buffer, body)                 a buffer that lives while body runs
         | Store(buffer, indices, values)         all components at once, after all loads; atomic:
                                                  with the load of what it updates, in one step
         | Assert(condition, error, code, ...)    holds, or the call fails before it writes anything

A program is scalar: a vectorized loop is a loop whose iterations may run at once, and an If inside
it masks lanes.  Buffers are indexed by the coordinates of their Func: dimension k of a buffer
covers [min_k, min_k + extent_k).  Names of loop variables are qualified by their Func ("C.i"), and
a region that bounds inference fills in is four names bound by Let: "C.i.min" and "C.i.extent" for
what is allocated and looped over, "C.i.first" and "C.i.last" for what is needed of it.

Meaning: statements run in order; iterations of serial, unrolled and vectorized loops in order;
those of parallel and gpu_block loops in any order, and two of them never touch one element unless
both only read it, both store the same value, or both update it by atomic stores.  A loop of
extent <= 0 runs no iteration.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, TypeAlias

from tensorlang.ir.expr import Expr, Param, Size, Unary
from tensorlang.ir.types import DType
from tensorlang.span import Span

# What a backend may use and never has to: ("stages", 3), ("warps", 8), ("load_with", "descriptor").
Hints: TypeAlias = tuple[tuple[str, int | str], ...]


class LoopKind(Enum):
    """How the iterations of a loop run."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    UNROLLED = "unrolled"
    VECTORIZED = "vectorized"
    GPU_BLOCK = "gpu_block"


@dataclass(frozen=True, slots=True, eq=False)
class Dim:
    """One dimension of a buffer: indices from min to min + extent - 1."""

    min: Expr
    extent: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Storage of a Func, an Input or an output: one element type a component."""

    name: str
    dtypes: tuple[DType, ...]
    dims: tuple[Dim, ...]
    memory: str = "auto"
    # fold[k]: dimension k is a ring of that many elements (index modulo it); 0: not folded.
    fold: tuple[int, ...] = ()
    hints: "Hints" = ()


class _Node:
    """What analyses have found of a statement, which never changes, while it lives."""

    __slots__ = ("_found",)

    @property
    def found(self) -> dict[object, Any]:
        try:
            return self._found
        except AttributeError:
            made: dict[object, Any] = {}
            object.__setattr__(self, "_found", made)
            return made


@dataclass(frozen=True, slots=True, eq=False)
class Block(_Node):
    """Statements in order."""

    statements: tuple["Stmt", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Stage(_Node):
    """The loops of one stage of a Func: 0 its pure definition, k its update k - 1."""

    func: str
    number: int
    body: "Stmt"
    span: Span | None = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class For(_Node):
    """body for var = min, ..., min + extent - 1; `reduction`: var is (part of) an RDom variable."""

    var: str
    min: Expr
    extent: Expr
    kind: LoopKind
    body: "Stmt"
    reduction: bool = False
    hints: "Hints" = ()
    span: Span | None = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Let(_Node):
    """var stands for value in body."""

    var: str
    value: Expr
    body: "Stmt"


@dataclass(frozen=True, slots=True, eq=False)
class If(_Node):
    """body where condition holds."""

    condition: Expr
    body: "Stmt"


@dataclass(frozen=True, slots=True, eq=False)
class Allocate(_Node):
    """A buffer that lives while body runs; its elements start undefined."""

    buffer: Buffer
    body: "Stmt"


@dataclass(frozen=True, slots=True, eq=False)
class Store(_Node):
    """buffer[indices] = values, one value a component; all loads happen before."""

    buffer: str
    indices: tuple[Expr, ...]
    values: tuple[Expr, ...]
    # buffer[indices] = buffer[indices] op e, op associative and commutative, e free of the buffer.
    atomic: bool = False
    span: Span | None = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Assert(_Node):
    """A condition over sizes and params, checked by the call before anything runs.

    Asserts come first in a program's body.  When one fails the call raises `error` (a class of
    errors.py) with `code`, and with `what`, `why` and `fix` formatted over the `values`.
    """

    condition: Expr
    error: Literal["ShapeError", "BoundsError"]
    code: str
    what: str
    why: str
    fix: str
    values: tuple[Expr, ...] = ()


Stmt: TypeAlias = Block | Stage | For | Let | If | Allocate | Store | Assert


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A whole loop program: what a call passes, and what runs."""

    name: str
    sizes: tuple[Size, ...]
    params: tuple[Param, ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: Stmt


def map_children(stmt: Stmt, f: Callable[[Stmt], Stmt]) -> Stmt:
    """The statement with f applied to each sub-statement; itself when nothing changed."""
    match stmt:
        case Block():
            statements = tuple([f(s) for s in stmt.statements])
            same = all(a is b for a, b in zip(statements, stmt.statements, strict=True))
            return stmt if same else Block(statements)
        case Stage() | For() | Let() | If() | Allocate():
            body = f(stmt.body)
            return stmt if body is stmt.body else with_body(stmt, body)
        case Store() | Assert():
            return stmt


def with_body(stmt: Stage | For | Let | If | Allocate, body: Stmt) -> Stmt:
    """The statement around another body; `replace` would take several times as long."""
    match stmt:
        case Let():
            return Let(stmt.var, stmt.value, body)
        case If():
            return If(stmt.condition, body)
        case For():
            head = (stmt.var, stmt.min, stmt.extent, stmt.kind)
            return For(*head, body, stmt.reduction, stmt.hints, span=stmt.span)
        case Allocate():
            return Allocate(stmt.buffer, body)
        case Stage():
            return Stage(stmt.func, stmt.number, body, span=stmt.span)


def exprs_of(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand in the statement itself, not in its sub-statements."""
    match stmt:
        case For():
            return (stmt.min, stmt.extent)
        case Let():
            return (stmt.value,)
        case If():
            return (stmt.condition,)
        case Assert():
            return (stmt.condition, *stmt.values)
        case Allocate():
            return tuple(e for d in stmt.buffer.dims for e in (d.min, d.extent))
        case Store():
            return (*stmt.indices, *stmt.values)
        case Block() | Stage():
            return ()


def map_exprs(stmt: Stmt, f: Callable[[Expr], Expr]) -> Stmt:
    """The statement with f applied to the expressions in itself; itself when nothing changed."""
    old = exprs_of(stmt)
    new = tuple([f(e) for e in old])
    if all(a is b for a, b in zip(old, new, strict=True)):
        return stmt
    match stmt:
        case For():
            return replace(stmt, min=new[0], extent=new[1])
        case Let():
            return replace(stmt, value=new[0])
        case If():
            return replace(stmt, condition=new[0])
        case Assert():
            return replace(stmt, condition=new[0], values=new[1:])
        case Allocate():
            dims = tuple(Dim(*pair) for pair in zip(new[::2], new[1::2], strict=True))
            return replace(stmt, buffer=replace(stmt.buffer, dims=dims))
        case Store():
            rank = len(stmt.indices)
            return replace(stmt, indices=new[:rank], values=new[rank:])
        case Block() | Stage():
            return stmt


def children_of(stmt: Stmt) -> tuple[Stmt, ...]:
    """The sub-statements."""
    match stmt:
        case Block():
            return stmt.statements
        case Stage() | For() | Let() | If() | Allocate():
            return (stmt.body,)
        case Store() | Assert():
            return ()


def walk(stmt: Stmt) -> Iterator[Stmt]:
    """The statement and everything below it, in program order."""
    stack = [stmt]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children_of(top)))


def block(*statements: Stmt) -> Stmt:
    """The statements in order, nested Blocks opened up; a single one is itself."""
    flat: list[Stmt] = []
    for s in statements:
        flat.extend(s.statements if isinstance(s, Block) else (s,))
    return flat[0] if len(flat) == 1 else Block(tuple(flat))


def is_otherwise(first: Stmt, second: Stmt) -> bool:
    """Whether the two are `if c: ...` and `if ~c: ...`, as written: only one of them runs."""
    if not (isinstance(first, If) and isinstance(second, If)):
        return False
    other = second.condition
    return isinstance(other, Unary) and other.op == "not" and other.a is first.condition
