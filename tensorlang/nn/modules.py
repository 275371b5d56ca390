"""torch.nn's modules with our functions: the same constructors and the same state_dict.

Each is the module of torch whose forward is ours, so that a model of either loads the weights of
the other, and isinstance still holds.
"""

# pyright: reportUntypedBaseClass=false
from typing import Any

from tensorlang.nn import functional
from tensorlang.nn.functions.arguments import refused
from tensorlang.torch.libraries import Tensor, torch

_nn: Any = torch.nn


class Linear(_nn.Linear):
    """x @ weight.T + bias"""

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.Linear's."""
        return functional.linear(input, self.weight, self.bias)


class _Conv:
    """What convolutions of all ranks share."""

    function: Any

    def forward(self: Any, input: Tensor) -> Tensor:
        """torch.nn.Conv*d's."""
        _check_zeros(self)
        how = (self.stride, self.padding, self.dilation, self.groups)
        return self.function(input, self.weight, self.bias, *how)


class Conv1d(_Conv, _nn.Conv1d):
    """A convolution over one spatial dimension"""

    function = staticmethod(functional.conv1d)


class Conv2d(_Conv, _nn.Conv2d):
    """A convolution of images"""

    function = staticmethod(functional.conv2d)


class Conv3d(_Conv, _nn.Conv3d):
    """A convolution of volumes"""

    function = staticmethod(functional.conv3d)


class _ConvTranspose:
    """What transposed convolutions of all ranks share."""

    function: Any

    def forward(self: Any, input: Tensor, output_size: Any = None) -> Tensor:
        """torch.nn.ConvTranspose*d's."""
        _check_zeros(self)
        rank = len(self.kernel_size)
        shapes = (self.stride, self.padding, self.kernel_size, rank, self.dilation)
        extra = self._output_padding(input, output_size, *shapes)
        how = (self.stride, self.padding, extra, self.groups, self.dilation)
        return self.function(input, self.weight, self.bias, *how)


class ConvTranspose1d(_ConvTranspose, _nn.ConvTranspose1d):
    """A transposed convolution over one spatial dimension"""

    function = staticmethod(functional.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose, _nn.ConvTranspose2d):
    """A transposed convolution of images"""

    function = staticmethod(functional.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose, _nn.ConvTranspose3d):
    """A transposed convolution of volumes"""

    function = staticmethod(functional.conv_transpose3d)


def _check_zeros(module: Any) -> None:
    if module.padding_mode != "zeros":
        raise refused(
            type(module).__name__, f"padding_mode={module.padding_mode!r}", "pad before it"
        )


class _BatchNorm:
    """What batch norms of all ranks share."""

    def forward(self: Any, input: Tensor, residual: Tensor | None = None) -> Any:
        """torch.nn.BatchNorm*d's: in training the running statistics move.

        With a residual also the sum of both, which is normalised.
        """
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        moves = self.training and self.track_running_stats
        if moves and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        of_batch = self.training or self.running_mean is None
        kept = self.running_mean is not None and (moves or not of_batch)
        running = (self.running_mean, self.running_var) if kept else (None, None)
        how = (self.weight, self.bias, of_batch, momentum, self.eps)
        return functional.batch_norm(input, *running, *how, residual=residual)


class BatchNorm1d(_BatchNorm, _nn.BatchNorm1d):
    """A batch norm of (batch, channels) or (batch, channels, length)"""


class BatchNorm2d(_BatchNorm, _nn.BatchNorm2d):
    """A batch norm of images"""


class BatchNorm3d(_BatchNorm, _nn.BatchNorm3d):
    """A batch norm of volumes"""


class LayerNorm(_nn.LayerNorm):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions"""

    def forward(self, input: Tensor, residual: Tensor | None = None) -> Any:
        """torch.nn.LayerNorm's; with a residual also the sum of both, which is normalised."""
        how = (self.normalized_shape, self.weight, self.bias, self.eps)
        return functional.layer_norm(input, *how, residual=residual)


class RMSNorm(_nn.RMSNorm):
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions"""

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Any:
        """torch.nn.RMSNorm's; with a residual also the sum of both, which is normalised."""
        how = (self.normalized_shape, self.weight, self.eps)
        return functional.rms_norm(x, *how, residual=residual)


class GroupNorm(_nn.GroupNorm):
    """A norm of each group of channels"""

    def forward(self, input: Tensor, residual: Tensor | None = None) -> Any:
        """torch.nn.GroupNorm's; with a residual also the sum of both, which is normalised."""
        how = (self.num_groups, self.weight, self.bias, self.eps)
        return functional.group_norm(input, *how, residual=residual)


class Embedding(_nn.Embedding):
    """Rows of a table, by number"""

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.Embedding's."""
        if self.max_norm is not None or self.scale_grad_by_freq or self.sparse:
            raise refused("Embedding", "max_norm, scale_grad_by_freq and sparse", "leave them out")
        return functional.embedding(input, self.weight, self.padding_idx)


class Dropout(_nn.Dropout):
    """x / (1 - p) where a random number is at least p, else 0; only in training"""

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.Dropout's; never in place."""
        return functional.dropout(input, self.p, self.training)


class ReLU(_nn.ReLU):
    """max(x, 0)"""

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.ReLU's; never in place."""
        return functional.relu(input)


class SiLU(_nn.SiLU):
    """x * sigmoid(x)"""

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.SiLU's; never in place."""
        return functional.silu(input)


class GELU(_nn.GELU):
    """x times the share of a normal distribution below x"""

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.GELU's."""
        return functional.gelu(input, self.approximate)


class Softmax(_nn.Softmax):
    """exp(x) / sum(exp(x)) along a dimension"""

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.Softmax's."""
        return functional.softmax(input, self.dim)


class CrossEntropyLoss(_nn.CrossEntropyLoss):
    """-weight[t] * log_softmax(x)[t] for the class t of each row, averaged over weights"""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """torch.nn.CrossEntropyLoss's."""
        return functional.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class _MaxPool:
    """What max pooling of all ranks shares."""

    function: Any

    def forward(self: Any, input: Tensor) -> Any:
        """torch.nn.MaxPool*d's."""
        how = (self.kernel_size, self.stride, self.padding, self.dilation)
        return self.function(input, *how, self.ceil_mode, self.return_indices)


class MaxPool1d(_MaxPool, _nn.MaxPool1d):
    """The largest of each window"""

    function = staticmethod(functional.max_pool1d)


class MaxPool2d(_MaxPool, _nn.MaxPool2d):
    """The largest of each window of an image"""

    function = staticmethod(functional.max_pool2d)


class MaxPool3d(_MaxPool, _nn.MaxPool3d):
    """The largest of each window of a volume"""

    function = staticmethod(functional.max_pool3d)


class _AvgPool:
    """What average pooling of all ranks shares."""

    function: Any

    def forward(self: Any, input: Tensor) -> Tensor:
        """torch.nn.AvgPool*d's."""
        how = [self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad]
        if hasattr(self, "divisor_override"):
            how.append(self.divisor_override)
        return self.function(input, *how)


class AvgPool1d(_AvgPool, _nn.AvgPool1d):
    """The mean of each window"""

    function = staticmethod(functional.avg_pool1d)


class AvgPool2d(_AvgPool, _nn.AvgPool2d):
    """The mean of each window of an image"""

    function = staticmethod(functional.avg_pool2d)


class AvgPool3d(_AvgPool, _nn.AvgPool3d):
    """The mean of each window of a volume"""

    function = staticmethod(functional.avg_pool3d)


class AdaptiveAvgPool2d(_nn.AdaptiveAvgPool2d):
    """The means of as many windows as are asked for"""

    def forward(self, input: Tensor) -> Tensor:
        """torch.nn.AdaptiveAvgPool2d's."""
        return functional.adaptive_avg_pool2d(input, self.output_size)


class MultiheadAttention(_nn.MultiheadAttention):
    """Attention of several heads with its projections, without the weights as a result"""

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = False,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, None]:
        """torch.nn.MultiheadAttention's; need_weights is False unless given."""
        self._check(need_weights, key_padding_mask, attn_mask)
        if not self.batch_first and query.ndim == 3:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        q, k, v = (
            functional.linear(t, w, b).unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)
            for t, w, b in zip((query, key, value), *self._projections(), strict=True)
        )
        causal = is_causal and attn_mask is None
        if key_padding_mask is not None:
            attn_mask = ~key_padding_mask[:, None, None]
        elif attn_mask is not None and attn_mask.dtype is torch.bool:
            attn_mask = ~attn_mask
        made = functional.scaled_dot_product_attention(q, k, v, attn_mask, is_causal=causal)
        joined = made.transpose(-3, -2).flatten(-2)
        result = functional.linear(joined, self.out_proj.weight, self.out_proj.bias)
        return (
            result.transpose(0, 1) if not self.batch_first and query.ndim == 3 else result
        ), None

    def _projections(self) -> tuple[Any, Any]:
        """The weights and biases of query, key and value."""
        if self._qkv_same_embed_dim:
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return weights, biases

    def _check(self, need_weights: bool, padding: Tensor | None, mask: Tensor | None) -> None:
        dropping = self.dropout and self.training
        if need_weights or dropping or self.bias_k is not None or self.add_zero_attn:
            raise refused(
                "MultiheadAttention",
                "need_weights, dropout in training, add_bias_kv and add_zero_attn",
                "leave them out",
            )
        if padding is not None and (mask is not None or padding.dtype is not torch.bool):
            raise refused(
                "MultiheadAttention", "a key_padding_mask beside attn_mask", "one of them, of bools"
            )
