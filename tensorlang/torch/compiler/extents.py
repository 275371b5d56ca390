"""Extents of fake tensors, ints or symbols of torch's compiler, as index expressions."""

from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from typing import Any

from tensorlang.errors import DefinitionError
from tensorlang.ir.expr import Const, Expr, Size
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.types import index
from tensorlang.torch.libraries import torch

sympy: Any = import_module("sympy")
Extent = Any


def expr_of(n: Extent) -> Expr:
    """An int as a constant, a symbol `s0` as the Size `s0`, and what is made of them.

    Raises: DefinitionError (not-an-extent).
    """
    if isinstance(n, torch.SymInt):
        return _from_sympy(n.node.expr)
    return Const(int(n), index)


def shape_exprs(shape: Sequence[Extent]) -> tuple[Expr, ...]:
    """The extents of a tensor."""
    return tuple(map(expr_of, shape))


def is_one(e: Expr) -> bool:
    """Whether an extent is known to be 1: what is broadcast.  Symbols never are."""
    return isinstance(e, Const) and e.value == 1


def same(a: Extent, b: Extent) -> bool:
    """Whether two extents are equal for all values of their symbols, as far as can be told."""
    return bool(sympy.sympify(_plain(a)) == sympy.sympify(_plain(b)))


def _plain(n: Extent) -> Any:
    return n.node.expr if isinstance(n, torch.SymInt) else n


_OPERATIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "Add": lambda a, b: a + b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "IntTrueDiv": lambda a, b: a // b,
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "Max": maximum,
    "Min": minimum,
}


def _from_sympy(e: Any) -> Expr:
    if e.is_Integer:
        return Const(int(e), index)
    if e.is_Symbol:
        return Size(str(e))
    kind = type(e).__name__
    if kind == "Pow" and e.exp.is_Integer and int(e.exp) > 0:
        return reduce(_OPERATIONS["Mul"], [_from_sympy(e.base)] * int(e.exp))
    if kind in _OPERATIONS:
        return reduce(_OPERATIONS[kind], map(_from_sympy, e.args))
    raise DefinitionError(
        "not-an-extent",
        f"the extent {e} is no sum, product or quotient of sizes",
        why=f"it is a {kind} to torch's compiler",
        fix="mark the dimension as static, or leave this operator to torch",
    )
