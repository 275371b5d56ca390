"""assert_equivalent: a schedule never changes the numbers, but within stated bounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlang import arrays
from tensorlang.algorithm import Algorithm, exprs_of_definition, reads_of
from tensorlang.backends import numerics
from tensorlang.backends.reference.evaluation import Evaluation
from tensorlang.calling.evaluate import evaluate
from tensorlang.calling.params import bind_params, bind_sizes
from tensorlang.calling.plan import leading_asserts
from tensorlang.calling.signature import Argument, Signature
from tensorlang.calling.sizes import solve_sizes
from tensorlang.errors import InternalError
from tensorlang.ir.expr import Binary
from tensorlang.ir.types import Scalar
from tensorlang.ir.walk import postorder
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule
from tensorlang.target import Target, available
from tensorlang.testing.enclosing import Enclosing
from tensorlang.testing.enclosures import Enclosure, is_nan
from tensorlang.testing.reproducing import reproduction
from tensorlang.testing.samples import sample_inputs

# Of the elements of an output, so many percent may be accepted either way.
_MOST_LOOSE = 1
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Report:
    """What was compared.

    Args:
        elements: of all outputs.
        exact: elements whose bits are fixed.
        loose: elements accepted whichever way a comparison, cast or argmax went.
    """

    elements: int = 0
    exact: int = 0
    loose: int = 0

    def __add__(self, other: "Report") -> "Report":
        """What was compared in both."""
        return Report(
            self.elements + other.elements, self.exact + other.exact, self.loose + other.loose
        )

    @property
    def share(self) -> float:
        """The share of elements that were accepted either way."""
        return self.loose / self.elements if self.elements else 0.0

    def __str__(self) -> str:
        return (
            f"{self.elements} elements: {self.exact} bit for bit, "
            f"{self.elements - self.exact} within their bound, {self.share:.2%} either way"
        )


def assert_equivalent(
    pipeline: Pipeline,
    schedule: Schedule | None = None,
    target: str | Target = "c",
    inputs: Sequence[Any] | None = None,
    *,
    sizes: Mapping[Any, int] | None = None,
    params: Mapping[str, Any] | None = None,
) -> Report:
    """Raise AssertionError unless `schedule` on `target` computes what the algorithm says.

    Integers and strict float expressions are compared bit for bit; functions within the ulp of
    `ir/functions.py`; reductions within a bound of the number of terms and the accumulator's dtype
    about the sum in f64.  NaN and infinities must be where the algorithm has them.  Where a
    comparison, a cast to an integer or an argmax may go either way within these bounds, both
    outcomes are accepted; such elements are at most 1 % (or one) of an output.

    A failure has a note with a program that reproduces it.

    Args:
        target: where it runs; "all" is every target that works here, one after the other.
        inputs: arrays of any library; by default random ones of small odd sizes.
        sizes: the Sizes that no shape tells.
        params: a value for every Param.
    """
    if target == "all":
        each = (
            assert_equivalent(pipeline, schedule, name, inputs, sizes=sizes, params=params)
            for name in targets_here()
        )
        return sum(each, Report())
    where = Target.of(target)
    kernel = pipeline.compile(schedule, where)
    values = bind_params(kernel.signature, params or {})
    if inputs is None:
        inputs, found = sample_inputs(pipeline, values, leading_asserts(kernel.loop_ir))
        sizes = {**found, **(sizes or {})}
    known = bind_sizes(kernel.signature, sizes or {})
    case = _Case(pipeline.algorithm, kernel.signature, inputs, known, values)
    outputs = case.poisoned()
    try:
        kernel(*inputs, out=outputs, sizes=sizes, **values)
        title = f"{pipeline.name!r} on {where}"
        return case.compare(title, [_stored(a) for a in outputs], str(kernel.schedule))
    except (AssertionError, InternalError) as error:
        stored = [_stored(a) for a in inputs]
        program = reproduction(pipeline, kernel.schedule, where, stored, sizes=known, params=values)
        error.add_note(f"A program that reproduces this:\n\n{program}")
        raise


def targets_here() -> list[str]:
    """The targets that compile loop IR and work on this machine."""
    return [name for name, here in available().items() if here.works and name != "reference"]


class _Case:
    """One call, with what every correct execution of it may give."""

    def __init__(
        self,
        algorithm: Algorithm,
        signature: Signature,
        inputs: Sequence[Any],
        sizes: Mapping[str, int],
        params: Mapping[str, Scalar],
    ) -> None:
        self.algorithm, self.signature, self.inputs = algorithm, signature, inputs
        shapes = [tuple(a.shape) for a in inputs]
        self.sizes = solve_sizes(signature, shapes, sizes, params)
        self.params = params

    def poisoned(self) -> tuple[Any, ...]:
        """Arrays for the outputs that hold what no computation gives."""
        kinds = {arrays.kind_of(a) for a in self.inputs}
        kind = "torch" if "torch" in kinds else "numpy"
        device = arrays.device_of(self.inputs[0]) if self.inputs else "cpu"
        names = {**self.sizes, **self.params}
        made: list[Any] = []
        for argument in self.signature.outputs:
            shape = tuple(int(evaluate(e, names)) for e in argument.shape)
            carrier = "torch" if kind == "torch" else "numpy"
            result, view = arrays.allocator(carrier, kind, device, argument.dtype, shape)()
            view[...] = float("nan") if _takes_nan(argument, kind) else _poison(argument)
            made.append(result)
        return tuple(made)

    def compare(self, title: str, actual: Sequence[Any], schedule: str) -> Report:
        """Compare the outputs with what is right."""
        stored = [_stored(a) for a in self.inputs]
        evaluation = Evaluation(self.algorithm, self.sizes, self.params, stored, wide=False)
        with numerics.quiet():
            reference = [np.array(a) for a in evaluation.outputs()]
        enclosing = Enclosing(self.algorithm, self.sizes, self.params, stored, evaluation.boxes)
        enclosing.run()
        outputs = list(self._outputs(title, reference, enclosing, schedule))
        for output, given in zip(outputs, actual, strict=True):
            with numerics.quiet():
                output.check(output.right, "the reference itself")
                output.check(numerics.unpack(output.argument.dtype)(given), "the result")
            output.check_share()
        sizes = (output.right.size for output in outputs)
        return Report(sum(sizes), sum(o.exact for o in outputs), sum(o.loose for o in outputs))

    def _outputs(
        self, title: str, reference: Sequence[Any], enclosing: Enclosing, schedule: str
    ) -> Iterator["_Output"]:
        names = {**self.sizes, **self.params}
        rest = iter(zip(self.signature.outputs, reference, strict=True))
        for name, shape in self.algorithm.outputs:
            box = tuple([range(max(0, int(evaluate(e, names)))) for e in shape])
            field = enclosing.fields[name]
            signs = signed_zeros_matter(self.algorithm, name)
            for k in range(len(field.dtypes)):
                argument, right = next(rest)
                allowed = field.load(field.place(box), k)
                yield _Output(title, argument, right, allowed, schedule, signs)


def _takes_nan(argument: Argument, kind: str) -> bool:
    """Whether the array that is filled is one of floats, not of their bits."""
    return argument.dtype.is_float and (kind == "torch" or arrays.in_numpy(argument.dtype))


def _poison(argument: Argument) -> int:
    # Bits that are a NaN of bf16 and of both f8, and an unlikely integer.
    return 0x7FFF if argument.dtype.is_float and argument.dtype.bits == 16 else 0x7F


def _stored(array: Any) -> Any:
    """An array of any library as NumPy's, in storage types, on the CPU."""
    if arrays.is_tensor(array):
        array = array.detach().cpu()
    elif arrays.kind_of(array) != "numpy":
        array = np.from_dlpack(array)
    info = arrays.info_of(array)
    view = None if info.dtype is None else arrays.view_as("numpy", info, info.dtype)
    return array if view is None else view(array)


class _Output:
    """One output, and what of it is right."""

    def __init__(
        self,
        title: str,
        argument: Argument,
        right: Any,
        allowed: Enclosure,
        schedule: str,
        signs: bool,
    ) -> None:
        self.title, self.argument, self.right, self.schedule = title, argument, right, schedule
        self.low, self.high = np.asarray(allowed.low), np.asarray(allowed.high)
        self.signs = signs and argument.dtype.is_float
        nothing = np.zeros(self.low.shape, bool)
        self.is_loose = nothing if allowed.loose is None else np.asarray(allowed.loose)
        certain_nan = is_nan(self.low) & ~self.is_loose
        fixed = (self.low == self.high) | certain_nan
        self.exact, self.loose = int(np.sum(fixed)), int(np.sum(self.is_loose))

    def check(self, values: Any, what: str) -> None:
        """Raise unless every element is allowed."""
        values = np.asarray(values)
        inside = (self.low <= values) & (values <= self.high)
        inside |= is_nan(self.low) & (is_nan(values) | self.is_loose)
        if self.signs:
            same = np.signbit(self.low) == np.signbit(self.high)
            inside &= (self.low != 0) | ~same | (np.signbit(values) == np.signbit(self.low))
        wrong = np.argwhere(~inside)
        if len(wrong) == 0:
            return
        share = f"{len(wrong)} of {values.size} elements"
        lines = [f"{what} of {self.title}, output '{self.argument.name}', is wrong at {share}:"]
        for index in wrong[:_SHOWN]:
            at = tuple(int(n) for n in index)
            lines.append(
                f"  {list(at)}: {values[at]!s}, where the reference has {self.right[at]!s} and "
                f"{self.low[at]!s} to {self.high[at]!s} is allowed"
            )
        lines.append("under the schedule\n" + (self.schedule or "  (none)"))
        raise AssertionError("\n".join(lines))

    def check_share(self) -> None:
        """Raise when too much of the output is accepted either way."""
        size = self.right.size
        if self.loose > max(1, size * _MOST_LOOSE // 100):
            raise AssertionError(
                f"{self.title} decides too little: {self.loose} of {size} elements of output "
                f"'{self.argument.name}' depend on a comparison, cast or argmax that may go either "
                "way within the error of its operands; try other inputs"
            )


def signed_zeros_matter(algorithm: Algorithm, output: str) -> bool:
    """Whether a zero of an output has a sign: no float min, max or reduction stands above it."""
    names, seen = [output], set[str]()
    while names:
        name = names.pop()
        func = next((f for f in algorithm.funcs if f.name == name), None)
        if func is None or name in seen:
            continue
        seen.add(name)
        if not func.is_pure:
            return False
        for e in postorder(*exprs_of_definition(func.definitions[0])):
            if isinstance(e, Binary) and e.op in ("min", "max") and e.dtype.is_float:
                return False
        names.extend(reads_of(func))
    return True
