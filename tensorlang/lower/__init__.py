"""The engine: from an algorithm and a schedule to loop IR, as one list of passes.

Each pass is a function in the file of its name.  Between any two passes the program is valid,
prints, and runs in the interpreter with the same result.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorlang.directives import State
from tensorlang.ir.stmt import Assert, Program, Stmt, block
from tensorlang.lower.build_nests import build_nests
from tensorlang.lower.check_bounds import bound_asserts, check_bounds
from tensorlang.lower.check_schedule import check_lanes, check_schedule
from tensorlang.lower.choose_placements import choose_placements
from tensorlang.lower.fold_storage import fold_storage
from tensorlang.lower.infer_bounds import infer_bounds
from tensorlang.lower.inline_funcs import inline_funcs
from tensorlang.lower.merge_stages import merge_stages
from tensorlang.lower.partition_loops import partition_loops
from tensorlang.lower.place_stages import place_stages
from tensorlang.lower.plan import Plan
from tensorlang.lower.rejoin_indices import rejoin_indices
from tensorlang.lower.roll_updates import roll_updates
from tensorlang.lower.rolling_groups import arrange, find_groups
from tensorlang.lower.simplify_program import simplify_program
from tensorlang.lower.skip_masked import skip_masked
from tensorlang.lower.trim_loops import trim_loops
from tensorlang.lower.unroll_loops import unroll_loops
from tensorlang.lower.variant_asserts import variant_asserts


@dataclass(frozen=True, slots=True)
class Pass:
    """One step; `requires` and `ensures` name facts about the program, which a test chains."""

    run: Callable[[Program], Program]
    requires: frozenset[str] = frozenset()
    ensures: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.run.__name__


@dataclass(frozen=True, slots=True)
class ScheduledPass:
    """A step that still reads the schedule; after placement only to say whose fault it is."""

    run: Callable[[Program, Plan], Program]
    requires: frozenset[str] = frozenset()
    ensures: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.run.__name__


Step: TypeAlias = Pass | ScheduledPass


def _facts(*names: str) -> frozenset[str]:
    return frozenset(names)


PASSES: tuple[Step, ...] = (
    ScheduledPass(inline_funcs, _facts("all-at-root"), _facts("inlined")),
    ScheduledPass(roll_updates, _facts("all-at-root", "inlined"), _facts("rolled")),
    ScheduledPass(place_stages, _facts("all-at-root", "inlined"), _facts("placed")),
    Pass(rejoin_indices, _facts("placed"), _facts("rejoined")),
    ScheduledPass(infer_bounds, _facts("placed"), _facts("bounds-known")),
    ScheduledPass(check_bounds, _facts("bounds-known"), _facts("bounds-checked")),
    ScheduledPass(fold_storage, _facts("bounds-known"), _facts("folded")),
    Pass(simplify_program, _facts("bounds-known"), _facts("simplified")),
    ScheduledPass(merge_stages, _facts("simplified"), _facts("merged")),
    Pass(trim_loops, _facts("simplified"), _facts("guards-folded")),
    Pass(skip_masked, _facts("simplified", "guards-folded"), _facts("masked-skipped")),
    Pass(check_lanes, _facts("simplified"), _facts("lanes-legal")),
    Pass(partition_loops, _facts("simplified", "guards-folded"), _facts("partitioned")),
    Pass(unroll_loops, _facts("simplified", "guards-folded"), _facts("unrolled")),
)

Trace: TypeAlias = Callable[[str, Program], None]


def lower(
    state: State,
    asserts: tuple[Assert, ...],
    *,
    trace: Trace | None = None,
) -> Program:
    """The loop program of an algorithm under a schedule.

    Args:
        state: what the schedule's directives made.
        asserts: what a call has to check (`check_inputs` of the algorithm).
        trace: called with the name of each pass and the program after it.
    Raises: ScheduleError for what only the whole schedule shows; DefinitionError (unbounded-index).
    """
    program = _run(state, PASSES, trace)
    return replace(program, body=block(*asserts, program.body))


def lower_stages(state: State) -> Stmt:
    """The loops as the schedule wrote them, before unrolling: for `loop_nest`."""
    names = [step.name for step in PASSES]
    return _run(state, PASSES[: names.index("partition_loops")], None).body


def _run(state: State, passes: tuple[Step, ...], trace: Trace | None) -> Program:
    algorithm = state.algorithm
    placements = choose_placements(algorithm, state)
    groups = find_groups(algorithm, state.rolling)
    algorithm, placements = arrange(algorithm, groups, placements)
    plan = Plan(
        algorithm,
        state.nests,
        placements,
        state.storage,
        state.hints,
        state.widenings,
        state.merges,
        groups,
    )
    check_schedule(plan)
    program = build_nests(plan)
    plan = replace(plan, asserts=(*bound_asserts(program, plan), *variant_asserts(plan)))
    if trace is not None:
        trace("build_nests", program)
    for step in passes:
        program = step.run(program, plan) if isinstance(step, ScheduledPass) else step.run(program)
        if trace is not None:
            trace(step.name, program)
    return program
