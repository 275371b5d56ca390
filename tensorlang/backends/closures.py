"""Expressions as Python closures over an environment, for the interpreter.

An environment is a list: one slot a name, a buffer, or a memo.  Values are NumPy scalars, but for
index, which is an exact Python int.  A part that stands in several places of one statement is
computed when first needed and at most once; only the chosen side of a Select is computed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorlang.backends import numerics
from tensorlang.errors import BoundsError, InternalError
from tensorlang.ir.conversion import wrap
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Name,
    Promise,
    Select,
    Unary,
)
from tensorlang.ir.printer import print_expr
from tensorlang.ir.types import DType, i64, index
from tensorlang.ir.walk import fold, postorder
from tensorlang.span import Span

Environment: TypeAlias = list[Any]
Closure: TypeAlias = Callable[[Environment], Any]


class Closures:
    """Compiles the expressions of one program; `slots` says where an environment holds what."""

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        self.size = 0
        # Python frames that the deepest expression needs.
        self.depth = 0

    def slot(self, name: str) -> int:
        """The slot of a name or buffer, made when first asked for."""
        if name not in self.slots:
            self.slots[name] = self._new_slot()
        return self.slots[name]

    def _new_slot(self) -> int:
        self.size += 1
        return self.size - 1

    def one(self, e: Expr, span: Span | None = None) -> Closure:
        """The value of one expression; `span`: what an error points at."""
        (value,), memo = self._compiled((e,), span)
        return value if memo is None else _with_memo(value, memo)

    def several(self, exprs: Sequence[Expr], span: Span | None = None) -> Closure:
        """The values of the expressions of one statement, as a tuple."""
        values, memo = self._compiled(exprs, span)
        return tuple_of(values) if memo is None else _with_memo(tuple_of(values), memo)

    def _compiled(
        self, exprs: Sequence[Expr], span: Span | None
    ) -> tuple[list[Closure], int | None]:
        """A closure for each expression, and the slot of the memo that they need, if any."""
        uses = Counter(exprs)
        nodes = list(postorder(*exprs))
        for e in nodes:
            uses.update(e.children)
        self.depth = max(self.depth, 2 * len(nodes))
        shared = {e for e in nodes if uses[e] > 1 and e.children}
        memo_slot = self._new_slot() if shared else None

        def step(e: Expr, operands: list[Closure]) -> Closure:
            value = _closure(e, operands, self, span)
            return _once(value, e, memo_slot) if memo_slot is not None and e in shared else value

        memo: dict[Expr, Closure] = {}
        return [fold(e, step, memo) for e in exprs], memo_slot


def tuple_of(values: Sequence[Closure]) -> Closure:
    """The tuple of some values."""
    match values:
        case [a]:
            return lambda env: (a(env),)
        case [a, b]:
            return lambda env: (a(env), b(env))
        case [a, b, c]:
            return lambda env: (a(env), b(env), c(env))
        case _:
            return lambda env: tuple([value(env) for value in values])


def _with_memo(values: Closure, slot: int) -> Closure:
    def fresh(env: Environment) -> Any:
        env[slot] = {}
        return values(env)

    return fresh


def _once(value: Closure, key: Expr, slot: int) -> Closure:
    def remembered(env: Environment) -> Any:
        memo = env[slot]
        if key not in memo:
            memo[key] = value(env)
        return memo[key]

    return remembered


def _closure(e: Expr, operands: list[Closure], scope: Closures, span: Span | None) -> Closure:
    """The value of one node from those of its operands."""
    match e:
        case Const():
            value = e.value if e.dtype is index else numerics.constant(e.value, e.dtype)
            return lambda env: value
        case Name():
            slot = scope.slots.get(e.name)
            if slot is None:
                raise InternalError(f"{e.name!r} stands for nothing where it is used")
            return lambda env: env[slot]
        case Unary() | Binary() | Compare() | Call():
            return _applied(_operation(e), operands)
        case Cast():
            return _cast(e.a.dtype, e.dtype, operands[0])
        case Select():
            condition, a, b = operands
            return lambda env: a(env) if condition(env) else b(env)
        case Load():
            return _load(scope.slot(e.buffer), e, operands)
        case Promise():
            return _promise(e, operands, span)
        case _:
            raise InternalError(f"{e!r} is not an expression of loop IR")


def _operation(e: Unary | Binary | Compare | Call) -> Callable[..., Any]:
    dtype = e.children[0].dtype
    exact = dtype is index
    match e:
        case Unary():
            return numerics.unary(e.op, i64 if exact else dtype)
        case Binary():
            return numerics.EXACT[e.op] if exact else numerics.binary(e.op, dtype)
        case Compare():
            return numerics.comparison(e.op)
        case Call():
            return abs if exact else numerics.function(e.function, dtype)


def _applied(operation: Callable[..., Any], operands: list[Closure]) -> Closure:
    match operands:
        case [a]:
            return lambda env: operation(a(env))
        case [a, b]:
            return lambda env: operation(a(env), b(env))
        case _:
            return lambda env: operation(*[operand(env) for operand in operands])


def _cast(source: DType, target: DType, a: Closure) -> Closure:
    if source is index:
        convert = numerics.cast(i64, target)
        return lambda env: convert(np.int64(wrap(a(env), i64)))
    convert = numerics.cast(source, i64 if target is index else target)
    if target is index:
        return lambda env: int(convert(a(env)))
    if source.is_bool:
        # Comparing two indices gives a bool of Python.
        return lambda env: convert(np.bool_(a(env)))
    return lambda env: convert(a(env))


def _load(slot: int, e: Load, operands: list[Closure]) -> Closure:
    component = e.component
    match operands:
        case [i]:
            return lambda env: env[slot].load((i(env),), component)
        case [i, j]:
            return lambda env: env[slot].load((i(env), j(env)), component)
        case _:
            at = tuple_of(operands)
            return lambda env: env[slot].load(at(env), component)


def _promise(e: Promise, operands: list[Closure], span: Span | None) -> Closure:
    a, lo, hi = operands

    def kept(env: Environment) -> Any:
        value, low, high = a(env), lo(env), hi(env)
        if low <= value <= high:
            return value
        raise BoundsError(
            "promise-broken",
            f"a promised value is {value}, which is not in [{low}, {high}]",
            why=f"the algorithm promises that {print_expr(e.a)} lies there",
            fix="pass data for which it holds, or use clamp, which makes it hold",
            span=span,
        )

    return kept
