"""The backend on a GPU: models, CUDA graphs, streams; and as Triton text without one."""

import copy

import pytest
import torch

from tensorlang.torch.compiler import tensorlang_backend
from tests.torch.compiler.comparing import compare
from tests.torch.compiler.models import MODELS


def made(name, device="cpu"):
    torch.manual_seed(0)
    model, shapes = MODELS[name]
    return model().to(device), [torch.randn(shape, device=device) for shape in shapes]


def test_regions_as_triton_are_those_of_eager_torch():
    """In Triton's interpreter."""
    model, inputs = made("mlp")
    seen = compare(model, *inputs, target="triton", grad=False)
    assert seen.regions
    assert not seen.fallbacks


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(MODELS))
def test_models_on_a_gpu_are_those_of_eager_torch(name):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    model, inputs = made(name, "cuda")
    other = copy.deepcopy(model)
    torch._dynamo.reset()
    fast = torch.compile(other, backend=tensorlang_backend, fullgraph=True)
    want, found = model(*inputs), fast(*inputs)
    torch.testing.assert_close(found, want, rtol=1e-3, atol=1e-3)
    want.sum().backward()
    found.sum().backward()
    for a, b in zip(other.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-2, atol=1e-2)


@pytest.mark.gpu
def test_a_compiled_block_can_be_captured_in_a_cuda_graph():
    model, (x,) = made("llama", "cuda")
    torch._dynamo.reset()
    fast = torch.compile(model.eval(), backend=tensorlang_backend)
    with torch.no_grad():
        want = model(x)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                fast(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made_ = fast(x)
        graph.replay()
    torch.testing.assert_close(made_, want, rtol=1e-3, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize(("batch", "dynamic"), [(1, False), (3, False), (1, True)])
def test_a_step_of_decoding_follows_its_cache_call_after_call(batch, dynamic):
    """A row of 16 bits: products, norms, gates and attention are kernels of ours."""
    from benchmarks.cases.model import Layer, Shape

    shape = Shape(512, 8, 2, 1024, 1, 100)
    torch.manual_seed(0)
    layer = Layer(shape).to("cuda", torch.bfloat16).eval()
    torch._dynamo.reset()
    fast = torch.compile(layer, backend=tensorlang_backend, fullgraph=True, dynamic=dynamic)

    def given(scale, keys):
        x = torch.randn(batch, 1, 512)
        turns = torch.randn(2, 1, 64).sin()
        past = torch.randn(2, batch, 2, keys, 64)
        return [(t * scale).to("cuda", torch.bfloat16) for t in (x, *turns, *past)]

    with torch.no_grad():
        for step, scale in enumerate((1.0, 0.5, 2.0)):
            inputs = given(scale, 99 + step * dynamic)
            torch.testing.assert_close(fast(*inputs), layer(*inputs), rtol=3e-2, atol=3e-2)


@pytest.mark.gpu
def test_bf16_block_on_a_stream_of_its_own():
    model, (x,) = made("llama", "cuda")
    model, x = model.to(torch.bfloat16).eval(), x.to(torch.bfloat16)
    torch._dynamo.reset()
    fast = torch.compile(model, backend=tensorlang_backend)
    with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
        found = fast(x)
        torch.cuda.synchronize()
        torch.testing.assert_close(found, model(x), rtol=5e-2, atol=5e-2)
