"""An algorithm as text: what `print(pipeline)` shows."""

from collections.abc import Iterator

from tensorlang.algorithm import Algorithm, Domain, FuncRecord
from tensorlang.ir.expr import Expr
from tensorlang.ir.printer import print_expr


def print_algorithm(algorithm: Algorithm) -> str:
    """algorithm name(inputs; params) -> outputs { one definition a line }"""
    inputs = [f"{a.name}: {a.dtype}{_box(a.shape)}" for a in algorithm.inputs]
    params = [f"{p.name}: {p.dtype}" for p in algorithm.params]
    outputs = [f"{name}{_box(shape)}" for name, shape in algorithm.outputs]
    head = f"algorithm {algorithm.name}({', '.join(inputs + params)}) -> {', '.join(outputs)} {{"
    body = [f"  {line}" for f in algorithm.funcs for line in _definitions(f)]
    return "\n".join([head, *body, "}"])


def _box(shape: tuple[Expr, ...]) -> str:
    return f"[{', '.join(map(print_expr, shape))}]"


def _definitions(func: FuncRecord) -> Iterator[str]:
    for definition in func.definitions:
        values = [print_expr(v) for v in definition.values]
        value = values[0] if len(values) == 1 else f"({', '.join(values)})"
        over = _domain(definition.domain) if definition.domain else ""
        yield f"{func.name}{_box(definition.indices)} = {value}{over}"


def _domain(domain: Domain) -> str:
    dims = ", ".join(
        f"{name} in [{print_expr(low)}, +{print_expr(extent)})" for name, low, extent in domain.dims
    )
    where = "" if domain.where is None else f" where {print_expr(domain.where)}"
    return f"  over {dims}{where}"
