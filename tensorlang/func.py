"""Func and Input: how an algorithm is written.

f[x, y] = e                     pure: every index a different Var
f[x, r] = f[x, r - 1] + g[r]    update: runs for every pure Var, then for r in order
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from typing import cast as cast_type

from tensorlang.algorithm import Definition, Domain, FuncRecord, InputRecord, exprs_of_definition
from tensorlang.domain import Reduction, RVar, Scan, domains_of, shape_of
from tensorlang.errors import DefinitionError
from tensorlang.ir.expr import Expr, Load, Operand, Operators, Var, as_expr, cast, check_name
from tensorlang.ir.interning import node
from tensorlang.ir.types import DType, index, promote
from tensorlang.ir.walk import loads_of, postorder, rewrite
from tensorlang.reductions import first_of_scan, start_of, step_of, step_of_scan
from tensorlang.scanning import pure_key, scans_of
from tensorlang.span import caller_span


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """Stands for one Func or Input: two of them with one name are equal, their handles are not."""

    source: "Func | Input"


@node
class Access(Expr):
    """source[indices], component `component`, while an algorithm is written."""

    handle: Handle
    indices: tuple[Expr, ...]
    component: int
    dtype: DType

    def __post_init__(self) -> None:
        self._set(self.dtype, *self.indices)


def _index(value: object, what: str) -> Expr:
    """An index: an int, an index expression, or integer data converted to index."""
    e = as_expr(value, index)
    if not e.dtype.is_integer:
        raise DefinitionError(
            "index-not-integer",
            f"{what} is indexed by a {e.dtype}",
            why="an index is an integer",
            fix="cast it, as in i32(e), and bound it with clamp",
        )
    return cast(index, e)


def _items(key: object) -> tuple[Any, ...]:
    return cast_type("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)


def _indices(key: object, rank: int, what: str) -> tuple[Expr, ...]:
    items = _items(key)
    if len(items) != rank:
        raise DefinitionError(
            "wrong-rank",
            f"{what} has {rank} dimension(s) but is indexed by {len(items)}",
            why="there is one index a dimension, outermost first",
            fix=f"give {rank} index(es), such as [{', '.join('ijklmnop'[:rank])}]",
        )
    return tuple(_index(item, what) for item in items)


class Input:
    """An array argument of a Pipeline, defined inside its shape only.

    Args:
        name: an identifier, unique in the Pipeline.
        dtype: of its elements.
        shape: ints, Sizes, or expressions of them, outermost first.
    """

    __slots__ = ("dtype", "handle", "name", "shape", "span")

    def __init__(self, name: str, dtype: DType, shape: Sequence[Operand]) -> None:
        check_name(name, "Input")
        if not isinstance(dtype, DType) or dtype is index:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DefinitionError(
                "bad-dtype",
                f"{dtype!r} is not a dtype for Input {name!r}",
                why="an array has one of tensorlang's dtypes",
                fix="one of bool i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3 f8e5m2 f16 bf16 tf32 f32 f64",
            )
        self.name, self.dtype, self.span = name, dtype, caller_span()
        self.handle = Handle(self)
        self.shape = shape_of(shape, f"Input {name!r}")

    def __getitem__(self, key: object) -> Expr:
        indices = _indices(key, len(self.shape), f"Input '{self.name}'")
        return Access(self.handle, indices, 0, self.dtype)

    def __iter__(self) -> Iterator[Expr]:
        raise _not_iterable(f"Input {self.name!r}")

    def __repr__(self) -> str:
        return f"Input({self.name!r}, {self.dtype}, rank {len(self.shape)})"

    def record(self) -> InputRecord:
        return InputRecord(self.name, self.dtype, self.shape, span=self.span)


def _not_iterable(what: str) -> DefinitionError:
    """Without it Python would ask for [0], [1], ... and never end."""
    return DefinitionError(
        "not-iterable",
        f"{what} cannot be iterated over or unpacked",
        why="its extent is not known while the algorithm is written",
        fix="index it with a Var or a variable of an RDom",
    )


Source: TypeAlias = "Func | Input"


class TupleAccess:
    """A point of a tuple-valued Func: index or unpack it to get its components."""

    __slots__ = ("components",)

    def __init__(self, components: tuple[Expr, ...]) -> None:
        self.components = components

    def __getitem__(self, component: int) -> Expr:
        return self.components[component]

    def __len__(self) -> int:
        return len(self.components)

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.components)


class Func:
    """A pure definition over the integer grid, and update definitions that change it in order.

    C = Func("C")
    C[i, j] = sum(f32(A[i, k]) * f32(B[k, j]), over=k)    # C[i, j] = 0, then C[i, j] += ... over k
    hist[clamp(i32(img[r[0], r[1]]), 0, 255)] += 1         # an update that scatters

    A tuple on the right side makes the Func tuple-valued.  A Func freezes when a Pipeline takes it.
    See: Halide's Func, and its pure and update definitions.
    """

    __slots__ = (
        *("definitions", "depends", "dims", "dtypes", "frozen_by", "handle", "home", "name"),
        "span",
    )

    def __init__(self, name: str) -> None:
        check_name(name, "Func")
        self.name, self.span = name, caller_span()
        self.handle = Handle(self)
        self.dims: tuple[str, ...] = ()
        self.dtypes: tuple[DType, ...] = ()
        self.definitions: list[Definition] = []
        self.depends: dict[str, Source] = {}
        self.home: str | None = None
        self.frozen_by: str | None = None

    def __repr__(self) -> str:
        return f"Func({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Func) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __getitem__(self, key: object) -> Any:
        if not self.definitions:
            raise DefinitionError(
                "undefined-func",
                f"Func {self.name!r} is read before it is defined",
                why="its rank and dtype follow from its pure definition",
                fix=f"define it first: {self.name}[i, j] = ...",
            )
        indices = _indices(key, len(self.dims), f"Func '{self.name}'")
        parts = tuple(Access(self.handle, indices, k, t) for k, t in enumerate(self.dtypes))
        return parts[0] if len(parts) == 1 else TupleAccess(parts)

    def __iter__(self) -> Iterator[Expr]:
        raise _not_iterable(f"Func {self.name!r}")

    def __setitem__(self, key: object, value: object) -> None:
        if self.frozen_by is not None:
            raise DefinitionError(
                "frozen-func",
                f"Func {self.name!r} cannot be given another definition",
                why=f"Pipeline {self.frozen_by!r} has taken it, and a Pipeline never changes",
                fix="define all of the Func before the Pipeline is made, or make a new Func",
            )
        values = _components(value)
        if not self.definitions and (scans := scans_of(values)):
            _define_scans(self, _items(key), values, scans)
        elif not self.definitions and len(values) == 1 and isinstance(values[0], Reduction):
            _define_reduction(self, key, values[0])
        elif not self.definitions:
            _define_pure(self, key, values)
        else:
            define_update(self, key, values)

    def record(self) -> FuncRecord:
        definitions = tuple(self.definitions)
        return FuncRecord(self.name, self.dims, self.dtypes, definitions, self.home, span=self.span)


def _components(value: object) -> tuple[object, ...]:
    if isinstance(value, TupleAccess):
        return value.components
    if isinstance(value, tuple):
        return tuple(v if isinstance(v, Operators) else as_expr(v) for v in value)  # type: ignore[misc]
    return (value.as_expr() if isinstance(value, Operators) else value,)


def _define_pure(func: Func, key: object, values: tuple[object, ...]) -> None:
    items = _items(key)
    if not all(type(v) is Var for v in items) or len(set(items)) < len(items):
        raise DefinitionError(
            "first-definition-not-pure",
            f"the first definition of {func.name!r} has an index that is no Var of its own",
            why="the first definition gives every point a value, so each index is a different Var",
            fix=f"{func.name}[i, j] = initial value first, then this definition as an update",
        )
    func.dims = tuple(v.name for v in items)
    taken = tuple(_take(func, as_expr(v)) for v in values)
    taken = tuple(cast(e.dtype.storage, e) if e.dtype is index else e for e in taken)
    for e in taken:
        _check_free(func, e, frozenset(func.dims))
    func.dtypes = tuple(e.dtype for e in taken)
    func.definitions.append(Definition(tuple(items), taken, func.dims, span=caller_span()))


def _define_scans(
    func: Func, key: tuple[Any, ...], values: tuple[object, ...], scans: tuple[Scan, ...]
) -> None:
    """f[x, r] = cumsum(e, over=r)   ->   f[x, r] = 0; f[x, r] = f[x, r - 1] + e over r

    Inside a larger expression each is a Func of its own, and f is pure.
    """
    pure = pure_key(func.name, key, scans)
    if len(values) == 1 and values[0] is scans[0]:
        (scan,) = scans
        _define_pure(func, pure, (first_of_scan(scan),))
        point = RVar(scan.domain, 0)
        before = tuple(
            as_expr(point - 1) if type(p) is Var and p.name == point.name else k
            for p, k in zip(pure, key, strict=True)
        )
        define_update(func, key, (step_of_scan(scan, func[before]),), scan.domain)
        return
    lifted: dict[Expr, Expr] = {}
    taken = set(func.depends)
    for scan in scans:
        made = Func(_unused(f"{func.name}_{scan.op}", taken))
        taken.add(made.name)
        _define_scans(made, key, (scan,), (scan,))
        lifted[scan] = made[pure]
    over = frozenset(scan.domain.dims[0][0] for scan in scans)

    def rule(e: Expr) -> Expr:
        return Var(e.name) if isinstance(e, RVar) and e.name in over else lifted.get(e, e)

    _define_pure(func, pure, tuple(rewrite(as_expr(v), rule) for v in values))


def _unused(base: str, taken: Collection[str]) -> str:
    """base, base_1, ...: the first that is not taken."""
    names = (base, *(f"{base}_{n}" for n in range(1, len(taken) + 1)))
    return next(name for name in names if name not in taken)


def _define_reduction(func: Func, key: object, reduction: Reduction) -> None:
    """f[x] = sum(e, over=r)   ->   f[x] = 0; f[x] = f[x] + e"""
    if reduction.op in ("argmin", "argmax"):
        # f[x] is the index alone; its (value, index) pairs are a Func of their own.
        _define_pure(func, key, (reduction,))
        return
    define_reduced(func, key, reduction)


def define_reduced(func: Func, key: object, reduction: Reduction) -> None:
    """The pure definition and the update that a reduction is; of argmax, with its pairs."""
    _define_pure(func, key, start_of(reduction))
    define_update(func, key, step_of(reduction, _parts(func[key])), reduction.domain)
    if reduction.initial is None and reduction.op in ("min", "max", "argmin", "argmax"):
        func.definitions[-1] = replace(func.definitions[-1], needs_point=True)


def _parts(current: Expr | TupleAccess) -> tuple[Expr, ...]:
    return tuple(current) if isinstance(current, TupleAccess) else (current,)


def define_update(
    func: Func, key: object, values: tuple[object, ...], domain: Domain | None = None
) -> None:
    """Add an update, over a domain where it has one that its variables do not tell."""
    what = f"Func '{func.name}'"
    if len(values) != len(func.dtypes):
        raise DefinitionError(
            "wrong-components",
            f"{what} has {len(func.dtypes)} component(s), but this update gives {len(values)}",
            why="an update gives every component of a tuple-valued Func, at once",
            fix="give a tuple with one value a component",
        )
    surface = (*_indices(key, len(func.dims), what), *(as_expr(v) for v in values))
    domain = _domain_of(func, surface, domain)
    indices = tuple(_take(func, e) for e in surface[: len(func.dims)])
    taken = tuple(
        _as_component(func, _take(func, as_expr(v, t)), t)
        for v, t in zip(values, func.dtypes, strict=True)
    )
    pure = _places(func, indices, taken, frozenset(domain.names if domain else ()))
    definition = Definition(indices, taken, pure, domain, span=caller_span())
    _check_update(func, definition)
    func.definitions.append(definition)


def _as_component(func: Func, e: Expr, dtype: DType) -> Expr:
    if promote(e.dtype.storage, dtype) is not dtype:
        raise DefinitionError(
            "update-changes-dtype",
            f"an update of {func.name!r} gives a {e.dtype}, but {func.name!r} is {dtype}",
            why="the dtype of a Func is that of its pure definition, and nothing narrows silently",
            fix=f"cast the value, as in {dtype}(...), or let {func.name!r} be {e.dtype} at first",
        )
    return cast(dtype, e)


def _domain_of(func: Func, surface: tuple[Expr, ...], given: Domain | None) -> Domain | None:
    """The one domain whose variables stand in the definition, with its predicate taken."""
    found = domains_of(*surface)
    if given is not None:
        found[given.name] = given
    if len(found) > 1:
        raise DefinitionError(
            "two-domains",
            f"an update of {func.name!r} uses the domains {', '.join(map(repr, found))}",
            why="an update runs over the points of one domain",
            fix="make one RDom with all the dimensions, and use its variables r[0], r[1], ...",
        )
    for domain in found.values():
        where = None if domain.where is None else _take(func, domain.where)
        return Domain(domain.name, domain.dims, where)
    return None


def _take(func: Func, root: Expr) -> Expr:
    """`root` over core nodes; `func` comes to depend on what it reads."""

    def rule(e: Expr) -> Expr:
        match e:
            case RVar():
                return Var(e.name)
            case Access():
                source = e.handle.source
                func.depends[source.name] = _same(func, source)
                return Load(source.name, e.indices, e.component, e.dtype)
            case Reduction():
                return _lift(func, e)
            case Scan():
                raise _misplaced_scan(func, e)
            case _:
                return e

    return rewrite(root, rule)


def _misplaced_scan(func: Func, scan: Scan) -> DefinitionError:
    return DefinitionError(
        "scan-misplaced",
        f"{scan.op} stands in an update, a reduction or another scan of {func.name!r}",
        why="it makes a Func of its own, with a value at each point of its domain",
        fix=f"define it first, c[i, k] = {scan.op}(e, over=k), and read c here",
    )


def _same(func: Func, source: Source) -> Source:
    known = func if source.name == func.name else func.depends.get(source.name, source)
    if known is not source:
        raise DefinitionError(
            "name-twice",
            f"two different things named {source.name!r} are read by {func.name!r}",
            why="names are unique in a Pipeline: directives and generated code use them",
            fix="rename one of them",
        )
    return source


def _lift(home: Func, reduction: Reduction) -> Expr:
    """A reduction inside a larger expression becomes the Func `<home>_<op>`."""
    where = reduction.domain.where
    roots = tuple(e for e in (reduction.body, where, reduction.initial) if e is not None)
    outer = domains_of(*roots)
    outer.pop(reduction.domain.name, None)
    bound = {name for domain in outer.values() for name in domain.names}
    free = {v for root in roots for v in _vars_of(root)} - set(reduction.domain.names)
    names = [v for v in home.dims if v in free] + sorted(free - set(home.dims))

    def unbind(e: Expr) -> Expr:
        return Var(e.name) if isinstance(e, RVar) and e.name in bound else e

    lifted = Func(_unused(f"{home.name}_{reduction.op}", home.depends))
    lifted.home, lifted.span = home.name, caller_span()
    domain = reduction.domain
    if where is not None:
        domain = Domain(domain.name, domain.dims, rewrite(where, unbind))
    key = tuple(Var(v) for v in names)
    body = rewrite(reduction.body, unbind)
    initial = None if reduction.initial is None else rewrite(reduction.initial, unbind)
    whole = Reduction(reduction.op, body, domain, initial, reduction.dtype)
    define_reduced(lifted, key, whole)
    home.depends[lifted.name] = lifted
    component = len(lifted.dtypes) - 1
    return Load(lifted.name, key, component, lifted.dtypes[component])


def _vars_of(root: Expr) -> set[str]:
    """The names of the Vars and RDom variables free in an expression."""
    found: set[str] = set()
    for e in postorder(root):
        if isinstance(e, Reduction):
            where = e.domain.where
            inner = _vars_of(e.body)
            if where is not None:
                inner |= _vars_of(where)
            found |= inner - set(e.domain.names)
        elif isinstance(e, RVar) or type(e) is Var:
            found.add(e.name)
    return found


def _check_free(func: Func, e: Expr, known: frozenset[str]) -> None:
    unknown = sorted(_vars_of(e) - known)
    if unknown:
        raise DefinitionError(
            "unknown-var",
            f"nothing binds {', '.join(map(repr, unknown))} in the definition of {func.name!r}",
            why="the right side may use the Vars on the left"
            + (f" ({', '.join(sorted(known))})" if known else "")
            + ", variables of one RDom in an update, Sizes and Params",
            fix="add it to the left side, reduce over it, or declare it as Size or Param",
        )


def _places(
    func: Func, indices: tuple[Expr, ...], values: tuple[Expr, ...], bound: frozenset[str]
) -> tuple[str | None, ...]:
    """For each index the pure Var whose own place it is, and each such Var has one.

    Of several it is the first where every self-reference has the Var as well: f[i, i] = f[i, 0].
    """
    reads = [e.indices for e in loads_of(*values, *indices) if e.buffer == func.name]
    names = [e.name if type(e) is Var and e.name not in bound else None for e in indices]

    def moves(k: int) -> bool:
        return any(read[k] is not indices[k] for read in reads)

    places: dict[str, int] = {}
    for k in sorted(range(len(names)), key=moves):
        name = names[k]
        if name is not None:
            places.setdefault(name, k)
    return tuple(v if v is not None and places[v] == k else None for k, v in enumerate(names))


def _check_update(func: Func, update: Definition) -> None:
    """A pure Var has a place of its own on the left, and stands there in every self-reference.

    So no two of its iterations touch one element, whatever the other indices are.
    """
    places = {v: k for k, v in enumerate(update.pure) if v is not None}
    known = frozenset(places) | frozenset(update.domain.names if update.domain else ())
    for e in exprs_of_definition(update):
        _check_free(func, e, known)
    reads = [e for e in loads_of(*update.values, *update.indices) if e.buffer == func.name]
    for read in reads:
        moved = [v for v, k in places.items() if read.indices[k] is not Var(v)]
        if moved:
            raise DefinitionError(
                "pure-var-moved",
                f"an update of {func.name!r} over {moved[0]!r} reads {func.name!r} where another "
                f"{moved[0]!r} writes it",
                why="an update runs for every value of a pure Var in any order, so that Var must "
                f"stand as index {places[moved[0]]} wherever {func.name!r} is read",
                fix=f"use a variable of an RDom where {func.name!r} is read at other points",
            )
