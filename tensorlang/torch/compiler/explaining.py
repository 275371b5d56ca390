"""`explain(model, *args)`: what became of a model.  `warmup(model, *args)`: compile it now."""

import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

from tensorlang.autoschedule.extents import Extents
from tensorlang.directives.placement import ComputeRoot
from tensorlang.ir.stmt import Allocate, Buffer, For, Stmt, children_of
from tensorlang.schedule import Schedule
from tensorlang.target import Target
from tensorlang.torch.compiler.capture import tensorlang_backend
from tensorlang.torch.compiler.report import GraphReport, RegionReport, listening
from tensorlang.torch.libraries import pytree, torch

# What a launch of a kernel costs, and how fast memory is read, where the target does not say.
_LAUNCH, _BANDWIDTH = 4e-6, 2e10


@dataclass(frozen=True)
class Explanation:
    """The graphs of a model: printed, it is a page; its parts are data.

    Args: graphs: forward and backward, or inference, in the order in which they were compiled.
    """

    graphs: tuple[GraphReport, ...]

    @property
    def regions(self) -> tuple[RegionReport, ...]:
        """All regions, in order."""
        return tuple(region for graph in self.graphs for region in graph.regions)

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What torch runs because it could not be compiled, each with the reason."""
        kept = [f"{name}: {why}" for graph in self.graphs for name, why in graph.torch.items()]
        failed = [f"{' '.join(r.nodes)}: {r.failure}" for r in self.regions if r.failure]
        return (*kept, *failed)

    @property
    def before(self) -> int:
        """Bytes that the operators read and write when they run one by one."""
        return sum(graph.outside + sum(r.before for r in graph.regions) for graph in self.graphs)

    @property
    def after(self) -> int:
        """Bytes that are read and written as compiled."""
        return sum(graph.outside + sum(map(moved_by, graph.regions)) for graph in self.graphs)

    @property
    def kernels(self) -> int:
        """How many kernels regions are made of."""
        return sum(map(kernels_of, self.regions))

    def launch_share(self, target: str | Target = "c") -> float:
        """An estimate of the share of the time that goes to launches, by the bandwidth."""
        calls = sum(sum(g.library.values()) + len(g.torch) for g in self.graphs)
        launches = (self.kernels + calls) * _LAUNCH
        bandwidth = Target.of(target).bandwidth * 1e9 or _BANDWIDTH
        return launches / (launches + self.after / bandwidth) if launches else 0.0

    def __str__(self) -> str:
        lines = [line for graph in self.graphs for line in _graph_lines(graph)]
        lines.append(
            f"bytes moved: {_bytes(self.before)} one by one, {_bytes(self.after)} as compiled; "
            f"{self.kernels} kernels; launches take about {self.launch_share():.0%} of the time"
        )
        return "\n".join(lines)


def roots_of(region: RegionReport) -> list[str]:
    """The Funcs of a region that have loops of their own at root: each is a kernel."""
    if region.kernel is None:
        return []
    schedule: Schedule = region.kernel.schedule
    asked = [a.func for a in schedule.applied if isinstance(a.directive, ComputeRoot)]
    return list(dict.fromkeys([name for name, _ in schedule.algorithm.outputs] + asked))


def kernels_of(region: RegionReport) -> int:
    """How many kernels a region is made of: on a GPU roots that are independent share one."""
    if region.kernel is not None and region.kernel.target.name == "triton":
        return region.kernel.source.count("@triton.jit")
    return len(roots_of(region))


def moved_by(region: RegionReport) -> int:
    """Bytes that a region reads and writes: what it takes and gives, and what its kernels keep."""
    if region.kernel is None:
        return region.before
    extents = Extents(region.kernel.schedule.algorithm, region.sizes)
    kept = kept_buffers(region.kernel.loop_ir.body)
    sizes = (prod(extents.of(d.extent) for d in b.dims) * _bits(b) // 8 for b in kept)
    return region.after + 2 * sum(sizes)


def kept_buffers(body: Stmt) -> Iterator[Buffer]:
    """What is written by one kernel and read by another: allocated outside all loops."""
    if isinstance(body, Allocate):
        yield body.buffer
    if not isinstance(body, For):
        for inner in children_of(body):
            yield from kept_buffers(inner)


def _bits(buffer: Buffer) -> int:
    return sum(dtype.bits for dtype in buffer.dtypes)


def _graph_lines(graph: GraphReport) -> list[str]:
    lines = [f"{graph.role}: {_counted(len(graph.regions), 'region')}"]
    for number, region in enumerate(graph.regions):
        moved = f"{_bytes(region.before)} -> {_bytes(moved_by(region))}"
        lines.append(f"  region {number}: {moved}, {_counted(kernels_of(region), 'kernel')}")
        lines.append(f"    {' '.join(region.nodes)}")
        if region.failure:
            lines.append(f"    torch runs it: {region.failure}")
        elif region.kernel is not None:
            lines += [f"    | {line}" for line in str(region.kernel.schedule).splitlines()]
    if graph.library:
        listed = ", ".join(f"{n} {name}" for name, n in graph.library.items())
        lines.append(f"  libraries: {listed}")
    lines += [f"  torch: {name}: {why}" for name, why in graph.torch.items()]
    return lines


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _bytes(n: int) -> str:
    for unit in ("B", "KB", "MB"):
        if n < 10_000:
            return f"{n} {unit}"
        n //= 1000
    return f"{n} GB"


def explain(
    model: Any, *args: Any, options: Mapping[str, Any] | None = None, **kwargs: Any
) -> Explanation:
    """Compile a model for these arguments, and tell what was done with it.

    It is run once, forward and, if its parameters want gradients, backward; its buffers, its
    gradients and the random numbers that come next are afterwards as they were.
    """
    seen: list[GraphReport] = []
    torch._dynamo.reset()
    with listening(seen.append), _unchanged(model):
        _run(torch.compile(model, backend=tensorlang_backend, options=dict(options or {})),
             args, kwargs)  # fmt: skip
    return Explanation(tuple(seen))


def warmup(model: Any, *args: Any, options: Mapping[str, Any] | None = None, **kwargs: Any) -> Any:
    """The compiled model, its kernels for these arguments made: the first call is as the next.

    On a terminal it says what is being compiled.
    """
    compiled = torch.compile(model, backend=tensorlang_backend, options=dict(options or {}))
    with listening(_tell if sys.stderr.isatty() else _keep_quiet), _unchanged(model):
        _run(compiled, args, kwargs)
    return compiled


def _tell(report: GraphReport) -> None:
    sys.stderr.write(f"compiled the {report.role} graph: {len(report.regions)} regions\n")


def _keep_quiet(report: GraphReport) -> None:
    """Where nobody reads."""


def _run(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """A call, and the gradient of all its results that have one."""
    made = model(*args, **kwargs)
    leaves = [t for t in pytree.tree_leaves(made) if isinstance(t, torch.Tensor)]
    results = [t for t in leaves if t.requires_grad]
    if results:
        torch.autograd.backward(results, [torch.zeros_like(t) for t in results])


@contextmanager
def _unchanged(model: Any) -> Generator[None]:
    """Buffers, gradients and random numbers are afterwards as they were."""
    is_module = isinstance(model, torch.nn.Module)
    parameters = list(model.parameters()) if is_module else []
    grads = [p.grad for p in parameters]
    buffers = [(b, b.detach().clone()) for b in (model.buffers() if is_module else ())]
    for p in parameters:
        p.grad = None
    try:
        with torch.random.fork_rng():
            yield
    finally:
        with torch.no_grad():
            for b, value in buffers:
                b.copy_(value)
        for p, grad in zip(parameters, grads, strict=True):
            p.grad = grad
