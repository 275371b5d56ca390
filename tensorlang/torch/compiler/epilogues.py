"""Large products that are computed in a region with what is made of them.

    silu(mm(x, u)) * mm(x, v)     a gate and a value: two products of one tile of rows

Our kernel is as fast as a library's there, and spares two passes over the products.
"""

import math

from tensorlang.torch.compiler.definitions import POINTWISE, VIEWS
from tensorlang.torch.compiler.nodes import Node, aten, fx, tensor_of
from tensorlang.torch.libraries import torch

_PRODUCTS = (aten.mm.default, aten.bmm.default)
# Rows of a product from which its tiles fill a GPU, and what divides extents without a rest.
_MANY_ROWS, _WHOLE = 1024, 128
# Operators between a product and where it meets another tensor.
_MOST = 8


def is_fused(node: Node) -> bool:
    """Whether a product is large, of 16 bits, on a GPU, and meets one other of the same rows."""
    if not _is_large(node):
        return False
    end = _meeting(node)
    if end is None or end.kwargs or len(end.all_input_nodes) != 2:
        return False
    partners = [p for a in end.all_input_nodes if (p := _product_of(a)) is not None]
    is_pair = len(partners) == 2 and all(map(_is_large, partners))
    return end.target is aten.mul.Tensor and is_pair and _alike(*partners)


def _is_large(node: Node) -> bool:
    if node.target not in _PRODUCTS:
        return False
    x, y = (tensor_of(a) for a in node.args)
    if x.device.type != "cuda" or x.dtype not in (torch.bfloat16, torch.float16):
        return False
    if any(not isinstance(n, int) for n in (*x.shape, *y.shape)) or math.prod(x.shape[:-2]) != 1:
        return False
    whole = all(n % _WHOLE == 0 for n in (*x.shape[-2:], *y.shape[-2:]))
    return whole and x.shape[-2] >= _MANY_ROWS


def _alike(a: Node, b: Node) -> bool:
    """Whether two products have the same rows, through views, and as many columns."""
    same_rows = _viewed(a.args[0]) is _viewed(b.args[0])
    return a is not b and same_rows and tensor_of(a).shape == tensor_of(b).shape


def _viewed(node: Node) -> Node:
    while node.target in VIEWS:
        node = node.args[0]
    return node


def _meeting(node: Node) -> Node | None:
    """The first operator of two tensors of all that is made of a product alone, if there is one."""
    made = {node}
    for _ in range(_MOST):
        readers = dict.fromkeys(u for n in made for u in n.users if u not in made)
        alone = [u for u in readers if all(a in made for a in u.all_input_nodes)]
        if not alone:
            return next(iter(readers)) if len(readers) == 1 else None
        if any(u.target not in VIEWS and u.target not in POINTWISE for u in alone):
            return None
        made.update(alone)
    return None


def _product_of(node: Node) -> Node | None:
    """The one product that a tensor is made of, through views and operators of one tensor."""
    stack, found = [node], dict[Node, None]()
    for _ in range(4 * _MOST):
        if not stack:
            return next(iter(found)) if len(found) == 1 else None
        top = stack.pop()
        if top.target in _PRODUCTS:
            found[top] = None
        elif isinstance(top, fx.Node) and (top.target in VIEWS or top.target in POINTWISE):
            stack.extend(top.all_input_nodes)
        else:
            return None
    return None
