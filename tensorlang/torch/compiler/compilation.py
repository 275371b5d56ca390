"""The steps from a captured graph to what is run, each from graph to graph or to regions of it.

capture      aot_autograd: forward and backward as functional graphs (`capture.py`)
rewrite      the same values by fewer or cheaper nodes (`rewrites/`)
kinds        what each node is: view, computed, library, torch (`kinds.py`)
regions      which nodes form one Pipeline (`regions.py`)
translate    each region as an algorithm (`translation.py`, `definitions/`)
schedule     what is computed where, and the kernel (`kernels.py`)
emit         each region one call (`emission.py`)
"""

import copy
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

from tensorlang.kernel import Kernel
from tensorlang.torch.compiler.ahead import compile_ahead
from tensorlang.torch.compiler.attended import attend
from tensorlang.torch.compiler.attention import Attending, attend_to_caches, attention_regions
from tensorlang.torch.compiler.emission import (
    Call,
    emit,
    numbers_of,
    plain_graph,
    symbol_nodes,
)
from tensorlang.torch.compiler.fallback import first_line, tell_fallback
from tensorlang.torch.compiler.kernels import kernel_of
from tensorlang.torch.compiler.kinds import kinds_of, writes
from tensorlang.torch.compiler.nodes import (
    Graph,
    GraphModule,
    Node,
    bytes_of,
    fx,
    hint,
    is_getitem,
    is_static,
    meta_of,
    tensor_of,
)
from tensorlang.torch.compiler.options import Options
from tensorlang.torch.compiler.regions import Region, choose_regions
from tensorlang.torch.compiler.report import GraphReport, RegionReport, note_graph
from tensorlang.torch.compiler.rewrites import rewrite_graph
from tensorlang.torch.compiler.rewrites.dead_code import drop_dead_code
from tensorlang.torch.compiler.running import Fused, Plain
from tensorlang.torch.compiler.translation import Translation, translate
from tensorlang.torch.compiler.values import NoDefinitionError
from tensorlang.torch.libraries import torch

codegen: Any = fx.graph._BoxedCodeGen


def compile_graph(
    module: GraphModule, options: Options, role: str, frozen: Collection[int] = ()
) -> Callable[..., Any]:
    """A function of a list of arguments, which it empties, for a functional graph of ATen.

    Args:
        role: "inference", "forward" or "backward", for the report.
        frozen: the arguments that are constants, by number.
    """
    try:
        return fx.GraphModule(module, _compiled_graph(module, options, role, frozen)).forward
    except Exception as error:  # noqa: BLE001  (whatever it is, torch can run the graph)
        tell_fallback(f"the {role} graph", first_line(error))
        graph = copy.deepcopy(module.graph)
        graph.set_codegen(codegen())
        return fx.GraphModule(module, graph).forward


def _compiled_graph(
    module: GraphModule, options: Options, role: str, frozen: Collection[int]
) -> Graph:
    graph = copy.deepcopy(module.graph)
    if options.rewrites:
        given = [n for n in graph.nodes if n.op == "placeholder"]
        rewrite_graph(graph, [given[k] for k in frozen])
        if options.attention == "region":
            attend_to_caches(graph)
            drop_dead_code(graph)
    kinds = kinds_of(graph, products=options.products)
    report = GraphReport.of(role, graph, kinds)
    regions = (
        []
        if any(map(writes, graph.nodes))
        else [*choose_regions(graph, kinds), *attention_regions(graph)]
    )
    symbols = symbol_nodes(graph)
    calls = [_call(module, region, symbols, options, report) for region in regions]
    if torch.cuda.is_available():
        compile_ahead(calls)
    made = emit(graph, calls, kinds)
    made.set_codegen(codegen())
    note_graph(report)
    return made


def _call(
    module: GraphModule,
    region: Region,
    symbols: dict[str, Node],
    options: Options,
    report: GraphReport,
) -> Call:
    """The call that computes a region: by its kernel, or by torch where there is none."""
    about = RegionReport.of(region)
    report.regions.append(about)
    read = numbers_of(region)
    try:
        translation, kernel = _compiled(region, symbols, options, about)
        sizes = tuple(_size(name, symbols) for name in translation.sizes)
    except Exception as error:  # noqa: BLE001  (whatever it is, torch can run the region)
        about.failure = first_line(error)
        tell_fallback(f"a region of {len(region.nodes)} operators", about.failure)
        return Call(region, Plain("run_by_torch", _plain(module, region, read)), read)
    numbers = tuple(dict.fromkeys((*sizes, *read)))
    name = translation.algorithm.name
    plain = _plain(module, region, numbers)
    fused = Fused(name, kernel, translation, plain, is_static=_is_settled(region))
    return Call(region, fused, numbers)


def _is_settled(region: Region) -> bool:
    """Whether every call brings the layouts that torch foresaw: static, and of its own making."""
    makers = (n.args[0] if is_getitem(n) else n for n in region.inputs)
    is_known = all(getattr(n.target, "namespace", "aten") in _KNOWN for n in makers)
    return is_known and all(is_static(tensor_of(n)) for n in (*region.inputs, *region.outputs))


# Namespaces of operators that tell their layouts truly.
_KNOWN = ("aten", "prims")


def _plain(module: GraphModule, region: Region, numbers: Sequence[Node]) -> Callable[..., Any]:
    """What torch runs for a region; it is compiled when it is first needed, which is seldom."""
    graph = plain_graph(region, numbers)

    @cache
    def compiled() -> Callable[..., Any]:
        return fx.GraphModule(module, graph).forward

    def plain(*arguments: Any) -> Any:
        return compiled()(*arguments)

    return plain


def _size(name: str, symbols: dict[str, Node]) -> Node:
    if name not in symbols:
        raise NoDefinitionError(f"the size {name} is no argument of the graph")
    return symbols[name]


def _hints(translation: Translation, symbols: dict[str, Node]) -> dict[str, int]:
    """What the Sizes were when the graph was traced."""
    names = [s.name for s in translation.algorithm.sizes if s.name in symbols]
    return {name: hint(meta_of(symbols[name])) for name in names}


def _compiled(
    region: Region, symbols: dict[str, Node], options: Options, about: RegionReport
) -> tuple[Translation, Kernel]:
    """The algorithm of a region and its kernel, which the report is told of."""
    device = tensor_of((*region.inputs, *region.outputs)[0]).device.type
    target = options.target_for(device)
    if region.nodes[0].target is attend:
        attending = Attending(region.nodes[0], target)
        about.algorithm, about.sizes = attending.pipeline.algorithm, attending.sizes
        about.kernel = attending.kernel
        return attending.translation, attending.kernel
    translation = translate(region)
    about.algorithm = translation.algorithm
    about.sizes = _hints(translation, symbols)
    moved = sum(map(bytes_of, (*region.inputs, *region.outputs)))
    kernel = kernel_of(translation.algorithm, target, about.sizes, moved)
    about.kernel = kernel
    return translation, kernel
