"""Matmuls with torch's arguments and an epilogue: linear, bmm, and by groups of rows."""

from tensorlang.nn import grouped as _groups
from tensorlang.nn import linear as _linear
from tensorlang.nn.functions.activation import activated
from tensorlang.nn.functions.arguments import as_matrix, have_gradient, in_autocast, refused
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor, torch

_linear_op = custom_op("tensorlang::linear", _linear.linear)
_bmm_op = custom_op("tensorlang::bmm", _linear.bmm)
_grouped_op = custom_op(
    "tensorlang::grouped",
    _groups.grouped,
    schedules=_groups.grouped_tiles,
    derivative=_groups.grouped_gradients,
)
# The rows of a block, all of one group: a tile on a GPU, and little to pad on a CPU.
_BLOCK = {"cuda": 64, "cpu": 8}


def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    activation: str = "none",
    residual: Tensor | None = None,
) -> Tensor:
    """activation(x @ weight.T + bias) + residual, in one kernel

    Args: activation: "none", "relu", "silu", "gelu" or "gelu_tanh".
    """
    input, weight, bias, residual = (in_autocast(t) for t in (input, weight, bias, residual))
    shape = (*input.shape[:-1], weight.shape[0])
    if residual is not None:
        residual = as_matrix(residual.expand(shape))
    return _linear_op(as_matrix(input), weight, bias, residual, activation).reshape(shape)


def bmm(
    input: Tensor,
    mat2: Tensor,
    bias: Tensor | None = None,
    *,
    activation: str = "none",
    residual: Tensor | None = None,
) -> Tensor:
    """activation(x @ mat2 + bias) + residual for each matrix of a batch

    Args: bias: (batch, columns), or (columns,) for all.
    """
    if input.ndim != 3 or mat2.ndim != 3:
        raise refused("bmm", f"tensors of {input.ndim} and {mat2.ndim} dimensions", "three each")
    input, mat2, bias, residual = (in_autocast(t) for t in (input, mat2, bias, residual))
    shape = (input.shape[0], input.shape[1], mat2.shape[2])
    if bias is not None:
        bias = bias.expand(shape[0], shape[2])
    if residual is not None:
        residual = residual.expand(shape)
    return _bmm_op(input, mat2, bias, residual, activation)


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    activation: str = "none",
) -> Tensor:
    """activation(rows offs[e - 1], ..., offs[e] - 1 of a @ b[e] + bias[e]), for every group e

    Each group is padded to whole blocks of rows, on the device: nothing waits for `offs`.  Where
    gradients are asked for, the activation is an operator of its own.

    Args:
        mat_a: (rows, K).
        mat_b: (groups, K, columns).
        offs: (groups,), the row after the last of each group; rows beyond are 0.
        bias: (groups, columns).
    """
    if offs is None and mat_a.ndim == 3:
        return bmm(mat_a, mat_b, bias, activation=activation)
    if mat_a.ndim != 2 or mat_b.ndim != 3 or offs is None:
        raise refused("grouped_mm", "groups of columns", "(rows, K), (groups, K, columns) and offs")
    mat_a, mat_b, bias = (in_autocast(t) for t in (mat_a, mat_b, bias))
    count, groups = mat_a.shape[0], mat_b.shape[0]
    block = _BLOCK["cuda" if mat_a.is_cuda else "cpu"]
    ends = offs.long()
    starts = torch.cat((ends.new_zeros(1), ends[:-1]))
    blocks = torch.cumsum((ends - starts + (block - 1)) // block, 0)
    first = torch.cat((blocks.new_zeros(1), blocks[:-1])) * block
    row = torch.arange(count, device=ends.device)
    group = torch.searchsorted(ends, row, right=True)
    belongs = group < groups
    group = group.clamp(max=groups - 1)
    # The last block takes the rows of no group.
    total = (count + block - 1) // block + groups + 1
    place = torch.where(belongs, row - starts[group] + first[group], (total - 1) * block)
    padded = mat_a.new_zeros(total * block, mat_a.shape[1]).index_copy(0, place, mat_a)
    of_block = torch.searchsorted(blocks, torch.arange(total, device=ends.device), right=True)
    given = padded.reshape(total, block, -1), mat_b, of_block.clamp(max=groups - 1), bias
    apart = have_gradient(mat_a, mat_b, bias) and activation != "none"
    made = _grouped_op(*given, "none" if apart else activation)
    found = made.reshape(total * block, -1).index_select(0, place)
    found = activated(found, activation) if apart else found
    return torch.where(belongs[:, None], found, 0)
