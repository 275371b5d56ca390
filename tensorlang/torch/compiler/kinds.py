"""What becomes of each node: its kind, and where torch keeps it, why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from importlib import import_module
from typing import Any

from tensorlang.errors import TensorlangError
from tensorlang.torch.compiler.attended import attend
from tensorlang.torch.compiler.building import Builder
from tensorlang.torch.compiler.definitions import CONTRACTIONS, CREATIONS, DEFINITIONS, VIEWS
from tensorlang.torch.compiler.epilogues import is_fused
from tensorlang.torch.compiler.fallback import first_line, tell_fallback
from tensorlang.torch.compiler.nodes import (
    Graph,
    Node,
    arguments,
    aten,
    fx,
    hint,
    is_array,
    is_call,
    is_getitem,
    is_tensor,
    meta_of,
    tensor_of,
    tensors_of,
)
from tensorlang.torch.compiler.values import NoDefinitionError
from tensorlang.torch.libraries import pytree, torch

symbols: Any = import_module("torch.fx.experimental.symbolic_shapes")


class Kind(Enum):
    """What a node is to a region."""

    GIVEN = "an argument or a result of the graph"
    VIEW = "the elements of another tensor: free wherever it is read"
    CREATION = "made of nothing: made again wherever it is read"
    COMPUTED = "has a definition, and is computed in a region"
    LIBRARY = "a library computes it faster"
    TORCH = "has no definition here, and torch computes it"
    NUMBER = "a number or a symbol, computed by Python"


# What a library computes, by choice: its kernels are tuned for each machine.
LIBRARY: frozenset[Any] = frozenset(
    {
        *CONTRACTIONS,
        attend,
        aten.convolution.default,
        aten.convolution_backward.default,
        aten._scaled_dot_product_flash_attention_for_cpu.default,
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
        aten._scaled_dot_product_flash_attention.default,
        aten._scaled_dot_product_flash_attention_backward.default,
        aten._scaled_dot_product_efficient_attention.default,
        aten._scaled_dot_product_efficient_attention_backward.default,
        aten._scaled_dot_product_cudnn_attention.default,
        aten._scaled_dot_product_cudnn_attention_backward.default,
    }
)
# Products of fewer multiplications are computed in a region: a call to a library costs more.
_SMALL_PRODUCT = 1 << 13
DEVICES = ("cpu", "cuda")
# Rows of a matrix that is multiplied by a vector, as far as our own kernel takes them.
_VECTOR_STEP, _LONGEST_VECTOR = 256, 1 << 14


@dataclass(frozen=True, slots=True)
class Verdict:
    """The kind of a node.

    Args:
        why: the reason, for what torch keeps.
        after: the random operator that has to run before this one.
    """

    kind: Kind
    why: str = ""
    after: Node = None


def kinds_of(graph: Graph, *, products: str = "auto") -> dict[Node, Verdict]:
    """The kind of every node.

    Args: products: where matrix products are computed: "library", "region", "auto" or "fused".
    """
    found: dict[Node, Verdict] = {}
    refusals: dict[Any, str] = {}
    random: Node = None
    for node in graph.nodes:
        verdict = _verdict(node, found, products, refusals)
        if is_random(node):
            verdict, random = replace(verdict, after=random), node
        found[node] = verdict
    return found


def is_random(node: Node) -> bool:
    """Whether a node draws random numbers, so that its place among others like it matters."""
    tags = getattr(node.target, "tags", ())
    return torch.Tag.nondeterministic_seeded in tags


def is_frozen(node: Node) -> bool:
    """Whether a node gives what was computed once, of parameters."""
    return getattr(node.target, "__name__", "") == "frozen"


def writes(node: Node) -> bool:
    """Whether a node changes a tensor that it is given."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def _verdict(
    node: Node, found: Mapping[Node, Verdict], products: str, refusals: dict[Any, str]
) -> Verdict:
    if not is_call(node):
        return Verdict(Kind.GIVEN)
    if is_getitem(node):
        source = found[node.args[0]]
        if source.kind in (Kind.VIEW, Kind.COMPUTED):
            return Verdict(source.kind)
        return Verdict(Kind.LIBRARY if source.kind is Kind.LIBRARY else Kind.TORCH, source.why)
    if isinstance(meta_of(node), (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return Verdict(Kind.NUMBER)
    if node.target in CONTRACTIONS and not _in_region(node, products):
        return Verdict(Kind.LIBRARY)
    if node.target not in DEFINITIONS:
        if node.target in LIBRARY or is_random(node) or is_frozen(node):
            return Verdict(Kind.LIBRARY)
        return Verdict(Kind.TORCH, f"{node.target} has no definition")
    # Layers repeat what they call.
    call = _call_of(node)
    if call not in refusals:
        refusals[call] = _refusal(node)
    why = refusals[call]
    if why:
        return Verdict(Kind.TORCH, why)
    if node.target in VIEWS:
        return Verdict(Kind.VIEW)
    is_new = node.target in CREATIONS and not any(map(is_array, arguments(node)))
    if is_new or _is_free(node, found):
        return Verdict(Kind.CREATION)
    return Verdict(Kind.COMPUTED)


def _is_free(node: Node, found: Mapping[Node, Verdict]) -> bool:
    """Whether it is computed of nothing but numbers and what is made of nothing, as a mask is."""
    made = (Kind.CREATION, Kind.NUMBER)
    return is_tensor(node) and all(
        found[_base(a, found)].kind in made or not isinstance(meta_of(a), torch.Tensor)
        for a in arguments(node)
    )


def _base(node: Node, found: Mapping[Node, Verdict]) -> Node:
    """The tensor whose elements a view has."""
    while found[node].kind is Kind.VIEW:
        node = node.args[0]
    return node


def _in_region(node: Node, products: str) -> bool:
    if products in ("region", "library"):
        return products == "region"
    if is_vector_product(node) or (products == "fused" and is_fused(node)):
        return True
    x, y = _factors(node)
    work = hint(tensor_of(y).shape[-1])
    for n in tensor_of(x).shape:
        work *= hint(n)
    return work <= _SMALL_PRODUCT


def _factors(node: Node) -> tuple[Node, Node]:
    x, y = node.args[-2:]
    return x, y


def is_vector_product(node: Node) -> bool:
    """Whether it is a matrix by a vector on a GPU, of 16 bits.

    Reading the matrix is all that counts, and our kernels do so with what is before and after it.
    """
    if node.target not in CONTRACTIONS:
        return False
    x, y = (tensor_of(n) for n in _factors(node))
    depth = x.shape[-1]
    return (
        x.device.type == "cuda"
        and x.dtype in (torch.bfloat16, torch.float16)
        and all(isinstance(n, int) for n in (*x.shape, *y.shape))
        and all(n == 1 for n in x.shape[:-1])
        and y.shape[-1] > 1
        and depth % _VECTOR_STEP == 0
        and depth <= _LONGEST_VECTOR
        # Columns of the matrix are rows in memory, as the weights of a linear layer are.
        and y.stride()[-2] == 1
    )


def _call_of(node: Node) -> Any:
    """What is called with what, as far as a definition can see it."""
    leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
    nodes = (*(x for x in leaves if isinstance(x, fx.Node)), node)
    seen = [pytree.tree_map(_described, meta_of(n)) for n in nodes]
    others = [repr(x) for x in leaves if not isinstance(x, fx.Node)]
    return node.target, str(spec), str(others), str(seen)


def _described(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    layout = value.stride() if value.layout is torch.strided else ()
    return value.dtype, tuple(value.shape), layout, value.device, value.layout


def _refusal(node: Node) -> str:
    """Why a node cannot be defined; empty where it can."""
    tensors = [t for n in (node, *arguments(node)) for t in tensors_of(n)]
    devices = {t.device for t in tensors}
    if len(devices) > 1:
        return "its tensors are on several devices"
    if not devices or next(iter(devices)).type not in DEVICES:
        return f"nothing is compiled for {', '.join(map(str, devices)) or 'no device'}"
    if any(symbols.free_unbacked_symbols(meta_of(n)) for n in (node, *arguments(node))):
        return "it reads a number that only a run tells"
    if any(t.layout is not torch.strided or t.is_sparse for t in tensors):
        return "it has tensors that are not dense"
    try:
        trial = Builder(DEFINITIONS)
        for a in arguments(node):
            if isinstance(meta_of(a), torch.Tensor):
                trial.add_input(a)
        trial.add(node)
    except (NoDefinitionError, TensorlangError) as error:
        return first_line(error)
    except Exception as error:  # noqa: BLE001  (whatever it is, torch can run the node)
        # Our own fault, and not a limit that `explain` tells of.
        tell_fallback(str(node.target), f"{type(error).__name__}: {first_line(error)}")
        return first_line(error)
    return ""
