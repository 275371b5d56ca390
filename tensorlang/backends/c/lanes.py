"""Which loop of a nest becomes the lanes of vectors, and how many lanes it gets."""

from collections.abc import Iterable, Iterator, Sequence

from tensorlang.backends.c.machine import Machine
from tensorlang.backends.c.types import carried
from tensorlang.ir.associativity import associative_operator
from tensorlang.ir.expr import Call, Cast, Compare, Const, Expr, Load, Var
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.linear import to_linear
from tensorlang.ir.stmt import For, Stmt, Store, exprs_of, walk
from tensorlang.ir.types import index
from tensorlang.ir.walk import loads_of, postorder

_REASSOCIABLE = ("add", "mul", "min", "max", "and", "or", "xor")


def choose_lane(loops: Sequence[For], core: Stmt, machine: Machine) -> For | None:
    """The loop whose neighbouring iterations touch neighbouring memory; the innermost of equals."""
    best: tuple[float, For] | None = None
    for loop in reversed(loops):
        if not _can_be_lane(loop, core):
            continue
        cost = _cost(loop, core) + _shortness(loop, core, machine)
        if best is None or cost < best[0]:
            best = (cost, loop)
    return best[1] if best else None


def is_accumulation(loop: For, core: Stmt) -> bool:
    """Whether the loop only adds up (or multiplies, or takes the maximum of) its terms."""
    if not isinstance(core, Store) or any(loop.var in i.free for i in core.indices):
        return False
    found = associative_operator(core.buffer, core.indices, core.values)
    return found is not None and found[0] in _REASSOCIABLE


def _can_be_lane(loop: For, core: Stmt) -> bool:
    if not loop.reduction:
        return True
    if not isinstance(core, Store):
        return False
    if is_accumulation(loop, core):
        return True
    # Each iteration has an element of its own.
    own = [load for load in loads_of(*exprs_of(core)) if load.buffer == core.buffer]
    same = all(a is b for load in own for a, b in zip(load.indices, core.indices, strict=True))
    return same and _step(core.indices, loop.var) == 1


def _cost(loop: For, core: Stmt) -> float:
    cost = 0.5 if loop.reduction else 0.0
    for stmt in walk(core):
        if isinstance(stmt, Store):
            step = _step(stmt.indices, loop.var)
            cost += 0 if step == 1 or (loop.reduction and step == 0) else 4 if step == 0 else 2
        for load in loads_of(*exprs_of(stmt)):
            cost += _step(load.indices, loop.var) not in (0, 1)
    return cost


def _shortness(loop: For, core: Stmt, machine: Machine) -> float:
    """Lanes of a register that would stay empty."""
    width = lanes_for(core, loop.var, machine)
    extent = int(loop.extent.value) if isinstance(loop.extent, Const) else width
    return max(0.0, 3 * (1 - extent / width))


def _step(indices: tuple[Expr, ...], var: str) -> int | None:
    """How far an access moves with the loop, where only its last index does."""
    if any(var in i.free for i in indices[:-1]):
        return None
    if not indices or var not in indices[-1].free:
        return 0
    form = to_linear(indices[-1])
    hidden = any(var in atom.free for atom in form.terms if atom is not Var(var))
    return None if hidden else form.terms.get(Var(var), 0)


def lanes_for(core: Stmt, var: str, machine: Machine) -> int:
    """As many lanes as one register holds of the widest values that differ between lanes."""
    bits = [b for stmt in walk(core) for b in _widths(_computed(stmt, var), var)]
    return machine.lanes(max(bits, default=32))


# Functions that are an instruction or two.
_SHORT = ("rsqrt", "approx.rcp")


def is_worth_a_mask(core: Stmt, var: str, width: int, machine: Machine) -> bool:
    """Whether what no whole vector covers runs in masked lanes, rather than one by one.

    That pays where a function is computed: a masked store takes as long as several others, which
    less work does not make up for.  Of less than 32 bits there are no masked loads and stores.
    """
    if width > machine.lanes(32):
        return False
    roots = [e for stmt in walk(core) for e in _computed(stmt, var)]
    calls = [e for e in postorder(*roots) if isinstance(e, Call) and var in e.free]
    return any(FUNCTIONS[e.function].ulp and e.function not in _SHORT for e in calls)


def _computed(stmt: Stmt, var: str) -> tuple[Expr, ...]:
    return stmt.values if isinstance(stmt, Store) else exprs_of(stmt)


def _widths(roots: Iterable[Expr], var: str) -> Iterator[int]:
    """Bits of the values that are computed in vectors; addresses are not."""
    seen: set[Expr] = set()
    stack = [e for e in roots if e.dtype is not index]
    while stack:
        e = stack.pop()
        if e in seen or var not in e.free:
            continue
        seen.add(e)
        if not e.dtype.is_bool:
            # Select of an index and the like: computed lane by lane, and kept as i64.
            yield carried(e.dtype).bits
        alone = isinstance(e, Load) or (isinstance(e, Call) and e.function == "random_uniform")
        if not alone and not (isinstance(e, (Cast, Compare)) and e.children[0].dtype is index):
            stack.extend(e.children)
