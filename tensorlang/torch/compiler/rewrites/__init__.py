"""Rewrites of a graph before it is divided: the same values, by fewer or cheaper nodes.

Each is a file, a function that changes a graph, and a test that shows one before and after.
"""

from collections.abc import Callable, Collection

from tensorlang.torch.compiler.nodes import Graph, Node
from tensorlang.torch.compiler.rewrites.algebra import simplify_algebra
from tensorlang.torch.compiler.rewrites.convolutions import fold_into_convolutions
from tensorlang.torch.compiler.rewrites.creations import forget_shapes
from tensorlang.torch.compiler.rewrites.dead_code import drop_dead_code
from tensorlang.torch.compiler.rewrites.frozen import fold_constants
from tensorlang.torch.compiler.rewrites.items import read_items
from tensorlang.torch.compiler.rewrites.layout import choose_layout
from tensorlang.torch.compiler.rewrites.products import merge_products
from tensorlang.torch.compiler.rewrites.shared import share_subexpressions

REWRITES: tuple[Callable[[Graph], None], ...] = (
    forget_shapes,
    read_items,
    simplify_algebra,
    share_subexpressions,
    drop_dead_code,
)
# What takes parameters for constants; the last of them computes what has become constant.
FROZEN: tuple[Callable[[Graph, Collection[Node]], None], ...] = (
    fold_into_convolutions,
    merge_products,
    choose_layout,
    fold_constants,
)


def rewrite_graph(graph: Graph, frozen: Collection[Node]) -> None:
    """Every rewrite in order; `frozen` are the arguments that are constants."""
    for rewrite in REWRITES:
        rewrite(graph)
    if frozen:
        for fold in FROZEN:
            fold(graph, frozen)
        drop_dead_code(graph)
