"""What a call must meet so that some variant of every stage is for it (`specialize_fail`)."""

from collections.abc import Iterator

from tensorlang.directives.nest import Nest
from tensorlang.ir.expr import Expr
from tensorlang.ir.printer import print_expr
from tensorlang.ir.stmt import Assert
from tensorlang.lower.plan import Plan


def variant_asserts(plan: Plan) -> tuple[Assert, ...]:
    """assert c1 | c2     for each stage with variants c1 and c2, and specialize_fail"""
    return tuple(a for nest in plan.nests.values() for a in _asserts(nest, ()))


def _asserts(nest: Nest, outside: tuple[Expr, ...]) -> Iterator[Assert]:
    """Args: outside: what does not hold where this nest is not reached."""
    conditions = [variant.condition for variant in nest.variants]
    if nest.failing is not None:
        met = [*(~c for c in outside), *conditions]
        condition = met[0]
        for c in met[1:]:
            condition = condition | c
        yield _assert(nest, nest.failing, condition, conditions)
    for k, variant in enumerate(nest.variants):
        before = (*outside, *(~c for c in conditions[:k]))
        yield from _asserts(variant.nest, (*before, variant.condition))


def _assert(nest: Nest, message: str, condition: Expr, conditions: list[Expr]) -> Assert:
    listed = " or ".join(print_expr(c, told=True) for c in conditions)
    return Assert(
        condition,
        "ShapeError",
        "no-variant",
        f"no variant of {nest.stage!r} is for this call: {_plain(message)}",
        f"its schedule is for {_plain(listed)}, and fails otherwise (specialize_fail)",
        "pass arrays of such sizes, or compile with a schedule for all of them",
    )


def _plain(text: str) -> str:
    """The text as `str.format` gives it back."""
    return text.replace("{", "{{").replace("}", "}}")
