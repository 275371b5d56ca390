"""A LLaMA-8B-shaped layer: prefill, decode and a training step through torch.compile.

The model is plain torch, the same for every contender; ours is `backend="tensorlang"`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.case import Call, Case, Contender, Place
from tensorlang.torch.compiler import tensorlang_backend


@dataclass(frozen=True)
class Shape:
    """Widths of a layer; the last is how many keys a decoding token sees."""

    width: int = 4096
    heads: int = 32
    groups: int = 8
    hidden: int = 14336
    prompt: int = 2048
    seen: int = 2048


DRY = Shape(32, 4, 2, 48, 8, 8)
LAYERS = 32


class Layer(nn.Module):
    """Grouped-query attention with rotary embedding, and swiglu, each behind an rms_norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.size = shape.width // shape.heads
        narrow = shape.groups * self.size
        self.norm1, self.norm2 = nn.RMSNorm(shape.width), nn.RMSNorm(shape.width)
        self.q = nn.Linear(shape.width, shape.width, bias=False)
        self.k = nn.Linear(shape.width, narrow, bias=False)
        self.v = nn.Linear(shape.width, narrow, bias=False)
        self.o = nn.Linear(shape.width, shape.width, bias=False)
        self.gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: Any, cos: Any, sin: Any, keys: Any = None, values: Any = None) -> Any:
        b, t, width = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, t, -1, self.size).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = _turned(q, cos, sin), _turned(k, cos, sin)
        if keys is not None:
            k, v = torch.cat((keys, k), 2), torch.cat((values, v), 2)
        seen = functional.scaled_dot_product_attention(
            q, k, v, is_causal=keys is None, enable_gqa=True
        )
        x = x + self.o(seen.transpose(1, 2).reshape(b, t, width))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def _turned(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def cases(place: Place) -> list[Case]:
    shape = DRY if place.dry else Shape()
    return [
        _inference(place, "prefill", shape, 1, shape.prompt, fused=True),
        _inference(place, "decode B1", shape, 1, 1, cached=True),
        _inference(place, "decode B32", shape, 2 if place.dry else 32, 1, cached=True),
        _training(place, shape),
        _compile_time(place, shape),
        _overhead(place),
    ]


def _contenders(
    place: Place, make: Callable[[Any], Callable[..., Any]], *, fused: bool = False
) -> tuple[Contender, ...]:
    """The same function under each compiler; `make` takes what compiles it.

    Args: fused: also ours with a gate's products in the kernel of what is made of them.
    """

    def under(impl: str, compiler: Callable[..., Any]) -> Contender:
        def prepare(inputs: Sequence[Any]) -> Call:
            function = make(compiler)
            return lambda: function(*inputs)

        return Contender(impl, prepare)

    options = {"target": "reference"} if place.dry else {}
    peers = () if place.dry else _peers(under)
    joined = under("tensorlang fused", lambda m: _ours(m, {**options, "products": "fused"}))
    return (
        under("tensorlang", lambda m: _ours(m, options)),
        *(() if place.dry else (under("tensorlang frozen", lambda m: _ours(m, {"freeze": True})),)),
        *((joined,) if fused else ()),
        under("eager", lambda m: m),
        *peers,
    )


def _peers(under: Callable[..., Contender]) -> tuple[Contender, ...]:
    """torch.compile in its default mode, and where it tries kernels out."""
    tuned = "max-autotune-no-cudagraphs"
    return (
        under("compile", lambda m: torch.compile(m, dynamic=False)),
        replace(
            under("max-autotune", lambda m: torch.compile(m, dynamic=False, mode=tuned)),
            alone=True,
        ),
    )


def _ours(model: Any, options: dict[str, Any]) -> Any:
    return torch.compile(model, backend=tensorlang_backend, dynamic=False, options=options)


def _dtype(place: Place) -> Any:
    return torch.float32 if place.dry else torch.bfloat16


@cache
def _layers(place: Place, shape: Shape, count: int = 1) -> nn.ModuleList:
    torch.manual_seed(place.seed)
    return nn.ModuleList(Layer(shape) for _ in range(count)).to(place.device, _dtype(place))


def _inputs(
    place: Place, shape: Shape, batch: int, tokens: int, cached: bool
) -> Callable[[Place], Sequence[Any]]:
    size, dtype = shape.width // shape.heads, _dtype(place)

    def made(at: Place) -> Sequence[Any]:
        x = at.randn(batch, tokens, shape.width, dtype=dtype)
        angles = at.randn(tokens, size, dtype=torch.float32)
        given = [x, angles.cos().to(dtype), angles.sin().to(dtype)]
        if cached:
            past = batch, shape.groups, shape.seen - 1, size
            given += [at.randn(*past, dtype=dtype), at.randn(*past, dtype=dtype)]
        return given

    return made


def _inference(
    place: Place,
    name: str,
    shape: Shape,
    batch: int,
    tokens: int,
    *,
    cached: bool = False,
    fused: bool = False,
) -> Case:
    def make(compiler: Callable[..., Any]) -> Callable[..., Any]:
        function = compiler(_layers(place, shape)[0])

        def call(*inputs: Any) -> Any:
            with torch.no_grad():
                return function(*inputs)

        return call

    def reference(*inputs: Any) -> Any:
        with torch.no_grad():
            return _layers(place, shape)[0](*inputs)

    return Case(
        name=f"llama {name}",
        inputs=_inputs(place, shape, batch, tokens, cached),
        reference=reference,
        contenders=_contenders(place, make, fused=fused),
        modes=("device", "host", "graph"),
        tolerance=2e-2,
        quick=True,
    )


def _training(place: Place, shape: Shape) -> Case:
    """Forward and backward; the gradient of the input is compared."""

    def step(function: Callable[..., Any], *inputs: Any) -> Any:
        x = inputs[0].detach().requires_grad_()
        made = function(x, *inputs[1:])
        wanted = [x, *_layers(place, shape)[0].parameters()]
        return torch.autograd.grad(made, wanted, torch.ones_like(made))[0]

    def make(compiler: Callable[..., Any]) -> Callable[..., Any]:
        function = compiler(_layers(place, shape)[0])
        return lambda *inputs: step(function, *inputs)

    # Nothing is a constant while it is trained.
    trained = tuple(c for c in _contenders(place, make) if c.impl != "tensorlang frozen")
    return Case(
        name="llama train",
        inputs=_inputs(place, shape, 1, shape.prompt, cached=False),
        reference=lambda *inputs: step(_layers(place, shape)[0], *inputs),
        contenders=trained,
        modes=("device", "host"),
        tolerance=3e-2,
        quick=True,
    )


def _compile_time(place: Place, shape: Shape) -> Case:
    """From nothing to the first result of 32 layers, caches on disk as they are."""
    few = 2 if place.dry else LAYERS
    small = shape if place.dry else Shape(1024, 8, 2, 2816, 128, 128)

    def make(compiler: Callable[..., Any]) -> Callable[..., Any]:
        layers = _layers(place, small, few)

        def model(x: Any, cos: Any, sin: Any) -> Any:
            for layer in layers:
                x = layer(x, cos, sin)
            return x

        def call(*inputs: Any) -> Any:
            torch._dynamo.reset()
            with torch.no_grad():
                return compiler(model)(*inputs)

        return call

    chosen = ("tensorlang", "compile")
    return Case(
        name=f"compile {few} layers",
        inputs=_inputs(place, small, 1, small.prompt, cached=False),
        reference=None,
        contenders=tuple(c for c in _contenders(place, make) if c.impl in chosen),
        modes=("wall",),
    )


def _overhead(place: Place) -> Case:
    """A region of a few numbers: what calling a compiled function costs."""

    def function(x: Any, y: Any) -> Any:
        return torch.nn.functional.silu(x) * y + 1

    def make(compiler: Callable[..., Any]) -> Callable[..., Any]:
        return compiler(function)

    chosen = ("tensorlang", "eager", "compile")
    return Case(
        name="region call",
        inputs=lambda at: tuple(at.randn(64, dtype=torch.float32) for _ in range(2)),
        reference=lambda x, y: function(x.double(), y.double()),
        contenders=tuple(c for c in _contenders(place, make) if c.impl in chosen),
        modes=("host",),
        quick=True,
    )
