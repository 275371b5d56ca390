"""From the words of a schedule to its directives, and what of them an algorithm does not have."""

from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any, cast

from tensorlang.algorithm import Algorithm
from tensorlang.directives import DIRECTIVES, Directive, State
from tensorlang.directives.nest import stage_name
from tensorlang.errors import ParseError, ScheduleError
from tensorlang.ir.expr import Expr, as_expr
from tensorlang.ir.types import index
from tensorlang.span import Span
from tensorlang.text.calls import DirectiveCall, Written

# The errors that say that an algorithm lacks what a schedule names.
MISFITS = ("unknown-func", "unknown-update", "unknown-loop", "unknown-dim", "not-a-consumer")


def check_stage(state: State, func: str, number: int, span: Span | None = None) -> None:
    """Check that the algorithm has this stage, or this Input."""
    if func not in state.funcs and (number or func not in {a.name for a in state.algorithm.inputs}):
        raise ScheduleError(
            "unknown-func",
            f"Pipeline {state.algorithm.name!r} has no Func {func!r} to schedule",
            why="a schedule names the Funcs that the outputs need",
            fix=f"its Funcs are {', '.join(state.funcs)}",
            span=span,
        )
    if number:
        check_update(state, func, number - 1, span)


def check_update(state: State, func: str, update: object, span: Span | None = None) -> None:
    """Check that the Func has this update, counted from 0."""
    updates = len(state.funcs[func].definitions) - 1 if func in state.funcs else 0
    if type(update) is not int or not 0 <= update < updates:
        raise ScheduleError(
            "unknown-update",
            f"{func!r} has no update {update!r}",
            why=f"it has {updates} update definition(s), numbered from 0",
            fix=f"s[{func}].update(0)" if updates else f"schedule s[{func}] itself",
            span=span,
        )


def misfit(algorithm: Algorithm, errors: Sequence[ScheduleError]) -> ScheduleError:
    """One error for all that the algorithm lacks of what a schedule names."""
    if len(errors) == 1:
        return errors[0]
    loops = (
        f"{stage_name(f.name, n)}({', '.join(d.loops)})"
        for f in algorithm.funcs
        for n, d in enumerate(f.definitions)
    )
    return ScheduleError(
        "algorithm-changed",
        f"{algorithm.name!r} lacks {len(errors)} of the names that this schedule uses",
        why="\n".join(f"- {error.what}" for error in errors),
        fix=f"it has {', '.join(loops)}",
        span=errors[0].span,
    )


def directive_of(call: DirectiveCall, algorithm: Algorithm) -> Directive:
    """The directive that a parsed call writes for an algorithm.

    Raises: ParseError: unknown-directive, bad-arguments, unknown-name.
    """
    made = DIRECTIVES.get(call.keyword)
    if made is None:
        raise ParseError(
            "unknown-directive",
            f"there is no directive {call.keyword!r}",
            why="a chain is made of directives",
            fix=f"one of {', '.join(sorted(DIRECTIVES))}",
            span=call.span,
        )
    parameters = {f.name: f for f in fields(made) if f.name != "span"}
    first = next(iter(parameters), "")
    variadic = len(parameters) == 1 and _wanted(parameters[first]) is tuple
    positional: tuple[Any, ...] = (call.args,) if variadic else call.args
    given = dict(zip(parameters, positional, strict=False))
    named: dict[str, Any] = dict(call.named)
    for values in (given, named):
        for name in values.keys() & parameters.keys():
            if _wanted(parameters[name]) is Expr:
                values[name] = _expression(values[name], call, algorithm)
    required = {name for name, f in parameters.items() if f.default is MISSING}
    fits = (
        len(positional) == len(given)
        and given.keys().isdisjoint(named)
        and required <= given.keys() | named.keys() <= parameters.keys()
        and all(_fits(parameters[name], v) for name, v in (given | named).items())
    )
    if not fits:
        raise ParseError(
            "bad-arguments",
            f"{call.keyword} does not take these arguments",
            why="names stand for loops and Funcs, ints for factors",
            fix=f"{call.keyword}({', '.join(parameters)})",
            span=call.span,
        )
    return made(**given, **named, span=call.span)  # type: ignore[arg-type]


def _expression(value: Any, call: DirectiveCall, algorithm: Algorithm) -> Any:
    """An argument as an expression of the algorithm's Sizes and Params."""
    names: dict[str, Expr] = {x.name: x for x in (*algorithm.sizes, *algorithm.params)}
    if isinstance(value, str):
        value = names.get(value, value)
    elif isinstance(value, Written):
        value = value.read(names)
    if isinstance(value, Expr) or not isinstance(value, (bool, int, float)):
        return value
    return as_expr(value, None if isinstance(value, bool) else index)


def check_arguments(directive: Directive) -> None:
    """Check that every argument is of its kind: a name, an int, or names.

    Raises: ScheduleError: bad-arguments.
    """
    parameters = [f for f in fields(directive) if f.name != "span"]
    for parameter in parameters:
        value = getattr(directive, parameter.name)
        if not _fits(parameter, value):
            kind = _KINDS[_wanted(parameter)]
            raise directive.error(
                "bad-arguments",
                f"cannot {directive.keyword} with {parameter.name}={value!r}",
                why=f"{parameter.name} is {kind}",
                fix=f"{directive.keyword}({', '.join(f.name for f in parameters)})",
            )


_KINDS = {int: "a Python int", str: "a string", tuple: "names", Expr: "an expression"}


def _wanted(parameter: Any) -> type:
    text = str(getattr(parameter.type, "__name__", parameter.type))
    if text == "Expr":
        return Expr
    return tuple if text.startswith("tuple") else int if text == "int" else str


def _fits(parameter: Any, value: object) -> bool:
    wanted = _wanted(parameter)
    if wanted is tuple:
        return all(isinstance(v, str) for v in cast("tuple[object, ...]", value))
    return isinstance(value, wanted) and not isinstance(value, bool)
