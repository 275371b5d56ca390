"""A model compiled beside the same model run by torch: results, gradients and buffers."""

import copy
from dataclasses import dataclass, field

import torch

from tensorlang.torch.compiler import tensorlang_backend
from tensorlang.torch.compiler.report import GraphReport, listening


@dataclass
class Compared:
    """What the backend said of the graphs that it compiled."""

    graphs: list[GraphReport] = field(default_factory=list)

    @property
    def fallbacks(self) -> list[str]:
        failed = [r.failure for g in self.graphs for r in g.regions if r.failure]
        return failed + [f"{name}: {why}" for g in self.graphs for name, why in g.torch.items()]

    @property
    def regions(self) -> int:
        return sum(len(g.regions) for g in self.graphs)


def compare(
    model, *inputs, target="c", tolerance=1e-4, dynamic=False, grad=True, seed=0, **options
) -> Compared:
    """Run forward and backward both ways; every result, gradient and buffer is compared."""
    torch._dynamo.reset()
    other = copy.deepcopy(model)
    compiled = torch.compile(
        other,
        backend=tensorlang_backend,
        fullgraph=True,
        dynamic=dynamic,
        options={"target": target, **options},
    )
    seen = Compared()
    with listening(seen.graphs.append):
        ours = _run(compiled, inputs, grad, seed)
    theirs = _run(model, inputs, grad, seed)
    close = {"rtol": tolerance, "atol": tolerance, "equal_nan": True}
    torch.testing.assert_close(ours, theirs, **close)
    if isinstance(model, torch.nn.Module):
        pairs = zip(other.named_parameters(), model.named_parameters(), strict=True)
        for (name, a), (_, b) in pairs:
            torch.testing.assert_close(a.grad, b.grad, **close, msg=lambda m, n=name: f"{n}: {m}")
        torch.testing.assert_close(list(other.buffers()), list(model.buffers()), **close)
    return seen


def _run(model, inputs, grad, seed):
    """The results, the arguments as they are afterwards, and the gradients."""
    torch.manual_seed(seed)
    given = [x.detach().clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    floats = [x for x in given if isinstance(x, torch.Tensor) and x.is_floating_point()]
    if grad:
        for x in floats:
            x.requires_grad_()
    made = model(*given)
    results = [r for r in torch.utils._pytree.tree_leaves(made) if isinstance(r, torch.Tensor)]
    with_grad = [r for r in results if r.requires_grad]
    if grad and with_grad:
        generator = torch.Generator().manual_seed(1)
        torch.autograd.backward(
            with_grad,
            [torch.randn(r.shape, generator=generator).to(r.dtype) for r in with_grad],
        )
    return [r.detach() for r in results], given, [x.grad for x in floats]
