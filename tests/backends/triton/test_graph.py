"""A call as a CUDA graph."""

import pytest
import torch

from tensorlang.backends.triton.graph import Graph
from tensorlang.errors import ShapeError, TargetError
from tests.backends.triton.test_compiling import two_kernels


class Replayed:
    """Counts its replays."""

    def __init__(self) -> None:
        self.count = 0

    def replay(self) -> None:
        self.count += 1


def test_only_a_call_on_a_gpu_is_captured() -> None:
    kernel = two_kernels()
    with pytest.raises(TargetError, match="no-graph"):
        kernel.graph(torch.zeros(3, 128), torch.zeros(128))
    with pytest.raises(TargetError, match="no-graph"):
        two_kernels("interpreter").graph()


def test_other_inputs_are_copied_to_those_captured() -> None:
    a, replayed = torch.zeros(3), Replayed()
    graph = Graph(replayed, (a,), "result")
    assert graph() == "result"
    assert graph(torch.ones(3)) == "result"
    assert a.tolist() == [1.0, 1.0, 1.0]
    assert graph(a) == "result"
    assert replayed.count == 3
    for other in (torch.ones(4), torch.ones(3).double()):
        with pytest.raises(ShapeError, match="not-as-captured"):
            graph(other)
    with pytest.raises(ShapeError, match="not-as-captured"):
        graph(a, a)
    assert replayed.count == 3


@pytest.mark.gpu
def test_a_graph_computes_what_the_call_does() -> None:
    kernel = two_kernels()
    a, b = torch.randn(3, 128, device="cuda"), torch.randn(128, device="cuda")
    graph = kernel.graph(a, b)
    torch.testing.assert_close(graph(), 2 * a + b)
    a.normal_()
    torch.testing.assert_close(graph(), 2 * a + b)
    other = torch.randn_like(a)
    torch.testing.assert_close(graph(other, b), 2 * other + b)
    out = torch.empty_like(a)
    into = kernel.graph(a, b, out=out)
    out.zero_()
    assert into() is out
    torch.testing.assert_close(out, 2 * a + b)


@pytest.mark.gpu
def test_a_cold_call_in_a_capture_is_refused_and_a_warm_one_is_captured() -> None:
    kernel = two_kernels()
    a, b = torch.randn(5, 128, device="cuda"), torch.randn(128, device="cuda")
    with (
        pytest.warns(UserWarning, match="Graph is empty"),
        pytest.raises(TargetError, match="cold-in-capture"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        kernel(a, b)
    assert kernel.warmup([(5, 128), (128,)]) == 2
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = kernel(a, b)
    graph.replay()
    torch.testing.assert_close(made, 2 * a + b)


@pytest.mark.gpu
def test_a_warm_call_computes_what_the_cold_one_does() -> None:
    kernel = two_kernels()
    for shape in ((5, 128), (5, 128), (7, 101), (7, 101), (5, 128)):
        base = torch.randn(shape[0] + 1, shape[1], device="cuda")
        b = torch.randn(shape[1] + 1, device="cuda")
        for a, c in ((base[1:], b[:-1]), (base[:-1], b[1:])):
            torch.testing.assert_close(kernel(a, c), 2 * a + c)
    beside = torch.cuda.Stream()
    with torch.cuda.stream(beside):
        made = kernel(base[1:], b[:-1])
    beside.synchronize()
    torch.testing.assert_close(made, 2 * base[1:] + b[:-1])
