"""Where the elements of a buffer are: pointer[offset], the offset a sum of (index - min)*stride."""

from dataclasses import dataclass

from tensorlang.ir.expr import Binary, Const, Expr
from tensorlang.ir.linear import integer, to_expr, to_linear
from tensorlang.ir.types import DType


@dataclass(frozen=True, slots=True)
class Storage:
    """A buffer in C: pointers and strides by component, mins and folds by dimension."""

    pointers: tuple[str, ...]
    dtypes: tuple[DType, ...]
    mins: tuple[Expr, ...]
    strides: tuple[tuple[Expr, ...], ...]
    fold: tuple[int, ...]

    @property
    def zeros(self) -> tuple[Expr, ...]:
        """A min of 0 in every dimension."""
        return (integer(0),) * len(self.mins)

    def places(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Each index counted from the min of its dimension; a folded one counts in its ring."""
        made: list[Expr] = []
        for k, (i, low) in enumerate(zip(indices, self.mins, strict=True)):
            if self.fold and self.fold[k]:
                made.append(Binary("mod", i, integer(self.fold[k])))
            else:
                made.append(to_expr(to_linear(i) - to_linear(low)))
        return tuple(made)

    def offset(self, indices: tuple[Expr, ...], component: int) -> Expr:
        """The position of an element, in elements: what is known last, for it costs nothing there.

        Neighbours then differ in that alone, and share the rest.
        """
        total: Expr | None = None
        known = 0
        for place, stride in zip(self.places(indices), self.strides[component], strict=True):
            form = to_linear(place)
            step = int(stride.value) if isinstance(stride, Const) else 0
            known += form.constant * step
            term = product_of(to_expr(form.shifted(-form.constant)) if step else place, stride)
            if not _is(term, 0):
                total = term if total is None else Binary("add", total, term)
        if total is None:
            return integer(known)
        return Binary("add", total, integer(known)) if known else total

    def step_of(self, indices: tuple[Expr, ...], component: int, var: Expr) -> int | None:
        """How far the element moves when `var` grows by 1; None where that is not a constant."""
        step = 0
        for place, stride in zip(self.places(indices), self.strides[component], strict=True):
            form = to_linear(place)
            coefficient = form.terms.get(var, 0)
            name = getattr(var, "name", "")
            if any(name in atom.free for atom in form.terms if atom is not var):
                return None
            if coefficient:
                if not isinstance(stride, Const):
                    return None
                step += coefficient * int(stride.value)
        return step


def product_of(a: Expr, b: Expr) -> Expr:
    """a*b, simplified where one of them is 0 or 1, or both are constants."""
    if isinstance(a, Const) and isinstance(b, Const):
        return integer(int(a.value) * int(b.value))
    if _is(a, 0) or _is(b, 0):
        return integer(0)
    if _is(b, 1):
        return a
    return b if _is(a, 1) else Binary("mul", a, b)


def _is(e: Expr, value: int) -> bool:
    return isinstance(e, Const) and e.value == value
