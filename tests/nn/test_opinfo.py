"""torch's own sample inputs: the same values and gradients, or a clear refusal.

Two samples of each operator in f32, without those of images and volumes, which take long to compile
and have tests of their own; with --full all of them, in every float dtype.  A table of what passed
is printed at the end.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tensorlang import DefinitionError
from tensorlang.nn import functional as ours

pytest.importorskip("expecttest", reason="torch's sample inputs need it")
pytestmark = [pytest.mark.cc, pytest.mark.slow]

REDUCTIONS = (
    "all", "amax", "amin", "any", "argmax", "argmin", "cumprod", "cumsum", "logsumexp", "mean",
    "prod", "sum", "topk",
)  # fmt: skip
NAMES = (
    *REDUCTIONS,
    "bmm",
    "softmax",
    "log_softmax",
    *(
        f"nn.functional.{name}"
        for name in (
            *("relu", "silu", "gelu", "layer_norm", "rms_norm", "linear", "cross_entropy"),
            *("scaled_dot_product_attention", "batch_norm", "group_norm", "instance_norm"),
            *(f"{kind}{rank}d" for kind in ("conv", "conv_transpose") for rank in (1, 2, 3)),
            *(f"{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)),
            *(f"adaptive_{kind}_pool2d" for kind in ("max", "avg")),
        )
    ),
)
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
SAMPLES = 2
# Beside the steps of the dtype: sums of many terms, each rounded, in another order than torch's.
TOLERANCE = {
    torch.float64: {"atol": 1e-10, "rtol": 1e-8},
    torch.float32: {"atol": 2e-5, "rtol": 1e-3},
    torch.float16: {"atol": 1e-2, "rtol": 1e-2},
    torch.bfloat16: {"atol": 8e-2, "rtol": 8e-2},
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.parametrize("name", NAMES)
def test_samples(
    name: str,
    dtype: torch.dtype,
    request: pytest.FixtureRequest,
    record_property: Callable[..., None],
) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    full = request.config.getoption("--full")
    if not full and dtype is not torch.float32:
        pytest.skip("other dtypes than f32 are for --full")
    if not full and name.endswith(("2d", "3d", "attention")):
        pytest.skip("what takes long to compile is for --full")
    op = next(op for op in op_db if op.name == name and not op.variant_test_name)
    if dtype not in op.supported_dtypes("cpu"):
        pytest.skip(f"torch has no {name} of {dtype}")
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    samples = op.sample_inputs("cpu", dtype, requires_grad=differentiable)
    outcomes = [
        _outcome(op, name, sample)
        for sample in itertools.islice(samples, None if full else SAMPLES)
    ]
    refused = outcomes.count("refused")
    text = f"{len(outcomes) - refused}, {refused} of {len(outcomes)}"
    record_property("operator", (name, request.node.callspec.id.split("-")[-1], text))


def _outcome(op: Any, name: str, sample: Any) -> str:
    """Compares; "refused" where ours says that it takes no such arguments."""
    function = getattr(ours, name.rpartition(".")[2])
    arguments = [sample.input, *sample.args]
    torch.manual_seed(0)
    want = op.op(*_copies(arguments), **_copies(sample.kwargs))
    try:
        found = function(*_copies(arguments), **_copies(sample.kwargs))
    except DefinitionError as refused:
        if refused.code != "not-supported":
            raise
        return "refused"
    found, want = (y if isinstance(y, tuple) else (y,) for y in (found, want))
    tolerance = TOLERANCE.get(sample.input.dtype, {})
    if name != "topk":
        torch.testing.assert_close(found, tuple(want), equal_nan=True, **tolerance)
    else:
        torch.testing.assert_close(found[0], want[0], equal_nan=True, **tolerance)
        if not torch.equal(found[1], want[1]):
            # Of equal ones torch takes any, and its gradient goes there.
            return "passed"
    given = [t for t in (*arguments, *sample.kwargs.values()) if isinstance(t, torch.Tensor)]
    wrt = [t for t in given if t.requires_grad]
    if wrt and want[0].requires_grad:
        slopes = torch.rand_like(want[0])
        pair = [torch.autograd.grad(y[0], wrt, slopes, allow_unused=True) for y in (found, want)]
        for at, (own, other) in enumerate(zip(*pair, strict=True)):
            if other is None or own is None:
                assert other is None or not other.any()
            elif not torch.allclose(own, other, equal_nan=True, **tolerance):
                exact = _exact_gradient(op, arguments, sample.kwargs, slopes, at)
                torch.testing.assert_close(own.double(), exact, equal_nan=True, **tolerance)
    return "passed"


def _exact_gradient(op: Any, arguments: Any, kwargs: Any, slopes: Any, at: int) -> Any:
    """In f64, where torch's own is off, as that of a norm of one element."""

    def wide(values: list[Any]) -> list[Any]:
        return [
            v.detach().double().requires_grad_(v.requires_grad)
            if isinstance(v, torch.Tensor) and v.is_floating_point()
            else v
            for v in values
        ]

    given, named = wide(arguments), dict(zip(kwargs, wide([*kwargs.values()]), strict=True))
    made = op.op(*given, **named)
    made = made[0] if isinstance(made, tuple) else made
    tensors = [t for t in (*given, *named.values()) if isinstance(t, torch.Tensor)]
    wrt = [t for t in tensors if t.requires_grad]
    return torch.autograd.grad(made, wrt, slopes.double(), allow_unused=True)[at]


def _copies(values: Any) -> Any:
    """Running statistics are changed in place: each call has its own."""
    if isinstance(values, dict):
        return dict(zip(values, _copies(list(values.values())), strict=True))
    return [v.clone() if isinstance(v, torch.Tensor) and not v.requires_grad else v for v in values]
