"""Everything that a call needs to know but its data, once its arguments have been checked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorlang import arrays
from tensorlang.arrays import Allocator, Array, ArrayInfo, View
from tensorlang.backends.executable import Call, Prepare, Run
from tensorlang.calling.check_arrays import (
    Place,
    check_count,
    check_device,
    check_fit,
    check_output,
    check_place,
    check_rank,
    roles,
)
from tensorlang.calling.evaluate import evaluate
from tensorlang.calling.overlap import Span, span_of
from tensorlang.calling.signature import Argument, Signature
from tensorlang.calling.sizes import solve_sizes
from tensorlang.errors import BoundsError, ShapeError, TensorlangError
from tensorlang.ir.expr import Expr
from tensorlang.ir.expr_text import print_expr
from tensorlang.ir.stmt import Assert, Block, Program
from tensorlang.ir.types import Scalar
from tensorlang.target import Target

_ERRORS: dict[str, type[TensorlangError]] = {"ShapeError": ShapeError, "BoundsError": BoundsError}


@dataclass(frozen=True, slots=True)
class Contract:
    """What every call of a program has to fulfil, and what then runs."""

    signature: Signature
    asserts: tuple[Assert, ...]
    target: Target
    prepare: Prepare

    def checked_params(self) -> tuple[str, ...]:
        """The Params on which shapes or asserts depend."""
        signature = self.signature
        exprs = [e for a in (*signature.inputs, *signature.outputs) for e in a.shape]
        exprs += [e for a in self.asserts for e in (a.condition, *a.values)]
        read = frozenset[str]().union(*(e.free for e in exprs))
        return tuple(p.name for p in signature.params if p.name in read)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with the arrays of a call whose arguments fit.

    Args:
        views: how each Input's array becomes what the backend takes; empty when all are so.
        out_views: the same for the arrays of `out=`.
        allocators: of the outputs; empty with `out=`.
        spans: of the tensors of a call with `out=`; empty for NumPy, which compares faster.
        run: computes the outputs; does nothing where none has an element.
    """

    run: Run
    views: tuple[View | None, ...]
    out_views: tuple[View | None, ...]
    allocators: tuple[Allocator, ...]
    spans: tuple[Span, ...]


def make_plan(
    contract: Contract,
    inputs: Sequence[Array],
    outs: Sequence[Array] | None,
    sizes: Mapping[str, int],
    params: Mapping[str, Scalar],
) -> Plan:
    """Check the arguments of a call; the arrays are those of NumPy or torch.

    Raises: ShapeError, BoundsError, TargetError: whatever does not fit.
    """
    signature, carrier = contract.signature, contract.target.carrier
    check_count(signature, inputs)
    infos, out_infos, place = _check_arrays(contract, inputs, outs or ())
    solved = solve_sizes(signature, [info.shape for info in infos], sizes, params)
    names: dict[str, Scalar] = {**params, **solved}
    _check_asserts(contract.asserts, names)
    shapes = [_output_shape(argument, names) for argument in signature.outputs]
    for argument, info, shape in zip(signature.outputs, out_infos, shapes, strict=False):
        check_output(argument, info, shape, contract.target)
    allocators = [
        arrays.allocator(carrier, place.kind, place.device, argument.dtype, shape)
        for argument, shape in zip(signature.outputs, shapes, strict=True)
    ]
    runs = any(math.prod(shape) for shape in shapes)
    return Plan(
        contract.prepare(solved, place.device) if runs else _nothing,
        _views(contract, signature.inputs, infos),
        _views(contract, signature.outputs, out_infos),
        tuple(allocators) if outs is None else (),
        tuple(map(span_of, (*infos, *out_infos))) if outs and place.kind == "torch" else (),
    )


def call_of(
    contract: Contract,
    shapes: Sequence[Sequence[int]],
    sizes: Mapping[str, int],
    params: Mapping[str, Scalar],
) -> Call:
    """A call with arrays of these shapes, one an Input.

    Raises: ShapeError, BoundsError: a call that would be refused.
    """
    signature = contract.signature
    check_count(signature, shapes)
    given = [tuple(shape) for shape in shapes]
    for argument, shape in zip(signature.inputs, given, strict=True):
        check_rank("Input", argument, shape)
    solved = solve_sizes(signature, given, sizes, params)
    names: dict[str, Scalar] = {**params, **solved}
    _check_asserts(contract.asserts, names)
    made = [_output_shape(argument, names) for argument in signature.outputs]
    return Call(solved, params, (*given, *made))


def _nothing(
    params: Mapping[str, Scalar], inputs: Sequence[Array], outputs: Sequence[Array]
) -> None:
    """What is done for outputs without elements."""


def _views(
    contract: Contract, arguments: Sequence[Argument], infos: Sequence[ArrayInfo]
) -> tuple[View | None, ...]:
    carrier = contract.target.carrier
    pairs = zip(infos, arguments, strict=False)
    views = tuple(arrays.view_as(carrier, info, argument.dtype) for info, argument in pairs)
    return () if all(view is None for view in views) else views


def viewed(given: tuple[Array, ...], views: tuple[View | None, ...]) -> tuple[Array, ...]:
    """The arrays as the backend takes them."""
    if not views:
        return given
    pairs = zip(given, views, strict=True)
    return tuple([array if view is None else view(array) for array, view in pairs])


def _check_arrays(
    contract: Contract, inputs: Sequence[Array], outs: Sequence[Array]
) -> tuple[list[ArrayInfo], list[ArrayInfo], Place]:
    """What the arrays are, and where the outputs go, once each array is seen to fit."""
    infos: list[ArrayInfo] = []
    place: Place | None = None
    for role, argument, value in roles(contract.signature, inputs, outs):
        info = arrays.info_of(value)
        place = place or Place(info.kind, info.device, argument.name)
        check_place(role, argument, info.kind, info.device, place)
        check_device(argument, info.device, contract.target)
        check_fit(role, argument, info)
        infos.append(info)
    carrier = contract.target.carrier
    place = place or Place(carrier, arrays.default_device(carrier), "")
    return infos[: len(inputs)], infos[len(inputs) :], place


def leading_asserts(program: Program) -> tuple[Assert, ...]:
    """The Asserts that come first in a program."""
    body = program.body
    statements = body.statements if isinstance(body, Block) else (body,)
    found: list[Assert] = []
    for statement in statements:
        if not isinstance(statement, Assert):
            break
        found.append(statement)
    return tuple(found)


def _check_asserts(asserts: Sequence[Assert], names: Mapping[str, Scalar]) -> None:
    memo: dict[Expr, Scalar] = {}
    for a in asserts:
        if not evaluate(a.condition, names, memo):
            values = [evaluate(v, names, memo) for v in a.values]
            what, why, fix = (text.format(*values) for text in (a.what, a.why, a.fix))
            raise _ERRORS[a.error](a.code, what, why=why, fix=fix)


def _output_shape(argument: Argument, names: Mapping[str, Scalar]) -> tuple[int, ...]:
    shape = tuple(int(evaluate(e, names)) for e in argument.shape)
    for dim, extent in enumerate(shape):
        if extent < 0:
            e = argument.shape[dim]
            values = ", ".join(f"{name} = {names[name]}" for name in sorted(e.free))
            raise ShapeError(
                "negative-extent",
                f"dimension {dim} of output '{argument.name}' would have {extent} elements",
                why=f"it is {print_expr(e)}, and {values}",
                fix="pass larger arrays",
            )
    return shape
