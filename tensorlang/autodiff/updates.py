"""Reversing the definitions of a Func: from the adjoint of its value to that of what it reads.

The last definition comes first.  Each hands contributions on and leaves the adjoint of the value
that stood before it:

    f[p] = f[p] + e       e gets adjoint[p], and so does what stood before
    f[p] = max(f[p], e)   the terms that are the maximum share adjoint[p] evenly, as torch.amax
    f[p] = f[p] * e       e gets adjoint[p] times the product of the others, also beside zeros
    argmax                the value gets it where the index is the one found
    anything that writes each element once: see scans.py
"""

from tensorlang.algorithm import Definition, FuncRecord
from tensorlang.autodiff.building import Adjoint, Building
from tensorlang.autodiff.derivatives import adjoint_dtype
from tensorlang.autodiff.placing import Contribution
from tensorlang.autodiff.scans import reverse_writes
from tensorlang.autodiff.space import space_of, vars_of
from tensorlang.autodiff.sweep import Guarded, adjoints_of
from tensorlang.ir.associativity import associative_operator
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Load, Select, cast
from tensorlang.ir.functions import identity
from tensorlang.ir.types import i64


def reverse_func(building: Building, func: FuncRecord, adjoint: Adjoint) -> None:
    """Hand the adjoint of a Func on to all that its definitions read."""
    current: Adjoint | None = adjoint
    for number in reversed(range(1, len(func.definitions))):
        current = _reverse_update(building, func, number, current)
        if current is None:
            return
    _reverse_pure(building, func, current)


def _reverse_pure(building: Building, func: FuncRecord, adjoint: Adjoint) -> None:
    definition = func.definitions[0]
    roots = [(definition.values[c], adjoint.bar(c, definition.indices)) for c in adjoint.sources]
    space = space_of(definition, building.regions[func.name])
    building.hand_on(roots, space, None, definition.span)


def _reverse_update(
    building: Building, func: FuncRecord, number: int, adjoint: Adjoint
) -> Adjoint | None:
    """Hand on what one update reads; the adjoint of the value before it."""
    definition = func.definitions[number]
    if _accumulates(building, func, definition, adjoint):
        return adjoint
    found = associative_operator(func.name, definition.indices, definition.values)
    match found:
        case ("min" | "max", (term,)):
            return _reverse_extremum(building, func, number, adjoint, term)
        case ("mul", (term,)):
            return _reverse_product(building, func, number, adjoint, term)
        case ("argmin" | "argmax", (term, here)) if _starts_at_identity(func, number):
            return _reverse_arg(building, func, number, adjoint, term, here)
        case _:
            return reverse_writes(building, func, number, adjoint)


def _condition(definition: Definition) -> Expr | None:
    return None if definition.domain is None else definition.domain.where


def _hand_on_term(
    building: Building, func: FuncRecord, number: int, term: Expr, bar: Guarded
) -> None:
    definition = func.definitions[number]
    space = space_of(definition, building.regions[func.name])
    building.hand_on([(term, bar)], space, _condition(definition), definition.span)


def _accumulates(
    building: Building, func: FuncRecord, definition: Definition, adjoint: Adjoint
) -> bool:
    """f[p] = f[p] + e, f[p] - e, ...: the adjoint of f[p] passes through unchanged."""
    bars = {c: adjoint.bar(c, definition.indices) for c in adjoint.sources}
    roots = [(definition.values[c], bar) for c, bar in bars.items()]
    found = adjoints_of(roots, building.wanted | {func.name})
    for c, bar in bars.items():
        here = Load(func.name, definition.indices, c, func.dtypes[c])
        part = found.pop(here, None)
        if part is None or part.value is not bar.value or len(part.guards) != len(bar.guards):
            return False
    for leaf, part in found.items():
        if any(func.name in e.reads for e in (leaf, part.value, *part.guards)):
            return False
    space = space_of(definition, building.regions[func.name])
    for leaf, part in found.items():
        building.contribute(leaf, part, space, _condition(definition), definition.span)
    return True


# --- min and max ---------------------------------------------------------------------------------


def _reverse_extremum(
    building: Building, func: FuncRecord, number: int, adjoint: Adjoint, term: Expr
) -> Adjoint | None:
    """ties[p] = how many terms are f[p]; each of them gets adjoint[p] / ties[p].

    Of NaN there are no ties, and 0/0 is NaN for all terms, as in torch.amax.
    """
    definition, dtype = func.definitions[number], func.dtypes[0]
    value, before = building.version(func, number), building.version(func, number - 1)
    dims = func.definitions[0].indices
    matters = not _starts_at_identity(func, number)
    first = Compare("eq", Load(before, dims, 0, dtype), Load(value, dims, 0, dtype))
    here = Load(value, definition.indices, 0, dtype)
    is_best = Compare("eq", term, here)
    ties = building.name(f"{func.name}_ties")
    count = Load(ties, definition.indices, 0, i64)
    start = cast(i64, first) if matters else Const(0, i64)
    _add_fold(building, func, number, ties, start, count + cast(i64, is_best))
    bar = adjoint.at(0, definition.indices)
    share = _shared(bar, is_best, count)
    _hand_on_term(building, func, number, term, Guarded((), share))
    if not matters:
        return None
    share = _shared(adjoint.at(0, dims), first, Load(ties, dims, 0, i64))
    return _before(building, func, share)


def _shared(bar: Expr, is_best: Expr, count: Expr) -> Expr:
    return Select(is_best, bar, Const(0.0, bar.dtype)) / cast(bar.dtype, count)


def _starts_at_identity(func: FuncRecord, number: int) -> bool:
    """Whether the value before the update is what its operator leaves unchanged."""
    values = func.definitions[number].values
    start = func.definitions[0].values
    if number != 1:
        return False
    if isinstance(values[0], Binary) and len(values) == 1:
        return start[0] is identity(values[0].op, func.dtypes[0])
    return all(isinstance(e, Const) for e in start)


def _before(building: Building, func: FuncRecord, share: Expr) -> Adjoint:
    """The adjoint of the value before an update, where each element is its own."""
    region = building.regions[func.name]
    part = Contribution(region, vars_of(region), 0, Guarded((), share))
    name = building.name(f"grad_{func.name}")
    return building.adjoint(name, region, func.dtypes, [part], None, func.span)


def _add_fold(
    building: Building, func: FuncRecord, number: int, name: str, start: Expr, step: Expr
) -> None:
    """A Func that folds over the points of an update, like the update itself."""
    update, pure = func.definitions[number], func.definitions[0]
    definitions = (
        Definition(pure.indices, (start,), pure.pure, span=pure.span),
        Definition(
            update.indices,
            (step,),
            update.pure,
            update.domain,
            update.needs_point,
            span=update.span,
        ),
    )
    building.add(FuncRecord(name, func.dims, (start.dtype,), definitions, span=func.span))


# --- prod ----------------------------------------------------------------------------------------


def _reverse_product(
    building: Building, func: FuncRecord, number: int, adjoint: Adjoint, term: Expr
) -> Adjoint | None:
    """others(e) = rest/e where no factor is 0, rest where e is the only 0, else 0.

    `rest` is the product of the factors that are not 0, `zeros` the number of those that are.
    """
    definition, dtype = func.definitions[number], func.dtypes[0]
    dims = func.definitions[0].indices
    before = Load(building.version(func, number - 1), dims, 0, dtype)
    matters = not _starts_at_identity(func, number)
    rest, zeros = (building.name(f"{func.name}_{part}") for part in ("rest", "zeros"))
    one, zero = Const(1.0, dtype), Const(0.0, dtype)

    def is_zero(e: Expr) -> Expr:
        return Compare("eq", e, zero)

    def others(e: Expr, at: tuple[Expr, ...]) -> Expr:
        product, count = Load(rest, at, 0, dtype), Load(zeros, at, 0, i64)
        alone = Select(Compare("eq", count, Const(1, i64)) & is_zero(e), product, zero)
        return Select(Compare("eq", count, Const(0, i64)), product / e, alone)

    start = Select(is_zero(before), one, before) if matters else one
    step = Load(rest, definition.indices, 0, dtype) * Select(is_zero(term), one, term)
    _add_fold(building, func, number, rest, start, step)
    start = cast(i64, is_zero(before)) if matters else Const(0, i64)
    step = Load(zeros, definition.indices, 0, i64) + cast(i64, is_zero(term))
    _add_fold(building, func, number, zeros, start, step)
    work = adjoint_dtype(dtype)
    bar = adjoint.at(0, definition.indices) * cast(work, others(term, definition.indices))
    _hand_on_term(building, func, number, term, Guarded((), bar))
    if not matters:
        return None
    return _before(building, func, adjoint.at(0, dims) * cast(work, others(before, dims)))


# --- argmin and argmax ---------------------------------------------------------------------------


def _reverse_arg(
    building: Building, func: FuncRecord, number: int, adjoint: Adjoint, term: Expr, here: Expr
) -> None:
    """The value was taken at the index found."""
    definition = func.definitions[number]
    if 0 not in adjoint.sources:
        return
    at = Load(building.version(func, number), definition.indices, 1, func.dtypes[1])
    bar = adjoint.bar(0, definition.indices)
    bar = Guarded((*bar.guards, Compare("eq", here, at)), bar.value)
    _hand_on_term(building, func, number, term, bar)
