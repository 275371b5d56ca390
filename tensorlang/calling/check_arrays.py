"""Whether the arrays of a call are what the Inputs and outputs say."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tensorlang import arrays
from tensorlang.arrays import Array, ArrayInfo
from tensorlang.calling.overlap import Span, are_apart, overlap, overlaps_itself, same_elements
from tensorlang.calling.signature import Argument, Signature
from tensorlang.errors import ShapeError, TargetError
from tensorlang.target import Target

_LIBRARY = {"numpy": "a NumPy array", "torch": "a torch tensor"}


@dataclass(frozen=True, slots=True)
class Place:
    """The library and device of a call's arrays, and the first array that is there."""

    kind: str
    device: str
    name: str


def roles(
    signature: Signature, inputs: Sequence[Array], outs: Sequence[Array]
) -> Iterator[tuple[str, Argument, Array]]:
    """Every array of a call: what it is, for which argument, and itself."""
    for argument, value in zip(signature.inputs, inputs, strict=True):
        yield "Input", argument, value
    for argument, value in zip(signature.outputs, outs, strict=False):
        yield "output", argument, value


def check_count(signature: Signature, inputs: Sequence[object]) -> None:
    """Raise unless there is one argument an Input (ShapeError argument-count)."""
    wanted, given = len(signature.inputs), len(inputs)
    if wanted == given:
        return
    names = ", ".join(a.name for a in signature.inputs)
    missing = [f"'{a.name}'" for a in signature.inputs[given:]]
    raise ShapeError(
        "argument-count",
        f"'{signature.name}' takes {_counted(wanted, 'array')}, but {given} "
        f"{'was' if given == 1 else 'were'} passed",
        why=f"its signature is {signature}",
        fix=f"pass {', '.join(missing)} as well" if missing else f"pass {names or 'none'} only",
    )


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def listed_outputs(signature: Signature, out: object) -> tuple[Array, ...]:
    """What `out=` was given, one array an output (ShapeError out-count)."""
    given: tuple[Array, ...] = tuple(out) if isinstance(out, (tuple, list)) else (out,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    wanted = len(signature.outputs)
    if len(given) != wanted:
        names = ", ".join(a.name for a in signature.outputs)
        raise ShapeError(
            "out-count",
            f"'{signature.name}' has {_counted(wanted, 'output')}, but out= has {len(given)}",
            why=f"its signature is {signature}",
            fix=f"out=({names})" if wanted > 1 else f"out={names}",
        )
    return given


def check_array(role: str, argument: Argument, value: object) -> str:
    """The library of an array (ShapeError not-an-array)."""
    kind = arrays.kind_of(value)
    if kind is not None:
        return kind
    example = f"numpy.asarray(..., {_example_dtype(argument)})"
    raise ShapeError(
        "not-an-array",
        f"{role} '{argument.name}' was given a value of type {type(value).__name__}",
        why=f"it takes an array, {argument.dtype}{argument.shape_text()}, and nothing is converted "
        "silently",
        fix=f"pass a torch tensor, a NumPy array or a DLPack array, such as {example}",
    )


def _example_dtype(argument: Argument) -> str:
    package = "numpy" if arrays.in_numpy(argument.dtype) else "ml_dtypes"
    return f"{package}.{arrays.library_name(argument.dtype)}"


def check_place(role: str, argument: Argument, kind: str, device: str, place: Place) -> None:
    """Raise unless the array is where the first one is (ShapeError mixed-kinds, mixed-devices)."""
    if kind != place.kind:
        raise ShapeError(
            "mixed-kinds",
            f"{role} '{argument.name}' is {_library(kind)}, and '{place.name}' is "
            f"{_library(place.kind)}",
            why="the arrays of one call come from one library, and so do the outputs",
            fix=f"pass {_library(place.kind)} as '{argument.name}', or the other way round",
        )
    if device != place.device:
        raise ShapeError(
            "mixed-devices",
            f"{role} '{argument.name}' is on {device}, and '{place.name}' is on {place.device}",
            why="one call runs on one device, and nothing is moved silently",
            fix=f"move '{argument.name}' to {place.device}",
        )


def _library(kind: str) -> str:
    return _LIBRARY.get(kind, f"an array of {kind}")


def check_device(argument: Argument, device: str, target: Target) -> None:
    """Raise unless the target can compute there (TargetError wrong-device)."""
    legal = ("cpu", "cuda") if target.carrier == "torch" else ("cpu",)
    if device.split(":", maxsplit=1)[0] in legal:
        return
    gpu = device.startswith("cuda")
    raise TargetError(
        "wrong-device",
        f"the target '{target}' cannot compute on {device}, where '{argument.name}' is",
        why=f"it computes on {' and '.join(legal)} alone, and nothing is moved silently",
        fix='compile for target="triton", or move the arrays to the CPU'
        if gpu
        else "move the arrays to the CPU",
    )


def check_fit(role: str, argument: Argument, info: ArrayInfo) -> None:
    """Raise unless dtype, rank and layout are as they have to be (ShapeError)."""
    wanted = argument.dtype.storage
    if info.dtype is not wanted:
        raise ShapeError(
            "wrong-dtype",
            f"{role} '{argument.name}' is {argument.dtype}, but its array is {info.dtype_name}",
            why="nothing is converted silently",
            fix=f"convert the array to {arrays.library_name(wanted)}"
            + (f", or define the Input as {info.dtype}" if info.dtype and role == "Input" else ""),
        )
    check_rank(role, argument, info.shape)
    if info.problem:
        raise ShapeError(
            "bad-layout",
            f"the array of {role} '{argument.name}' cannot be read in place",
            why=info.problem,
            fix="pass a dense, contiguous copy",
        )


def check_rank(role: str, argument: Argument, shape: tuple[int, ...]) -> None:
    """Raise unless a shape has as many dimensions as the argument (ShapeError wrong-rank)."""
    if len(shape) != len(argument.shape):
        raise ShapeError(
            "wrong-rank",
            f"{role} '{argument.name}' has {_counted(len(argument.shape), 'dimension')}, but its "
            f"array has {len(shape)}",
            why=f"it is {argument.dtype}{argument.shape_text()}, and the array's shape is {shape}",
            fix="reshape the array",
        )


def check_output(
    argument: Argument, info: ArrayInfo, shape: tuple[int, ...], target: Target
) -> None:
    """Raise unless the array can take an output of this shape (ShapeError)."""
    if info.shape != shape:
        raise ShapeError(
            "out-shape",
            f"output '{argument.name}' has the shape {shape}, but its array has {info.shape}",
            why=f"it is {argument.dtype}{argument.shape_text()} with the Sizes of this call",
            fix=f"pass an array of shape {shape}, or leave out= away",
        )
    reason = _not_writable(info, target)
    if reason:
        raise ShapeError(
            "out-not-writable",
            f"the array of output '{argument.name}' cannot be written in place",
            why=reason,
            fix="pass a fresh array, or leave out= away",
        )


def _not_writable(info: ArrayInfo, target: Target) -> str:
    if not info.writable:
        return "it is read-only"
    if not info.is_bare:
        return "it requires a gradient, or is the negative view of another tensor"
    if overlaps_itself(info):
        return (
            f"two of its indices may reach one element (its steps are {info.steps} bytes "
            f"over the shape {info.shape})"
        )
    backwards = any(s < 0 for s in info.steps)
    if backwards and target.carrier == "torch":
        return f"its strides are negative, which torch, through which '{target}' runs, has not"
    return ""


def check_overlap(
    signature: Signature,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    spans: Sequence[Span],
    hazard_of: Callable[[str, str], str | None],
) -> None:
    """Raise where an output shares memory with an Input or another output (out-overlaps).

    One array may be both an Input and the output that replaces it element by element.

    Args:
        spans: of tensors, all of them; empty for other arrays.
        hazard_of: why an output cannot be written over an Input, both by name.
    """
    if spans and are_apart(inputs, outputs, spans):
        return
    for k, out in enumerate(outputs):
        name = signature.outputs[k].name
        others = [
            *zip(signature.inputs, inputs, strict=True),
            *zip(signature.outputs[:k], outputs[:k], strict=True),
        ]
        for other, array in others:
            if not overlap(out, array):
                continue
            why: str | None = f"an element of '{other.name}' could be overwritten before it is read"
            if same_elements(out, array):
                why = hazard_of(other.name, name)
            if why is not None:
                raise ShapeError(
                    "out-overlaps",
                    f"the array of output '{name}' shares memory with that of '{other.name}'",
                    why=why,
                    fix="pass a fresh array, or leave out= away",
                )
