"""The Pipelines behind one operator: one for each choice of dtypes and constants."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorlang import arrays
from tensorlang.autodiff import gradients
from tensorlang.errors import DefinitionError
from tensorlang.ir.expr import Size
from tensorlang.ir.types import DType
from tensorlang.kernel import Kernel
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule
from tensorlang.torch.libraries import Tensor
from tensorlang.torch.twins import without_twins

# From a Pipeline and a target, and the values of Sizes where it takes three arguments.
Scheduling = Callable[..., Schedule | None]
# From a Pipeline and the names of Inputs to the Pipeline of their gradients.
Derivative = Callable[[Pipeline, Sequence[str]], Pipeline]
# The dtype of each tensor, None where it is not given, and the constants.
Key = tuple[tuple[DType | None, ...], tuple[Any, ...]]
_KINDS: dict[Any, str] = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    tuple[int, ...]: "int[]",
}


@dataclass(frozen=True, slots=True)
class Family:
    """Pipelines that differ in dtypes and constants, and how each is scheduled.

    Args:
        make: the Pipeline for the dtypes of the tensors and the constants.
        tensors: the names of the tensors; whether each may be missing.
        constants, params: name and kind ("int", "float", "bool", "str", "int[]") of what else is
            given.
        schedule: the schedule of a Pipeline for a target; None: a formula.
        derivative: the gradient of a Pipeline with respect to some of its Inputs.
        derived_as: constants that have another value in the Pipeline whose gradient it is.
    """

    make: Callable[..., Pipeline]
    tensors: tuple[tuple[str, bool], ...]
    constants: tuple[tuple[str, str], ...]
    params: tuple[tuple[str, str], ...]
    schedule: Scheduling
    derivative: Derivative
    derived_as: Mapping[str, Any] = field(default_factory=dict[str, Any])
    made: dict[Key, Pipeline] = field(default_factory=dict[Key, Pipeline])
    derived: dict[tuple[Key, str], tuple[Pipeline, tuple[int, ...]]] = field(
        default_factory=dict[tuple[Key, str], tuple[Pipeline, tuple[int, ...]]]
    )
    kernels: dict[tuple[Any, ...], Kernel] = field(default_factory=dict[tuple[Any, ...], Kernel])

    @property
    def scalars(self) -> tuple[tuple[str, str], ...]:
        return self.constants + self.params

    def key(self, tensors: Sequence[Tensor | None], scalars: Sequence[Any]) -> Key:
        """What chooses the Pipeline of a call."""
        dtypes = tuple(None if t is None else _dtype_of(t) for t in tensors)
        return dtypes, self.constant_values(scalars)

    def constant_values(self, scalars: Sequence[Any]) -> tuple[Any, ...]:
        """The constants of a call; torch gives lists of numbers as lists."""
        kinds = zip(self.constants, scalars, strict=False)
        return tuple(tuple(value) if kind == "int[]" else value for (_, kind), value in kinds)

    def pipeline(self, key: Key) -> Pipeline:
        """The Pipeline of a call."""
        if key not in self.made:
            names = [name for name, _ in self.constants]
            self.made[key] = self.make(*key[0], **dict(zip(names, key[1], strict=True)))
        return self.made[key]

    def gradient(self, key: Key, wrt: str) -> tuple[Pipeline, tuple[int, ...]]:
        """The gradient of that Pipeline with respect to Inputs, named with commas between.

        And which of its outputs that of each Input is: those that are the same are one.
        """
        if (key, wrt) not in self.derived:
            names = [name for name, _ in self.constants]
            known = {**dict(zip(names, key[1], strict=True)), **self.derived_as}
            forward = self.pipeline((key[0], tuple(known[name] for name in names)))
            self.derived[key, wrt] = without_twins(self.derivative(forward, wrt.split(",")))
        return self.derived[key, wrt]

    def param_values(self, scalars: Sequence[Any]) -> dict[str, Any]:
        """The Params of a call, by name."""
        given = scalars[len(self.constants) :]
        return {name: value for (name, _), value in zip(self.params, given, strict=True)}

    def run(
        self,
        pipeline: Pipeline,
        tensors: Sequence[Tensor],
        params: Mapping[str, Any],
        sizes: Mapping[str, int],
    ) -> tuple[Tensor, ...]:
        """The outputs of a Pipeline, on the device of its tensors."""
        names = {p.name for p in pipeline.algorithm.params}
        params = {name: value for name, value in params.items() if name in names}
        target = "triton" if any(t.is_cuda for t in tensors) else "c"
        kernel = self._kernel(pipeline, target, _sizes_known(pipeline, tensors, sizes))
        result: Any = (kernel or pipeline)(*tensors, sizes=dict(sizes), **params)
        return (result,) if len(pipeline.algorithm.outputs) == 1 else result

    def _kernel(self, pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Kernel | None:
        """One for each power of two of the Sizes, where the schedule asks for them on a GPU."""
        sized = len(inspect.signature(self.schedule).parameters) == _WITH_SIZES
        near = {n: value.bit_length() for n, value in sizes.items() if sized and target != "c"}
        key = (pipeline, target, *near.items())
        if key not in self.kernels:
            arguments = (dict(sizes) if near else {},) if sized else ()
            schedule = self.schedule(pipeline, target, *arguments)
            if schedule is None:
                return None
            self.kernels[key] = pipeline.compile(schedule, target)
        return self.kernels[key]


# How many arguments a function has that makes a schedule from a Pipeline, a target and Sizes.
_WITH_SIZES = 3


def _sizes_known(
    pipeline: Pipeline, tensors: Sequence[Tensor], given: Mapping[str, int]
) -> dict[str, int]:
    """The Sizes that are given, or an extent of a tensor."""
    found = dict(given)
    for record, tensor in zip(pipeline.algorithm.inputs, tensors, strict=True):
        for e, n in zip(record.shape, tensor.shape, strict=True):
            if isinstance(e, Size):
                found.setdefault(e.name, int(n))
    return found


def _dtype_of(tensor: Tensor) -> DType:
    dtype = arrays.dtype_of_torch(tensor.dtype)
    if dtype is None:
        raise DefinitionError(
            "no-such-dtype",
            f"tensors of {tensor.dtype} have no dtype here",
            why="it is none that a Pipeline computes with",
            fix="convert it, for example to torch.float32",
        )
    return dtype


def family_of(
    what: Pipeline | Callable[..., Pipeline],
    params: Mapping[str, type],
    schedule: Scheduling,
    derivative: Derivative = gradients,
    derived_as: Mapping[str, Any] | None = None,
) -> Family:
    """The family of one Pipeline, or of what a function of dtypes and constants makes.

    Raises: DefinitionError (not-a-family).
    """
    if isinstance(what, Pipeline):
        algorithm = what.algorithm
        tensors = tuple((a.name, False) for a in algorithm.inputs)
        kinds = tuple((p.name, "float" if p.dtype.is_float else "int") for p in algorithm.params)
        return Family(_always(what), tensors, (), kinds, schedule, derivative)
    tensors, constants = list[tuple[str, bool]](), list[tuple[str, str]]()
    for name, parameter in inspect.signature(what, eval_str=True).parameters.items():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            tensors.append((name, parameter.annotation != DType))
        elif parameter.annotation in _KINDS:
            constants.append((name, _KINDS[parameter.annotation]))
        else:
            raise DefinitionError(
                "not-a-family",
                f"{name!r} of {what.__name__} has no annotation that torch knows",
                why="its arguments become those of an operator",
                fix="annotate what comes after * with int, float, bool, str or tuple[int, ...]",
            )
    other = dict(derived_as or {})
    for name in other.keys() - {name for name, _ in constants}:
        raise DefinitionError(
            "not-a-family",
            f"{name!r} of derived_as is no constant of {what.__name__}",
            why="it says which other value a constant has where the gradient is derived",
            fix=f"name one of {', '.join(name for name, _ in constants) or 'none'}",
        )
    kinds = tuple((name, _KINDS[kind]) for name, kind in params.items())
    return Family(what, tuple(tensors), tuple(constants), kinds, schedule, derivative, other)


def _always(pipeline: Pipeline) -> Callable[..., Pipeline]:
    def make(*dtypes: DType) -> Pipeline:
        for record, dtype in zip(pipeline.algorithm.inputs, dtypes, strict=True):
            if record.dtype is not dtype:
                raise DefinitionError(
                    "wrong-dtype",
                    f"{record.name!r} of {pipeline.name!r} is {record.dtype}, not {dtype}",
                    why="an operator of one Pipeline takes its dtypes alone",
                    fix="convert the tensor, or make the operator of a function of dtypes",
                )
        return pipeline

    return make
