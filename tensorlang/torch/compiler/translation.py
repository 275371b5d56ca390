"""From a region to an algorithm: nodes become Funcs, what is read outside its outputs."""

import operator
from dataclasses import dataclass

from tensorlang.algorithm import Algorithm
from tensorlang.closing import close_algorithm
from tensorlang.func import Func
from tensorlang.ir.expr import Expr
from tensorlang.torch.compiler.building import Builder, memory_order, without_ones
from tensorlang.torch.compiler.definitions import DEFINITIONS, POINTWISE
from tensorlang.torch.compiler.extents import is_one
from tensorlang.torch.compiler.nodes import Node, is_tensor, name_of, tensor_of
from tensorlang.torch.compiler.regions import Region
from tensorlang.torch.compiler.values import Value

Order = tuple[int, ...]
# Operators that the name of a region has.
_MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class Placing:
    """A result from an output: its dimensions permuted, then new ones of extent 1."""

    order: Order
    ones: tuple[int, ...]


def _placing(value: Value, order: Order) -> Placing:
    ones = tuple(d for d, n in enumerate(value.shape) if is_one(n))
    kept = [d for d in order if d not in ones]
    back = tuple(kept.index(d) for d in sorted(kept))
    return Placing(back, ones)


@dataclass(frozen=True, slots=True)
class Translation:
    """A region as an algorithm.

    Args:
        inputs: the order of the dimensions of each tensor in memory, which is that of its Input.
        outputs: how each result is made of an output.
        sizes: the Sizes that no Input tells by itself.
    """

    algorithm: Algorithm
    inputs: tuple[Order, ...]
    outputs: tuple[Placing, ...]
    sizes: tuple[str, ...]


def translate(region: Region) -> Translation:
    """The algorithm of a region.  Raises: NoDefinitionError, DefinitionError."""
    builder = Builder(DEFINITIONS, _read_once(region))
    for node in region.inputs:
        builder.add_input(node)
    for node in region.nodes:
        builder.add(node)
    outputs: dict[Func, tuple[Expr, ...]] = {}
    placings: list[Placing] = []
    for node in region.outputs:
        value, order = builder.value(node), memory_order(tensor_of(node))
        func = builder.func_of(in_order(value, order), outputs)
        shape = tuple(value.shape[d] for d in order)
        outputs[func] = without_ones(shape, shape)
        placings.append(_placing(value, order))
    algorithm = close_algorithm(_name(region), builder.inputs, outputs)
    return Translation(
        algorithm,
        tuple(memory_order(tensor_of(node)) for node in region.inputs),
        tuple(placings),
        _untold(algorithm),
    )


def _read_once(region: Region) -> set[Node]:
    """Nodes of one element each that one other such node, of the same shape, reads.

    To compute them there repeats nothing, so that no schedule could do better.
    """
    inside = set(region.nodes) - set(region.outputs)
    found: set[Node] = set()
    for node in region.nodes:
        if node in inside and node.target in POINTWISE and len(node.users) == 1:
            (reader,) = node.users
            is_like = reader.target in POINTWISE and is_tensor(reader)
            if is_like and tensor_of(reader).shape == tensor_of(node).shape:
                found.add(node)
    return found


def _name(region: Region) -> str:
    """fused_add_rsqrt_mul: what the region computes, as far as a name may tell."""
    names = dict.fromkeys(
        name_of(n).strip("_") for n in region.nodes if n.target is not operator.getitem
    )
    return "_".join(["fused", *list(names)[:_MOST_NAMES]])


def _untold(algorithm: Algorithm) -> tuple[str, ...]:
    """The Sizes that are the extent of no Input."""
    told = {e for a in algorithm.inputs for e in a.shape}
    return tuple(size.name for size in algorithm.sizes if size not in told)


def in_order(value: Value, order: Order) -> Value:
    """The same elements, the dimensions in another order."""
    if order == tuple(range(len(order))):
        return value
    back = [order.index(d) for d in range(len(order))]
    return Value(
        tuple(value.shape[d] for d in order),
        value.dtype,
        lambda i: value.at(tuple(i[k] for k in back)),
    )
