"""Expressions as C: scalars, or vectors over the lanes of the loop that we are in.

An expression is wanted in one of two modes.  SCALAR gives its value in the first lane, which is
enough for what does not differ between lanes and for the address of a contiguous load.  VECTOR
gives its value in all lanes.  What has no vector form (a gather, a remainder of indices) is
computed lane by lane in a small loop.

Everything is evaluated once and without branches: a load that a `select` guards is made only where
its guard holds, and gives 0 elsewhere.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import pairwise
from typing import TypeAlias

from tensorlang.backends.c.context import Scope, Unit
from tensorlang.backends.c.guards import guards_of
from tensorlang.backends.c.loads import Loads
from tensorlang.backends.c.operations import Operations
from tensorlang.backends.c.pressure import in_few_registers
from tensorlang.backends.c.steps import steps_of
from tensorlang.backends.c.types import carried
from tensorlang.backends.c.values import ATOM, UNARY, Value
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Name,
    Promise,
    Select,
    Var,
)
from tensorlang.ir.linear import to_expr, to_linear
from tensorlang.ir.types import index
from tensorlang.ir.walk import postorder, rewrite


class Mode(Enum):
    """What is wanted of an expression: its value in the first lane, or in all of them."""

    SCALAR = "scalar"
    VECTOR = "vector"


SCALAR, VECTOR = Mode.SCALAR, Mode.VECTOR
Wanted: TypeAlias = tuple[Expr, Mode]

# A part used once stays inside what uses it, unless its text grows beyond this.
_LONGEST = 72
# Known numbers of lanes are this small in any type.
_SMALL = 64
# Expressions of more nodes are not written out for each lane.
_MOST_UNROLLED = 400


class Expressions:
    """Writes what one statement computes; each node at most once a mode."""

    def __init__(
        self, unit: Unit, scope: Scope, *, fused: Expr | None = None, under: Expr | None = None
    ) -> None:
        """`fused`: an acc + a*b to round once; `under`: where what is written is needed."""
        self._unit = unit
        self._scope = scope
        self._fused = fused
        self._under = under
        self._memo: dict[Wanted, Value] = {}
        self._uses: Counter[Wanted] = Counter()
        self._guards: dict[Expr, Expr] = {}
        # What is written long before it is used.
        self._apart: set[Wanted] = set()
        self._reordered = False
        self._loads = Loads(unit, scope)
        self._operations = Operations(unit, scope)

    def write(self, *roots: Wanted) -> list[Value]:
        """The values of several expressions, after writing whatever temporaries they need."""
        self._guards = guards_of([e for e, _ in roots], self._under)
        needs = self._needs_of(roots)
        if needs is None:
            return [self._with_branches(root) for root in roots]
        for needed in needs.values():
            self._uses.update(needed)
        for wanted in self._in_order(needs):
            if wanted in self._memo:
                continue
            if self._goes_by_lanes(wanted):
                self._write_lanes(wanted, needs)
                continue
            operands = [self._memo[need] for need in needs[wanted]]
            self._memo[wanted] = self._kept(wanted, self._value(wanted, operands))
        return [self._memo[root] for root in roots]

    def scalar(self, e: Expr) -> str:
        """The text of an expression that is the same in all lanes."""
        return self.write((e, SCALAR))[0].text

    def _needs_of(self, roots: Sequence[Wanted]) -> dict[Wanted, list[Wanted]] | None:
        """Everything that has to be computed and from what, operands before what uses them.

        None where there is no such order: a load whose guard needs what is loaded.
        """
        needs: dict[Wanted, list[Wanted]] = {}
        seen: set[Wanted] = set(self._memo)
        stack: list[tuple[Wanted, list[Wanted] | None]] = [(root, None) for root in reversed(roots)]
        while stack:
            wanted, needed = stack.pop()
            if needed is not None:
                needs[wanted] = needed
            elif wanted in seen:
                if wanted not in needs and wanted not in self._memo:
                    return None
            else:
                seen.add(wanted)
                needed = self._needs(wanted)
                stack.append((wanted, needed))
                stack.extend((need, None) for need in reversed(needed))
        return needs

    def _in_order(self, needs: dict[Wanted, list[Wanted]]) -> list[Wanted]:
        """The order to write them in; what is not used at once in that order gets a name."""
        order = in_few_registers(needs, self._waits, self._unit.machine.vector_registers)
        if order is None:
            return list(needs)
        vectors = [wanted for wanted in order if self._waits(wanted)]
        self._apart |= {
            wanted for wanted, after in pairwise(vectors) if wanted not in set(needs[after])
        }
        self._reordered = True
        return order

    def _waits(self, wanted: Wanted) -> bool:
        """Whether a value takes a vector register."""
        return wanted[1] is VECTOR and self._scope.varies(wanted[0])

    def _needs(self, wanted: Wanted) -> list[Wanted]:
        e, mode = wanted
        if mode is VECTOR and not self._scope.varies(e):
            return [(e, SCALAR)]
        if isinstance(e, Load):
            return self._load_needs(e, mode)
        if mode is VECTOR and self._is_lanewise(e):
            return self._lanewise_needs(e)
        if e is self._fused:
            return [(part, mode) for part in _parts_of_fused(e)]
        return [
            (child, mode) for child in (e.children[:1] if isinstance(e, Promise) else e.children)
        ]

    def _load_needs(self, e: Load, mode: Mode) -> list[Wanted]:
        if self._loads.held(e, vector=mode is VECTOR) is not None:
            return []
        if mode is VECTOR and self._is_shuffled(e):
            return [(self._loads.offset(e), SCALAR)]
        if mode is VECTOR and not self._loads.is_contiguous(e):
            return self._vector_parts(e)
        needs: list[Wanted] = [(self._loads.offset(e), SCALAR)]
        guard = self._guards.get(e)
        if guard is None:
            return needs
        # One element for all lanes is needed where any of them is active.
        return [*needs, (guard, VECTOR if self._scope.varies(guard) else mode)]

    def _is_shuffled(self, e: Load) -> bool:
        """Whether the elements of a load lie apart at steps that are known."""
        if e in self._guards or self._loads.is_contiguous(e):
            return False
        return self._loads.steps(e) is not None

    def _is_lanewise(self, e: Expr) -> bool:
        """Whether a node that varies has no vector form over vector operands."""
        if e.dtype is index or (isinstance(e, Call) and e.function == "random_uniform"):
            return True
        return isinstance(e, (Cast, Compare)) and e.children[0].dtype is index

    def _lanewise_needs(self, e: Expr) -> list[Wanted]:
        if self._literal(e) is not None:
            return []
        if isinstance(e, Cast) and self._is_ramp(e):
            return [(e.a, SCALAR)]
        count = self._lane_count(e)
        return self._vector_parts(e) if count is None else [(count[0], SCALAR)]

    def _literal(self, e: Expr) -> list[int] | None:
        """The lanes of a converted index that are known numbers."""
        lane = self._scope.lane
        if lane is None or not isinstance(e, Cast) or e.a.dtype is not index:
            return None
        known = steps_of(e.a, lane.var, lane.first, lane.width)
        if known is None or known[0].terms or e.dtype.is_bool:
            return None
        numbers = [known[0].constant + step for step in known[1]]
        return numbers if all(abs(n) <= _SMALL for n in numbers) else None

    def _is_ramp(self, e: Expr) -> bool:
        """Whether the lanes of a converted index are one apart."""
        return isinstance(e, Cast) and not e.dtype.is_float and self._steps_by_one(e.a)

    def _steps_by_one(self, e: Expr) -> bool:
        lane = self._scope.lane
        assert lane is not None
        rest = to_linear(e - lane.name)
        return all(lane.var not in atom.free for atom in rest.terms)

    def _lane_count(self, e: Expr) -> tuple[Expr, bool] | None:
        """(n, whether first): a comparison that holds in the first n lanes, or in all but these."""
        lane = self._scope.lane
        if lane is None or not isinstance(e, Compare) or e.op not in ("lt", "le"):
            return None
        form = to_linear(e.b - e.a)
        step = form.terms.get(lane.name, 0)
        rest = form.without(lane.name)
        if abs(step) != 1 or any(lane.var in atom.free for atom in rest.terms):
            return None
        # a < b  is  0 < rest + step*j;  the first lane has j = first.
        slack = rest.plus(to_linear(lane.first), step)
        if step == -1:
            return to_expr(slack.shifted(e.op == "le")), True
        return to_expr((-slack).shifted(e.op == "lt")), False

    def _value(self, wanted: Wanted, operands: list[Value]) -> Value:
        e, mode = wanted
        if mode is VECTOR and not self._scope.varies(e):
            return operands[0]
        if isinstance(e, Load):
            return self._load(e, mode, operands)
        if mode is VECTOR and self._is_lanewise(e):
            return self._lanewise(e, operands)
        if isinstance(e, Name):
            text = self._scope.renamed.get(e.name) or self._unit.names[e.name]
            return Value(text, carried(e.dtype), ATOM, e.dtype.is_bool)
        if e is self._fused:
            return self._operations.fused(e, operands)
        return self._operations.value(e, operands)

    def _load(self, e: Load, mode: Mode, operands: list[Value]) -> Value:
        held = self._loads.held(e, vector=mode is VECTOR)
        if held is not None:
            return held
        if mode is VECTOR and self._is_shuffled(e):
            return self._loads.shuffled(e, operands[0])
        if mode is VECTOR:
            return self._loads.vector(e, operands[0], *operands[1:])
        return self._loads.scalar(e, operands[0], *operands[1:])

    def _lanewise(self, e: Expr, operands: list[Value]) -> Value:
        prelude, lane = self._unit.prelude, self._scope.lane
        assert lane is not None
        numbers = self._literal(e)
        if numbers is not None:
            wide = carried(e.dtype, lane.width)
            return Value(f"({prelude.type(wide)}){{{', '.join(map(str, numbers))}}}", wide)
        count = self._lane_count(e)
        if count is not None:
            mask = carried(index).of(lane.width).mask
            bits = min(64, max(8, self._unit.machine.vector_bytes * 8 // lane.width))
            mask = replace(mask, element=f"i{bits}")
            first = f"{prelude.helper('first', mask)}({operands[0].text})"
            return Value(first if count[1] else f"~{first}", mask, UNARY, is_bool=True)
        wide = carried(e.dtype, lane.width)
        start = f"({wide.scalar.name}){operands[0].within(UNARY)}"
        return Value(f"{prelude.helper('steps', wide)}({start})", wide)

    def _each_lane(self, e: Expr) -> Value:
        """result[l] = the scalar value for lane l."""
        return self._all_lanes([e])[0]

    def _write_lanes(self, first: Wanted, needs: Mapping[Wanted, Sequence[Wanted]]) -> None:
        """All that can go by lanes now, and stands under the same guard, in one loop."""
        guard = self._guards.get(first[0])
        together = [
            wanted
            for wanted, needed in needs.items()
            if wanted not in self._memo
            and all(need in self._memo for need in needed)
            and self._goes_by_lanes(wanted)
            and self._guards.get(wanted[0]) is guard
        ]
        values = self._all_lanes([e for e, _ in together])
        self._memo.update(zip(together, values, strict=True))

    def _goes_by_lanes(self, wanted: Wanted) -> bool:
        """Whether a value is computed lane by lane, but for the data in its indices."""
        e, mode = wanted
        if mode is not VECTOR or not self._scope.varies(e):
            return False
        if isinstance(e, Load):
            held = self._loads.held(e, vector=True)
            return held is None and not self._loads.is_contiguous(e) and not self._is_shuffled(e)
        if not self._is_lanewise(e) or self._literal(e) is not None:
            return False
        return not self._is_ramp(e) and self._lane_count(e) is None

    def _vector_parts(self, e: Expr) -> list[Wanted]:
        """The data in the indices of what goes by lanes: that has vectors of its own."""
        found: dict[Wanted, None] = {}
        stack = list(e.children)
        while stack:
            part = stack.pop()
            if not self._scope.varies(part):
                continue
            data = part.children[0] if isinstance(part, Cast) and part.dtype is index else None
            if data is None or not data.dtype.is_integer or data.dtype is index:
                stack.extend(part.children)
            elif not isinstance(data, Name):
                found[data, VECTOR] = None
        self._apart.update(found)
        return list(found)

    def _all_lanes(self, exprs: Sequence[Expr]) -> list[Value]:
        """The scalar values of expressions under one guard, lane by lane."""
        unit, lane = self._unit, self._scope.lane
        assert lane is not None
        results: list[Value] = []
        for e in exprs:
            result = carried(e.dtype, lane.width)
            if e.dtype.is_bool:
                result = replace(result, element="i8")
            results.append(Value(unit.names.fresh("t"), result, ATOM, e.dtype.is_bool))
            unit.code.line(f"{unit.prelude.type(result)} {results[-1].text};")
        at = unit.names.fresh("l")
        if sum(1 for _ in postorder(*exprs)) <= _MOST_UNROLLED:
            # Else what a lane gives goes through memory.
            unit.code.pragma(f"GCC unroll {lane.width}")
        with unit.code.block(f"for (int {at} = 0; {at} < {lane.width}; ++{at})"):
            j = unit.names.fresh(lane.var.rpartition(".")[2])
            first = self._scope.renamed.get(lane.var) or unit.names[lane.var]
            unit.code.line(f"const int64_t {j} = {first} + {at};")
            renamed = {**self._scope.renamed, lane.var: j}
            scope = replace(self._scope, lane=None, renamed=renamed, cells=())
            inside = Expressions(unit, scope, under=self._guards.get(exprs[0]))
            for part in (part for e in exprs for part in self._vector_parts(e)):
                data = self._memo.get(part)
                if data is not None:
                    inside._memo[part[0], SCALAR] = replace(
                        data, text=f"{data.text}[{at}]", type=data.type.scalar
                    )
            values = inside.write(*((e, SCALAR) for e in exprs))
            for e, value, result in zip(exprs, values, results, strict=True):
                # A mask has all bits set where a bool is 1.
                text = f"-({value.text})" if e.dtype.is_bool else value.text
                unit.code.line(f"{result.text}[{at}] = {text};")
        return results

    def _with_branches(self, wanted: Wanted) -> Value:
        """The value where guards depend on what they guard: selects become real branches."""
        e, mode = wanted
        if mode is VECTOR and self._scope.varies(e):
            return self._each_lane(e)
        if self._under is not None:
            e = Select(self._under, e, Const(0, e.dtype))
        return Branches(self._unit, self._scope).value(e)

    def _kept(self, wanted: Wanted, value: Value) -> Value:
        """The value under a name of its own where it is used again or has grown long."""
        e, _ = wanted
        if value.binds == ATOM and (isinstance(e, (Const, Name)) or value.text.isidentifier()):
            return value
        uses = self._uses[wanted]
        inside = uses == 1 and len(value.text) <= _LONGEST and wanted not in self._apart
        if uses == 0 or inside:
            return value
        if self._reordered and isinstance(e, Load) and uses > 1 and self._waits(wanted):
            # Else the compiler may load it again for each use.
            kept = self._unit.prelude.helper("kept", value.type)
            value = replace(value, text=f"{kept}({value.text})")
        name = self._unit.names.fresh(f"{e.buffer}_at" if isinstance(e, Load) else "t")
        self._unit.code.line(f"const {self._unit.type_of(value)} {name} = {value.text};")
        return replace(value, text=name, binds=ATOM, unrounded="")


class Branches:
    """Scalar expressions, with each select over loads as an `if` of its own."""

    def __init__(self, unit: Unit, scope: Scope) -> None:
        self._unit = unit
        self._scope = scope

    def value(self, e: Expr) -> Value:
        """The expression, its outermost selects first."""
        chosen: dict[Expr, Expr] = {}
        renamed = dict(self._scope.renamed)
        for select in _outermost_selects(e):
            name = self._chosen(select)
            chosen[select] = Var(name, select.dtype)
            renamed[name] = name
        scope = replace(self._scope, renamed=renamed, lane=None)
        rest = rewrite(e, lambda part: part, chosen)
        return Expressions(self._unit, scope).write((rest, SCALAR))[0]

    def _chosen(self, select: Select) -> str:
        """The variable that gets the side that is chosen."""
        unit = self._unit
        condition = self.value(select.condition)
        name = unit.names.fresh("t")
        unit.code.line(f"{carried(select.dtype).name} {name};")
        with unit.code.block(f"if ({condition.text})"):
            unit.code.line(f"{name} = {self.value(select.a).text};")
        with unit.code.else_block():
            unit.code.line(f"{name} = {self.value(select.b).text};")
        return name


def _outermost_selects(e: Expr) -> list[Select]:
    """The selects over loads that stand in no other one."""
    found: dict[Select, None] = {}
    seen: set[Expr] = set()
    stack = [e]
    while stack:
        part = stack.pop()
        if part in seen or not part.reads:
            continue
        seen.add(part)
        if isinstance(part, Select):
            found[part] = None
        else:
            stack.extend(part.children)
    return list(found)


def _parts_of_fused(e: Expr) -> tuple[Expr, Expr, Expr]:
    """acc + a*b  ->  a, b, acc."""
    assert isinstance(e, Binary)
    product, rest = (e.b, e.a) if isinstance(e.a, Load) else (e.a, e.b)
    assert isinstance(product, Binary)
    return product.a, product.b, rest
