"""How a scan becomes definitions: C[i, k] = cumsum(e, over=k) and what contains it."""

from typing import Any

from tensorlang.domain import RDom, RVar, Scan
from tensorlang.errors import DefinitionError
from tensorlang.ir.expr import Expr, Operators, Var


def scans_of(values: tuple[object, ...]) -> tuple[Scan, ...]:
    """The scans that stand in the values of a definition, left to right."""
    waiting = [v for v in reversed(values) if isinstance(v, Expr)]
    seen: set[Expr] = set()
    found: list[Scan] = []
    while waiting:
        e = waiting.pop()
        if e not in seen:
            seen.add(e)
            found += [e] if isinstance(e, Scan) else []
            waiting += reversed(e.children)
    return tuple(found)


def pure_key(name: str, key: tuple[Any, ...], scans: tuple[Scan, ...]) -> tuple[Any, ...]:
    """The indices on the left with a Var in the place of each variable that is scanned over.

    Raises: DefinitionError: scan-not-on-the-left.
    """
    wanted = {scan.domain.dims[0][0] for scan in scans}
    places = [_variable(item) for item in key]
    for k in sorted(wanted):
        if places.count(k) != 1:
            op = next(scan.op for scan in scans if scan.domain.dims[0][0] == k)
            raise DefinitionError(
                "scan-not-on-the-left",
                f"{op} over {k!r} in the definition of {name!r}, which has no index {k!r}",
                why="a scan has a value at each point of its domain",
                fix=f"give the variable as an index: {name}[..., {k}] = {op}(e, over={k})",
            )
    return tuple(
        Var(place) if place in wanted else item for place, item in zip(places, key, strict=True)
    )


def _variable(item: object) -> str | None:
    """The name of the domain's variable that an index is."""
    e = item.as_expr() if isinstance(item, (RDom, Operators)) else None
    return e.name if isinstance(e, RVar) else None
