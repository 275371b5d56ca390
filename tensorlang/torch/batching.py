"""torch.vmap of an operator: one call for each element of the batch."""

from collections.abc import Sequence
from typing import Any

from tensorlang.torch.libraries import pytree, torch


def register_batching(op: Any) -> None:
    """op over dimension d of some arguments   ->   its results for each index, stacked."""

    def batched(info: Any, in_dims: Sequence[Any], *arguments: Any) -> tuple[Any, Any]:
        dims = pytree.tree_flatten(tuple(in_dims), is_leaf=_is_leaf)[0]
        leaves, spec = pytree.tree_flatten(arguments, is_leaf=_is_leaf)
        results: list[Any] = [
            op(*pytree.tree_unflatten(_at(leaves, dims, index), spec))
            for index in range(info.batch_size)
        ]
        if isinstance(results[0], torch.Tensor):
            return torch.stack(results), 0
        stacked = [torch.stack(parts) for parts in zip(*results, strict=True)]
        if isinstance(results[0], list):
            return stacked, [0] * len(stacked)
        return tuple(stacked), (0,) * len(stacked)

    op.register_vmap(batched)


def _is_leaf(value: Any) -> bool:
    return value is None


def _at(leaves: Sequence[Any], dims: Sequence[Any], index: int) -> list[Any]:
    return [
        leaf if dim is None else leaf.select(dim, index)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
