"""What a loop program must be, between any two passes.

Names: sizes, params, loop variables, Lets and buffers have one name each on a path from the
program to a statement, and stand only below what binds them.
Types: the rules of `typecheck`; conditions are bool; bounds and indices are index; a load and a
store have the rank, the component and the dtypes of their buffer.
Places: inputs are never stored to; Asserts come first and mention only sizes and params; gpu_block
loops are those of one stage (together its grid), and none is in a block of another stage; the
extent of a vectorized loop is the same in every iteration of the loops around it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tensorlang.errors import InternalError
from tensorlang.ir.associativity import reorders_freely
from tensorlang.ir.expr import Expr, Load, Name, Var
from tensorlang.ir.printer import opening_of, print_expr
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Program,
    Stage,
    Stmt,
    Store,
    exprs_of,
)
from tensorlang.ir.typecheck import type_fault
from tensorlang.ir.types import DType, index
from tensorlang.ir.walk import postorder


def verify(program: Program, *, kinds: bool = True) -> None:
    """Raise InternalError when `program` is not valid loop IR, saying where and why.

    Args:
        kinds: whether each loop can run as its kind says; a schedule that is wrong there is found
            only when bounds are known.
    """
    fault = fault_of(program, kinds=kinds)
    if fault is not None:
        raise InternalError(f"the loop IR of {program.name} is not valid: {fault}")


def fault_of(program: Program, *, kinds: bool = True) -> str | None:
    """The first thing wrong with a program, or None; `kinds` as in `verify`."""
    return next(_faults(program, kinds=kinds), None)


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known at a statement: what names stand for, and which vary from point to point."""

    names: dict[str, Name | Buffer]
    varying: frozenset[str] = frozenset()
    stage: Stage | None = None
    # The stage whose gpu_block loops are around.
    blocks_of: Stage | None = None
    in_block: bool = False
    inputs: frozenset[str] = frozenset()
    kinds: bool = True

    def binding(self, name: str, what: Name | Buffer, *, varies: bool = False) -> "_Place":
        varying = self.varying | {name} if varies else self.varying
        return replace(self, names={**self.names, name: what}, varying=varying)


def _faults(program: Program, *, kinds: bool) -> Iterator[str]:
    place = _Place({}, inputs=frozenset(buffer.name for buffer in program.inputs), kinds=kinds)
    scalars: tuple[Name, ...] = (*program.sizes, *program.params)
    for scalar in scalars:
        yield from _in(_header(scalar.name), _new_name(scalar.name, place))
        place = place.binding(scalar.name, scalar)
    scalars_only = place
    for buffer in (*program.inputs, *program.outputs):
        faults = (*_new_name(buffer.name, place), *_buffer_faults(buffer, scalars_only))
        yield from _in(_header(buffer.name), faults)
        place = place.binding(buffer.name, buffer)
    yield from _leading_asserts(program.body, place)


def _header(name: str) -> str:
    return f"`{name}` of the header"


def _leading_asserts(body: Stmt, place: _Place) -> Iterator[str]:
    statements = list(body.statements if isinstance(body, Block) else (body,))
    scalars = {name: what for name, what in place.names.items() if isinstance(what, Name)}
    while statements and isinstance(statements[0], Assert):
        check = statements.pop(0)
        exprs = exprs_of(check)
        faults = (*_expr_faults(exprs, replace(place, names=scalars)), *_not_bool(exprs[0]))
        yield from _in(f"`{opening_of(check)}`", faults)
    for stmt in statements:
        yield from _stmt_faults(stmt, place)


def _stmt_faults(stmt: Stmt, place: _Place) -> Iterator[str]:
    """The faults of a statement, each with where it is, then those of the statements below it."""
    if isinstance(stmt, Block):
        for s in stmt.statements:
            yield from _stmt_faults(s, place)
        return
    # The text of a statement is made only where there is a fault to report.
    yield from (f"{fault}, in `{opening_of(stmt)}`" for fault in _own_faults(stmt, place))
    match stmt:
        case For(var=name, kind=kind):
            inner = place.binding(name, Var(name, index), varies=True)
            if kind is LoopKind.GPU_BLOCK:
                inner = replace(inner, blocks_of=place.stage, in_block=True)
            yield from _stmt_faults(stmt.body, inner)
        case Let(var=name, value=value):
            varies = bool(value.reads) or not place.varying.isdisjoint(value.free)
            yield from _stmt_faults(
                stmt.body, place.binding(name, Var(name, value.dtype), varies=varies)
            )
        case Allocate(buffer=buffer):
            yield from _stmt_faults(stmt.body, place.binding(buffer.name, buffer))
        case Stage():
            yield from _stmt_faults(stmt.body, replace(place, stage=stmt))
        case If():
            yield from _stmt_faults(stmt.body, place)
        case Store() | Assert():
            pass


def _own_faults(stmt: Stmt, place: _Place) -> Iterator[str]:
    if isinstance(stmt, Allocate):
        yield from _new_name(stmt.buffer.name, place)
        yield from _buffer_faults(stmt.buffer, place)
        return
    yield from _expr_faults(exprs_of(stmt), place)
    match stmt:
        case For():
            yield from _new_name(stmt.var, place)
            yield from _not_index((stmt.min, stmt.extent))
            if place.kinds:
                yield from _kind_faults(stmt, place)
        case Let():
            yield from _new_name(stmt.var, place)
        case If():
            yield from _not_bool(stmt.condition)
        case Store():
            yield from _store_faults(stmt, place)
        case Assert():
            yield "an Assert does not stand first in the program"
        case Block() | Stage():
            pass


def _kind_faults(loop: For, place: _Place) -> Iterator[str]:
    if loop.kind is LoopKind.GPU_BLOCK and place.in_block and place.stage is not place.blocks_of:
        yield "a gpu_block loop stands inside a block of another stage"
    if loop.kind is LoopKind.VECTORIZED:
        varying = sorted(place.varying & loop.extent.free)
        if varying:
            yield f"the extent of a vectorized loop varies with `{varying[0]}`"
        if loop.extent.reads:
            yield "the extent of a vectorized loop is read from memory"


def _store_faults(store: Store, place: _Place) -> Iterator[str]:
    buffer = place.names.get(store.buffer)
    if not isinstance(buffer, Buffer):
        yield f"`{store.buffer}` is not a buffer in scope"
        return
    if store.buffer in place.inputs:
        yield f"a store to the input `{store.buffer}`"
    yield from _rank_fault(store.buffer, store.indices, buffer)
    yield from _not_index(store.indices)
    if store.atomic and not reorders_freely(store.buffer, store.indices, store.values):
        yield "an atomic store is no update by an associative and commutative operator"
    given = tuple(value.dtype for value in store.values)
    if given != buffer.dtypes:
        yield f"`{store.buffer}` holds {_dtypes(buffer.dtypes)}, and is given {_dtypes(given)}"


def _expr_faults(exprs: Iterable[Expr], place: _Place) -> Iterator[str]:
    for e in postorder(*exprs):
        if isinstance(e, Name):
            yield from _name_faults(e, place)
        elif isinstance(e, Load):
            yield from _load_faults(e, place)
        fault = type_fault(e)
        if fault is not None:
            yield f"{fault}: {_excerpt(e)}"


def _name_faults(e: Name, place: _Place) -> Iterator[str]:
    bound = place.names.get(e.name)
    if not isinstance(bound, Name):
        yield f"the {_kind_of(e)} is not in scope"
    elif bound is not e:
        yield f"the {_kind_of(e)} stands where the {_kind_of(bound)} is bound"


def _kind_of(e: Name) -> str:
    return f"{type(e).__name__} `{e.name}` of dtype {e.dtype}"


def _load_faults(load: Load, place: _Place) -> Iterator[str]:
    buffer = place.names.get(load.buffer)
    if not isinstance(buffer, Buffer):
        yield f"`{load.buffer}` is not a buffer in scope"
        return
    yield from _rank_fault(load.buffer, load.indices, buffer)
    if not 0 <= load.component < len(buffer.dtypes):
        yield f"`{load.buffer}` has no component {load.component}"
    elif buffer.dtypes[load.component] is not load.dtype:
        held = buffer.dtypes[load.component]
        yield f"component {load.component} of `{load.buffer}` is {held}, loaded as {load.dtype}"


def _rank_fault(name: str, indices: tuple[Expr, ...], buffer: Buffer) -> Iterator[str]:
    if len(indices) != len(buffer.dims):
        yield f"`{name}` has {len(buffer.dims)} dimensions and here {len(indices)} indices"


def _buffer_faults(buffer: Buffer, place: _Place) -> Iterator[str]:
    bounds = [e for dim in buffer.dims for e in (dim.min, dim.extent)]
    yield from _expr_faults(bounds, place)
    yield from _not_index(bounds)
    if not buffer.dtypes:
        yield f"`{buffer.name}` has no component"
    if buffer.fold and len(buffer.fold) != len(buffer.dims):
        yield f"`{buffer.name}` has {len(buffer.dims)} dimensions and {len(buffer.fold)} folds"
    if any(factor < 0 for factor in buffer.fold):
        yield f"`{buffer.name}` has a negative fold"


def _new_name(name: str, place: _Place) -> Iterator[str]:
    if name in place.names:
        yield f"`{name}` is bound twice"


def _not_index(exprs: Iterable[Expr]) -> Iterator[str]:
    for e in exprs:
        if e.dtype is not index:
            yield f"a bound or an index is {e.dtype}, not index: {_excerpt(e)}"


def _not_bool(condition: Expr) -> Iterator[str]:
    if not condition.dtype.is_bool:
        yield f"a condition is {condition.dtype}, not bool: {_excerpt(condition)}"


def _in(where: str, faults: Iterable[str]) -> Iterator[str]:
    return (f"{fault}, in {where}" for fault in faults)


def _dtypes(dtypes: tuple[DType, ...]) -> str:
    return ", ".join(map(str, dtypes))


def _excerpt(e: Expr) -> str:
    text = print_expr(e)
    return text if len(text) <= 80 else text[:77] + "..."
