"""Models compiled by the backend, forward and backward, beside eager torch."""

import pytest
import torch

from tests.torch.compiler.comparing import compare
from tests.torch.compiler.models import MODELS

pytestmark = pytest.mark.cc
# Convolutions, sorts and scatters of gradients are the libraries' and torch's.
WHOLE = ("mlp", "gpt2", "llama", "vit", "lstm")


def made(name):
    torch.manual_seed(0)
    model, shapes = MODELS[name]
    return model(), [torch.randn(shape) for shape in shapes]


@pytest.mark.parametrize("name", ["mlp", "llama"])
def test_models_as_c_are_those_of_eager_torch(name):
    model, inputs = made(name)
    seen = compare(model, *inputs)
    assert seen.regions
    assert not seen.fallbacks


@pytest.mark.parametrize("name", [n for n in MODELS if n not in ("mlp", "llama", "resnet18")])
def test_definitions_of_models_are_those_of_eager_torch(name):
    model, inputs = made(name)
    seen = compare(model, *inputs, target="reference")
    assert seen.regions
    if name in WHOLE:
        assert not seen.fallbacks
