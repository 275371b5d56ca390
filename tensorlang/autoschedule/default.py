"""A correct schedule for any algorithm: whole Funcs at root, parallel outside, lanes inside."""

from tensorlang.algorithm import Algorithm, FuncRecord
from tensorlang.lower.choose_placements import choose_placements
from tensorlang.schedule import Schedule
from tensorlang.target import Target


def default_schedule(algorithm: Algorithm, target: Target) -> Schedule:
    """Pure Funcs inlined, reductions where they are used, the rest at root.

    On C each root Func is parallel over its outermost dimension and vectorized over its innermost;
    on Triton its dimensions are fused and split into programs of one tile each.
    """
    schedule = Schedule(algorithm)
    outputs = {name for name, _ in algorithm.outputs}
    for func in reversed(algorithm.funcs):
        placements = choose_placements(algorithm, schedule.state)
        placement = placements[func.name]
        if placement.inline or (placement.compute.func and func.name not in outputs):
            continue
        for number in range(len(func.definitions)):
            if target.name == "c":
                _cpu(schedule, func, number, target)
            elif target.name == "triton":
                _gpu(schedule, func, number)
    return schedule


def _pure_loops(func: FuncRecord, number: int) -> list[str]:
    return [v for v in func.definitions[number].pure if v is not None]


def _fresh(schedule: Schedule, func: FuncRecord, number: int, base: str) -> str:
    nest = schedule.state.nests[func.name, number]
    taken = {*nest.names(), *(b.name for b in nest.bindings)}
    while base in taken:
        base += "_"
    return base


def _cpu(schedule: Schedule, func: FuncRecord, number: int, target: Target) -> None:
    loops = _pure_loops(func, number)
    if not loops:
        return
    widest = max(dtype.bits for dtype in func.dtypes)
    lanes = max(target.vector_bits // widest, 1)
    stage = schedule[func.name] if number == 0 else schedule[func.name].update(number - 1)
    inner = loops[-1]
    if func.definitions[number].pure[-1] == inner:
        outer, lane = (_fresh(schedule, func, number, f"{inner}_{part}") for part in "oi")
        stage.split(inner, outer, lane, lanes).vectorize(lane)
        loops[-1] = outer
    stage.parallel(loops[0])


_TILE = 1024


def _gpu(schedule: Schedule, func: FuncRecord, number: int) -> None:
    loops = _pure_loops(func, number)
    if not loops:
        return
    stage = schedule[func.name] if number == 0 else schedule[func.name].update(number - 1)
    fused = loops[0]
    for k, loop in enumerate(loops[1:]):
        name = _fresh(schedule, func, number, f"t{k}" if k else "t")
        stage.fuse(fused, loop, name)
        fused = name
    block, lane = (_fresh(schedule, func, number, f"{fused}_{part}") for part in "oi")
    stage.split(fused, block, lane, _TILE).gpu_blocks(block)
    stage.vectorize(lane)
    _lane_inside(schedule, func, number, lane)


def _lane_inside(schedule: Schedule, func: FuncRecord, number: int, lane: str) -> None:
    """A tile axis stands inside the serial loops of a reduction."""
    nest = schedule.state.nests[func.name, number]
    reductions = [loop.name for loop in nest.loops if loop.reduction]
    if reductions:
        stage = schedule[func.name].update(number - 1)
        stage.reorder(*reductions, lane)
