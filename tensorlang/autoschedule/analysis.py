"""What a schedule wants to know of an algorithm: contractions, epilogues, row reductions."""

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlang.algorithm import Algorithm, Definition, FuncRecord, exprs_of_definition
from tensorlang.ir.associativity import associative_operator
from tensorlang.ir.expr import Binary, Cast, Const, Expr, Load, Var
from tensorlang.ir.types import DType
from tensorlang.ir.walk import loads_of


@dataclass(frozen=True, slots=True)
class Contraction:
    """func[.., i, .., j, ..] += a(.., i, k) * b(.., k, j) over k: a matrix product.

    `rows` and `columns` are the pure Vars that only the first, or only the second, factor has;
    `batch` those that both have.  `narrow`: the factors are 8- or 16-bit values, so that a matrix
    unit takes them.  `operands`: the arrays that they are read from.
    """

    func: str
    number: int
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    batch: tuple[str, ...]
    k: str
    k_extent: Expr
    narrow: bool
    bytes_a: int
    bytes_b: int
    operands: tuple[str, ...]


def contraction_of(func: FuncRecord) -> Contraction | None:
    """The matrix product that the one update of `func` is, if it is one."""
    if len(func.definitions) != 2 or len(func.dtypes) != 1:
        return None
    update = func.definitions[1]
    found = associative_operator(func.name, update.indices, update.values)
    if found is None or found[0] != "add" or update.domain is None:
        return None
    if update.domain.where is not None:
        return None
    if len(update.domain.dims) != 1 or None in update.pure:
        return None
    (name, _, extent), term = update.domain.dims[0], found[1][0]
    if not isinstance(term, Binary) or term.op != "mul":
        return None
    a, b = _names(term.a), _names(term.b)
    if name not in a or name not in b:
        return None
    pure = [v for v in update.pure if v is not None]
    rows = tuple(v for v in pure if v in a and v not in b)
    columns = tuple(v for v in pure if v in b and v not in a)
    batch = tuple(v for v in pure if v in a and v in b)
    if not rows and not columns:
        return None
    sources = source_dtype(term.a), source_dtype(term.b)
    operands = dict.fromkeys(load.buffer for load in loads_of(term.a, term.b))
    return Contraction(
        func.name,
        1,
        rows,
        columns,
        batch,
        name,
        extent,
        all(t.bits <= 16 for t in sources),
        sources[0].bits // 8,
        sources[1].bits // 8,
        tuple(operands),
    )


def _names(e: Expr) -> set[str]:
    """The Vars that stand in the indices of the loads of an expression."""
    return {name for load in loads_of(e) for name in load.free}


def source_dtype(e: Expr) -> DType:
    """The dtype before exact widening: f16 of f32(A[i, k])."""
    while isinstance(e, Cast) and e.dtype.is_float == e.a.dtype.is_float:
        e = e.a
    return e.dtype


def own_positions(
    consumer: FuncRecord, producer: str, positions: frozenset[int]
) -> dict[int, int] | None:
    """For those dimensions of `producer`, the consumer's dimension whose Var it is read at.

    None where such an index is anything but one pure Var of the consumer: another point, or a
    reduction's.
    """
    found: dict[int, int] = {}
    for definition in consumer.definitions:
        loads = (load for e in exprs_of_definition(definition) for load in loads_of(e))
        for load in loads:
            if load.buffer != producer:
                continue
            for k in positions:
                index = load.indices[k]
                if not isinstance(index, Var) or index.name not in definition.pure:
                    return None
                at = definition.pure.index(index.name)
                if found.setdefault(k, at) != at:
                    return None
    return found


def is_reduction(func: str, definition: Definition) -> bool:
    """Whether a definition combines terms by an associative operator."""
    return associative_operator(func, definition.indices, definition.values) is not None


def is_recurrence(func: FuncRecord) -> bool:
    """Whether an update reads the Func at another point than the one it defines, as a scan does."""
    return any(
        load.buffer == func.name
        and any(a is not b for a, b in zip(load.indices, definition.indices, strict=True))
        for definition in func.definitions
        for load in loads_of(*definition.values)
    )


def reductions(func: FuncRecord) -> Iterator[tuple[int, Definition]]:
    """The updates of `func` that reduce over a domain by an associative operator."""
    for number, definition in enumerate(func.definitions):
        if number == 0 or definition.domain is None:
            continue
        if is_reduction(func.name, definition):
            yield number, definition


def sources_of(algorithm: Algorithm, name: str) -> set[str]:
    """All that a Func is made of, Inputs and other Funcs."""
    funcs = {f.name: f for f in algorithm.funcs}
    found: set[str] = set()
    stack = [name]
    while stack:
        func = funcs.get(stack.pop())
        for definition in func.definitions if func else ():
            read = {x.buffer for e in exprs_of_definition(definition) for x in loads_of(e)} - found
            found |= read
            stack += read
    return found - {name}


def operations(func: FuncRecord) -> int:
    """A rough count of the scalar operations of one point of the pure definition."""
    from_values = (e for d in func.definitions for e in d.values)
    return sum(not isinstance(n, (Const, Var, Load)) for v in from_values for n in _nodes(v))


def _nodes(e: Expr) -> Iterator[Expr]:
    seen: set[Expr] = set()
    stack = [e]
    while stack:
        top = stack.pop()
        if top not in seen:
            seen.add(top)
            yield top
            stack.extend(top.children)
