"""What a run of drawn examples has reached: directives, and forms of algorithms."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tensorlang.algorithm import Algorithm, Definition, Domain, FuncRecord, exprs_of_definition
from tensorlang.directives import DIRECTIVES
from tensorlang.ir.associativity import associative_operator
from tensorlang.ir.dependence import dependences_of
from tensorlang.ir.expr import Binary, Call, Expr, Load, Var
from tensorlang.ir.walk import loads_of, postorder
from tensorlang.schedule import Schedule

_COLUMNS, _WIDTH = 3, 32


@dataclass(slots=True)
class Coverage:
    """In how many examples each directive stood, and each form of algorithm."""

    examples: int = 0
    directives: Counter[str] = field(default_factory=Counter[str])
    forms: Counter[str] = field(default_factory=Counter[str])

    def note(self, algorithm: Algorithm, schedule: Schedule) -> None:
        """Count one example; a directive counts once however often it stands there."""
        self.examples += 1
        self.directives.update({applied.directive.keyword for applied in schedule.applied})
        self.forms.update(forms_of(algorithm))

    def __add__(self, other: "Coverage") -> "Coverage":
        """The examples of both."""
        return Coverage(
            self.examples + other.examples,
            self.directives + other.directives,
            self.forms + other.forms,
        )

    def never(self) -> list[str]:
        """Directives and forms of which there was no example."""
        return [n for n in DIRECTIVES if not self.directives[n]] + [
            n for n in FORMS if not self.forms[n]
        ]

    def __str__(self) -> str:
        lines = [f"{self.examples} examples; of these, with"]
        for names, counts in ((DIRECTIVES, self.directives), (FORMS, self.forms)):
            cells = [f"{name} {counts[name]}" for name in names]
            rows = (cells[k : k + _COLUMNS] for k in range(0, len(cells), _COLUMNS))
            lines += ["  " + "".join(cell.ljust(_WIDTH) for cell in row).rstrip() for row in rows]
        return "\n".join(lines)


# --- forms ---------------------------------------------------------------------------------------


def forms_of(algorithm: Algorithm) -> set[str]:
    """The forms that an algorithm has."""
    return {name for name, has in FORMS.items() if has(algorithm)}


def _updates(algorithm: Algorithm) -> Iterator[tuple[FuncRecord, Definition]]:
    for func in algorithm.funcs:
        for definition in func.definitions[1:]:
            yield func, definition


def _operators(algorithm: Algorithm) -> set[str]:
    found = (associative_operator(f.name, d.indices, d.values) for f, d in _updates(algorithm))
    return {operator for operator, _ in filter(None, found)}


def _domains(algorithm: Algorithm) -> list[Domain]:
    return [d.domain for _, d in _updates(algorithm) if d.domain is not None]


def _is_triangular(domain: Domain) -> bool:
    """Whether how far one variable runs depends on another."""
    if any({*low.free, *extent.free} & {*domain.names} for _, low, extent in domain.dims):
        return True
    compared = domain.where.free if domain.where is not None else ()
    return len({*compared} & {*domain.names}) > 1


def _own_loads(func: FuncRecord, definition: Definition) -> list[Load]:
    found = loads_of(*definition.indices, *definition.values)
    return [load for load in found if load.buffer == func.name]


def _reads_elsewhere(func: FuncRecord, definition: Definition) -> bool:
    return any(
        here is not there
        for load in _own_loads(func, definition)
        for here, there in zip(load.indices, definition.indices, strict=True)
    )


def _is_scan(func: FuncRecord, definition: Definition) -> bool:
    """Whether an iteration needs one that is a known distance before it."""
    names = definition.domain.names if definition.domain else ()
    found = dependences_of(func.name, definition.indices, definition.values, names)
    return any(distance for d in found for distance in d.distances)


def _is_part(definition: Definition) -> bool:
    """Whether an update stores at some points only: an index is neither a Var nor a variable."""
    free = {*definition.pure, *(definition.domain.names if definition.domain else ())}
    return any(not (isinstance(i, Var) and i.name in free) for i in definition.indices)


def _everything(algorithm: Algorithm) -> Iterable[Expr]:
    return postorder(
        *(e for f in algorithm.funcs for d in f.definitions for e in exprs_of_definition(d))
    )


def _has_boundary(algorithm: Algorithm) -> bool:
    loads = (e for e in _everything(algorithm) if isinstance(e, Load))
    return any(isinstance(i, Binary) and i.op in ("min", "max") for e in loads for i in e.indices)


def _has_lookup(algorithm: Algorithm) -> bool:
    loads = (e for e in _everything(algorithm) if isinstance(e, Load))
    return any(i.reads for e in loads for i in e.indices)


def _reduction(operator: str) -> Callable[[Algorithm], bool]:
    return lambda algorithm: operator in _operators(algorithm)


FORMS: dict[str, Callable[[Algorithm], bool]] = {
    "several pure Funcs": lambda a: sum(f.is_pure for f in a.funcs) > 1,
    **{f"reduction by {op}": _reduction(op) for op in ("add", "mul", "min", "max")},
    **{f"reduction by {op}": _reduction(op) for op in ("and", "or", "argmin", "argmax")},
    "reduction in an expression": lambda a: any(f.home for f in a.funcs),
    "domain of two dimensions": lambda a: any(len(d.dims) > 1 for d in _domains(a)),
    "domain with a predicate": lambda a: any(d.where is not None for d in _domains(a)),
    "triangular domain": lambda a: any(map(_is_triangular, _domains(a))),
    "update of some points": lambda a: any(_is_part(d) for _, d in _updates(a)),
    "several updates": lambda a: any(len(f.definitions) > 2 for f in a.funcs),
    "scatter": lambda a: any(i.reads for _, d in _updates(a) for i in d.indices),
    "scan": lambda a: any(_is_scan(f, d) for f, d in _updates(a)),
    "reads itself elsewhere": lambda a: any(_reads_elsewhere(f, d) for f, d in _updates(a)),
    "tuple": lambda a: any(len(f.dtypes) > 1 for f in a.funcs),
    "several outputs": lambda a: len(a.outputs) > 1,
    "outputs of several shapes": lambda a: len({tuple(map(id, s)) for _, s in a.outputs}) > 1,
    "scalar output": lambda a: any(not shape for _, shape in a.outputs),
    "boundary condition": _has_boundary,
    "index that depends on data": _has_lookup,
    "random numbers": lambda a: any(
        isinstance(e, Call) and e.function == "random_uniform" for e in _everything(a)
    ),
    "parameter": lambda a: bool(a.params),
}
