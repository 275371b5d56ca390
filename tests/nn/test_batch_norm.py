"""Norms over batches, groups and instances are torch's, running statistics included."""

import pytest
import torch
from torch.nn import functional as reference

from tensorlang import DefinitionError
from tensorlang.nn import functional as ours
from tests.nn.checks import check, draw

pytestmark = pytest.mark.cc


def affine(channels):
    return draw(channels, seed=1), draw(channels, seed=2)


@pytest.mark.parametrize("channels_last", [False, True])
def test_batch_norm_in_training(channels_last):
    x = draw(4, 3, 5, 2)
    if channels_last:
        x = x.detach().to(memory_format=torch.channels_last).requires_grad_()
    kept = [[torch.ones(3, dtype=torch.float64) for _ in range(2)] for _ in range(2)]

    def call(module, running):
        return lambda x, w, b: module.batch_norm(x, *running, w, b, True, 0.3)

    check(call(ours, kept[0]), call(reference, kept[1]), x, *affine(3))
    torch.testing.assert_close(*kept)


def test_batch_norm_with_what_was_seen():
    mean, var = torch.randn(3, dtype=torch.float64), torch.rand(3, dtype=torch.float64)

    def call(module):
        return lambda x, w, b: module.batch_norm(x, mean, var, w, b)

    check(call(ours), call(reference), draw(4, 3, 5), *affine(3))


def test_group_and_instance_norm():
    x = draw(4, 6, 5)

    def groups(module):
        return lambda x, w, b: module.group_norm(x, 3, w, b)

    check(groups(ours), groups(reference), x, *affine(6))
    kept = [[torch.ones(6, dtype=torch.float64) for _ in range(2)] for _ in range(2)]

    def instances(module, running):
        return lambda x, w, b: module.instance_norm(x, *running, w, b)

    check(instances(ours, kept[0]), instances(reference, kept[1]), x, *affine(6))
    torch.testing.assert_close(*kept)


def test_what_has_no_statistics_is_refused():
    x = draw(2, 4, 3)
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.batch_norm(x, None, None)
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.group_norm(x, 3)
    with pytest.raises(DefinitionError, match="not-supported"):
        ours.batch_norm(x[0, 0], x[0, 0], x[0, 0])
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        ours.batch_norm(x[:1, :, :1], None, None, training=True)
