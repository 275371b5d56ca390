"""What a model may do around its mathematics: writes, views, dtypes, autocast, hooks, threads."""

import threading
import warnings
from importlib.metadata import entry_points

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tensorlang.errors import DefinitionError
from tensorlang.torch.compiler import FallbackWarning, compilation, running, tensorlang_backend
from tensorlang.torch.compiler.definitions import DEFINITIONS
from tests.torch.compiler.comparing import compare

pytestmark = pytest.mark.cc
REFERENCE = {"target": "reference"}


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(
        function, backend=tensorlang_backend, fullgraph=True, options={**REFERENCE, **options}
    )


def test_arguments_and_buffers_are_written_to():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x, y):
            self.seen.add_(x.detach().sum(0))
            y.mul_(2).add_(1)
            return x.exp() * self.seen

    compare(Counter(), torch.randn(4, 3), torch.arange(3), **REFERENCE)


def test_a_result_may_be_a_view_of_an_argument_or_of_another_result():
    def function(x):
        y = x * 2 + 1
        return y, y[:, 1:], x.t(), y.t().reshape(-1)

    x = torch.randn(3, 4)
    a, b, c, d = compiled(function)(x)
    torch.testing.assert_close((a, b, c, d), function(x))
    assert b.untyped_storage().data_ptr() == a.untyped_storage().data_ptr()
    assert c.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert d.untyped_storage().data_ptr() != a.untyped_storage().data_ptr()


def test_results_have_the_strides_that_torch_gives_them():
    def function(x):
        return (x * 2 + 1, x.transpose(0, 1).exp() + 1, (x + x).contiguous())

    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    found, want = compiled(function)(x), function(x)
    assert [t.stride() for t in found] == [t.stride() for t in want]
    torch.testing.assert_close(found, want)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_each_operator_rounds_to_its_dtype(dtype):
    def function(x, y):
        z = (x * y + 0.125).relu() / (y.abs() + 1)
        return z, z.sum(-1), (z > 0.5) | (z == 0), z.to(torch.float32) * 3

    compare(function, torch.randn(4, 8).to(dtype), torch.randn(8).to(dtype), **REFERENCE)


def test_integers_and_bools():
    def function(i, j, b):
        n = i // (j.abs() + 1) + i % 3 - (i << 0 if False else i & 7)
        return n, i / 2, n.sum(0), b ^ (i > j), (b & (j != 0)).any(1), n.to(torch.uint8), i.bool()

    i, j = torch.arange(-6, 6).reshape(3, 4), torch.arange(12).reshape(3, 4) % 5 - 2
    compare(function, i, j, i > 2, **REFERENCE)


def test_sizes_of_one_and_none():
    def function(x, y):
        return (x + y).sum(0) * 2, x * 2 + 1, (y - 1).exp() * x

    compare(function, torch.randn(1, 3), torch.randn(2, 1), **REFERENCE)
    compare(function, torch.randn(0, 3), torch.randn(1, 3), **REFERENCE)


def test_autocast():
    linear = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU())

    def function(x):
        with torch.autocast("cpu", torch.bfloat16):
            return linear(x).float()

    compare(function, torch.randn(4, 8), tolerance=3e-2, **REFERENCE)


def test_checkpointing_with_dropout():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def body(self, x):
            return nn.functional.dropout(self.b(self.a(x).tanh()), 0.3)

        def forward(self, x):
            return checkpoint(self.body, x, use_reentrant=False) + x

    layer = Layer()
    out = compiled(layer)(torch.randn(4, 8))
    out.sum().backward()
    kept = (out != 0).float().mean()
    assert kept > 0.5
    assert all(p.grad.isfinite().all() for p in layer.parameters())


def test_hooks_see_what_they_see_in_eager():
    layer = nn.Linear(4, 4)
    seen = []
    layer.weight.register_hook(lambda g: seen.append(g.shape))
    x = torch.randn(3, 4, requires_grad=True)
    x.register_hook(lambda g: g * 2)
    compiled(lambda t: torch.tanh(layer(t)) * 2)(x).sum().backward()
    got = x.grad.clone()
    x.grad = None
    (torch.tanh(layer(x)) * 2).sum().backward()
    torch.testing.assert_close(got, x.grad)
    assert seen == [layer.weight.shape] * 2


def test_random_numbers_are_those_of_torch():
    def function(x):
        return nn.functional.dropout(x * 2, 0.5) + torch.rand_like(x) + 1

    compare(function, torch.randn(4, 8), **REFERENCE)


def test_threads_and_several_models_in_one_process():
    layers = [nn.Sequential(nn.Linear(4, 4), nn.GELU()).eval() for _ in range(2)]
    x = torch.randn(3, 4)
    torch._dynamo.reset()
    fast = [torch.compile(m, backend=tensorlang_backend, options=REFERENCE) for m in layers]
    wrong = []

    def work(k):
        with torch.no_grad():
            for _ in range(4):
                wrong.extend([k] * (not torch.allclose(fast[k](x), layers[k](x), atol=1e-5)))

    threads = [threading.Thread(target=work, args=(k % 2,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_varying_batch_takes_two_graphs():
    layer = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Softmax(-1))
    calls = []

    def counting(module, inputs, **options):
        calls.append(module)
        return tensorlang_backend(module, inputs, options=REFERENCE)

    torch._dynamo.reset()
    fast = torch.compile(layer, backend=counting)
    for n in (5, 7, 3, 9, 12):
        x = torch.randn(n, 8)
        torch.testing.assert_close(fast(x), layer(x), rtol=1e-4, atol=1e-5)
    assert len(calls) <= 2


def test_dynamic_shapes_reach_views_and_joins():
    def function(x, y):
        b, t, d = x.shape
        z = x.reshape(b, t, 2, d // 2).transpose(1, 2).flatten(0, 1)
        return torch.cat((z, z * 2), -1).softmax(-1), (x[:, 1:] - x[:, :-1]).sum(1), y.expand(b, d)

    seen = compare(function, torch.randn(3, 5, 4), torch.randn(4), dynamic=True, **REFERENCE)
    assert not seen.fallbacks


def test_a_region_that_cannot_be_compiled_is_run_by_torch_and_says_so(monkeypatch):
    def fails(*_):
        raise RuntimeError("no kernel today")

    monkeypatch.setattr(compilation, "kernel_of", fails)
    x = torch.randn(4)
    with pytest.warns(FallbackWarning, match="no kernel today"):
        torch.testing.assert_close(compiled(lambda t: t.exp() * 2)(x), x.exp() * 2)


def test_a_kernel_that_fails_when_called_is_replaced_by_torch_once(monkeypatch):
    def fails(*_):
        raise RuntimeError("lost the device")

    fast, x = compiled(lambda t: t.exp() * 2), torch.randn(4)
    monkeypatch.setattr(running.Fused, "_run", fails)
    with pytest.warns(FallbackWarning, match="lost the device"):
        torch.testing.assert_close(fast(x), x.exp() * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(fast(x), x.exp() * 2)


def test_a_definition_that_fails_is_told_of_and_run_by_torch(monkeypatch):
    def fails(*_):
        raise KeyError("no such thing")

    monkeypatch.setitem(DEFINITIONS, torch.ops.aten.exp.default, fails)
    x = torch.randn(4)
    with pytest.warns(FallbackWarning, match="KeyError: 'no such thing'"):
        torch.testing.assert_close(compiled(lambda t: t.exp() * 2)(x), x.exp() * 2)


def test_a_graph_that_cannot_be_divided_is_run_by_torch(monkeypatch):
    def fails(*_):
        raise ValueError("no regions today")

    monkeypatch.setattr(compilation, "choose_regions", fails)
    x = torch.randn(4)
    with pytest.warns(FallbackWarning, match="no regions today"):
        torch.testing.assert_close(compiled(lambda t: t.exp() * 2)(x), x.exp() * 2)


def test_a_number_has_no_dimension_to_reduce_or_to_flip():
    def function(x, y):
        return x.flip(-1) * 2, x.sum(0) * y, x.var(0, correction=0) + 1, x.softmax(0) * y

    assert not compare(function, torch.tensor(1.5), torch.tensor(2.0), **REFERENCE).fallbacks


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: (x * 2).select(0, i.item()) + 1,
        lambda x, i: x.sin() + i.item(),
        lambda x, i: torch.full((3, 4), x[0, 0].item()) * x + 1,
        lambda x, i: x.sin() * torch.tensor(0.5, dtype=x.dtype).item() + 1,
    ],
    ids=["place", "term", "filled", "constant"],
)
def test_a_number_that_only_a_run_tells_is_read_where_it_is_used(function):
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        seen = compare(function, torch.randn(3, 4), torch.tensor(1), grad=False, **REFERENCE)
    assert not seen.fallbacks
    assert seen.regions == 1


def test_an_extent_that_only_a_run_tells_is_left_to_torch():
    def function(x, i):
        n = i.item()
        torch._check(n >= 0)
        torch._check(n < 3)
        return x.sin().narrow(0, 0, n) * 2

    with torch._dynamo.config.patch(capture_scalar_outputs=True), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        seen = compare(function, torch.randn(3, 4), torch.tensor(1), grad=False, **REFERENCE)
    assert seen.fallbacks == [f"{name}: it reads a number that only a run tells"
                              for name in ("slice", "mul")]  # fmt: skip


def test_what_is_written_into_a_strided_part_is_no_operator_of_torchs():
    def function(x):
        y = x * 2
        y[..., :1] = 0.5
        y[1].copy_(x[0].double())
        return y.sin()

    assert not compare(function, torch.randn(3, 4), **REFERENCE).fallbacks


def test_frozen_models_fold_batch_norms_and_follow_their_weights():
    layer = nn.Sequential(
        nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3)
    ).eval()
    layer[1].running_mean.normal_()
    x = torch.randn(2, 3, 8, 8)
    fast = compiled(layer, freeze=True)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), layer(x), rtol=1e-4, atol=1e-5)
        layer[0].weight.mul_(2)
        torch.testing.assert_close(fast(x), layer(x), rtol=1e-4, atol=1e-5)


def test_unknown_options_are_refused():
    with pytest.raises(DefinitionError, match="freez"):
        tensorlang_backend(None, [], options={"freez": True})


def test_the_backend_is_found_by_its_name():
    found = [e for e in entry_points(group="torch_dynamo_backends") if e.name == "tensorlang"]
    if not found:
        pytest.skip("the package is not installed")
    assert found[0].load() is tensorlang_backend
