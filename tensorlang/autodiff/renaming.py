"""Forward Funcs whose names the gradients take are renamed."""

from dataclasses import replace

from tensorlang.algorithm import Algorithm, Definition
from tensorlang.autodiff.placing import fresh_name
from tensorlang.ir.expr import Expr, Load
from tensorlang.ir.walk import rewrite


def rename_funcs(
    algorithm: Algorithm, reserved: frozenset[str]
) -> tuple[Algorithm, dict[str, str]]:
    """The algorithm with every Func whose name is reserved under another one, and those names."""
    taken = {*reserved, *(f.name for f in algorithm.funcs), *(a.name for a in algorithm.inputs)}
    taken |= {e.name for e in (*algorithm.sizes, *algorithm.params)}
    names: dict[str, str] = {}
    for func in algorithm.funcs:
        if func.name in reserved:
            names[func.name] = fresh_name(f"{func.name}_forward", taken)
            taken.add(names[func.name])
    if not names:
        return algorithm, names
    funcs = tuple(
        replace(
            f,
            name=names.get(f.name, f.name),
            home=names.get(f.home, f.home) if f.home else None,
            definitions=tuple(renamed_reads(d, names) for d in f.definitions),
        )
        for f in algorithm.funcs
    )
    outputs = tuple((names.get(name, name), shape) for name, shape in algorithm.outputs)
    return replace(algorithm, funcs=funcs, outputs=outputs), names


def renamed_reads(definition: Definition, names: dict[str, str]) -> Definition:
    """The definition with other Funcs read in place of those in `names`."""
    memo: dict[Expr, Expr] = {}

    def rule(e: Expr) -> Expr:
        if isinstance(e, Load) and e.buffer in names:
            return Load(names[e.buffer], e.indices, e.component, e.dtype)
        return e

    domain = definition.domain
    if domain is not None and domain.where is not None:
        domain = replace(domain, where=rewrite(domain.where, rule, memo))
    return replace(
        definition,
        indices=tuple(rewrite(e, rule, memo) for e in definition.indices),
        values=tuple(rewrite(e, rule, memo) for e in definition.values),
        domain=domain,
    )
