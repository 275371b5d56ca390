"""Which operators torch takes apart before the graph is seen, and which it leaves whole."""

from functools import cache
from importlib import import_module
from typing import Any

from tensorlang.torch.compiler.nodes import aten

decomp: Any = import_module("torch._decomp")

# Taken apart besides the core: norms, softmax and activations, so that their parts may be fused.
_ALSO = (
    aten._softmax,
    aten._softmax_backward_data,
    aten._log_softmax,
    aten._log_softmax_backward_data,
    aten.native_layer_norm,
    aten.native_layer_norm_backward,
    aten._fused_rms_norm,
    aten._fused_rms_norm_backward,
    aten.native_group_norm,
    aten.native_group_norm_backward,
    aten.native_batch_norm,
    aten.native_batch_norm_backward,
    aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_no_training,
    aten._native_batch_norm_legit_functional,
    aten.cudnn_batch_norm,
    aten.cudnn_batch_norm_backward,
    aten.gelu,
    aten.gelu_backward,
    aten.silu,
    aten.silu_backward,
    aten.sigmoid_backward,
    aten.tanh_backward,
    aten.elu,
    aten.leaky_relu,
    aten.hardtanh,
    aten.hardswish,
    aten.hardsigmoid,
    aten.softplus,
    aten.mish,
    aten.threshold_backward,
    aten.addcmul,
    aten.addcdiv,
    aten.lerp,
    aten.masked_fill,
    aten.rsub,
    aten.mse_loss,
    aten.smooth_l1_loss,
    aten.nll_loss_forward,
    aten.tril,
    aten.triu,
    aten.stack,
    aten.roll,
    aten.logsumexp,
    aten.linalg_vector_norm,
    aten.upsample_nearest2d,
    aten.clamp_min,
    aten.clamp_max,
    aten.split_with_sizes,
)
# Left whole: a library has them, or their random numbers would be others than torch's own.
_WHOLE = (
    aten._scaled_dot_product_flash_attention_for_cpu,
    aten._scaled_dot_product_flash_attention_for_cpu_backward,
    aten.native_dropout,
    aten.bernoulli,
    aten.rand_like,
    aten.randn_like,
    aten.randint_like,
    aten.split_with_sizes,
    aten.baddbmm,
    aten.addmm,
    aten.bmm,
    aten.mm,
)


@cache
def decompositions() -> dict[Any, Any]:
    """torch's table for `aot_autograd`."""
    table: dict[Any, Any] = {
        **decomp.core_aten_decompositions(),
        **decomp.get_decompositions(list(_ALSO)),
    }
    whole = {overload for packet in _WHOLE for overload in _overloads(packet)}
    return {op: rule for op, rule in table.items() if op not in whole}


def _overloads(packet: Any) -> list[Any]:
    return [packet, *(getattr(packet, name) for name in packet.overloads())]
