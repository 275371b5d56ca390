"""A Pipeline and its schedules as an operator of torch.library.

    scaled = custom_op("mine::scaled", pipeline)         one Pipeline
    norm = custom_op("mine::norm", make_norm)            a function of dtypes that makes one

The operator runs as C on the CPU and as Triton on a GPU, knows its shapes without running (so that
torch.compile and export see through it), and is differentiated by `tensorlang.autodiff`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from tensorlang import arrays
from tensorlang.autodiff import gradients
from tensorlang.ir.types import DTYPES
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule
from tensorlang.torch.batching import register_batching
from tensorlang.torch.family import Derivative, Family, Key, Scheduling, family_of
from tensorlang.torch.libraries import Tensor, torch
from tensorlang.torch.shapes import shape_of, sizes_of

Operator = Any
# How many outputs an operator has, or a list of them.
Count = int | Literal["list"]


def custom_op(
    name: str,
    what: Pipeline | Callable[..., Pipeline],
    *,
    schedules: Mapping[str, Schedule] | Scheduling | None = None,
    params: Mapping[str, type] | None = None,
    outputs: Count | None = None,
    autocast: Any = None,
    constant: Sequence[str] = (),
    derivative: Derivative | None = None,
    derived_as: Mapping[str, Any] | None = None,
) -> Operator:
    """The operator `torch.ops.<name>`, with gradients, fake kernels and batching.

    Its arguments are the Inputs, then the constants of `what`, then the Params.  The gradient is
    an operator of its own, `<name>_backward`; of that there is no gradient.

    Args:
        name: "namespace::operator".
        what: a Pipeline; or a function from the dtype of each tensor (`DType | None` where one may
            be missing) and constants after `*` to the Pipeline for them.
        schedules: by target, "c" or "triton"; or a function of a Pipeline and a target, which may
            take the values of Sizes as well (near ones share a schedule).  Where there is none a
            formula makes it, as for the gradients.
        params: name and type of the Params, where `what` is a function.
        outputs: how many there are, where `what` is a function; by default one.  "list": as many
            as each Pipeline has, as a list.
        autocast: the dtype to which torch.autocast converts the tensors.
        constant: Funcs on whose value nothing depends, as in `autodiff.gradients`.
        derivative: from a Pipeline and names of Inputs to the Pipeline of their gradients, in place
            of `autodiff.gradients`.  That reads Inputs of the first, then its outputs (under the
            names of their Funcs), then gradients of outputs (`grad_<output>`): all but those that
            are only kept for it.
        derived_as: constants of `what` that have another value in the Pipeline whose gradient is
            derived: the same values by a definition whose gradient is better.
    Raises: DefinitionError: not-a-family, wrong-dtype; ShapeError: unknown-size.
    """
    derive = derivative or partial(gradients, constant=tuple(constant))
    family = family_of(what, params or {}, _scheduling(what, schedules), derive, derived_as)
    if isinstance(what, Pipeline):
        outputs = len(what.algorithm.outputs)
    count = outputs or 1
    op = _forward(name, family, count)
    backward = _backward(f"{name}_backward", family)
    _differentiate(op, backward, family, count)
    for one in (op, backward):
        register_batching(one)
    if autocast is not None:
        for device in ("cpu", "cuda"):
            op.register_autocast(device, autocast)
    return op


def _scheduling(
    what: Pipeline | Callable[..., Pipeline], schedules: Mapping[str, Schedule] | Scheduling | None
) -> Scheduling:
    if callable(schedules):
        return schedules
    chosen = dict(schedules or {})

    def find(pipeline: Pipeline, target: str) -> Schedule | None:
        return chosen.get(target) if pipeline is what else None

    return find


def _forward(name: str, family: Family, count: Count) -> Operator:
    tensors = [f"Tensor{'?' if optional else ''} {t}" for t, optional in family.tensors]
    results = "Tensor[]" if count == "list" else ", ".join(["Tensor"] * count)
    schema = f"({', '.join([*tensors, *_scalar_schema(family)])}) -> ({results})"

    def run(*arguments: Any) -> Any:
        given, scalars = _split(family, arguments)
        pipeline = family.pipeline(family.key(given, scalars))
        present = [t for t in given if t is not None]
        return _returned(family.run(pipeline, present, family.param_values(scalars), {}), count)

    def fake(*arguments: Any) -> Any:
        given, scalars = _split(family, arguments)
        algorithm = family.pipeline(family.key(given, scalars)).algorithm
        present = [t for t in given if t is not None]
        sizes = _sizes(family, given, scalars)
        made = tuple(
            present[0].new_empty(
                shape_of(shape, {**sizes, **family.param_values(scalars)}),
                dtype=arrays.torch_dtype(algorithm.func(func).dtypes[0]),
            )
            for func, shape in algorithm.outputs
        )
        return _returned(made, count)

    op = torch.library.custom_op(name, run, mutates_args=(), schema=schema)
    op.register_fake(fake)
    return op


def _returned(made: tuple[Tensor, ...], count: Count) -> Any:
    """The outputs as the schema says."""
    if count == "list":
        return list(made)
    return made[0] if count == 1 else made


def _scalar_schema(family: Family) -> list[str]:
    return [f"{kind} {name}" for name, kind in family.scalars]


def _split(
    family: Family, arguments: Sequence[Any]
) -> tuple[Sequence[Tensor | None], Sequence[Any]]:
    """The tensors of a call, and its constants and Params."""
    at = len(family.tensors)
    return arguments[:at], arguments[at:]


def _sizes(
    family: Family, given: Sequence[Tensor | None], scalars: Sequence[Any]
) -> dict[str, Any]:
    """The Sizes of a call, by name; extents may be symbols."""
    algorithm = family.pipeline(family.key(given, scalars)).algorithm
    present = [t for t in given if t is not None]
    shapes = {a.name: t.shape for a, t in zip(algorithm.inputs, present, strict=True)}
    return sizes_of(algorithm, shapes)


def _backward(name: str, family: Family) -> Operator:
    """The gradients of the tensors named in `wrt`, from those that were kept."""
    scalar_types = "".join(f", {part}" for part in _scalar_schema(family))
    schema = (
        "(Tensor[] kept, Tensor[] grads, SymInt[] sizes, str dtypes, str wrt"
        f"{scalar_types}) -> Tensor[]"
    )

    def gradient(dtypes: str, wrt: str, scalars: Sequence[Any]) -> tuple[Key, Pipeline]:
        key = _dtypes_from(dtypes), family.constant_values(scalars)
        return key, family.gradient(key, wrt)[0]

    def run(
        kept: list[Tensor],
        grads: list[Tensor],
        sizes: list[int],
        dtypes: str,
        wrt: str,
        *scalars: Any,
    ) -> list[Tensor]:
        key, pipeline = gradient(dtypes, wrt, scalars)
        names = [size.name for size in family.pipeline(key).algorithm.sizes]
        own = {size.name for size in pipeline.algorithm.sizes}
        given = {n: v for n, v in zip(names, sizes, strict=True) if n in own}
        params = family.param_values(scalars)
        return list(family.run(pipeline, [*kept, *grads], params, given))

    def fake(
        kept: list[Tensor],
        grads: list[Tensor],
        sizes: list[Any],
        dtypes: str,
        wrt: str,
        *scalars: Any,
    ) -> list[Tensor]:
        key, pipeline = gradient(dtypes, wrt, scalars)
        names = [size.name for size in family.pipeline(key).algorithm.sizes]
        values = {**dict(zip(names, sizes, strict=True)), **family.param_values(scalars)}
        algorithm = pipeline.algorithm
        return [
            grads[0].new_empty(
                shape_of(shape, values), dtype=arrays.torch_dtype(algorithm.func(func).dtypes[0])
            )
            for func, shape in algorithm.outputs
        ]

    op = torch.library.custom_op(name, run, mutates_args=(), schema=schema)
    op.register_fake(fake)
    return op


def _dtypes_text(key: Key) -> str:
    return ",".join("" if dtype is None else dtype.name for dtype in key[0])


def _dtypes_from(text: str) -> tuple[Any, ...]:
    return tuple(DTYPES[name] if name else None for name in text.split(","))


def _differentiate(op: Operator, backward: Operator, family: Family, count: Count) -> None:
    names = [name for name, _ in family.tensors]

    def wanted(given: Sequence[Tensor | None], needed: Sequence[bool]) -> str:
        pairs = zip(names, given, needed, strict=False)
        return ",".join(n for n, t, need in pairs if need and t is not None)

    def remember(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        given, scalars = _split(family, inputs)
        key = family.key(given, scalars)
        sizes = _sizes(family, given, scalars)
        algorithm = family.pipeline(key).algorithm
        ctx.sizes = [sizes[size.name] for size in algorithm.sizes]
        ctx.key, ctx.scalars = _dtypes_text(key), scalars
        ctx.wrt = wanted(given, ctx.needs_input_grad)
        read, ctx.places = set[str](), ()
        if ctx.wrt:
            gradient, ctx.places = family.gradient(key, ctx.wrt)
            read = {a.name for a in gradient.algorithm.inputs}
        results = (output,) if count == 1 else output
        funcs = [func for func, _ in algorithm.outputs]
        named = [*zip(names, given, strict=True), *zip(funcs, results, strict=True)]
        ctx.save_for_backward(*(t for n, t in named if t is not None and n in read))
        ctx.sloped = [f"grad_{func}" in read for func in funcs]
        ctx.like = [(t.shape, t.dtype) for t in results]
        kept = [t for t, sloped in zip(results, ctx.sloped, strict=True) if not sloped]
        if ctx.wrt and any(t.is_floating_point() for t in kept):
            # What is only kept for the gradient has none of its own.
            ctx.mark_non_differentiable(*kept)
            ctx.set_materialize_grads(False)

    def differentiate(ctx: Any, *slopes: Any) -> tuple[Tensor | None, ...]:
        grads = slopes[0] if count == "list" else slopes
        one = next(g for g in grads if g is not None)
        given = [
            one.new_zeros(shape, dtype=dtype) if g is None else g
            for g, sloped, (shape, dtype) in zip(grads, ctx.sloped, ctx.like, strict=True)
            if sloped
        ]
        made = backward(list(ctx.saved_tensors), given, ctx.sizes, ctx.key, ctx.wrt, *ctx.scalars)
        found = (made[place] for place in ctx.places)
        by_name = dict(zip(ctx.wrt.split(","), found, strict=True))
        return (*(by_name.get(name) for name in names), *[None] * len(family.scalars))

    op.register_autograd(differentiate, setup_context=remember)
