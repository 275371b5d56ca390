"""rolling_update: reductions that need each other's final value, in one pass."""

from dataclasses import dataclass
from typing import ClassVar

from tensorlang.directives.base import Directive, Rolling, State


@dataclass(frozen=True, slots=True, eq=False)
class RollingUpdate(Directive):
    """m over j; l, O over j with terms that read m   ->   one loop v over slices of j: {
        keep m; update m on the slice; repair l and O for the change of m; update l and O }

    `s[m].rolling_update(f, v)`: f has an update that reduces over the same domain as m, and v is a
    loop of it, the variable itself or the outer half of its split. The group is m and every
    reduction over that domain that reads m, in order, up to f; what stands between is inlined or
    computed at v. The repair is derived from the definitions (ir/repair.py). Members are computed
    where f is.
    See: Neptune (arXiv 2510.08726), rolling update; FlashAttention's online softmax.
    """

    keyword: ClassVar[str] = "rolling_update"
    func: str
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        name = stage[0]
        if self.func not in state.funcs or self.func == name:
            raise self.error(
                "unknown-func",
                f"cannot roll {name!r} into {self.func!r}",
                why=f"{self.func!r} is "
                + ("itself" if self.func == name else "no Func of the Pipeline"),
                fix="name the last reduction that needs it",
            )
        for needed in (name, self.func):
            if len(state.funcs[needed].definitions) != 2:
                raise self.error(
                    "not-a-reduction",
                    f"cannot roll {name!r} into {self.func!r}: {needed!r} is no reduction",
                    why="a rolled Func, and what it is rolled into, has one update over a domain",
                    fix="roll a sum, max or min into a sum over the same domain",
                )
        self.loop(state.nests[self.func, 1], self.var)
        rolling = Rolling(name, self.func, self.var, self.span)
        state.rolling = (*(r for r in state.rolling if r.func != name), rolling)
