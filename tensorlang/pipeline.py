"""Pipeline: a closed algorithm that can be lowered, compiled and called.

The only place that joins what (algorithm), how (schedule) and where (target).
The passes are loaded with the first Pipeline, not with the package.
"""

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tensorlang import arrays
from tensorlang.algorithm import Algorithm
from tensorlang.algorithm_text import print_algorithm
from tensorlang.autoschedule import autoschedule
from tensorlang.backends import compile_algorithm, compile_program
from tensorlang.closing import close_algorithm
from tensorlang.errors import ScheduleError
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Operand, Size
from tensorlang.ir.stmt import Assert, Program
from tensorlang.kernel import Kernel
from tensorlang.recursion import deep_recursion
from tensorlang.schedule import Schedule
from tensorlang.span import caller_span
from tensorlang.target import Target, available

if TYPE_CHECKING:
    from tensorlang.lower import Trace

# Calls of ever new shapes must not fill the memory.
_MOST_SEEN = 1024


class Pipeline:
    """The closed algorithm: its inputs, its outputs with their shapes, and all Funcs between.

    linear_relu = Pipeline("linear_relu", inputs=[A, B, bias], outputs={D: [M, N]})
    linear_relu(a, b, bias_)                                  # a default schedule, here
    kernel = linear_relu.compile(schedule, target="triton")   # a schedule, somewhere

    Args:
        name: an identifier; names the generated code.
        inputs: the array arguments, in the order of a call.  Sizes and Params are found.
        outputs: each output Func with its shape (ints, Sizes, expressions of them).
    Raises: DefinitionError: unlisted-input, name-twice, wrong-rank, unbounded-index ...
    """

    def __init__(
        self,
        name: str,
        *,
        inputs: Sequence[Input],
        outputs: Mapping[Func, Sequence[Operand]],
    ) -> None:
        self._take(close_algorithm(name, inputs, outputs))

    @classmethod
    def of(cls, algorithm: Algorithm) -> "Pipeline":
        """The Pipeline of a record, such as one that was parsed or unpickled."""
        made = object.__new__(cls)
        made._take(algorithm)
        return made

    def _take(self, algorithm: Algorithm) -> None:
        from tensorlang.lower.check_inputs import check_inputs

        self._algorithm = algorithm
        with deep_recursion():
            self._asserts = check_inputs(algorithm)
        self._kernels: dict[tuple[Any, ...], Kernel] = {}
        # By what a call's arrays are: which kernel it is takes longer to find out.
        self._seen: dict[tuple[Any, ...], Kernel] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Pipeline.of, (self._algorithm,)

    @property
    def name(self) -> str:
        return self._algorithm.name

    @property
    def algorithm(self) -> Algorithm:
        """The record: plain data over names."""
        return self._algorithm

    def __str__(self) -> str:
        return print_algorithm(self._algorithm)

    def __repr__(self) -> str:
        return f"<Pipeline {self.name!r}: {len(self._algorithm.funcs)} Funcs>"

    def lower(self, schedule: Schedule | None = None, *, trace: "Trace | None" = None) -> Program:
        """The loop IR under a schedule (none: every default); `trace` sees each pass's program."""
        from tensorlang.lower import lower

        schedule = self._own(schedule) if schedule is not None else Schedule(self)
        with deep_recursion():
            return lower(schedule.state, self._asserts, trace=trace)

    def compile(self, schedule: Schedule | None = None, target: str | Target = "c") -> Kernel:
        """A Kernel for `target`: "reference", "interpreter", "c", "triton", or a Target.

        Raises: ScheduleError, TargetError.
        """
        where = Target.of(target)
        schedule = self._own(schedule) if schedule is not None else autoschedule(self, where)
        program = self.lower(schedule)
        with deep_recursion():
            if where.name == "reference":
                executable = compile_algorithm(self._algorithm)
            else:
                executable = compile_program(program, where)
        return Kernel(program, executable, where, schedule.copy())

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Run under `autoschedule`: Triton on CUDA arrays, else C, else the interpreter.

        On a GPU there is a schedule for each power of two of the Sizes.
        """
        seen = tuple(map(arrays.signature_of, inputs))
        kernel = self._seen.get(seen)
        if kernel is None:
            kernel = self._kernel_for(inputs)
            if None not in seen:
                if len(self._seen) >= _MOST_SEEN:
                    self._seen.clear()
                self._seen[seen] = kernel
        return kernel(*inputs, **arguments)

    def _kernel_for(self, inputs: Sequence[Any]) -> Kernel:
        name = _best_target(inputs)
        sizes = self._sizes(inputs) if name == "triton" else {}
        key = (name, *((size, n.bit_length()) for size, n in sizes.items()))
        if key not in self._kernels:
            schedule = autoschedule(self, name, sizes)
            self._kernels[key] = self.compile(schedule, target=name)
        return self._kernels[key]

    def _sizes(self, inputs: Sequence[Any]) -> dict[str, int]:
        """The Sizes that are an extent of an Input, as far as these arrays fit."""
        found: dict[str, int] = {}
        for record, array in zip(self._algorithm.inputs, inputs, strict=False):
            shape = getattr(array, "shape", ())
            for e, n in zip(record.shape, shape, strict=False):
                if isinstance(e, Size):
                    found.setdefault(e.name, int(n))
        return found

    def explain_bounds(self, func: str | Func | Input) -> str:
        """How the region that the outputs need of a Func or an Input comes about."""
        from tensorlang.lower.explain_bounds import explain_bounds

        name = func if isinstance(func, str) else getattr(func, "name", repr(func))
        return explain_bounds(self._algorithm, name)

    @cached_property
    def asserts(self) -> tuple[Assert, ...]:
        """What a call checks before anything runs."""
        return self._asserts

    def _own(self, schedule: Schedule) -> Schedule:
        if not isinstance(schedule, Schedule):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ScheduleError(
                "not-a-schedule",
                f"Pipeline {self.name!r} is given a {type(schedule).__name__} for a schedule",
                why="how to compute it is said by a Schedule, where by the target",
                fix=f"s = Schedule({self.name}), and compile(s, target=...)",
            )
        if schedule.algorithm != self._algorithm:
            raise ScheduleError(
                "other-pipeline",
                f"a schedule of {schedule.algorithm.name!r} is used with Pipeline {self.name!r}",
                why="a schedule names the Funcs and loops of one algorithm",
                fix=f"make it with Schedule({self.name}), or read its text with Schedule.parse",
                span=caller_span(),
            )
        return schedule


def _best_target(inputs: Sequence[Any]) -> str:
    if any(arrays.kind_of(a) and arrays.device_of(a).startswith("cuda") for a in inputs):
        return "triton"
    compiler = available()["c"]
    if compiler.works:
        return "c"
    warnings.warn(
        f"running in the interpreter, which is slow: {compiler.why}",
        RuntimeWarning,
        stacklevel=4,
    )
    return "interpreter"
