"""specialize: another schedule of a stage where a condition on Sizes and Params holds.

specialize_fail: no schedule where none of them holds.
"""

import json
from dataclasses import dataclass, replace
from typing import ClassVar

from tensorlang.directives.base import Directive, State
from tensorlang.directives.nest import Nest, Variant
from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Name, Unary
from tensorlang.ir.walk import postorder


@dataclass(frozen=True, slots=True, eq=False)
class Specialize(Directive):
    """s   ->   if condition: s' else: s     where s' begins as a copy of the loops of s

    Returns the stage of s', whose directives leave s as it is: `s[f].specialize(N % 128 == 0)
    .vectorize(i)`.  Inside it the condition is known: it decides guards, bounds and constants, so
    that no tail is left where a factor divides.  The conditions of a stage are tried in the order
    in which they were given; the same one again returns the stage that it made before.  A GPU's
    host chooses the kernel.

    A Func computed at a loop of this stage is computed in every variant, which all have that loop.

    Args: condition: comparisons of Sizes and Params, joined by & | ~.
    Raises: ScheduleError: not-a-scalar, condition-not-simple.
    See: Halide's Stage::specialize.
    """

    keyword: ClassVar[str] = "specialize"
    on_variants: ClassVar[bool] = True
    condition: Expr

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        self.scalar(state, self.condition)
        nest = state.nests[stage]
        if not self.condition.dtype.is_bool or not all(map(_is_simple, postorder(self.condition))):
            raise self.error(
                "condition-not-simple",
                f"cannot specialize {nest.stage!r} on this condition",
                why="what chooses a variant is compared when the kernel is called: Sizes and "
                "integer Params in any arithmetic, a float Param with a number",
                fix="compare, as in specialize((N % 128 == 0) & (M >= 64))",
                nest=nest,
            )
        self._check_rest(nest)
        variant = Variant(self.condition, replace(nest, variants=()), span=self.span)
        state.nests[stage] = replace(nest, variants=(*nest.variants, variant))

    def _check_rest(self, nest: Nest) -> None:
        if nest.failing is not None:
            raise self.error(
                "nothing-left",
                f"cannot specialize {nest.stage!r} on one more condition",
                why="it has specialize_fail: where no condition before that holds, nothing runs",
                fix="specialize first, specialize_fail last",
                nest=nest,
            )


@dataclass(frozen=True, slots=True, eq=False)
class SpecializeFail(Directive):
    """if c: s' else: s   ->   assert c; s'

    A call for which no condition of the stage holds fails before anything runs, with `message`:
    the schedule says that it is for no other sizes.  The stage alone has no loops then.

    Args: message: what the caller is told.
    Raises: ScheduleError: no-variants, nothing-left.
    See: Halide's Stage::specialize_fail.
    """

    keyword: ClassVar[str] = "specialize_fail"
    on_variants: ClassVar[bool] = True
    message: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        if not nest.variants or nest.failing is not None:
            raise self.error(
                "nothing-left" if nest.variants else "no-variants",
                f"cannot specialize_fail {nest.stage!r}",
                why="it has specialize_fail already"
                if nest.variants
                else "it has no variant, so that every call would fail",
                fix="once, after specialize(condition)",
                nest=nest,
            )
        state.nests[stage] = replace(nest, failing=self.message)

    def text(self) -> str:
        return f"{self.keyword}({json.dumps(self.message)})"


def _is_simple(e: Expr) -> bool:
    """Whether every backend and a host compute it alike."""
    match e:
        case Compare():
            return e.a.dtype.is_integer or e.a.dtype.is_bool or _is_number(e.a) or _is_number(e.b)
        case Binary() | Unary() | Cast():
            return all(x.dtype.is_integer or x.dtype.is_bool for x in (e, *e.children))
        case _:
            return isinstance(e, (Const, Name))


def _is_number(e: Expr) -> bool:
    return isinstance(e, (Const, Name))
