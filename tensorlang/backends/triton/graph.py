"""Calls captured as a CUDA graph: launched again as one, with the memory of the first time."""

from collections.abc import Callable, Sequence
from typing import Any

from tensorlang.backends.triton.libraries import torch
from tensorlang.errors import ShapeError


class Graph:
    """What a call did, ready to be done again.

    Args:
        inputs: the tensors that it reads; write to them, or pass others to be copied there.
        outputs: what the call returned; every replay writes to the same memory.
    """

    def __init__(self, graph: Any, inputs: tuple[Any, ...], outputs: Any) -> None:
        self.inputs, self.outputs, self._graph = inputs, outputs, graph

    def __call__(self, *inputs: Any) -> Any:
        """Do it again, after copying `inputs` (none, or all) to those captured; the outputs.

        Raises: ShapeError: not-as-captured.
        """
        if inputs:
            self._copy(inputs)
        self._graph.replay()
        return self.outputs

    def _copy(self, inputs: Sequence[Any]) -> None:
        wanted = [(t.dtype, tuple(t.shape), t.device) for t in self.inputs]
        given = [(t.dtype, tuple(t.shape), t.device) for t in inputs]
        if wanted != given:
            raise ShapeError(
                "not-as-captured",
                "a graph is called with arrays of other dtypes, shapes or devices",
                why=f"it was captured with {_listed(self.inputs)}, and is given {_listed(inputs)}",
                fix="capture another graph for them with kernel.graph(...)",
            )
        for target, source in zip(self.inputs, inputs, strict=True):
            if target is not source:
                target.copy_(source)


def _listed(tensors: Sequence[Any]) -> str:
    return ", ".join(f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}" for t in tensors)


def capture(call: Callable[..., Any], inputs: tuple[Any, ...]) -> Graph:
    """The graph of `call(*inputs)`; it is called once before, so that everything is compiled."""
    with torch.cuda.device(inputs[0].device), torch.no_grad():
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            call(*inputs)
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = call(*inputs)
    return Graph(graph, inputs, outputs)
