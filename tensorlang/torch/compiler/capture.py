"""The backend that torch.compile calls: from a graph of Python's to functional graphs of ATen."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from tensorlang.torch.compiler.compilation import compile_graph
from tensorlang.torch.compiler.decompositions import decompositions
from tensorlang.torch.compiler.nodes import GraphModule
from tensorlang.torch.compiler.options import Options

common: Any = import_module("torch._dynamo.backends.common")
partitioners: Any = import_module("torch._functorch.partitioners")


def tensorlang_backend(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    **_: Any,
) -> Callable[..., Any]:
    """What `torch.compile(model, backend="tensorlang", options={...})` calls for each graph."""
    chosen = Options.of(options)

    def compiler(role: str) -> Callable[..., Any]:
        return partial(_compile, options=chosen, role=role)

    captured = common.aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions(),
        partition_fn=partitioners.min_cut_rematerialization_partition,
    )
    return captured(module, inputs)


def _compile(
    module: GraphModule, inputs: Sequence[Any], *, options: Options, role: str
) -> Callable[..., Any]:
    run = compile_graph(module, options, role)

    def boxed(arguments: list[Any]) -> Any:
        return run(arguments)

    boxed._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return boxed
