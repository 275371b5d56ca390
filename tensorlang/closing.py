"""Closing an algorithm: from its outputs to the record of everything they need."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensorlang.algorithm import Algorithm, FuncRecord, InputRecord, exprs_of_definition
from tensorlang.domain import shape_of
from tensorlang.errors import DefinitionError
from tensorlang.func import Func, Input, Source
from tensorlang.ir.expr import Expr, Operand, Param, Size, check_name
from tensorlang.ir.walk import postorder


def close_algorithm(
    name: str, inputs: Sequence[Input], outputs: Mapping[Func, Sequence[Operand]]
) -> Algorithm:
    """The record of all that `outputs` need; freezes their Funcs.

    Raises: DefinitionError: bad-name, no-output, wrong-rank, unlisted-input, name-twice,
        cyclic-definition.
    """
    check_name(name, "Pipeline")
    _check_arguments(name, inputs, outputs)
    shapes = tuple((f.name, _shape(f, shape)) for f, shape in outputs.items())
    funcs = _producers_first(name, inputs, tuple(outputs))
    records = tuple(f.record() for f in funcs)
    algorithm = close_records(name, tuple(a.record() for a in inputs), records, shapes)
    for f in funcs:
        f.frozen_by = name
    return algorithm


def close_records(
    name: str,
    inputs: tuple[InputRecord, ...],
    funcs: tuple[FuncRecord, ...],
    outputs: tuple[tuple[str, tuple[Expr, ...]], ...],
) -> Algorithm:
    """The record over Funcs that are records already, producers first.

    Raises: DefinitionError: name-twice, reserved-name.
    """
    leaves = list(_leaves(inputs, funcs, outputs))
    sizes = tuple(e for e in leaves if isinstance(e, Size))
    params = tuple(e for e in leaves if isinstance(e, Param))
    _check_names(name, inputs, funcs, sizes, params)
    return Algorithm(name, inputs, params, sizes, funcs, outputs)


def _check_arguments(name: str, inputs: Any, outputs: Any) -> None:
    if not isinstance(outputs, Mapping) or not outputs:
        raise DefinitionError(
            "no-output",
            f"Pipeline {name!r} has no output",
            why="it computes its outputs and what they need",
            fix="outputs={D: [M, N]}, a Func and its shape each",
        )
    listed: list[Any] = list(outputs)  # pyright: ignore[reportUnknownArgumentType]
    for f in listed:
        if not isinstance(f, Func) or not f.definitions:
            raise DefinitionError(
                "undefined-func",
                f"output {f!r} of Pipeline {name!r} is not a defined Func",
                why="an output is computed by its definitions",
                fix="define it before the Pipeline is made",
            )
    for a in inputs if isinstance(inputs, (list, tuple)) else (inputs,):  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(a, Input):
            raise DefinitionError(
                "bad-input",
                f"{a!r} is not an Input of Pipeline {name!r}",
                why="inputs= lists the array arguments in the order of the call",
                fix="list Inputs; Params and Sizes are found by themselves",
            )


def _shape(func: Func, shape: Sequence[Operand]) -> tuple[Expr, ...]:
    extents = shape_of(shape, f"output '{func.name}'")
    if len(extents) != len(func.dims):
        raise DefinitionError(
            "wrong-rank",
            f"output {func.name!r} has {len(func.dims)} dimension(s) but a shape of {len(extents)}",
            why=f"it is defined over ({', '.join(func.dims)})",
            fix="give one extent a dimension, outermost first",
        )
    return extents


def _producers_first(
    name: str, inputs: Sequence[Input], outputs: tuple[Func, ...]
) -> tuple[Func, ...]:
    listed = {a.name: a for a in inputs}
    known: dict[str, Source] = {}
    order: list[Func] = []
    done: set[str] = set()
    stack: list[tuple[Source, bool]] = [(f, False) for f in reversed(outputs)]
    while stack:
        source, opened = stack.pop()
        if opened:
            order.append(source)  # type: ignore[arg-type]
            done.add(source.name)
            continue
        if source.name in known:
            _check_same(name, known[source.name], source)
            _check_done(name, done, source)
            continue
        known[source.name] = source
        if isinstance(source, Input):
            _check_listed(name, listed, source)
            continue
        stack.append((source, True))
        stack.extend((d, False) for d in reversed(source.depends.values()) if d is not source)
    return tuple(order)


def _check_same(name: str, a: Source, b: Source) -> None:
    if a is not b:
        raise DefinitionError(
            "name-twice",
            f"Pipeline {name!r} uses two different things named {a.name!r}",
            why="names are unique in a Pipeline: directives and generated code use them",
            fix="rename one of them",
            span=b.span,
        )


def _check_done(name: str, done: set[str], source: Source) -> None:
    """What is known and not done yet is being opened: it needs itself through others."""
    if isinstance(source, Func) and source.name not in done:
        raise DefinitionError(
            "cyclic-definition",
            f"Func {source.name!r} of Pipeline {name!r} needs itself through other Funcs",
            why="a Func is computed, with all its updates, before anything that reads it",
            fix="make one Func of them, tuple-valued, whose update reads itself",
            span=source.span,
        )


def _check_listed(name: str, listed: Mapping[str, Input], source: Input) -> None:
    if listed.get(source.name) is not source:
        raise DefinitionError(
            "unlisted-input",
            f"Pipeline {name!r} reads Input {source.name!r}, which inputs= does not list",
            why="inputs= gives the order of the arguments of a call",
            fix=f"inputs=[{', '.join([*listed, source.name])}]",
        )


def _leaves(
    inputs: Iterable[InputRecord],
    funcs: Iterable[FuncRecord],
    outputs: Iterable[tuple[str, tuple[Expr, ...]]],
) -> Iterable[Expr]:
    """The Sizes and Params, each once, in order of appearance: shapes first."""
    roots = [e for a in inputs for e in a.shape] + [e for _, shape in outputs for e in shape]
    for f in funcs:
        for definition in f.definitions:
            roots.extend(exprs_of_definition(definition))
    return (e for e in postorder(*roots) if isinstance(e, (Size, Param)))


def _check_names(
    name: str,
    inputs: tuple[InputRecord, ...],
    funcs: tuple[FuncRecord, ...],
    sizes: tuple[Size, ...],
    params: tuple[Param, ...],
) -> None:
    kinds = {
        "Input": [a.name for a in inputs],
        "Func": [f.name for f in funcs],
        "Size": [s.name for s in sizes],
        "Param": [p.name for p in params],
    }
    reserved = next((p.name for p in params if p.name in ("out", "sizes")), None)
    if reserved is not None:
        raise DefinitionError(
            "reserved-name",
            f"a Param of Pipeline {name!r} cannot be named {reserved!r}",
            why=f"a call gives Params by name, and `{reserved}=` means something else there",
            fix="choose another name",
        )
    loops = {v for f in funcs for d in f.definitions for v in d.loops}
    seen: dict[str, str] = dict.fromkeys(loops, "Var")
    for kind, names in kinds.items():
        for n in names:
            if n in seen and not (seen[n] == "Var" and kind in ("Func", "Input")):
                raise DefinitionError(
                    "name-twice",
                    f"Pipeline {name!r} uses {n!r} as a {seen[n]} and as a {kind}",
                    why="names are unique in a Pipeline: directives and generated code use them",
                    fix="rename one of them",
                )
            seen[n] = kind
