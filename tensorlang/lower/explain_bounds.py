"""Say how the region that the outputs need of a Func or an Input comes about."""

from tensorlang.algorithm import Algorithm
from tensorlang.errors import DefinitionError
from tensorlang.ir.accesses import Access, accesses_of
from tensorlang.ir.expr import Expr
from tensorlang.ir.interval import Interval
from tensorlang.ir.printer import print_expr
from tensorlang.ir.simplify import simplify
from tensorlang.lower.check_inputs import default_program


def explain_bounds(algorithm: Algorithm, name: str) -> str:
    """One line for each access: the indices, dimension by dimension, and the line that wrote it.

    Raises: DefinitionError (unknown-func).
    """
    shapes = {a.name: a.shape for a in algorithm.inputs} | dict(algorithm.outputs)
    known = [*shapes, *(f.name for f in algorithm.funcs)]
    if name not in known:
        raise DefinitionError(
            "unknown-func",
            f"Pipeline {algorithm.name!r} has no Func or Input {name!r}",
            why="bounds are those of a Func or an Input",
            fix=f"one of {', '.join(dict.fromkeys(known))}",
        )
    lines = [f"region of {name!r}:"]
    if name in shapes:
        lines.append(f"  its shape: {_box(shapes[name])}")
    dims = {f.name: f.dims for f in algorithm.funcs}.get(name, ())
    accesses = accesses_of(default_program(algorithm).body, name, dims)
    lines.extend(f"  {_access(a)}" for a in accesses)
    if not accesses:
        lines.append("  nothing reads it")
    return "\n".join(lines)


def _box(shape: tuple[Expr, ...]) -> str:
    return " x ".join(f"[0, {print_expr(n)})" for n in shape) or "a scalar"


def _access(access: Access) -> str:
    dims = [_interval(i) for i in access.tight]
    place = ""
    if access.span is not None:
        place = f"  from {access.span.path}:{access.span.line}"
    return f"accessed at {' x '.join(dims) or 'its one element'}{place}"


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return "(its own loop)"
    ends = ["?" if e is None else print_expr(simplify(e)) for e in (interval.lo, interval.hi)]
    return f"[{ends[0]}, {ends[1]}]"
