"""The backend that torch.compile calls: from a graph of Python's to functional graphs of ATen."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from tensorlang.torch.compiler.compilation import compile_graph
from tensorlang.torch.compiler.decompositions import decompositions
from tensorlang.torch.compiler.nodes import GraphModule
from tensorlang.torch.compiler.options import Options
from tensorlang.torch.libraries import torch

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

    constants = [k for k, x in enumerate(inputs) if isinstance(x, torch.nn.Parameter)]

    def compiler(role: str) -> Callable[..., Any]:
        frozen = constants if chosen.freeze and role == "inference" else []
        return partial(_compile, options=chosen, role=role, frozen=(len(inputs), frozen))

    captured = common.aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions(),
        partition_fn=partitioners.min_cut_rematerialization_partition,
    )
    return captured(module, inputs)


def _compile(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    options: Options,
    role: str,
    frozen: tuple[int, Sequence[int]],
) -> Callable[..., Any]:
    """Args: frozen: of how many arguments of the model which are constants."""
    count, constants = frozen
    # Where torch has made others of the arguments, none is known to be a parameter.
    run = compile_graph(module, options, role, constants if count == len(inputs) else ())

    def boxed(arguments: list[Any]) -> Any:
        return run(arguments)

    boxed._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return boxed
