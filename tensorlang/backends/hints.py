"""Hints of a schedule that a backend has no use for: none changes a value, and the notes say so."""

from collections.abc import Callable, Iterator

from tensorlang.ir.stmt import Allocate, For, Hints, Program, walk


def ignored_hints(
    program: Program, target: str, uses: Callable[[str, str], bool]
) -> tuple[str, ...]:
    """A note for every hint that is not used, each once.

    Args: uses: whether the backend uses a hint, of the loop or buffer named.
    """
    return tuple(
        dict.fromkeys(
            f"the hint {hint}={value} of '{name}' is ignored by the target {target}"
            for name, hints in _hinted(program)
            for hint, value in hints
            # By pointers is how everything is reached unless a hint says otherwise.
            if value != "pointer" and not uses(name, hint)
        )
    )


def _hinted(program: Program) -> Iterator[tuple[str, Hints]]:
    for buffer in (*program.inputs, *program.outputs):
        yield buffer.name, buffer.hints
    for stmt in walk(program.body):
        if isinstance(stmt, For):
            yield stmt.var, stmt.hints
        elif isinstance(stmt, Allocate):
            yield stmt.buffer.name, stmt.buffer.hints
