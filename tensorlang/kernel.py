"""Kernel: a compiled program, called with arrays."""

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from tensorlang import arrays
from tensorlang.arrays import Array
from tensorlang.backends import capture, compile_offline
from tensorlang.backends.executable import Ahead, Binary, Executable, Graph, preparing
from tensorlang.calling.check_arrays import (
    Place,
    check_array,
    check_count,
    check_device,
    check_overlap,
    check_place,
    listed_outputs,
    roles,
)
from tensorlang.calling.overlap import are_apart_in_numpy
from tensorlang.calling.params import bind_params, bind_sizes
from tensorlang.calling.plan import Contract, Plan, call_of, leading_asserts, make_plan, viewed
from tensorlang.calling.progress import show_progress
from tensorlang.calling.signature import Signature
from tensorlang.errors import TargetError
from tensorlang.ir.in_place import hazard_of
from tensorlang.ir.stmt import Program
from tensorlang.ir.types import Scalar
from tensorlang.target import Target

# Calls of ever new shapes must not fill the memory.
_MOST_PLANS = 1024


class Kernel:
    """A compiled program: `kernel(*inputs, out=None, sizes={}, **params)`.

    Outputs come back in their order, of the library and on the device of the Inputs; a tuple if
    there are several.  Every call is checked before anything runs, and what was checked is
    remembered by dtypes, shapes and strides.

    Args:
        program: the lowered program (`.loop_ir`).
        executable: what a backend made of it.
        target: where it runs.
        schedule: how it was lowered, kept for the reader.
    """

    def __init__(
        self, program: Program, executable: Executable, target: Target, schedule: Any = None
    ) -> None:
        self.loop_ir, self.target, self.schedule = program, target, schedule
        self.signature = Signature.of(program)
        self._executable = executable
        self._contract = Contract(
            self.signature, leading_asserts(program), target, preparing(executable)
        )
        self._checked_params = self._contract.checked_params()
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._hazards: dict[tuple[str, str], str | None] = {}

    @property
    def source(self) -> str:
        """The generated C or Triton text; empty for the interpreters."""
        return self._executable.source

    @property
    def notes(self) -> tuple[str, ...]:
        """Hints that were ignored, and what is slow, each with its remedy."""
        return self._executable.notes

    @cached_property
    def binaries(self) -> Mapping[str, Binary]:
        """Every GPU kernel of the program, compiled for the architecture of the target, by name.

        Raises: TargetError: no-architecture.
        """
        if self.target.arch is None:
            raise TargetError(
                "no-architecture",
                f"'{self.signature.name}' on {self.target} has no PTX and no cubin",
                why="they are made for an architecture, and the target names none",
                fix='compile it for Target("triton", arch="sm_90")',
            )
        return compile_offline(self._executable, self.target.arch)

    @property
    def ptx(self) -> str:
        """The PTX of every GPU kernel; see `binaries`."""
        return "\n".join(f"// {name}\n{binary.ptx}" for name, binary in self.binaries.items())

    @property
    def cubin(self) -> dict[str, bytes]:
        """The machine code of every GPU kernel, by name; see `binaries`."""
        return {name: binary.cubin for name, binary in self.binaries.items()}

    def __repr__(self) -> str:
        return f"<Kernel {self.signature} on {self.target}>"

    def __call__(
        self,
        *inputs: Array,
        out: Any = None,
        sizes: Mapping[Any, int] | None = None,
        **params: Any,
    ) -> Any:
        """Compute the outputs of these arrays, in new arrays or in `out`.

        Args:
            inputs: one array an Input, all of one library and on one device, of any strides.
            out: an array, or a tuple of them, to write to: not overlapping, not read-only.  One may
                be that of an Input which it replaces element by element: `kernel(x, out=x)`.
            sizes: the Sizes that no shape tells.
            params: a number for every Param.
        Raises: ShapeError, BoundsError, TargetError: what does not fit, before anything runs.
        """
        # The commonest calls, and those whose cost shows: seen before, arrays alone.
        plain = sizes is None and not params
        if out is None and plain:
            plan = self._plans.get(tuple(map(arrays.signature_of, inputs)))
            if plan is not None:
                return self._launch(plan, {}, inputs)
        outs = None if out is None else listed_outputs(self.signature, out)
        if outs is not None and plain and self._launched_into(inputs, outs):
            return out
        given = {} if sizes is None else bind_sizes(self.signature, sizes)
        scalars = bind_params(self.signature, params)
        key = self._key(inputs, outs, given, scalars)
        if None in key:
            return self._call_borrowed(inputs, outs, out, given, params)
        plan = self._plans.get(key)
        if plan is None:
            plan = make_plan(self._contract, inputs, outs, given, scalars)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        if outs is None:
            return self._launch(plan, scalars, inputs)
        check_overlap(self.signature, inputs, outs, plan.spans, self._hazard_of)
        plan.run(scalars, viewed(inputs, plan.views), viewed(outs, plan.out_views))
        return out

    def plan_of(self, *inputs: Array) -> Plan:
        """All that a call with arrays of these layouts needs to know but their data.

        Raises: ShapeError, BoundsError, TargetError: what does not fit.
        """
        known = self._plans.get(tuple(map(arrays.signature_of, inputs)))
        return known or make_plan(self._contract, inputs, None, {}, bind_params(self.signature, {}))

    def _hazard_of(self, source: str, output: str) -> str | None:
        """Why an output cannot be written over an Input; outputs have no other's place."""
        key = source, output
        if key not in self._hazards:
            names = {buffer.name for buffer in self.loop_ir.inputs}
            self._hazards[key] = (
                hazard_of(self.loop_ir, source, output)
                if source in names
                else f"'{source}' is an output as well"
            )
        return self._hazards[key]

    def warmup(
        self,
        *calls: Sequence[Sequence[int]],
        sizes: Mapping[Any, int] | None = None,
        params: Mapping[str, Any] | None = None,
        workers: int | None = None,
        progress: bool | None = None,
    ) -> int:
        """Compile what calls will need before they come, several kernels side by side.

        kernel.warmup([(4096, 4096), (4096, 512)], [(1, 4096), (4096, 512)])

        A kernel is compiled anew for what sizes are divisible by, not for each size.  With no GPU
        it is compiled for the architecture of the target, into the cache on disk.

        Args:
            calls: for each call, one shape an Input; as if of contiguous, aligned arrays.
            sizes: the Sizes that no shape tells; params: a number for every Param.
            workers: compilations at a time; by default as many as there are cores.
            progress: whether to draw a bar on stderr; by default on a terminal.
        Returns: how many kernels had to be compiled.
        Raises: ShapeError, BoundsError, TargetError: a call that would be refused.
        """
        if not isinstance(self._executable, Ahead):
            return 0
        given = {} if sizes is None else bind_sizes(self.signature, sizes)
        scalars = bind_params(self.signature, params or {})
        wanted = [call_of(self._contract, shapes, given, scalars) for shapes in calls]
        shown = sys.stderr.isatty() if progress is None else progress
        return self._executable.compile_ahead(wanted, workers, show_progress if shown else None)

    def graph(self, *inputs: Array, **arguments: Any) -> Graph:
        """A call captured as one CUDA graph, which then costs next to nothing to repeat.

        step = kernel.graph(a, b)
        step()           # on what is in a and b now; the result is step.outputs, written anew
        step(a2, b2)     # copies a2 to a and b2 to b first

        Args: as of a call; the arrays are tensors on a GPU.
        Raises: TargetError: no-graph; and what a call raises.
        """
        if self.target.carrier != "torch" or not _on_gpu(inputs):
            raise TargetError(
                "no-graph",
                f"'{self.signature.name}' cannot be captured in a CUDA graph",
                why=f"it is compiled for {self.target}, and its arrays are not on a GPU",
                fix='compile it for target="triton", and pass tensors on a GPU',
            )
        return capture(partial(self, **arguments), inputs)

    def _launch(self, plan: Plan, scalars: Mapping[str, Scalar], inputs: tuple[Array, ...]) -> Any:
        views = viewed(inputs, plan.views) if plan.views else inputs
        if len(plan.allocators) == 1:
            result, view = plan.allocators[0]()
            plan.run(scalars, views, (view,))
            return result
        made = [allocate() for allocate in plan.allocators]
        plan.run(scalars, views, [view for _, view in made])
        return tuple([result for result, _ in made])

    def _launched_into(self, inputs: tuple[Array, ...], outs: tuple[Array, ...]) -> bool:
        """Whether this was a call that was seen before, with outputs apart from all else."""
        if self.signature.params:
            return False
        plan = self._plans.get((*map(arrays.signature_of, inputs + outs), len(outs), (), ()))
        if plan is None or plan.spans or not are_apart_in_numpy(inputs, outs):
            return False
        views = viewed(inputs, plan.views) if plan.views else inputs
        plan.run({}, views, viewed(outs, plan.out_views) if plan.out_views else outs)
        return True

    def _key(
        self,
        inputs: tuple[Array, ...],
        outs: tuple[Array, ...] | None,
        sizes: Mapping[str, int],
        scalars: Mapping[str, Scalar],
    ) -> tuple[Any, ...]:
        """All that the checks depend on; a None in it stands for a value of another library."""
        key = tuple(map(arrays.signature_of, inputs + (outs or ())))
        if outs is None and not sizes and not self.signature.params:
            return key
        checked = tuple([scalars[name] for name in self._checked_params])
        return (*key, len(outs or ()), tuple(sizes.items()), checked)

    def _call_borrowed(
        self,
        inputs: tuple[Array, ...],
        outs: tuple[Array, ...] | None,
        out: Any,
        sizes: Mapping[str, int],
        params: Mapping[str, Any],
    ) -> Any:
        """The call with arrays of another library, through DLPack."""
        signature = self.signature
        check_count(signature, inputs)
        given = list(roles(signature, inputs, outs or ()))
        place: Place | None = None
        for role, argument, value in given:
            kind = check_array(role, argument, value)
            device = arrays.device_of(value)
            place = place or Place(kind, device, argument.name)
            check_place(role, argument, kind, device, place)
            check_device(argument, device, self.target)
        borrowed = [arrays.borrow(v, signature.dtypes, self.target.carrier) for _, _, v in given]
        lent_out = None if outs is None else tuple(borrowed[len(inputs) :])
        made = self(*borrowed[: len(inputs)], out=lent_out, sizes=sizes, **params)
        if outs is not None:
            return out
        like = given[0][2]
        if isinstance(made, tuple):
            results: tuple[Array, ...] = made  # pyright: ignore[reportUnknownVariableType]
            return tuple([arrays.give_back(result, like) for result in results])
        return arrays.give_back(made, like)


def _on_gpu(inputs: tuple[Array, ...]) -> bool:
    return bool(inputs) and all(
        arrays.is_tensor(a) and arrays.device_of(a).startswith("cuda") for a in inputs
    )
