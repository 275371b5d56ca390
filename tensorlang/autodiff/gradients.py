"""The gradient of a Pipeline as a Pipeline: reverse mode on definitions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tensorlang.algorithm import Algorithm, FuncRecord, InputRecord, reads_of
from tensorlang.autodiff.building import Adjoint, Building
from tensorlang.autodiff.placing import Contribution, fresh_name
from tensorlang.autodiff.renaming import rename_funcs
from tensorlang.autodiff.space import Axis, box, regions_of, vars_of
from tensorlang.autodiff.sweep import Guarded
from tensorlang.autodiff.updates import reverse_func
from tensorlang.closing import close_records
from tensorlang.errors import DefinitionError
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Const, Expr, Param, Var
from tensorlang.ir.types import DType
from tensorlang.pipeline import Pipeline

Named = str | Input | Func | Param


def gradients(
    pipeline: Pipeline,
    wrt: Sequence[Named] | None = None,
    grad_outputs: Sequence[Named] | None = None,
    *,
    dtypes: Mapping[str, DType] | None = None,
    constant: Sequence[str] = (),
) -> Pipeline:
    """The Pipeline that gives grad_x = sum(grad_y * dy/dx) for each x of `wrt`.

    Its inputs are those Inputs of `pipeline` whose values the gradient needs, in their order, then
    `grad_<output>` for each differentiated output, of its shape and dtype (`grad_<output>_<k>` for
    component k of a tuple).  Its outputs are `grad_<x>`, of the shape and dtype of x; that of a
    Param has no dimension.  What the gradient needs of the forward Funcs is in it by definition,
    under the same names, so that a schedule chooses what to keep and what to compute again.  A Size
    that is only an extent of an Input whose values are not needed is given in the call, as in
    sizes={"K": 8}.

    Args:
        wrt: Inputs and Params, objects or names, of float dtypes; by default every float Input.
        grad_outputs: the outputs whose gradient is given; the others count as not used.  By
            default every output that is a float.
        dtypes: in which dtype the adjoint of a Func is kept, by its name.  By default f64 for f64,
            else f32; f16 or bf16 here lets a product with it use the matrix unit.
        constant: Funcs on whose value nothing depends, such as the largest of a row that softmax
            subtracts: no gradient passes through them.
    Raises: DefinitionError: no-gradient, unknown-name, integer-gradient.
    """
    algorithm = pipeline.algorithm
    targets = _targets(algorithm, wrt)
    given = _given(algorithm, grad_outputs)
    public = [f"grad_{name}" for name in targets] + [a.name for a, _, _ in given]
    algorithm, names = rename_funcs(algorithm, frozenset(public))
    given = [(record, names.get(name, name), c) for record, name, c in given]
    building = _start(algorithm, targets, public, dtypes or {}, constant)
    building.regions.update((record.name, box(record.shape)) for record, _, _ in given)
    for func in reversed(algorithm.funcs):
        adjoint = _adjoint_of(building, func, [g for g in given if g[1] == func.name])
        if adjoint is not None and func.name in building.wanted:
            reverse_func(building, func, adjoint)
    outputs = tuple(_output(building, algorithm, name) for name in targets)
    records = {f.name: f for f in algorithm.funcs} | building.records
    inputs = (*algorithm.inputs, *(a for a, _, _ in given))
    needed = _producers_first(records, [name for name, _ in outputs])
    read = {name for f in needed for name in reads_of(f)}
    kept = tuple(a for a in inputs if a.name in read or a.name in public)
    funcs = tuple(
        f if f.home in {g.name for g in needed} else replace(f, home=None) for f in needed
    )
    return Pipeline.of(close_records(f"{algorithm.name}_gradients", kept, funcs, outputs))


_Given = tuple[InputRecord, str, int]


def _targets(algorithm: Algorithm, wrt: Sequence[Named] | None) -> list[str]:
    dtypes = {a.name: a.dtype for a in algorithm.inputs}
    dtypes |= {p.name: p.dtype for p in algorithm.params}
    if wrt is None:
        return [a.name for a in algorithm.inputs if a.dtype.is_float]
    names = [_name_of(x) for x in wrt]
    for name in names:
        if name not in dtypes:
            raise _unknown(algorithm, name, "Input or Param", dtypes)
        if not dtypes[name].is_float:
            raise _integer(f"{name!r}", dtypes[name])
    if not names:
        raise _unknown(algorithm, "", "Input or Param", dtypes)
    return list(dict.fromkeys(names))


def _given(algorithm: Algorithm, grad_outputs: Sequence[Named] | None) -> list[_Given]:
    """The incoming gradients, each with the output and the component that it is of."""
    shapes = dict(algorithm.outputs)
    names = list(shapes) if grad_outputs is None else [_name_of(y) for y in grad_outputs]
    found: list[_Given] = []
    for name in names:
        if name not in shapes:
            raise _unknown(algorithm, name, "output", shapes)
        dtypes = algorithm.func(name).dtypes
        floats = [c for c, dtype in enumerate(dtypes) if dtype.is_float]
        if not floats and grad_outputs is not None:
            raise _integer(f"output {name!r}", dtypes[0])
        for c in floats:
            suffix = f"_{c}" if len(dtypes) > 1 else ""
            record = InputRecord(f"grad_{name}{suffix}", dtypes[c], shapes[name])
            found.append((record, name, c))
    return found


def _name_of(x: Named) -> str:
    return x if isinstance(x, str) else x.name


def _unknown(algorithm: Algorithm, name: str, kind: str, known: Iterable[str]) -> DefinitionError:
    return DefinitionError(
        "unknown-name",
        f"Pipeline {algorithm.name!r} has no {kind} {name!r}",
        why="gradients are taken of outputs with respect to Inputs and Params",
        fix=f"one of {', '.join(known)}",
    )


def _integer(what: str, dtype: DType) -> DefinitionError:
    return DefinitionError(
        "integer-gradient",
        f"{what} is {dtype} and has no gradient",
        why="only floats have derivatives",
        fix="leave it out, or make it a float",
    )


def _start(
    algorithm: Algorithm,
    targets: Sequence[str],
    public: Iterable[str],
    kept_in: Mapping[str, DType],
    constant: Sequence[str],
) -> Building:
    wanted = set(targets)
    for func in algorithm.funcs:
        exprs = [e for d in func.definitions for e in d.values]
        if func.name not in constant and any(
            not wanted.isdisjoint(e.reads | e.free) for e in exprs
        ):
            wanted.add(func.name)
    names = {*public, *(a.name for a in algorithm.inputs), *(f.name for f in algorithm.funcs)}
    names |= {e.name for e in (*algorithm.sizes, *algorithm.params)}
    return Building(algorithm, dict(regions_of(algorithm)), frozenset(wanted), kept_in, names)


def _adjoint_of(building: Building, func: FuncRecord, given: Sequence[_Given]) -> Adjoint | None:
    """Where the adjoint of a Func is read; None where nothing depends on it."""
    found = building.contributions.get(func.name, [])
    direct = {c: (a.name, 0, a.dtype) for a, _, c in given}
    if not found:
        return Adjoint(direct) if direct else None
    region = building.regions[func.name]
    at = vars_of(region)
    arriving = Adjoint(direct)
    own = [
        Contribution(region, at, c, Guarded((), arriving.at(c, at)), func.span)
        for c in arriving.sources
    ]
    keep = building.kept_in.get(func.name)
    name = building.name(f"grad_{func.name}")
    parts = [*own, *found]
    return building.adjoint(name, region, func.dtypes, parts, keep, func.span, is_whole=False)


def _output(building: Building, algorithm: Algorithm, name: str) -> tuple[str, tuple[Expr, ...]]:
    """The Func of the gradient of an Input or a Param, with its shape."""
    records = {a.name: a for a in algorithm.inputs}
    if name in records:
        record = records[name]
        shape, dtype, span = record.shape, record.dtype, record.span
    else:
        shape, dtype, span = (), next(p.dtype for p in algorithm.params if p.name == name), None
    found = building.contributions.get(name, [])
    region = _named(building, building.regions.get(name, ()), found)
    if not found:
        zero = Guarded((), Const(0.0, dtype))
        found = [Contribution(region, vars_of(region), 0, zero, span)]
    building.adjoint(f"grad_{name}", region, (dtype,), found, dtype.storage, span)
    return f"grad_{name}", shape


def _named(
    building: Building, region: tuple[Axis, ...], found: Sequence[Contribution]
) -> tuple[Axis, ...]:
    """The axes of an Input, named like the Vars that it is read with."""
    names: list[str] = []
    for d, axis in enumerate(region):
        plain = (e.name for c in found if isinstance(e := c.indices[d], Var))
        names.append(fresh_name(next(plain, axis.name), (*building.taken, *names)))
    return tuple(Axis(n, a.first, a.last) for n, a in zip(names, region, strict=True))


def _producers_first(
    records: Mapping[str, FuncRecord], outputs: Sequence[str]
) -> tuple[FuncRecord, ...]:
    """The Funcs that the outputs need, each after those that it reads."""
    order: dict[str, FuncRecord] = {}
    stack = [(name, False) for name in reversed(outputs)]
    while stack:
        name, opened = stack.pop()
        if opened:
            order[name] = records[name]
        elif name in records and name not in order:
            stack.append((name, True))
            reads = sorted(reads_of(records[name]) - {name})
            stack.extend((read, False) for read in reversed(reads))
    return tuple(order.values())
