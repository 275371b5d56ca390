"""Sizes from shapes: every Size of a call, solved from the extents of its Inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tensorlang.calling.evaluate import evaluate
from tensorlang.calling.signature import Argument, Signature
from tensorlang.errors import ShapeError
from tensorlang.ir.expr import Binary, Const, Expr, Size, Unary
from tensorlang.ir.expr_text import print_expr
from tensorlang.ir.types import Scalar
from tensorlang.ir.walk import fold


@dataclass(frozen=True, slots=True)
class _Equation:
    """Dimension `dim` of an Input's array has `extent` elements, and its shape says `e`."""

    argument: Argument
    dim: int
    extent: int

    @property
    def e(self) -> Expr:
        return self.argument.shape[self.dim]

    def __str__(self) -> str:
        return f"dimension {self.dim} of '{self.argument.name}'"


@dataclass(frozen=True, slots=True)
class _Linear:
    """coefficient*unknown + constant; the coefficient is 0 where all is known."""

    coefficient: int
    unknown: str
    constant: int


@dataclass(slots=True)
class _Solution:
    """The names known so far, and for each Size what made it known."""

    names: dict[str, Scalar]
    origin: dict[str, str] = field(default_factory=dict[str, str])

    def linear(self, e: Expr) -> _Linear | None:
        """`e` as a linear expression of one unknown Size; None where it is not one."""
        return fold(e, self._linear_step)

    def _linear_step(self, e: Expr, parts: list[_Linear | None]) -> _Linear | None:
        if e.free <= self.names.keys():
            return _Linear(0, "", int(evaluate(e, self.names)))
        known = [p for p in parts if p is not None]
        if len(known) < len(parts):
            return None
        match e:
            case Size():
                return _Linear(1, e.name, 0)
            case Unary(op="neg"):
                return _scaled(known[0], -1)
            case Binary(op="add"):
                return _added(known[0], known[1])
            case Binary(op="sub"):
                return _added(known[0], _scaled(known[1], -1))
            case Binary(op="mul"):
                a, b = sorted(known, key=lambda p: p.unknown)
                return None if a.unknown else _scaled(b, a.constant)
            case _:
                return None


def _scaled(p: _Linear, factor: int) -> _Linear:
    return _Linear(p.coefficient * factor, p.unknown, p.constant * factor)


def _added(a: _Linear, b: _Linear) -> _Linear | None:
    if a.unknown and b.unknown and a.unknown != b.unknown:
        return None
    return _Linear(a.coefficient + b.coefficient, a.unknown or b.unknown, a.constant + b.constant)


def solve_sizes(
    signature: Signature,
    shapes: Sequence[tuple[int, ...]],
    given: Mapping[str, int],
    params: Mapping[str, Scalar],
) -> dict[str, int]:
    """Every Size: `given`, or the exact solution of extents that are linear in one unknown.

    Args: shapes: one an Input, of the right rank.
    Raises: ShapeError: size-not-whole, size-not-known, size-conflict.
    """
    direct = _direct(signature, shapes, given)
    if direct is not None:
        return direct
    equations = [
        _Equation(argument, dim, extent)
        for argument, shape in zip(signature.inputs, shapes, strict=True)
        for dim, extent in enumerate(shape)
    ]
    solution = _Solution({**params, **given}, dict.fromkeys(given, "sizes="))
    while any(_solve(equation, solution) for equation in equations):
        pass
    missing = [name for name in signature.sizes if name not in solution.names]
    if missing:
        raise _size_not_known(missing[0], signature)
    memo: dict[Expr, Scalar] = {}
    for equation in equations:
        if evaluate(equation.e, solution.names, memo) != equation.extent:
            raise _size_conflict(equation, solution)
    return {name: int(solution.names[name]) for name in signature.sizes}


def _direct(
    signature: Signature, shapes: Sequence[tuple[int, ...]], given: Mapping[str, int]
) -> dict[str, int] | None:
    """Every Size where each extent is one or a number, and all agree; None otherwise."""
    found = dict(given)
    for argument, shape in zip(signature.inputs, shapes, strict=True):
        for e, extent in zip(argument.shape, shape, strict=True):
            if isinstance(e, Size):
                agrees = found.setdefault(e.name, extent) == extent
            else:
                agrees = isinstance(e, Const) and e.value == extent
            if not agrees:
                return None
    return found if len(found) == len(signature.sizes) else None


def _solve(equation: _Equation, solution: _Solution) -> bool:
    """Whether the equation has told a Size that was not known."""
    p = solution.linear(equation.e)
    if p is None or p.coefficient == 0:
        return False
    value, rest = divmod(equation.extent - p.constant, p.coefficient)
    if rest or value < 0:
        raise _size_not_whole(equation, p)
    solution.names[p.unknown] = value
    solution.origin[p.unknown] = str(equation)
    return True


def _size_not_whole(equation: _Equation, p: _Linear) -> ShapeError:
    # The Size starts where the extent is not negative.
    start = max(0, -(p.constant // p.coefficient)) if p.coefficient > 0 else 0
    extents = (p.coefficient * value + p.constant for value in range(start, start + 3))
    legal = [str(extent) for extent in extents if extent >= 0]
    return ShapeError(
        "size-not-whole",
        f"{equation} is {equation.extent}, but no '{p.unknown}' makes it so",
        why=f"it is {print_expr(equation.e)} by {equation.argument}, "
        "and a Size is a whole number >= 0",
        fix="an extent of " + ", ".join([*legal, "..."]),
    )


def _size_not_known(name: str, signature: Signature) -> ShapeError:
    return ShapeError(
        "size-not-known",
        f"the Size '{name}' of '{signature.name}' is not known",
        why=f"no shape of an Input determines it: {signature}",
        fix=f'give it: sizes={{"{name}": ...}}',
    )


def _size_conflict(equation: _Equation, solution: _Solution) -> ShapeError:
    argument, e = equation.argument, equation.e
    names = sorted(name for name in e.free if name in solution.origin)
    origins = ", ".join(
        f"{name} = {solution.names[name]} from {solution.origin[name]}" for name in names
    )
    needed = int(evaluate(e, solution.names))
    return ShapeError(
        "size-conflict",
        f"{equation} is {equation.extent}, but has to be {needed}",
        why=f"'{argument.name}' is {argument.dtype}{argument.shape_text()}"
        + (f", and {origins}" if origins else ""),
        fix="pass arrays whose shapes agree" if origins else f"pass an array with {needed} there",
    )
