"""The target `interpreter`: loop IR, one statement at a time, with every access checked.

It is slow and strict.  A load or store outside of a buffer, a load of an element that holds no
value yet, an output element that is never written, and two iterations of a parallel loop that touch
one element (unless both only read it, or store the same value) are faults of lowering, raised as
InternalError; a promise that does not hold is the user's BoundsError.
"""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from tensorlang.backends import numerics
from tensorlang.backends.closures import Closure, Closures, Environment
from tensorlang.backends.memory import Access, Memory, Race, Running, Trace
from tensorlang.errors import BoundsError, InternalError, ShapeError
from tensorlang.ir.conversion import wrap
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Program,
    Stage,
    Stmt,
    Store,
)
from tensorlang.ir.types import Scalar, i64, index
from tensorlang.target import Target

__all__ = ["Access", "Interpreted", "compile_program"]

Action: TypeAlias = Callable[[Environment], None]

# Where an environment holds what is going on; no name is empty.
_RUNNING = ""
_ERRORS = {"ShapeError": ShapeError, "BoundsError": BoundsError}


def compile_program(program: Program, target: Target, trace: Trace | None = None) -> "Interpreted":
    """The program as Python closures.

    Args: trace: is called with every load and store, in the order in which they happen.
    """
    return Interpreted(program, trace)


class Interpreted:
    """An Executable (executable.py) that interprets a program."""

    source = ""
    notes: tuple[str, ...] = ()

    def __init__(self, program: Program, trace: Trace | None = None) -> None:
        self.program = program
        self.trace = trace
        self._closures = Closures()
        for name in (_RUNNING, *program.sizes, *program.params):
            self._closures.slot(str(name))
        buffers = (*program.inputs, *program.outputs)
        self._ranges = [_ranges(buffer, self._closures) for buffer in buffers]
        for buffer in buffers:
            self._closures.slot(buffer.name)
        self._body = _action(program.body, self._closures)

    def run(
        self,
        sizes: Mapping[str, int],
        params: Mapping[str, Scalar],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        """Compute the outputs, in place; an error leaves them as they were.

        Raises: BoundsError (promise-broken), the error of an Assert, InternalError.
        """
        arrays = iter(outputs)
        with numerics.quiet(), _frames(self._closures.depth):
            env = self._environment(sizes, params, inputs)
            self._body(env)
            for buffer in self.program.outputs:
                memory: Memory = env[self._closures.slot(buffer.name)]
                memory.write_to([next(arrays) for _ in buffer.dtypes])

    def _environment(
        self, sizes: Mapping[str, int], params: Mapping[str, Scalar], inputs: Sequence[Any]
    ) -> Environment:
        env: Environment = [None] * self._closures.size
        slot = self._closures.slot
        env[slot(_RUNNING)] = running = Running(self.trace)
        for size in self.program.sizes:
            env[slot(size.name)] = sizes[size.name]
        for param in self.program.params:
            value = params[param.name]
            carried = value if param.dtype is index else numerics.constant(value, param.dtype)
            env[slot(param.name)] = carried
        given = [*inputs, *[None] * len(self.program.outputs)]
        buffers = (*self.program.inputs, *self.program.outputs)
        for buffer, ranges_of, array in zip(buffers, self._ranges, given, strict=True):
            ranges = ranges_of(env)
            extents = tuple([len(r) for r in ranges])
            if array is not None and array.shape != extents:
                raise InternalError(f"{buffer.name!r} is given as {array.shape}, not {extents}")
            env[slot(buffer.name)] = Memory(buffer, ranges, running, array)
        return env


@contextmanager
def _frames(depth: int) -> Generator[None]:
    """Room on Python's stack for expressions of some depth: a closure calls those of its operands.

    Calls between Python functions take no room on the stack of C.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, depth + 1000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _ranges(buffer: Buffer, closures: Closures) -> Callable[[Environment], list[range]]:
    """The indices of each dimension of a buffer."""
    mins = closures.several([dim.min for dim in buffer.dims])
    extents = closures.several([dim.extent for dim in buffer.dims])

    def ranges(env: Environment) -> list[range]:
        pairs = zip(mins(env), extents(env), strict=True)
        return [range(low, low + max(extent, 0)) for low, extent in pairs]

    return ranges


def _action(stmt: Stmt, closures: Closures) -> Action:
    """What a statement does to an environment."""
    match stmt:
        case Block():
            return _block([_action(s, closures) for s in stmt.statements])
        case Stage():
            return _stage(stmt, _action(stmt.body, closures))
        case For():
            return _loop(stmt, closures)
        case Let():
            value = closures.one(stmt.value)
            return _let(closures.slot(stmt.var), value, _action(stmt.body, closures))
        case If():
            return _if(closures.one(stmt.condition), _action(stmt.body, closures))
        case Allocate():
            return _allocate(stmt, closures)
        case Store():
            return _store(stmt, closures)
        case Assert():
            return _assert(stmt, closures)


def _block(actions: Sequence[Action]) -> Action:
    def run(env: Environment) -> None:
        for action in actions:
            action(env)

    return run


def _stage(stmt: Stage, body: Action) -> Action:
    def run(env: Environment) -> None:
        try:
            body(env)
        except InternalError as fault:
            fault.add_note(f"in stage {stmt.number} of {stmt.func!r}")
            raise

    return run


def _loop(loop: For, closures: Closures) -> Action:
    first, extent = closures.one(loop.min), closures.one(loop.extent)
    slot = closures.slot(loop.var)
    body = _action(loop.body, closures)
    if loop.kind in (LoopKind.PARALLEL, LoopKind.GPU_BLOCK):
        return _parallel(loop.var, first, extent, slot, body, closures.slot(_RUNNING))

    def run(env: Environment) -> None:
        start = first(env)
        for value in range(start, start + extent(env)):
            env[slot] = value
            body(env)

    return run


def _parallel(
    var: str, first: Closure, extent: Closure, slot: int, body: Action, running_slot: int
) -> Action:
    """A loop whose iterations, run in order, are watched for what they could do to each other."""

    def run(env: Environment) -> None:
        races = env[running_slot].races
        race = Race(var)
        start = first(env)
        races.append(race)
        for value in range(start, start + extent(env)):
            env[slot] = race.iteration = value
            body(env)
        races.pop()

    return run


def _let(slot: int, value: Closure, body: Action) -> Action:
    def run(env: Environment) -> None:
        env[slot] = value(env)
        body(env)

    return run


def _if(condition: Closure, body: Action) -> Action:
    def run(env: Environment) -> None:
        if condition(env):
            body(env)

    return run


def _allocate(stmt: Allocate, closures: Closures) -> Action:
    ranges = _ranges(stmt.buffer, closures)
    slot, running_slot = closures.slot(stmt.buffer.name), closures.slot(_RUNNING)
    body = _action(stmt.body, closures)

    def run(env: Environment) -> None:
        env[slot] = Memory(stmt.buffer, ranges(env), env[running_slot])
        body(env)
        env[slot] = None

    return run


def _store(stmt: Store, closures: Closures) -> Action:
    rank = len(stmt.indices)
    both = closures.several((*stmt.indices, *stmt.values), stmt.span)
    indices = [k for k, value in enumerate(stmt.values) if value.dtype is index]
    slot, running_slot = closures.slot(stmt.buffer), closures.slot(_RUNNING)
    atomic = stmt.atomic

    def run(env: Environment) -> None:
        if atomic:
            env[running_slot].updated = env[slot]
        computed = both(env)
        values = computed[rank:]
        if indices:
            # An index that is stored becomes an i64.
            values = tuple([wrap(v, i64) if k in indices else v for k, v in enumerate(values)])
        env[slot].store(computed[:rank], values)
        if atomic:
            env[running_slot].updated = None

    return run


def _assert(stmt: Assert, closures: Closures) -> Action:
    condition, values = closures.one(stmt.condition), closures.several(stmt.values)

    def run(env: Environment) -> None:
        if not condition(env):
            given = values(env)
            error = _ERRORS[stmt.error]
            what, why, fix = (text.format(*given) for text in (stmt.what, stmt.why, stmt.fix))
            raise error(stmt.code, what, why=why, fix=fix)

    return run
