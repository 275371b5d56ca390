"""A program as what the host does, in order: name values, allocate workspaces, launch kernels.

    let v = e                  HostLet, when e needs no array
    allocate f                 Workspace: a root Func in global memory
    if c, serial for           HostIf, HostLoop, when a grid of programs lies inside
    gpu_block | parallel       a Launch whose iterations are programs
    any other stage            a Launch of one program

A grid is made of the gpu_block (or parallel) loops that no other statement separates, as far as the
host can compute their extents; any other such loop runs serially.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorlang.backends.triton.build import Launch
from tensorlang.backends.triton.firsts import firsts_of
from tensorlang.backends.triton.masks import Knowledge, knowledge_of
from tensorlang.backends.triton.tiles import Memory
from tensorlang.ir.expr import Const, Expr, Name, Var
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
    exprs_of,
    map_children,
    map_exprs,
    walk,
)
from tensorlang.ir.types import DType
from tensorlang.ir.walk import loads_of, substitute

GRID = (LoopKind.GPU_BLOCK, LoopKind.PARALLEL)


@dataclass(frozen=True, slots=True, eq=False)
class HostLet:
    name: str
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class HostIf:
    condition: Expr
    body: tuple["HostStep", ...]


@dataclass(frozen=True, slots=True, eq=False)
class HostLoop:
    name: str
    min: Expr
    extent: Expr
    body: tuple["HostStep", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Workspace:
    """Global memory for a root Func; `shape` is that of each component."""

    buffer: Buffer
    shape: tuple[Expr, ...]


HostStep: TypeAlias = HostLet | HostIf | HostLoop | Workspace | Launch


@dataclass(frozen=True, slots=True, eq=False)
class _Outside:
    """What the host has at a point: its scalars, what it knows of them, and the buffers.

    Args:
        inputs, outputs: those buffers that a caller gives.
        firsts: of those that the host makes, see firsts.py.
    """

    scalars: Mapping[str, DType]
    values: Mapping[str, Expr]
    facts: Knowledge
    buffers: Mapping[str, Buffer]
    inputs: frozenset[str]
    outputs: frozenset[str]
    firsts: Mapping[str, tuple[frozenset[int], ...]]

    def with_scalar(self, name: str, dtype: DType, facts: Knowledge) -> "_Outside":
        return replace(self, scalars={**self.scalars, name: dtype}, facts=facts)

    def with_buffer(self, buffer: Buffer) -> "_Outside":
        return replace(self, buffers={**self.buffers, buffer.name: buffer})


def partition(program: Program) -> tuple[HostStep, ...]:
    """What the host does for a program."""
    scalars = {size.name: size.dtype for size in program.sizes}
    scalars |= {param.name: param.dtype for param in program.params}
    buffers = {b.name: b for b in (*program.inputs, *program.outputs)}
    facts = knowledge_of(size.name for size in program.sizes)
    inputs = frozenset(b.name for b in program.inputs)
    outputs = frozenset(b.name for b in program.outputs)
    outside = _Outside(scalars, {}, facts, buffers, inputs, outputs, firsts_of(program))
    return tuple(_Partition(program.name).steps(program.body, outside, ()))


class _Partition:
    def __init__(self, program: str) -> None:
        self.program = program
        self.taken: set[str] = set()

    def steps(self, stmt: Stmt, outside: _Outside, stages: tuple[Stage, ...]) -> Iterator[HostStep]:
        """The steps for a statement; `stages` are those around it, for names."""
        match stmt:
            case Block():
                for s in stmt.statements:
                    yield from self.steps(s, outside, stages)
            case Assert():
                pass
            case Allocate(buffer=buffer):
                yield Workspace(buffer, tuple(d.extent for d in buffer.dims))
                yield from self.steps(stmt.body, outside.with_buffer(buffer), stages)
            case Let() if _is_host(stmt.value, outside):
                yield from self._let(stmt, outside, stages)
            case Stage() if has_grid(stmt):
                yield from self.steps(stmt.body, outside, (*stages, stmt))
            case If() if has_grid(stmt) and _is_host(stmt.condition, outside):
                known = replace(outside, facts=outside.facts.assuming(stmt.condition))
                yield HostIf(stmt.condition, tuple(self.steps(stmt.body, known, stages)))
            case For() if has_grid(stmt) and self._is_host_loop(stmt, outside):
                facts = outside.facts.ranged(stmt.var, stmt.min, stmt.extent)
                inside = outside.with_scalar(stmt.var, Var(stmt.var).dtype, facts)
                body = tuple(self.steps(stmt.body, inside, stages))
                yield HostLoop(stmt.var, stmt.min, stmt.extent, body)
            case _:
                yield self._launch(stmt, outside, stages)

    def _let(self, stmt: Let, outside: _Outside, stages: tuple[Stage, ...]) -> Iterator[HostStep]:
        value = substitute(stmt.value, outside.values)
        if isinstance(value, (Const, Name)):
            # A number or another name needs no name of its own.
            inside = replace(outside, values={**outside.values, stmt.var: value})
            yield from self.steps(_substituted(stmt.body, stmt.var, value), inside, stages)
            return
        yield HostLet(stmt.var, value)
        facts = outside.facts.valued(stmt.var, value)
        inside = outside.with_scalar(stmt.var, value.dtype, facts)
        yield from self.steps(stmt.body, inside, stages)

    def _is_host_loop(self, loop: For, outside: _Outside) -> bool:
        serial = loop.kind in (LoopKind.SERIAL, LoopKind.UNROLLED)
        return serial and _is_host(loop.min, outside) and _is_host(loop.extent, outside)

    def _launch(self, stmt: Stmt, outside: _Outside, stages: tuple[Stage, ...]) -> Launch:
        written = {s.buffer for s in walk(stmt) if isinstance(s, Store)}
        read = {load.buffer for s in walk(stmt) for load in loads_of(*exprs_of(s))}
        memories = {
            name: _memory(buffer, outside, constant=name not in written)
            for name, buffer in outside.buffers.items()
            if name in written | read
        }
        own = stages or tuple(s for s in walk(stmt) if isinstance(s, Stage))
        title = own[-1] if own else None
        body: Stmt = stmt
        if title is not None and not any(s is title for s in walk(stmt)):
            body = Stage(title.func, title.number, stmt)
        grid = tuple(_grid(stmt, outside, frozenset(outside.scalars)))
        return Launch(self._name(own), body, grid, memories, outside.scalars, {}, outside.facts)

    def _name(self, stages: tuple[Stage, ...]) -> str:
        """The Func that a launch computes last, and the update where it is only that."""
        wanted = self.program
        if stages:
            last = stages[-1]
            alone = last.number and not any(s.func == last.func for s in stages[:-1])
            wanted += f"_{last.func}" + (f"_update{last.number - 1}" if alone else "")
        wanted = wanted.replace(".", "_")
        name, count = wanted, 0
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name


def _substituted(stmt: Stmt, name: str, value: Expr) -> Stmt:
    """The statement with a host name replaced; names are not bound twice on one path."""
    made = map_exprs(stmt, lambda e: substitute(e, {name: value}))
    return map_children(made, lambda s: _substituted(s, name, value))


def _memory(buffer: Buffer, outside: _Outside, *, constant: bool) -> Memory:
    origin = () if buffer.name in outside.inputs else tuple(d.min for d in buffer.dims)
    extents = tuple(d.extent for d in buffer.dims)
    hints = dict(buffer.hints)
    is_given = buffer.name in outside.inputs | outside.outputs
    padding = [1 if is_given else alignment(buffer, dim) for dim in range(len(buffer.dims))]
    return Memory(
        buffer.name,
        buffer.dtypes,
        origin,
        extents,
        buffer.fold,
        tuple(padding),
        constant=constant,
        load_with=str(hints.get("load_with", "pointer")),
        store_with=str(hints.get("store_with", "pointer")),
        cache=str(hints.get("cache", "")),
        firsts=outside.firsts.get(buffer.name, ()),
    )


def alignment(buffer: Buffer, dim: int) -> int:
    """What the extent of a dimension is rounded up to in memory; 1 for nothing."""
    return int(dict(buffer.hints).get(f"align{dim}", 1))


def has_grid(stmt: Stmt) -> bool:
    """Whether any loop in the statement is a grid of programs."""
    return any(isinstance(s, For) and s.kind in GRID for s in walk(stmt))


def _grid(stmt: Stmt, outside: _Outside, known: frozenset[str]) -> Iterator[For]:
    """The block loops of a nest that no other statement separates."""
    while True:
        match stmt:
            case For() if stmt.kind in GRID:
                if not stmt.extent.free <= known or stmt.extent.reads:
                    return
                yield stmt
            case For(kind=LoopKind.VECTORIZED) | Let() | If() | Stage():
                pass
            case _:
                return
        stmt = stmt.body


def _is_host(e: Expr, outside: _Outside) -> bool:
    """Whether the host can compute an expression: it reads no array."""
    return not e.reads and e.free <= set(outside.scalars) | set(outside.values)
