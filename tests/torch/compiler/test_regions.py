"""Where nodes are computed: with what reads them, where that moves fewer bytes."""

import torch
from torch import nn
from torch.nn import functional

from tests.torch.compiler.comparing import compare


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
