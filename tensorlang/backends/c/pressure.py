"""The order in which values are computed, so that few of them wait in registers at a time.

Nine products over the same eighteen loads, summed three ways, keep eighteen values waiting when one
sum is computed after another, and five when the three grow together.  A C compiler keeps to the
order that it is given, and loads again what found no register.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
# The search looks at all values for each of them.
_MOST_VALUES = 400


def in_few_registers(
    needs: Mapping[T, Sequence[T]], waits: Callable[[T], bool], registers: int
) -> list[T] | None:
    """The values in an order in which fewer wait, where more than `registers` do; None: as it is.

    Args:
        needs: what each is computed from, in an order that is possible.
        waits: whether a value takes a register from where it is computed to its last use.
    """
    order = list(needs)
    most = most_waiting(order, needs, waits)
    if most <= registers or len(order) > _MOST_VALUES:
        return None
    other = _Greedy(needs, waits).order()
    return other if most_waiting(other, needs, waits) < most else None


def most_waiting(
    order: Sequence[T], needs: Mapping[T, Sequence[T]], waits: Callable[[T], bool]
) -> int:
    """How many values wait at a time, at most."""
    last = {need: at for at, value in enumerate(order) for need in needs[value]}
    ends = Counter(at for value, at in last.items() if value in needs and waits(value))
    now = most = 0
    for at, value in enumerate(order):
        now += waits(value)
        most = max(most, now)
        now -= ends[at]
    return most


class _Greedy(Generic[T]):
    """Next comes what leaves the fewest values waiting; of loads, what lets most others follow."""

    def __init__(self, needs: Mapping[T, Sequence[T]], waits: Callable[[T], bool]) -> None:
        self._needs = needs
        self._position = {value: at for at, value in enumerate(needs)}
        # Of what waits, what has to be computed before; the rest comes just before its first use.
        self._before: dict[T, set[T]] = {}
        reached: dict[T, set[T]] = {}
        for value, needed in needs.items():
            before = {n for need in needed if need in needs for n in reached[need]}
            reached[value] = {value} if waits(value) else before
            if waits(value):
                self._before[value] = before
        self._users: dict[T, set[T]] = {value: set() for value in self._before}
        for value, before in self._before.items():
            for need in before:
                self._users[need].add(value)
        self._made: dict[T, None] = {}

    def order(self) -> list[T]:
        """All the values, each after what it needs."""
        waiting = dict.fromkeys(self._before)
        while waiting:
            ready = (value for value in waiting if self._before[value] <= self._made.keys())
            chosen = min(ready, key=self._cost)
            del waiting[chosen]
            self._make(chosen)
        for value in self._needs:
            self._make(value)
        return list(self._made)

    def _cost(self, value: T) -> tuple[int, bool, int, int]:
        before = self._before[value]
        ended = sum(self._users[need] <= self._made.keys() | {value} for need in before)
        made = self._made.keys() | {value}
        follow = sum(self._before[user] <= made for user in self._users[value])
        return -ended, not before, -follow, self._position[value]

    def _make(self, value: T) -> None:
        stack = [value]
        while stack:
            top = stack[-1]
            missing = [n for n in self._needs[top] if n in self._needs and n not in self._made]
            if missing:
                stack += missing[::-1]
                continue
            self._made.setdefault(top)
            stack.pop()
