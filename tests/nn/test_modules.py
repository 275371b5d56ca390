"""Modules of torch.nn and ours load each other's weights and give the same values."""

import pytest
import torch

from tensorlang import DefinitionError, nn

pytestmark = pytest.mark.cc
X = torch.randn(2, 6, 5, 4, generator=torch.Generator().manual_seed(0))
ROWS = X.flatten(0, 2)
LINES, VOLUMES = X.flatten(2), X.unflatten(3, (2, 2))
CASES = {
    "Linear": ((4, 3), ROWS),
    "Conv1d": ((6, 4, 3), LINES),
    "Conv3d": ((6, 4, 2), VOLUMES),
    "ConvTranspose2d": ((6, 4, 3), X),
    "ConvTranspose3d": ((6, 4, 2), VOLUMES),
    "BatchNorm1d": ((6,), LINES),
    "BatchNorm3d": ((6,), VOLUMES),
    "MaxPool1d": ((2,), LINES),
    "MaxPool3d": ((2,), VOLUMES),
    "AvgPool1d": ((2,), LINES),
    "AvgPool3d": ((2,), VOLUMES),
    "AdaptiveAvgPool2d": ((3,), X),
    "Conv2d": ((6, 4, 3), X),
    "BatchNorm2d": ((6,), X),
    "LayerNorm": ((4,), ROWS),
    "RMSNorm": ((4,), ROWS),
    "GroupNorm": ((3, 6), X),
    "Embedding": ((7, 3), torch.tensor([[1, 0], [6, 1]])),
    "ReLU": ((), ROWS),
    "SiLU": ((), ROWS),
    "GELU": ((), ROWS),
    "Softmax": ((-1,), ROWS),
    "MaxPool2d": ((2,), X),
    "AvgPool2d": ((2,), X),
}


@pytest.mark.parametrize("name", CASES)
def test_a_state_dict_of_torch_loads(name):
    arguments, x = CASES[name]
    theirs, ours = (getattr(m, name)(*arguments) for m in (torch.nn, nn))
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
    ours.eval(), theirs.eval()
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-5)


def test_loss_and_dropout():
    target = torch.tensor([1, 0, -100])
    x = torch.randn(3, 4)
    theirs, ours = (m.CrossEntropyLoss(label_smoothing=0.1) for m in (torch.nn, nn))
    torch.testing.assert_close(ours(x, target), theirs(x, target))
    assert torch.equal(nn.Dropout(0.5).eval()(x), x)
    assert set(nn.Dropout(0.5)(torch.ones(100)).tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_of_several_heads(batch_first):
    theirs, ours = (m.MultiheadAttention(8, 2, batch_first=batch_first) for m in (torch.nn, nn))
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(3, 3, 8)
    padding = torch.tensor([[False, False, True], [False] * 3, [False, True, False]])
    given = {"key_padding_mask": padding, "need_weights": False}
    torch.testing.assert_close(ours(x, x, x, **given)[0], theirs(x, x, x, **given)[0])
    with pytest.raises(DefinitionError, match="not-supported"):
        ours(x, x, x, need_weights=True)


def test_what_has_no_definition_is_refused():
    with pytest.raises(DefinitionError, match="not-supported"):
        nn.Conv2d(6, 4, 3, padding=1, padding_mode="reflect")(X)
    with pytest.raises(DefinitionError, match="not-supported"):
        nn.Embedding(3, 2, max_norm=1.0)(torch.tensor([0]))
    assert not hasattr(nn, "Bilinear")
