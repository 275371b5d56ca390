"""What was done with each graph, for `tensorlang.explain`."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tensorlang.algorithm import Algorithm
from tensorlang.kernel import Kernel
from tensorlang.torch.compiler.attended import attend
from tensorlang.torch.compiler.definitions import CREATIONS, VIEWS
from tensorlang.torch.compiler.kinds import Kind, Verdict
from tensorlang.torch.compiler.nodes import Graph, Node, arguments, bytes_of, name_of
from tensorlang.torch.compiler.regions import Region


@dataclass(slots=True)
class RegionReport:
    """One region: what it computes, and its kernel or why it has none.

    Args:
        nodes: names of its operators, in order.
        before: bytes that these operators read and write when they run one by one.
        after: bytes that the region takes and gives.
        sizes: what its Sizes were when it was traced.
    """

    nodes: tuple[str, ...]
    before: int
    after: int
    algorithm: Algorithm | None = None
    kernel: Kernel | None = None
    failure: str = ""
    sizes: dict[str, int] = field(default_factory=dict[str, int])

    @staticmethod
    def of(region: Region) -> "RegionReport":
        """The region before it is compiled."""
        computed = [n for n in region.nodes if not _is_view(n)]
        return RegionReport(
            tuple(map(name_of, computed)),
            sum(map(traffic, computed)),
            sum(map(bytes_of, (*region.inputs, *region.outputs))),
        )


def _is_view(node: Node) -> bool:
    return node.target in VIEWS or node.target in CREATIONS or name_of(node) == "getitem"


def traffic(node: Node) -> int:
    """Bytes that an operator reads and writes when it runs by itself."""
    return bytes_of(node) + sum(map(bytes_of, arguments(node)))


@dataclass(slots=True)
class GraphReport:
    """One graph: its regions, and what is left to libraries and to torch."""

    role: str
    library: Counter[str]
    torch: dict[str, str]
    outside: int
    regions: list[RegionReport] = field(default_factory=list[RegionReport])

    @staticmethod
    def of(role: str, graph: Graph, kinds: Mapping[Node, Verdict]) -> "GraphReport":
        """The graph before its regions are compiled."""
        kept = [n for n in graph.nodes if kinds[n].kind in (Kind.LIBRARY, Kind.TORCH)]
        kept = [n for n in kept if name_of(n) != "getitem" and n.target is not attend]
        return GraphReport(
            role,
            Counter(name_of(n) for n in kept if kinds[n].kind is Kind.LIBRARY),
            {name_of(n): kinds[n].why for n in kept if kinds[n].kind is Kind.TORCH},
            sum(map(traffic, kept)),
        )


_listeners: list[Callable[[GraphReport], None]] = []


def note_graph(report: GraphReport) -> None:
    """Tell those who listen of a graph that has been compiled."""
    for listener in _listeners:
        listener(report)


@contextmanager
def listening(listener: Callable[[GraphReport], None]) -> Generator[None]:
    """Tell `listener` of every graph that is compiled inside."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
