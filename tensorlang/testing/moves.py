"""How each directive is drawn: one move a directive, on a stage of a Schedule that stands so far.

A move may be refused (ScheduleError): that the language refuses is a part of what it does.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, get_args

from hypothesis import strategies as st

from tensorlang.directives.factoring import Merge
from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Const, Expr, Size
from tensorlang.ir.stmt import LoopKind
from tensorlang.lower.choose_placements import choose_placements
from tensorlang.schedule import Schedule, Stage

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
Move: TypeAlias = Callable[[Draw, Schedule, Stage, str, int], None]

FACTORS = (1, 2, 3, 4, 5, 8, 16)


def draw_move(draw: Draw, schedule: Schedule, keywords: Sequence[str]) -> bool:
    """Apply one of the directives to a stage; whether it was legal there."""
    func = draw(st.sampled_from(schedule.state.algorithm.funcs))
    number = draw(st.integers(0, len(func.definitions) - 1))
    stage = schedule[func.name] if number == 0 else schedule[func.name].update(number - 1)
    variants = stage.nest.variants
    if variants and draw(st.booleans()):
        stage = stage.specialize(draw(st.sampled_from(variants)).condition)
    before = len(schedule.applied)
    try:
        MOVES[draw(st.sampled_from(keywords))](draw, schedule, stage, func.name, number)
    except ScheduleError:
        return False
    return len(schedule.applied) > before


def _loops(stage: Stage) -> list[str]:
    return list(stage.nest.names())


def _loop(draw: Draw, stage: Stage) -> str:
    names = _loops(stage)
    # A scalar has no loop: the directive is refused.
    return draw(st.sampled_from(names)) if names else "none"


def _fresh(schedule: Schedule, func: str, base: str) -> str:
    """A name that no loop of any stage of the Func has had."""
    taken = {
        name
        for whole in schedule.state.stages(func)
        for nest in whole.everywhere()
        for name in (*nest.names(), *(b.name for b in nest.bindings))
    }
    while base in taken:
        base += "_"
    return base


def _split(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    loop = _loop(draw, stage)
    outer, inner = _fresh(s, func, f"{loop}o"), _fresh(s, func, f"{loop}i")
    tail = draw(st.sampled_from(("auto", "guard", "predicate", "shift_inwards", "ragged")))
    stage.split(loop, outer, inner, draw(st.sampled_from(FACTORS)), tail=tail)


def _tile(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    x, y = _loop(draw, stage), _loop(draw, stage)
    xo, yo, xi, yi = (_fresh(s, func, f"{v}{part}") for part in ("o", "i") for v in (x, y))
    x_factor, y_factor = draw(st.sampled_from(FACTORS)), draw(st.sampled_from(FACTORS))
    stage.tile(x, y, xo, yo, xi, yi, x_factor, y_factor)


def _fuse(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    names = _loops(stage)
    if len(names) < 2:
        return
    at: int = draw(st.integers(0, len(names) - 2))
    stage.fuse(names[at], names[at + 1], _fresh(s, func, "t"))


def _reorder(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    stage.reorder(*draw(st.permutations(_loops(stage))))


def _rename(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    loop = _loop(draw, stage)
    stage.rename(loop, _fresh(s, func, f"{loop}r"))


def _on_loop(name: str) -> Move:
    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        getattr(stage, name)(_loop(draw, stage))

    return apply


def _unroll(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    names = [loop.name for loop in stage.nest.loops if isinstance(loop.extent, Const)]
    if names:
        stage.unroll(draw(st.sampled_from(names)))
        return
    loop = _loop(draw, stage)
    outer, inner = _fresh(s, func, f"{loop}o"), _fresh(s, func, f"{loop}i")
    stage.split(loop, outer, inner, draw(st.sampled_from(FACTORS))).unroll(inner)


def _gpu_blocks(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    names = _loops(stage)
    stage.gpu_blocks(*names[: draw(st.integers(1, max(1, min(2, len(names)))))])


def _compute_at(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    _at(draw, s, "compute_at", func)


def _store_at(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    _at(draw, s, "store_at", func)


def _at(draw: Draw, s: Schedule, name: str, func: str) -> None:
    users = sorted(_users(s, func))
    if not users:
        return
    user = draw(st.sampled_from(users))
    number = draw(st.integers(0, len(s.state.funcs[user].definitions) - 1))
    place = s[user] if number == 0 else s[user].update(number - 1)
    getattr(s[func], name)(user, _loop(draw, place))


def _users(s: Schedule, func: str) -> set[str]:
    """The Funcs with loops of their own that read `func`, also through inlined ones."""
    placements = choose_placements(s.state.algorithm, s.state)
    found: set[str] = set()
    for reader in s.state.algorithm.consumers(func):
        found |= _users(s, reader) if placements[reader].inline else {reader}
    return found


def _placement(name: str) -> Move:
    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        getattr(s[func], name)()

    return apply


def _on_stage(name: str, *values: int | str) -> Move:
    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        getattr(stage, name)(draw(st.sampled_from(values)))

    return apply


def _on_kernel(name: str, *values: int) -> Move:
    """A hint for a kernel, and a kernel to have it where there is none."""

    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        if all(loop.kind is not LoopKind.GPU_BLOCK for loop in stage.nest.loops):
            _gpu_blocks(draw, s, stage, func, number)
        getattr(stage, name)(*([draw(st.sampled_from(values))] if values else []))

    return apply


def _on_buffer(name: str, *values: str) -> Move:
    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        named = draw(st.sampled_from((func, *(a.name for a in s.algorithm.inputs))))
        getattr(s[named], name)(draw(st.sampled_from(values)))

    return apply


def _pipeline(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    stage.pipeline(_loop(draw, stage), draw(st.integers(1, 4)))


def _rfactor(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    loops = [loop.name for loop in stage.nest.loops if loop.reduction]
    if loops:
        merge = draw(st.sampled_from(("kernel", "kernel", *get_args(Merge))))
        stage.rfactor(draw(st.sampled_from(loops)), _fresh(s, func, "u"), merge=merge)


def _rolling_update(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    algorithm = s.state.algorithm
    reduced = [f.name for f in algorithm.funcs if not f.is_pure]
    pairs = [(m, f) for m in reduced for f in algorithm.consumers(m) if f in reduced]
    if pairs:
        rolled, into = draw(st.sampled_from(pairs))
        update = s[into].update(0)
        along = _loop(draw, update)
        # The pass over the domain has its loop outermost.
        update.reorder(along, *(name for name in _loops(update) if name != along))
        s[rolled].rolling_update(into, along)


def _copies(name: str) -> Move:
    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        copied = draw(st.sampled_from((func, *(a.name for a in s.algorithm.inputs))))
        consumers = s.state.algorithm.consumers(copied)
        chosen: list[str] = []
        if consumers:
            chosen = draw(st.lists(st.sampled_from(consumers), unique=True))
        getattr(s[copied], name)(*chosen)

    return apply


def _compute_with(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    other = draw(st.sampled_from(s.state.algorithm.funcs)).name
    if number and draw(st.booleans()):
        other = func
    last = number - 1 if other == func else len(s.state.stages(other)) - 1
    before = s.state.nests[other, max(last, 0)]
    shared = [name for name in _loops(stage) if before.find(name) is not None]
    if shared:
        stage.compute_with(other, draw(st.sampled_from(shared)))


def _on_dim(name: str, counts: tuple[int, ...]) -> Move:
    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        dims = s.state.funcs[func].dims
        if dims:
            getattr(s[func], name)(draw(st.sampled_from(dims)), draw(st.sampled_from(counts)))

    return apply


def _atomic(draw: Draw, stage: Stage) -> None:
    """Atomic updates, and mostly a loop that needs them."""
    stage.atomic()
    if draw(st.booleans()):
        getattr(stage, draw(st.sampled_from(("parallel", "vectorize"))))(_loop(draw, stage))


def _bound(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    dims = s.state.funcs[func].dims
    if dims:
        is_output = func in {name for name, _ in s.algorithm.outputs}
        low = 0 if is_output else draw(st.sampled_from((0, -1, -5)))
        s[func].bound(draw(st.sampled_from(dims)), low, draw(st.sampled_from((3, 16, 40))))


def _specialize(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    sizes = s.algorithm.sizes
    if sizes:
        condition = _condition(draw, draw(st.sampled_from(sizes)))
        if draw(st.booleans()):
            condition = condition & _condition(draw, draw(st.sampled_from(sizes)))
        stage.specialize(condition)


def _specialize_fail(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    sizes = s.algorithm.sizes
    if sizes:
        # Most calls are to have a variant.
        stage.specialize(draw(st.sampled_from(sizes)) >= draw(st.integers(0, 2)))
        stage.specialize_fail("not for so small a size")


def _condition(draw: Draw, size: Size) -> Expr:
    n: int = draw(st.sampled_from(FACTORS))
    return draw(st.sampled_from((size % n == 0, size == n, size >= n)))


def _prefetch(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    names = (*s.state.funcs, *(a.name for a in s.algorithm.inputs))
    stage.prefetch(draw(st.sampled_from(names)), _loop(draw, stage), draw(st.integers(1, 3)))


MOVES: dict[str, Move] = {
    "split": _split,
    "tile": _tile,
    "fuse": _fuse,
    "reorder": _reorder,
    "rename": _rename,
    "serial": _on_loop("serial"),
    "unroll": _unroll,
    "vectorize": _on_loop("vectorize"),
    "parallel": _on_loop("parallel"),
    "atomic": lambda draw, s, stage, func, number: _atomic(draw, stage),
    "compute_at": _compute_at,
    "store_at": _store_at,
    "compute_root": _placement("compute_root"),
    "store_root": _placement("store_root"),
    "compute_inline": _placement("compute_inline"),
    "compute_with": _compute_with,
    "rfactor": _rfactor,
    "rolling_update": _rolling_update,
    "in_": _copies("in_"),
    "clone_in": _copies("clone_in"),
    "fold_storage": _on_dim("fold_storage", (2, 3, 4, 8)),
    "align_storage": _on_dim("align_storage", (2, 8)),
    "bound": _bound,
    "bound_extent": _on_dim("bound_extent", (3, 16, 40)),
    "align_bounds": _on_dim("align_bounds", (2, 3, 8)),
    "specialize": _specialize,
    "specialize_fail": _specialize_fail,
    "store_in": _on_stage("store_in", "auto", "heap", "stack", "register"),
    "prefetch": _prefetch,
    "pipeline": _pipeline,
    "gpu_blocks": _gpu_blocks,
    "gpu_warps": _on_kernel("gpu_warps", 1, 2, 4),
    "gpu_registers": _on_kernel("gpu_registers", 64, 128),
    "gpu_dependent_launch": _on_kernel("gpu_dependent_launch"),
    "warp_specialize": _on_loop("warp_specialize"),
    "load_with": _on_buffer("load_with", "pointer", "descriptor"),
    "store_with": _on_stage("store_with", "pointer", "descriptor"),
    "cache": _on_buffer("cache", "evict_first", "evict_last", "streaming"),
}
_OFTEN = ("split", "tile", "fuse", "reorder", "vectorize", "compute_at", "unroll", "rfactor")
_HARDWARE = tuple(MOVES)[tuple(MOVES).index("pipeline") :]
ON_CPU = (*(k for k in MOVES if k not in _HARDWARE), *_OFTEN, *_OFTEN)
ON_GPU = (*(k for k in MOVES if k != "parallel"), *_OFTEN, *_OFTEN, "gpu_blocks", "gpu_blocks")
