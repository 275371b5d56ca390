"""Where each Func is computed when its schedule does not say.

An output is at root.  A pure Func is inlined.  A reduction lifted out of a larger expression is
computed at the innermost loop of its home that is neither a reduction nor vectorized.  Any other
Func with updates is at root.
"""

from collections.abc import Mapping

from tensorlang.algorithm import Algorithm, FuncRecord
from tensorlang.directives import Level, Nest, Placement, State
from tensorlang.ir.stmt import LoopKind


def choose_placements(algorithm: Algorithm, state: State) -> Mapping[str, Placement]:
    """A placement for every Func: the schedule's, or the default."""
    outputs = {name for name, _ in algorithm.outputs}
    chosen: dict[str, Placement] = {}
    # Consumers come last in `funcs`: a Func is placed after all that read it.
    for func in reversed(algorithm.funcs):
        if func.name in outputs:
            chosen[func.name] = Placement()
        elif func.name in state.placements:
            chosen[func.name] = state.placements[func.name]
        else:
            chosen[func.name] = _default(algorithm, state, chosen, func)
    return chosen


def _default(
    algorithm: Algorithm, state: State, chosen: Mapping[str, Placement], func: FuncRecord
) -> Placement:
    if func.is_pure:
        return Placement(inline=True)
    level = _home_level(algorithm, state, chosen, func) if func.home else None
    return Placement(level) if level else Placement()


def _home_level(
    algorithm: Algorithm, state: State, chosen: Mapping[str, Placement], func: FuncRecord
) -> Level | None:
    """Where to compute a lifted reduction; None where no one loop holds its uses."""
    users = _users(algorithm, chosen, func.name)
    if len(users) != 1:
        return None
    (user,) = users
    nest = state.nests[user, 0]
    if algorithm.func(user).is_pure:
        return _innermost(user, nest)
    return None


def _users(algorithm: Algorithm, chosen: Mapping[str, Placement], name: str) -> set[str]:
    """The Funcs with loops of their own that read `name`, seen through inlined ones."""
    found: set[str] = set()
    for consumer in algorithm.consumers(name):
        if chosen[consumer].inline:
            found |= _users(algorithm, chosen, consumer)
        else:
            found.add(consumer)
    return found


def _innermost(user: str, nest: Nest) -> Level | None:
    """The innermost loop outside all vectorized ones, in every variant."""
    others = [_outside_lanes(variant) for variant in nest.everywhere()[1:]]
    common = [name for name in _outside_lanes(nest) if all(name in other for other in others)]
    return Level(user, common[-1]) if common else None


def _outside_lanes(nest: Nest) -> list[str]:
    """The loops outside all vectorized ones, outermost first."""
    kinds = [loop.kind for loop in nest.loops]
    lanes = LoopKind.VECTORIZED
    return list(nest.names()[: kinds.index(lanes) if lanes in kinds else len(kinds)])
