"""Where nodes are computed: with what reads them, where that moves fewer bytes."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import tensorlang
from tensorlang.torch.compiler.explaining import kernels_of, moved_by
from tests.torch.compiler.comparing import compare
from tests.torch.compiler.models import LlamaBlock


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(32, 32, bias=False) for _ in range(3))

    def forward(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x))


def test_what_a_gradient_needs_of_an_activation_is_found_where_it_is_used():
    """Its parts share what they are made of, so that none of them could go alone."""
    seen = compare(Gated(), torch.randn(256, 32), target="reference")
    forward, backward = seen.graphs
    assert len(forward.regions) == len(backward.regions) == 1
    (region,) = backward.regions
    # Three tensors are read, and the gradients of both products written.
    assert region.after == 5 * 256 * 32 * 4


@pytest.mark.parametrize("is_training", [False, True])
def test_a_region_of_a_llama_layer_is_one_kernel_and_keeps_nothing_in_memory(is_training):
    """Norm; rope of queries and keys with their transposes; a sum and its norm; the gate.

    What a gradient needs of a norm comes from the norm's kernel.
    """
    torch.manual_seed(0)
    model, x = LlamaBlock().train(is_training).requires_grad_(is_training), torch.randn(1, 8, 32)
    told = tensorlang.explain(model, x, options={"target": "triton", "products": "library"})
    assert not told.fallbacks
    regions = told.graphs[0].regions
    assert [kernels_of(region) for region in regions] == [1] * 4
    assert [moved_by(region) for region in regions] == [region.after for region in regions]
    # Five reads and three writes of a norm's parts, and as many of rope's: half is the bound.
    assert told.after < 0.8 * told.before
    if is_training:
        assert len(told.graphs[1].regions) == 4
        assert told.kernels == 8
