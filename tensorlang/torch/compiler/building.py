"""From nodes to Funcs: what the definitions of ATen's operators are written with."""

import operator
from collections.abc import Callable, Container, Sequence
from typing import Any

from tensorlang import arrays
from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Var, cast
from tensorlang.ir.types import DType, f32, f64
from tensorlang.torch.compiler.extents import expr_of, is_one, shape_exprs
from tensorlang.torch.compiler.nodes import Node, dtype_of, hint, meta_of, name_of, tensor_of
from tensorlang.torch.compiler.values import ZERO, Index, NoDefinitionError, Value
from tensorlang.torch.libraries import torch

Made = Value | tuple[Value, ...]
Rule = Callable[..., Made]
# A tensor, or a number that is like one of no dimensions.
Operand = Any


def wide(dtype: DType) -> DType:
    """The dtype that torch computes in: f32 for narrower floats, else the dtype itself."""
    return dtype if dtype is f64 or not dtype.is_float else f32


class Builder:
    """Defines the nodes of one region, in order.

    Args:
        definitions: by operator, from this builder, the node and its arguments to its value.
        alone: nodes whose elements are read once, by one reader: they need no Func.
    """

    def __init__(self, definitions: dict[Any, Rule], alone: Container[Node] = ()) -> None:
        self._definitions, self._alone = definitions, alone
        self.values: dict[Node, Made] = {}
        self.inputs: list[Input] = []
        # By its element at its own index.
        self._funcs: dict[Expr, Func] = {}
        self._names: dict[str, int] = {}
        self._domains = 0

    # ------------------------------------------------------------------------------- the graph

    def add_input(self, node: Node) -> Input:
        """Let a node be an Input, its dimensions in the order in which memory has them."""
        fake = tensor_of(node)
        order = memory_order(fake)
        shape = shape_exprs(fake.shape)
        array = Input(f"x{len(self.inputs)}", _known(node), [shape[d] for d in order])
        self.inputs.append(array)
        self.values[node] = Value(shape, array.dtype, lambda i: array[tuple(i[d] for d in order)])
        return array

    def add(self, node: Node) -> None:
        """Define a node by those that it reads.  Raises: NoDefinitionError."""
        if node.target is operator.getitem:
            made = self.values[node.args[0]]
            assert isinstance(made, tuple)
            self.values[node] = made[node.args[1]]
            return
        rule = self._definitions.get(node.target)
        if rule is None:
            raise NoDefinitionError(f"{node.target} has no definition")
        self.values[node] = rule(self, node, *node.args, **node.kwargs)

    # ----------------------------------------------------------------------------- for definitions

    def value(self, argument: Operand, like: DType | None = None) -> Value:
        """A tensor, or a number of dtype `like`, as a value."""
        made = self.values.get(argument) if isinstance(argument, fx_node) else None
        if isinstance(made, Value):
            return made
        number = self.number(argument)
        if isinstance(number, Expr):
            dtype = like or number.dtype
            return Value((), dtype, lambda _: cast(dtype, number))
        assert like is not None
        return Value((), like, lambda _: constant(like, number))

    def number(self, argument: Any) -> Any:
        """A Python number, or a symbol as an expression."""
        if isinstance(argument, fx_node):
            argument = meta_of(argument)
        if isinstance(argument, torch.SymInt):
            return expr_of(argument)
        if isinstance(argument, (torch.SymFloat, torch.SymBool, torch.Tensor)):
            raise NoDefinitionError("it reads a number that only a run tells")
        return argument

    def extents(self, given: Sequence[Any]) -> tuple[Any, ...]:
        """A list of ints and symbols, as torch has them."""
        return tuple(meta_of(n) if isinstance(n, fx_node) else n for n in given)

    def define(self, node: Node, body: Callable[[Index], Any]) -> Value:
        """A Func for a node: f[i0, i1] = body((i0, i1)); no Func where one reader has it alone."""
        dtype, shape = _known(node), shape_exprs(tensor_of(node).shape)
        if node in self._alone:
            return Value(shape, dtype, body)
        return self.make(name_of(node), shape, dtype, body)

    def make(
        self, name: str, shape: tuple[Expr, ...], dtype: DType, body: Callable[[Index], Any]
    ) -> Value:
        """A Func of that shape: name[i0, i1] = body((i0, i1))

        A dimension of extent 1, as a reduction keeps it, is none of the Func's.
        """
        func, at = Func(self._fresh(name.strip("_"))), own_index(shape)
        func[without_ones(at, shape)] = body(at)
        assert func.dtypes[0] is dtype, (name, func.dtypes, dtype)
        return self._value(func, shape)

    def _value(self, func: Func, shape: tuple[Expr, ...]) -> Value:
        value = Value(shape, func.dtypes[0], lambda i: func[without_ones(i, shape)])
        self._funcs[value.at(own_index(shape))] = func
        return value

    def make_scan(
        self,
        name: str,
        shape: tuple[Expr, ...],
        d: int,
        body: Callable[[Index, RDom], Any],
    ) -> Value:
        """A Func that runs along dimension d: name[i0, r, i2] = scan((i0, r, i2), r)"""
        func, domain = Func(self._fresh(name)), self.domain([shape[d]])
        at: list[Any] = list(own_index(shape))
        at[d] = domain[0]
        func[without_ones(tuple(at), shape)] = body(tuple(at), domain)
        return self._value(func, shape)

    def domain(self, extents: Sequence[Expr]) -> RDom:
        """A new domain to reduce over."""
        self._domains += 1
        return RDom(f"r{self._domains}", *extents)

    def func_of(self, value: Value, taken: Container[Func] = ()) -> Func:
        """The Func whose elements a value has, at its own index.

        A copy where there is none, or it is one of `taken`.
        """
        at = own_index(value.shape)
        element = value.at(at)
        if element not in self._funcs or self._funcs[element] in taken:
            element = self.make("copy", value.shape, value.dtype, value.at).at(at)
        return self._funcs[element]

    def _fresh(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name


fx_node: Any = torch.fx.Node


def own_index(shape: tuple[Expr, ...]) -> Index:
    """(i0, i1, ...), and 0 in a dimension of extent 1."""
    return tuple(ZERO if is_one(n) else Var(f"i{d}") for d, n in enumerate(shape))


def without_ones(parts: Index, shape: tuple[Expr, ...]) -> Index:
    """What belongs to dimensions of more than one element."""
    return tuple(part for part, n in zip(parts, shape, strict=True) if not is_one(n))


def constant(dtype: DType, number: Any) -> Expr:
    """A Python number in a dtype."""
    return dtype(bool(number) if dtype.is_bool else number)


def _known(node: Node) -> DType:
    return dtype_of(node) or _known_dtype(tensor_of(node))


def _known_dtype(fake: Any) -> DType:
    dtype = arrays.dtype_of_torch(fake.dtype)
    if dtype is None:
        raise NoDefinitionError(f"tensors of {fake.dtype} have no dtype here")
    return dtype


def memory_order(fake: Any) -> tuple[int, ...]:
    """The dimensions of a tensor, those with the largest strides first."""
    strides = [hint(s) for s in fake.stride()]
    extents = [hint(n) for n in fake.shape]
    order = list(range(len(strides)))
    if 0 in strides:
        return tuple(order)
    # A dimension of one element has any stride: it stays before what follows it.
    for d in reversed(order):
        if extents[d] == 1:
            strides[d] = strides[d + 1] * extents[d + 1] if d + 1 < len(order) else 1
    return tuple(sorted(order, key=lambda d: -strides[d]))
