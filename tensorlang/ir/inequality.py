"""What is known as inequalities, and what is proved from it."""

from dataclasses import dataclass, field

from tensorlang.ir.conditions import forms_of
from tensorlang.ir.expr import Compare
from tensorlang.ir.forms import Forms
from tensorlang.ir.linear import Linear
from tensorlang.ir.search import prove_nonnegative


@dataclass(frozen=True, slots=True, eq=False)
class Known(Forms):
    """Forms that are >= 0, and what has been proved from them so far."""

    _proved: dict[object, bool] = field(default_factory=dict[object, bool])

    def nonnegative(self, form: Linear) -> bool:
        """Whether `form` >= 0 is proved."""
        known = self.around(name for term in form.terms for name in term.free)
        key = form.key()
        found = known._proved.get(key)
        if found is None:
            # Numbers first, while products of sums still stand as products.
            lo = known.range(form)[0]
            found = (lo is not None and lo >= 0) or prove_nonnegative(form, known)
            known._proved[key] = found
        return found

    def proves(self, condition: Compare) -> bool:
        """Whether a canonical comparison of integers is proved."""
        if not condition.a.dtype.is_integer:
            return False
        if condition.op != "ne":
            return all(map(self.nonnegative, forms_of(condition)))
        (difference,) = forms_of(Compare("le", condition.a, condition.b))
        return any(self.nonnegative((difference * sign).shifted(-1)) for sign in (1, -1))
