"""Reductions over vectorized loops: which become Dot or Reduce, and which must run serially.

vectorized reduction k: C[i, j] = C[i, j] + f32(a[i, k])*f32(b[k, j])   ->   Dot(a, b, C, k)
vectorized reduction k: C[i]    = C[i] op e                             ->   C op Reduce(op, e, k)
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tensorlang.backends.triton.masks import conjunction
from tensorlang.backends.triton.storage import allocations
from tensorlang.backends.triton.tiles import Dot, Lane, Lanes
from tensorlang.ir.associativity import associative_operator
from tensorlang.ir.expr import Binary, Cast, Const, Expr, Select, Var
from tensorlang.ir.stmt import For, Let, LoopKind, Stmt, Store, children_of
from tensorlang.ir.types import DType
from tensorlang.ir.walk import loads_of

# The shortest reduced axis that Triton's dot takes, by the bits of its operands.
_SHORTEST = {8: 32, 16: 16, 32: 8}


def serial_reductions(body: Stmt, scans: Collection[For] = ()) -> Iterator[tuple[For, str]]:
    """The vectorized loops that no tile operation can run at once, each with the reason.

    Args: scans: the loops along which there is a scan that one can.
    """
    stack = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, For) and stmt.kind is LoopKind.VECTORIZED and stmt not in scans:
            own = {b.name for b in allocations(stmt.body)}
            why = _conflict(stmt.body, frozenset((stmt.var,)), own, stmt.reduction)
            if why:
                yield stmt, why
        stack.extend(children_of(stmt))


def _conflict(stmt: Stmt, varying: frozenset[str], own: set[str], reduction: bool) -> str:
    """Why the lanes of a loop cannot run at once; `varying` names depend on its variable."""
    match stmt:
        case Let() if not stmt.value.free.isdisjoint(varying):
            varying |= {stmt.var}
        case For() if not (stmt.min.free | stmt.extent.free).isdisjoint(varying):
            varying |= {stmt.var}
        case Store() if stmt.buffer not in own:
            return _store_conflict(stmt, varying, reduction)
        case _:
            pass
    found = (_conflict(child, varying, own, reduction) for child in children_of(stmt))
    return next(filter(None, found), "")


def _store_conflict(store: Store, varying: frozenset[str], reduction: bool) -> str:
    named = any(not e.free.isdisjoint(varying) for e in store.indices)
    if not named:
        proven = associative_operator(store.buffer, store.indices, store.values) is not None
        return "" if proven else f"the update of '{store.buffer}' is not proved associative"
    if not reduction or store.atomic:
        return ""
    if any(e.reads for e in store.indices):
        return f"'{store.buffer}' is updated at places that data decides"
    own = [load for load in loads_of(*store.values) if load.buffer == store.buffer]
    if any(load.indices != store.indices for load in own):
        return f"'{store.buffer}' is read where other iterations write it"
    return ""


@dataclass(frozen=True, slots=True)
class NoDot:
    """Why a sum of products is no dot; empty when it is no sum of products."""

    why: str


def match_dot(
    term: Expr,
    acc: Expr,
    reduced: tuple[Lane, ...],
    guards: Sequence[Expr],
    lanes: Lanes,
    masks: dict[str, frozenset[Expr]],
) -> Dot | NoDot:
    """acc + sum(term) over one lane as a Dot, when the term is a product that splits by lanes.

    Args:
        guards: the conditions that mention the reduced lane; where one fails a factor becomes 0.
        masks: for each Read the parts of its mask, beyond which it is 0 already.
    """
    if len(reduced) != 1 or not isinstance(term, Binary) or term.op != "mul":
        return NoDot("")
    [k] = reduced
    a, b = _factors(term, acc.dtype)
    why = _shape_fault(a, b, acc, k, lanes)
    if why is not None:
        return NoDot(why)
    for guard in guards:
        sides = [set(lanes.of(guard)) <= set(lanes.of(x)) for x in (a, b)]
        if not any(sides):
            return NoDot("a guard joins the two factors of the product")
        a = _zeroed(a, guard, masks) if sides[0] else a
        b = _zeroed(b, guard, masks) if sides[1] else b
    order = lanes.of_name(acc.name) if isinstance(acc, Var) else lanes.of(acc)
    own = set(lanes.of(a)) - set(lanes.of(b))
    if order.index(next(iter(own))) != len(order) - 2:
        a, b = b, a
    return Dot(a, b, acc, k.var)


def _factors(product: Binary, acc: DType) -> tuple[Expr, Expr]:
    """The factors as the matrix unit takes them: without an exact widening, if both have one."""
    a, b = (_unwidened(e, acc) for e in (product.a, product.b))
    a, b = _as_narrow(a, b.dtype), _as_narrow(b, a.dtype)
    if a.dtype is b.dtype:
        return a, b
    return product.a, product.b


def _as_narrow(e: Expr, dtype: DType) -> Expr:
    """An 8-bit integer that was widened, in the 16-bit float of the other factor: it is exact."""
    if not isinstance(e, Cast) or e.a.dtype.name not in ("i8", "u8"):
        return e
    return Cast(dtype, e.a) if dtype.name in ("f16", "bf16") else e


def _unwidened(e: Expr, acc: DType) -> Expr:
    if not isinstance(e, Cast) or e.dtype is not acc:
        return e
    inner = e.a.dtype
    if acc.name == "f32" and inner.name in ("f16", "bf16", "f8e4m3", "f8e5m2", "tf32"):
        return e.a
    return e.a if acc.name == "i32" and inner.name == "i8" else e


def _shape_fault(a: Expr, b: Expr, acc: Expr, k: Lane, lanes: Lanes) -> str | None:
    """Why the lanes or dtypes are not a matrix product's; None when they are."""
    of_a, of_b, of_acc = (set(lanes.of(x)) for x in (a, b, acc))
    batch = (of_a & of_b) - {k}
    if k not in of_a or k not in of_b or len(of_a - batch) != 2 or len(of_b - batch) != 2:
        return ""
    if of_acc != (of_a | of_b) - {k}:
        return ""
    if len(batch) > 1 or (batch and lanes.of(acc)[0] not in batch):
        return "it has more than one batch axis, or one that is not the first"
    if acc.dtype.name not in ("f32", "i32") or (acc.dtype.name == "i32" and a.dtype.name != "i8"):
        return f"the matrix unit takes no {a.dtype} with a sum in {acc.dtype}"
    shortest = _SHORTEST[a.dtype.bits]
    if isinstance(k.extent, int) and k.extent < shortest:
        return f"its reduced axis of {k.extent} is under the {shortest} that the matrix unit takes"
    return None


def _zeroed(factor: Expr, guard: Expr, masks: dict[str, frozenset[Expr]]) -> Expr:
    """The factor, 0 where the guard fails."""
    read = factor
    while isinstance(read, Cast):
        read = read.a
    if isinstance(read, Var) and guard in masks.get(read.name, frozenset()):
        return factor
    zero = Const(0.0 if factor.dtype.is_float else 0, factor.dtype)
    return Select(guard, factor, zero)


def guarded_term(term: Expr, guards: Sequence[Expr], neutral: Const) -> Expr:
    """The term where every guard holds, what the operator leaves unchanged elsewhere."""
    guard = conjunction(guards)
    return term if guard is None else Select(guard, term, neutral)
