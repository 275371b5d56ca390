"""Which nodes form one Pipeline.

Stages alternate between what is computed here (even) and what a library or torch computes (odd).
A node is in the first stage at which all that it reads is there, so that no path between two
nodes of one stage leaves it: the nodes of an even stage that share data are one region.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tensorlang.torch.compiler.kinds import Kind, Verdict
from tensorlang.torch.compiler.nodes import (
    Graph,
    Node,
    arguments,
    bytes_of,
    is_array,
)

_FREE = (Kind.VIEW, Kind.CREATION)
# A node with nothing to be fused with is left to torch: its kernel is there already.
_LEAST_NODES = 2
# Lowering takes time in proportion to its Funcs, and one that fails takes all with it.
_MOST_NODES = 96


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes that are computed together.

    Args:
        nodes: those computed, in order, and the views and constants that they read.
        inputs: tensors that come from outside.
        outputs: nodes that are read outside.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


def choose_regions(graph: Graph, kinds: Mapping[Node, Verdict]) -> list[Region]:
    """The regions of a graph, in order."""
    stages = _stages(graph, kinds)
    _sink_groups(graph, kinds, stages)
    _sink(graph, kinds, stages)
    members: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if kinds[node].kind is Kind.COMPUTED:
            members.setdefault(stages[node], []).append(node)
    regions: list[Region] = []
    for stage in sorted(members):
        groups = _connected(members[stage], kinds)
        regions += [_closed(nodes, kinds) for nodes in groups if len(nodes) >= _LEAST_NODES]
    return regions


def base_of(node: Node, kinds: Mapping[Node, Verdict]) -> Node:
    """The tensor whose elements a view has."""
    while kinds[node].kind is Kind.VIEW:
        node = node.args[0]
    return node


def _reads(node: Node, kinds: Mapping[Node, Verdict]) -> Iterator[Node]:
    """What a node needs in memory or in its region, through views.

    A definition takes extents from what torch knows of them, and never from a node.
    """
    computed = kinds[node].kind is Kind.COMPUTED
    if kinds[node].after is not None:
        yield kinds[node].after
    for a in arguments(node):
        base = base_of(a, kinds)
        if kinds[base].kind is Kind.CREATION or (computed and not is_array(base)):
            continue
        yield base


def _stages(graph: Graph, kinds: Mapping[Node, Verdict]) -> dict[Node, int]:
    stages: dict[Node, int] = {}
    for node in graph.nodes:
        kind = kinds[node].kind
        parity = 1 if kind in (Kind.LIBRARY, Kind.TORCH) else 0
        latest = max((stages[a] for a in _reads(node, kinds)), default=0)
        if kind in (Kind.NUMBER, *_FREE):
            stages[node] = max((stages[a] for a in arguments(node)), default=0)
        else:
            stages[node] = latest + (latest + parity) % 2
    return stages


def _consumers(node: Node, kinds: Mapping[Node, Verdict]) -> Iterator[Node]:
    """The nodes that read a tensor, through views."""
    stack = [*node.users]
    while stack:
        user = stack.pop()
        if kinds[user].kind is Kind.VIEW and base_of(user, kinds) is node:
            stack.extend(user.users)
        else:
            yield user


def _sink_groups(graph: Graph, kinds: Mapping[Node, Verdict], stages: dict[Node, int]) -> None:
    """As `_sink`, of all nodes of a stage that share data: none of them could go alone.

    What is a result of the graph as well is written all the same, and only not read again.
    """
    computed = [n for n in graph.nodes if kinds[n].kind is Kind.COMPUTED]
    for stage in sorted({stages[n] for n in computed}, reverse=True):
        for group in _connected([n for n in computed if stages[n] == stage], kinds):
            inside = set(group)
            read = [n for n in group if any(c not in inside for c in _consumers(n, kinds))]
            readers = [c for n in read for c in _consumers(n, kinds) if c not in inside]
            results = {n for n in read if any(c.op == "output" for c in _consumers(n, kinds))}
            readers = [c for c in readers if c.op != "output"]
            if any(kinds[c].kind is not Kind.COMPUTED for c in readers):
                continue
            first = min((stages[c] for c in readers), default=stage)
            sources = dict.fromkeys(s for n in group for s in _reads(n, kinds) if s not in inside)
            more = (s for s in sources if not _is_read_at(s, first, kinds, stages))
            spared = sum(bytes_of(n) * (1 if n in results else 2) for n in read)
            if first > stage and sum(map(bytes_of, more)) <= spared:
                stages.update(dict.fromkeys(group, first))


def _sink(graph: Graph, kinds: Mapping[Node, Verdict], stages: dict[Node, int]) -> None:
    """Compute a node where it is first read, where that moves fewer bytes.

    At its own stage it is written, and read again later; where it is read what it is made of is
    read instead.  That must be in memory anyway.
    """
    for node in reversed(list(graph.nodes)):
        first = _first_read(node, kinds, stages)
        if first is None or first <= stages[node]:
            continue
        chain = _chain(node, first, kinds, stages)
        sources = dict.fromkeys(s for n in chain for s in _reads(n, kinds) if s not in chain)
        if all(_is_stored(s, chain, kinds, stages) for s in sources):
            more = (s for s in sources if not _is_read_at(s, first, kinds, stages))
            if sum(map(bytes_of, more)) <= 2 * bytes_of(node):
                stages.update(dict.fromkeys(chain, first))


def _first_read(
    node: Node, kinds: Mapping[Node, Verdict], stages: Mapping[Node, int]
) -> int | None:
    """The stage that first reads a node, which is computed in regions and read there alone."""
    if kinds[node].kind is not Kind.COMPUTED:
        return None
    readers = list(_consumers(node, kinds))
    if any(r.op == "output" or kinds[r].kind is not Kind.COMPUTED for r in readers):
        return None
    return min((stages[r] for r in readers), default=None)


def _chain(
    node: Node, first: int, kinds: Mapping[Node, Verdict], stages: Mapping[Node, int]
) -> set[Node]:
    """A node, and what of its stage nobody reads before `first` but what is in the chain."""
    chain, stack = {node}, [node]
    while stack:
        for source in _reads(stack.pop(), kinds):
            if source in chain or kinds[source].kind is not Kind.COMPUTED:
                continue
            if stages[source] == stages[node] and _is_free_until(
                source, first, chain, kinds, stages
            ):
                chain.add(source)
                stack.append(source)
    return chain


def _is_free_until(
    source: Node,
    first: int,
    chain: set[Node],
    kinds: Mapping[Node, Verdict],
    stages: Mapping[Node, int],
) -> bool:
    return all(
        r in chain or (r.op != "output" and stages[r] >= first) for r in _consumers(source, kinds)
    )


def _is_read_at(
    source: Node, stage: int, kinds: Mapping[Node, Verdict], stages: Mapping[Node, int]
) -> bool:
    """Whether a region of that stage reads a tensor anyway."""
    readers = (r for r in _consumers(source, kinds) if r.op != "output")
    return any(stages[r] == stage and kinds[r].kind is Kind.COMPUTED for r in readers)


def _is_stored(
    source: Node, chain: set[Node], kinds: Mapping[Node, Verdict], stages: Mapping[Node, int]
) -> bool:
    """Whether a tensor is in memory even if the nodes of a chain are computed elsewhere."""
    if kinds[source].kind is not Kind.COMPUTED:
        return True
    others = (c for c in _consumers(source, kinds) if c not in chain)
    return any(c.op == "output" or stages[c] != stages[source] for c in others)


def _connected(nodes: list[Node], kinds: Mapping[Node, Verdict]) -> list[list[Node]]:
    """The nodes in groups that read one another, or the same tensor.

    A group that is too large is cut in order, so that no part reads a later one.
    """
    parent: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while parent.setdefault(node, node) is not node:
            node = parent[node]
        return node

    for node in nodes:
        for source in _reads(node, kinds):
            parent[root(source)] = root(node)
    groups: dict[Node, list[Node]] = {}
    for node in nodes:
        groups.setdefault(root(node), []).append(node)
    return [
        group[k : k + _MOST_NODES]
        for group in groups.values()
        for k in range(0, len(group), _MOST_NODES)
    ]


def _closed(computed: list[Node], kinds: Mapping[Node, Verdict]) -> Region:
    """The region of these nodes: with what is free between them, and what it takes and gives."""
    inside = set(computed)
    inputs: dict[Node, None] = {}
    nodes: dict[Node, None] = {}
    for node in computed:
        for needed in _free_before(node, kinds, inside):
            nodes[needed] = None
        for source in _reads(node, kinds):
            if source not in inside:
                inputs[source] = None
        nodes[node] = None
    for node in nodes:
        for source in arguments(node):
            is_base = kinds[source].kind not in _FREE and source not in inside
            if is_base and is_array(source):
                inputs[source] = None
    outputs = [n for n in computed if any(c not in inside for c in _consumers(n, kinds))]
    return Region(tuple(nodes), tuple(inputs), tuple(outputs))


def _free_before(node: Node, kinds: Mapping[Node, Verdict], inside: set[Node]) -> Iterator[Node]:
    """The views and constants that a node reads, those that they read first."""
    stack = [(a, False) for a in reversed(node.all_input_nodes)]
    while stack:
        top, opened = stack.pop()
        if kinds[top].kind not in _FREE or top in inside:
            continue
        if opened:
            yield top
        else:
            stack.append((top, True))
            stack.extend((a, False) for a in reversed(top.all_input_nodes))
