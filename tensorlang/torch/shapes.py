"""Sizes and shapes of a call whose extents may be symbols of torch's compiler."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorlang.algorithm import Algorithm
from tensorlang.errors import ShapeError
from tensorlang.ir.expr import Binary, Cast, Const, Expr, Name, Size
from tensorlang.ir.linear import to_linear
from tensorlang.ir.printer import print_expr
from tensorlang.ir.walk import fold
from tensorlang.torch.libraries import torch

# An int, or a symbol that stands for one.
Extent = Any
_OPERATIONS: dict[str, Callable[[Extent, Extent], Extent]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda a, b: a // b,
    "mod": operator.mod,
    "min": torch.sym_min,
    "max": torch.sym_max,
}


def sizes_of(algorithm: Algorithm, shapes: Mapping[str, Sequence[Extent]]) -> dict[str, Extent]:
    """Every Size that the shapes of these Inputs tell: M from [M, 2*N], then N.

    Raises: ShapeError (unknown-size).
    """
    equations = [
        (e, n)
        for record in algorithm.inputs
        if record.name in shapes
        for e, n in zip(record.shape, shapes[record.name], strict=True)
    ]
    found: dict[str, Extent] = {}
    for _ in range(len(algorithm.sizes) + 1):
        for e, n in equations:
            solved = _solved(e, n, found)
            if solved is not None:
                found.setdefault(*solved)
    missing = next((size.name for size in algorithm.sizes if size.name not in found), None)
    if missing is not None:
        raise ShapeError(
            "unknown-size",
            f"no shape of an Input of {algorithm.name!r} tells Size {missing!r}",
            why="an operator of torch knows its arguments, and nothing else",
            fix=f"give an Input an extent of {missing}, or make it a number",
        )
    return found


def _solved(e: Expr, n: Extent, known: Mapping[str, Extent]) -> tuple[str, Extent] | None:
    """The one unknown Size of coefficient*size + rest == n."""
    form = to_linear(e)
    unknown = [a for a in form.terms if not a.free <= known.keys()]
    if len(unknown) != 1 or not isinstance(unknown[0], Size):
        return None
    total = n - form.constant
    for atom, coefficient in form.terms.items():
        if atom is not unknown[0]:
            total = total - coefficient * extent(atom, known)
    return unknown[0].name, total // form.terms[unknown[0]]


def extent(e: Expr, names: Mapping[str, Extent]) -> Extent:
    """The value of an extent.  Raises: ShapeError (not-an-extent)."""

    def step(node: Expr, operands: list[Extent]) -> Extent:
        match node:
            case Const():
                return int(node.value)
            case Name():
                return names[node.name]
            case Cast():
                return operands[0]
            case Binary() if node.op in _OPERATIONS:
                return _OPERATIONS[node.op](*operands)
            case _:
                raise ShapeError(
                    "not-an-extent",
                    f"the extent {print_expr(e)} of an operator of torch is no sum or quotient",
                    why="torch's compiler has to follow how shapes come about",
                    fix="use + - * // % minimum and maximum of Sizes",
                )

    return fold(e, step)


def shape_of(shape: Sequence[Expr], names: Mapping[str, Extent]) -> list[Extent]:
    """The extents of an argument."""
    return [extent(e, names) for e in shape]
