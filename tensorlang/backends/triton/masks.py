"""Which masks are needed: a bound that is proved from loop ranges and guards is not tested."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tensorlang.backends.triton.tiles import Lane
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Name
from tensorlang.ir.facts import Facts, prove
from tensorlang.ir.linear import integer
from tensorlang.ir.ranges import UNKNOWN, Range, range_of
from tensorlang.ir.types import bool_
from tensorlang.ir.walk import fold

# Sizes of the witness: odd, unlike any tile, and not equal between the first few names.
_SAMPLE = (1009, 1013, 1019, 1021, 1031, 1033, 1039)


def conjuncts(condition: Expr) -> list[Expr]:
    """The parts of a condition that must all hold, in the order in which they are written."""
    found: list[Expr] = []
    stack = [condition]
    while stack:
        e = stack.pop()
        if isinstance(e, Binary) and e.op == "and" and e.dtype is bool_:
            stack += (e.b, e.a)
        elif not (isinstance(e, Const) and e.value is True):
            found.append(e)
    return found


def conjunction(parts: Iterable[Expr]) -> Expr | None:
    """All of the parts at once, each only once; None when there is none."""
    whole: Expr | None = None
    for part in dict.fromkeys(parts):
        whole = part if whole is None else Binary("and", whole, part)
    return whole


def in_bounds(offset: Expr, extent: Expr) -> tuple[Expr, Expr]:
    """0 <= offset and offset < extent."""
    return Compare("le", integer(0), offset), Compare("lt", offset, extent)


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """Facts for proofs, and a witness against them: one iteration, with numbers for every name.

    A search for a proof is dear when there is none.  A condition that fails in the last iteration
    of every loop, at sizes that fit no tile, is not worth the search.
    """

    facts: Facts = Facts.none
    witness: Mapping[str, int] = field(default_factory=dict[str, int])

    def ranged(self, name: str, low: Expr, extent: Expr) -> "Knowledge":
        """Also low <= name < low + extent."""
        first, count = self._number(low), self._number(extent)
        witness = {k: v for k, v in self.witness.items() if k != name}
        if first is not None and count is not None and count > 0:
            witness[name] = first + count - 1
        return Knowledge(self.facts.with_range(name, low, extent), witness)

    def valued(self, name: str, value: Expr) -> "Knowledge":
        """Also name == value."""
        witness = {k: v for k, v in self.witness.items() if k != name}
        number = self._number(value)
        if number is not None:
            witness[name] = number
        return Knowledge(self.facts.with_value(name, value), witness)

    def assuming(self, condition: Expr) -> "Knowledge":
        """Also the condition; a witness that fails it says nothing any more."""
        known = self.facts.assume(condition)
        return Knowledge(known) if self.fails(condition) else Knowledge(known, self.witness)

    def proves(self, condition: Expr) -> bool:
        """Whether the condition always holds."""
        return not self.fails(condition) and prove(condition, self.facts)

    def fails(self, condition: Expr) -> bool:
        """Whether the witness shows that some comparison in the condition can be false."""
        return any(self._refutes(part) for part in conjuncts(condition))

    def _refutes(self, e: Expr) -> bool:
        if not isinstance(e, Compare) or e.op not in ("lt", "le"):
            return False
        a, b = self._number(e.a), self._number(e.b)
        if a is None or b is None:
            return False
        return not (a < b if e.op == "lt" else a <= b)

    def _number(self, e: Expr) -> int | None:
        """The value of an expression at the witness, where every name in it has one."""
        known = self.witness

        def step(node: Expr, operands: list[Range]) -> Range:
            if isinstance(node, Name):
                value = known.get(node.name)
                return UNKNOWN if value is None else (value, value)
            exact = _exact(node, operands)
            return range_of(node, operands) if exact is None else (exact, exact)

        low, high = fold(e, step)
        return low if low == high else None


def with_lane(known: Knowledge, lane: Lane) -> Knowledge:
    """Also that a lane is one of its numbers; of a symbolic one only the sign is known."""
    if isinstance(lane.extent, int):
        return known.ranged(lane.var.name, integer(0), integer(lane.extent))
    return known.assuming(Compare("le", integer(0), lane.var))


def _exact(e: Expr, operands: list[Range]) -> int | None:
    """A quotient or remainder of two numbers, of which ranges know less than they could."""
    if not isinstance(e, Binary) or e.op not in ("floordiv", "mod"):
        return None
    (a, a_high), (b, b_high) = operands
    if a is None or b is None or a != a_high or b != b_high:
        return None
    if b == 0:
        return 0
    return a // b if e.op == "floordiv" else a % b


def plain_sizes(known: Knowledge) -> dict[str, int]:
    """The sample sizes of a witness, without what was computed from them."""
    return {name: n for name, n in known.witness.items() if n in _SAMPLE}


def knowledge_of(sizes: Iterable[str]) -> Knowledge:
    """What is known where a program begins: nothing, with sample sizes."""
    names = sorted(sizes)
    return Knowledge(witness={n: _SAMPLE[k % len(_SAMPLE)] for k, n in enumerate(names)})
