"""What `explain` and `warmup` say and leave as it was."""

import pytest
import torch
from torch import nn

import tensorlang
from tensorlang.torch.compiler.report import listening

pytestmark = pytest.mark.cc
OPTIONS = {"target": "reference"}


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(64), nn.Linear(64, 64)

    def forward(self, x):
        return torch.softmax(self.linear(self.norm(x)), -1).sort(-1).values


def test_explanation_names_regions_libraries_and_what_is_left_to_torch():
    layer = Layer()
    x = torch.randn(32, 64)
    told = tensorlang.explain(layer, x, options=OPTIONS)
    assert [g.role for g in told.graphs] == ["forward", "backward"]
    assert told.graphs[0].library == {"addmm": 1}
    assert all("sort" in f or "scatter" in f for f in told.fallbacks)
    assert told.fallbacks
    assert 0 < told.after < told.before
    assert told.kernels >= len(told.regions)
    assert 0 < told.launch_share() < 1
    text = str(told)
    assert "forward: " in text
    assert "libraries: 1 addmm" in text
    assert "torch: sort: aten.sort" in text
    assert "bytes moved" in text


def test_explain_leaves_buffers_gradients_and_random_numbers_as_they_were():
    layer = Layer()
    before = {name: b.clone() for name, b in layer.named_buffers()}
    layer.linear.weight.grad = torch.ones(64, 64)
    torch.manual_seed(5)
    want = torch.rand(3)
    torch.manual_seed(5)
    tensorlang.explain(layer, torch.randn(8, 64, generator=torch.Generator()), options=OPTIONS)
    assert torch.equal(torch.rand(3), want)
    assert torch.equal(layer.linear.weight.grad, torch.ones(64, 64))
    assert layer.linear.bias.grad is None
    for name, b in layer.named_buffers():
        assert torch.equal(b, before[name]), name


def test_after_warmup_nothing_is_compiled():
    layer, x = Layer(), torch.randn(8, 64)
    compiled = tensorlang.warmup(layer, x, options=OPTIONS)
    seen = []
    with listening(seen.append):
        compiled(x).sum().backward()
    assert not seen
