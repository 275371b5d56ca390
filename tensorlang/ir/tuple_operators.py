"""Which updates of tuples of numbers are associative: proven of the polynomials that they are.

    (f0, f1)[p] = (f0[p]*a - f1[p]*b, f0[p]*b + f1[p]*a)        complex numbers
    (f0, f1)[p] = (f0[p]*a, f1[p]*a + b)                        affine maps, one after the other
    (f0, f1)[p] = (f0[p] + 1, f1[p] + a)                        a count and a sum

An iteration is a map G of the elements x so far.  It is associative where G(x) = F(x, e) for a
tuple e of its own and an F with an identity: then e is G(identity), and what remains to be shown,
F(F(x, y), z) = F(x, F(y, z)) and the laws of the identity, are equations of polynomials.  Integers
wrap around, so that they hold for them as they stand.  For floats they hold as those of a sum do:
of the reals that they stand for, so that grouping the terms in another way rounds in another way.
See: Halide's AssociativeOpsTable, which lists such operators.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TypeAlias

from tensorlang.ir.expr import Binary, Const, Expr, Load, Unary
from tensorlang.ir.types import DType
from tensorlang.ir.walk import postorder

# A product of atoms: their numbers, in order; and a sum of products, each times a number.
Monomial: TypeAlias = tuple[int, ...]
Polynomial: TypeAlias = dict[Monomial, int]
_MOST_COMPONENTS = 4
_MOST_TERMS = 64
_MOST_CHOICES = 256


@dataclass(frozen=True, slots=True, eq=False)
class TupleOperator:
    """F(x, y), over x as the atoms 0 .. n - 1 and y as the atoms n .. 2n - 1, and its identity."""

    values: tuple[Polynomial, ...]
    start: tuple[int, ...]

    @property
    def is_commutative(self) -> bool:
        """Whether F(x, y) = F(y, x)."""
        n = len(self.values)
        swapped = [{(k,): 1} for k in (*range(n, 2 * n), *range(n))]
        return [_at(p, swapped) for p in self.values] == list(self.values)

    def identity(self, dtypes: Sequence[DType]) -> tuple[Const, ...]:
        """The tuple of no iteration."""
        return tuple(_number(k, dtype) for k, dtype in zip(self.start, dtypes, strict=True))

    def combine(self, a: Sequence[Expr], b: Sequence[Expr]) -> tuple[Expr, ...]:
        """F(a, b)."""
        return tuple(_expr(p, (*a, *b)) for p in self.values)


def tuple_operator(
    func: str, indices: Sequence[Expr], values: Sequence[Expr], *, of_reals: bool = False
) -> tuple[TupleOperator, tuple[Expr, ...]] | None:
    """The operator of an update and the tuple that an iteration combines; None: none is proven.

    Args: of_reals: also of tuples of floats, whose equations hold but for rounding.
    """
    n, dtype = len(values), values[0].dtype
    if n > _MOST_COMPONENTS or any(func in e.reads for e in indices):
        return None
    known = dtype.is_integer or (of_reals and dtype.is_float and n > 1)
    if not known or any(v.dtype is not dtype for v in values):
        return None
    atoms: dict[Expr, int] = {Load(func, tuple(indices), k, dtype): k for k in range(n)}
    update = [_polynomial(value, func, atoms) for value in values]
    maps = [p for p in update if p is not None]
    if len(maps) < n:
        return None
    for start in product((1, 0), repeat=n):
        places = [{(): k} if k else {} for k in start]
        places += [{(k,): 1} for k in range(n, len(atoms))]
        own = [_at(p, places) for p in maps]
        for chosen in islice(product(*(_choices(p, own, n) for p in maps)), _MOST_CHOICES):
            operator = TupleOperator(chosen, start)
            if _is_proven(operator):
                return operator, tuple(_expr(p, tuple(atoms)) for p in own)
    return None


def _is_proven(operator: TupleOperator) -> bool:
    """F(start, y) = y, F(x, start) = x, and F(F(x, y), z) = F(x, F(y, z))."""
    f, n = operator.values, len(operator.values)
    x, y, z = ([{(k,): 1} for k in range(m * n, (m + 1) * n)] for m in range(3))
    start = [{(): k} if k else {} for k in operator.start]

    def combined(a: list[Polynomial], b: list[Polynomial]) -> list[Polynomial]:
        return [_at(p, [*a, *b]) for p in f]

    if combined(start, y) != y or combined(x, start) != x:
        return False
    return combined(combined(x, y), z) == combined(x, combined(y, z))


def _choices(map_: Polynomial, own: list[Polynomial], n: int) -> Iterator[Polynomial]:
    """The values of F that a map may be: each factor of elements is a number, or +-y[k]."""
    factors: dict[Monomial, Polynomial] = {}
    for monomial, count in map_.items():
        elements = tuple(a for a in monomial if a < n)
        rest = tuple(a for a in monomial if a >= n)
        factors.setdefault(elements, {})[rest] = count
    ways: list[list[Polynomial]] = []
    for elements, factor in factors.items():
        found = [{elements: factor[()]}] if factor.keys() == {()} else []
        for sign in (1, -1):
            same = [k for k, e in enumerate(own) if e == _scaled(factor, sign)]
            found += [{(*elements, n + k): sign} for k in same]
        ways.append(found)
    for parts in product(*ways):
        yield {m: c for part in parts for m, c in part.items()}


# --- polynomials ---------------------------------------------------------------------------------


def _polynomial(e: Expr, func: str, atoms: dict[Expr, int]) -> Polynomial | None:
    """An expression over the elements so far; what reads no element is an atom."""
    memo: dict[Expr, Polynomial | None] = {}
    for node in postorder(e):
        memo[node] = _of_node(node, func, atoms, memo)
    return memo[e]


def _of_node(
    node: Expr, func: str, atoms: dict[Expr, int], memo: dict[Expr, Polynomial | None]
) -> Polynomial | None:
    match node:
        case Const() if node.dtype.is_integer or _is_one(node):
            return {(): int(node.value)} if node.value else {}
        case Binary(op="add" | "sub" | "mul" as op, a=a, b=b):
            x, y = memo[a], memo[b]
            if x is None or y is None or len(x) * len(y) > _MOST_TERMS:
                return None
            if op == "mul":
                return _product(x, y)
            total = _sum(x, _scaled(y, 1 if op == "add" else -1))
            # What cancels over the reals need not be 0 in floats, such as inf - inf.
            lost = node.dtype.is_float and total.keys() != x.keys() | y.keys()
            return None if lost else total
        case Unary(op="neg", a=a):
            x = memo[a]
            return None if x is None else _scaled(x, -1)
        case _ if node in atoms or func not in node.reads:
            return {(atoms.setdefault(node, len(atoms)),): 1}
        case _:
            return None


def _is_one(e: Const) -> bool:
    """Any other number of floats is an atom: 0 times inf is not 0, and 3*x is not x + x + x."""
    return e.value in (1, -1)


def _scaled(p: Polynomial, factor: int) -> Polynomial:
    return {m: c * factor for m, c in p.items()}


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    made = dict(a)
    for monomial, count in b.items():
        made[monomial] = made.get(monomial, 0) + count
    return {m: c for m, c in made.items() if c}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    made: Polynomial = {}
    for (m, c), (n, d) in product(a.items(), b.items()):
        made = _sum(made, {tuple(sorted((*m, *n))): c * d})
    return made


def _at(p: Polynomial, places: Sequence[Polynomial]) -> Polynomial:
    """The polynomial with places[k] for atom k."""
    made: Polynomial = {}
    for monomial, count in p.items():
        whole: Polynomial = {(): count}
        for atom in monomial:
            whole = _product(whole, places[atom])
        made = _sum(made, whole)
    return made


def _expr(p: Polynomial, atoms: Sequence[Expr]) -> Expr:
    """The polynomial over expressions of one dtype."""
    dtype = atoms[0].dtype
    zero, one = _number(0, dtype), _number(1, dtype)
    total = zero
    for monomial, count in p.items():
        is_taken = count == -1
        term = one if is_taken else _number(count, dtype)
        for atom in monomial:
            term = atoms[atom] if term is one else Binary("mul", term, atoms[atom])
        if is_taken:
            total = Binary("sub", total, term)
        else:
            total = term if total is zero else Binary("add", total, term)
    return total


def _number(count: int, dtype: DType) -> Const:
    """The number in the dtype, where integers wrap around."""
    if dtype.is_float:
        return Const(float(count), dtype)
    return Const((count - dtype.lowest) % (dtype.highest - dtype.lowest + 1) + dtype.lowest, dtype)
