"""From regions to the graph that is run: each region is one call, all else stays as it is."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorlang.errors import InternalError
from tensorlang.torch.compiler.kinds import Verdict
from tensorlang.torch.compiler.nodes import Graph, Node, fx, is_array, meta_of
from tensorlang.torch.compiler.regions import Region
from tensorlang.torch.libraries import torch


@dataclass(frozen=True, slots=True)
class Call:
    """A region, the function that computes it, and the numbers it takes after the tensors."""

    region: Region
    function: Callable[..., Any]
    numbers: tuple[Node, ...]

    @property
    def arguments(self) -> tuple[Node, ...]:
        return (*self.region.inputs, *self.numbers)


# A node of the graph, or the number of a call.
Unit = Any


def plain_graph(region: Region, numbers: Sequence[Node]) -> Graph:
    """The nodes of a region as torch runs them, from the arguments of its call."""
    graph = fx.Graph()
    copies: dict[Node, Node] = {}
    for node in (*region.inputs, *numbers):
        copies[node] = graph.placeholder(node.name)
    for node in region.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    made = tuple(copies[n] for n in region.outputs)
    graph.output(made[0] if len(made) == 1 else made)
    return graph


def numbers_of(region: Region) -> tuple[Node, ...]:
    """The numbers that nodes of a region read."""
    read = (a for node in region.nodes for a in node.all_input_nodes if not is_array(a))
    inside = set(region.nodes)
    return tuple(dict.fromkeys(a for a in read if a not in inside))


def symbol_nodes(graph: Graph) -> dict[str, Node]:
    """The arguments of a graph that are sizes, by symbol."""
    return {
        str(meta_of(node).node.expr): node
        for node in graph.nodes
        if node.op == "placeholder" and isinstance(meta_of(node), torch.SymInt)
    }


def emit(graph: Graph, calls: Sequence[Call], kinds: Mapping[Node, Verdict]) -> Graph:
    """The graph with each region replaced by one call."""
    made = fx.Graph()
    copies: dict[Node, Node] = {}
    for unit in _in_order(graph, calls, kinds):
        if not isinstance(unit, int):
            copies[unit] = made.node_copy(unit, copies.__getitem__)
            continue
        call = calls[unit]
        copy = made.call_function(call.function, tuple(copies[n] for n in call.arguments))
        results = call.region.outputs
        for k, node in enumerate(results):
            one = copy if len(results) == 1 else made.call_function(operator.getitem, (copy, k))
            one.meta = dict(node.meta)
            copies[node] = one
    return made


def _in_order(graph: Graph, calls: Sequence[Call], kinds: Mapping[Node, Verdict]) -> Iterator[Unit]:
    """What has to be run, in the order of the graph as far as regions allow it."""
    home: dict[Node, int] = {n: k for k, c in enumerate(calls) for n in c.region.outputs}

    def needs(unit: Unit) -> Sequence[Node]:
        if isinstance(unit, int):
            return calls[unit].arguments
        before = kinds[unit].after
        return unit.all_input_nodes if before is None else [*unit.all_input_nodes, before]

    wanted = _reached(graph, needs, home)
    done: set[Unit] = set()
    opening: set[Unit] = set()
    for node in graph.nodes:
        stack = [(home.get(node, node), False)] if node in wanted else []
        while stack:
            unit, opened = stack.pop()
            if unit in done:
                continue
            if not opened and unit in opening:
                raise _cyclic()
            opening.add(unit)
            if opened:
                done.add(unit)
                yield unit
                continue
            stack.append((unit, True))
            stack.extend((home.get(n, n), False) for n in reversed(needs(unit)))


def _cyclic() -> InternalError:
    return InternalError("two regions of a graph need one another")


def _reached(
    graph: Graph, needs: Callable[[Unit], Sequence[Node]], home: Mapping[Node, int]
) -> set[Node]:
    """The nodes outside regions, and results of regions, that the graph's results need."""
    stack: list[Node] = [n for n in graph.nodes if n.op in ("placeholder", "output")]
    found: set[Node] = set()
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(needs(home.get(node, node)))
    return found
