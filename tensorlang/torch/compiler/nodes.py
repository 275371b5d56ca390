"""Facts of the nodes of a graph: what torch says of the tensor that each makes."""

from collections.abc import Iterator
from importlib import import_module
from math import prod
from typing import Any

from tensorlang import arrays
from tensorlang.ir.types import DType
from tensorlang.torch.libraries import Tensor, pytree, torch

fx: Any = import_module("torch.fx")
Node = Any
Graph = Any
GraphModule = Any
aten: Any = torch.ops.aten
prims: Any = torch.ops.prims


def meta_of(node: Node) -> Any:
    """The fake tensor or symbol that a node makes; a tuple of several; None where unknown."""
    return node.meta.get("val")


def is_call(node: Node) -> bool:
    """Whether a node calls a function."""
    return node.op == "call_function"


def is_tensor(node: Node) -> bool:
    """Whether a node makes one tensor."""
    return isinstance(meta_of(node), torch.Tensor)


def tensors_of(node: Node) -> list[Tensor]:
    """The fake tensors that a node makes, one or several."""
    leaves: list[Any] = pytree.tree_leaves(meta_of(node))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def is_array(node: Node) -> bool:
    """Whether a node makes tensors, one or several."""
    return bool(tensors_of(node))


def tensor_of(node: Node) -> Tensor:
    """The fake tensor of a node."""
    fake = meta_of(node)
    assert isinstance(fake, torch.Tensor)
    return fake


def dtype_of(node: Node) -> DType | None:
    """The dtype of a node's tensor; None: none of ours."""
    return arrays.dtype_of_torch(tensor_of(node).dtype)


def bytes_of(node: Node) -> int:
    """Bytes of all that a node makes; symbols count as what they were when it was traced."""
    parts = tensors_of(node)
    return sum(prod(hint(n) for n in part.shape) * part.element_size() for part in parts)


def hint(n: Any) -> int:
    """An extent as a number; a symbol is what it was when it was traced, or 1."""
    if isinstance(n, torch.SymInt):
        known = n.node.hint
        return 1 if known is None else int(known)
    return int(n)


def name_of(node: Node) -> str:
    """The short name of what a node calls: "add" for aten.add.Tensor."""
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target.overloadpacket.__name__
    return getattr(node.target, "__name__", str(node.target))


def is_getitem(node: Node) -> bool:
    """Whether a node takes one of several results."""
    return is_call(node) and name_of(node) == "getitem"


def arguments(node: Node) -> Iterator[Node]:
    """The nodes that a node reads, each once, in order."""
    return iter(node.all_input_nodes)


def is_static(fake: Any) -> bool:
    """Whether no extent of a tensor is a symbol."""
    return all(isinstance(n, int) for n in fake.shape)
