"""torch's own sample inputs: the same values and gradients, or a clear refusal."""

import itertools

import pytest
import torch

from tensorlang import DefinitionError
from tensorlang.nn import functional as ours

pytest.importorskip("expecttest", reason="torch's sample inputs need it")
pytestmark = [pytest.mark.cc, pytest.mark.slow]

NAMES = (
    "softmax",
    "log_softmax",
    "nn.functional.relu",
    "nn.functional.silu",
    "nn.functional.gelu",
    "nn.functional.layer_norm",
    "nn.functional.rms_norm",
    "nn.functional.linear",
    "nn.functional.cross_entropy",
    "nn.functional.scaled_dot_product_attention",
)
SAMPLES = 2


@pytest.mark.parametrize("name", NAMES)
def test_samples(name: str) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    op = next(op for op in op_db if op.name == name and not op.variant_test_name)
    function = getattr(ours, name.rpartition(".")[2])
    samples = op.sample_inputs("cpu", torch.float32, requires_grad=True)
    for sample in itertools.islice(samples, SAMPLES):
        arguments = [sample.input, *sample.args]
        want = op.op(*arguments, **sample.kwargs)
        try:
            found = function(*arguments, **sample.kwargs)
        except DefinitionError as refused:
            if refused.code != "not-supported":
                raise
            continue
        torch.testing.assert_close(found, want, equal_nan=True, atol=1e-5, rtol=1e-4)
        given = [t for t in (*arguments, *sample.kwargs.values()) if isinstance(t, torch.Tensor)]
        wrt = [t for t in given if t.requires_grad]
        slopes = torch.rand_like(want)
        pair = [torch.autograd.grad(y, wrt, slopes, allow_unused=True) for y in (found, want)]
        for own, other in zip(*pair, strict=True):
            if other is not None:
                torch.testing.assert_close(own, other, equal_nan=True, atol=2e-5, rtol=1e-3)
