"""The top of a program: stages one after another, each inside the buffers allocated before it.

    allocate f: { stage f; allocate g: { stage g; stage h } }   is   f, stage f, g, stage g, stage h

A pipeline of n root Funcs nests n deep; as a sequence it is as flat as it reads.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tensorlang.ir.facts import Facts
from tensorlang.ir.stmt import Allocate, Block, Let, Stmt, block


@dataclass(frozen=True, slots=True)
class Opening:
    """An Allocate or a Let whose body is all the rest of the sequence."""

    stmt: Allocate | Let


def sequence_of(body: Stmt) -> Iterator[Stmt | Opening]:
    """The statements in order."""
    while True:
        match body:
            case Block(statements=(*before, last)):
                yield from before
                body = last
            case Allocate() | Let():
                yield Opening(body)
                body = body.body
            case _:
                yield body
                return


def map_sequence(body: Stmt, change: Callable[[Stmt, Facts], Stmt]) -> Stmt:
    """The body with `change` applied to each statement of its sequence, and what is known there."""
    facts = Facts.none
    parts: list[Stmt | Opening] = []
    for part in sequence_of(body):
        parts.append(part if isinstance(part, Opening) else change(part, facts))
        if isinstance(part, Opening) and isinstance(part.stmt, Let):
            facts = facts.with_value(part.stmt.var, part.stmt.value)
    made: Stmt = Block(())
    for part in reversed(parts):
        made = replace(part.stmt, body=made) if isinstance(part, Opening) else block(part, made)
    return made
