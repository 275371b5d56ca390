"""Random modules: chains of torch.nn and functional calls, views, in-place writes, broadcasting.

A program is a list of (name, arguments) over a stack of tensors, so that a failure prints as a
few lines that can be run again.  Comparisons and roundings are of f64 alone: there eager and
compiled values agree to the last bits, so that none falls on the other side.
"""

import random

import torch
from torch import nn
from torch.nn import functional

SMOOTH = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "exp": lambda x: torch.exp(-x.abs()),
    "log1p": lambda x: torch.log1p(x.abs()),
    "expm1": lambda x: torch.expm1(-x.abs()),
    "sqrt": lambda x: torch.sqrt(x.abs() + 0.5),
    "rsqrt": lambda x: torch.rsqrt(x * x + 0.5),
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "square": lambda x: x.pow(2),
    "cube": lambda x: (x / 4) ** 3,
    "neg": torch.neg,
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "softplus": functional.softplus,
    "leaky": functional.leaky_relu,
    "elu": functional.elu,
    "hardtanh": functional.hardtanh,
    "hardswish": functional.hardswish,
    "abs": torch.abs,
    "reciprocal": lambda x: 1 / (2 + x.abs()),
    "clamp": lambda x: x.clamp(-0.7, 0.9),
    "clamp_min": lambda x: x.clamp(min=-0.3),
    "add": lambda x: x + 1.25,
    "rsub": lambda x: 1.5 - x,
    "scaled": lambda x: torch.add(x, x.flip(-1), alpha=0.5),
}
ROUGH = {
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "trunc": torch.trunc,
    "sign": torch.sign,
    "where": lambda x: torch.where(x > 0.1, x, -2 * x),
    "masked": lambda x: x.masked_fill(x < -0.2, 0.5),
    "isnan": lambda x: x + x.isnan(),
    "logic": lambda x: x * ((x > 0) & (x < 1) | ~(x > -1)),
    "integers": lambda x: ((x * 8).long() % 5 // 2 + 1).to(x.dtype) * x,
    "floor_divide": lambda x: x + torch.div((x * 4).long(), 3, rounding_mode="trunc"),
    "max": lambda x: x - x.max(-1, keepdim=True).values,
    "argmax": lambda x: x + x.argmax(-1, keepdim=True),
    "topk": lambda x: x + x.topk(1, -1).values,
    "sort": lambda x: x.sort(-1).values,
}
BINARY = {
    "plus": torch.add,
    "minus": torch.sub,
    "times": torch.mul,
    "over": lambda x, y: x / (1.5 + y.abs()),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5),
    "choose": lambda x, y: torch.where(torch.arange(x.shape[-1]) % 2 == 0, x, y),
}
ALONG = {
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
    "cumsum": torch.cumsum,
    "flip": lambda x, d: x.flip(d),
    "roll": lambda x, d: x.roll(1, d),
    "centred": lambda x, d: x - x.mean(d, keepdim=True),
    "normed": lambda x, d: x * torch.rsqrt((x * x).mean(d, keepdim=True) + 1e-3),
    "spread": lambda x, d: x / (1 + x.var(d, keepdim=True, correction=0)),
    "std": lambda x, d: x + (x * x + 1).std(d, keepdim=True, correction=0),
    "logsumexp": lambda x, d: x - x.logsumexp(d, keepdim=True),
    "norm": lambda x, d: x / (1 + torch.linalg.vector_norm(x, dim=d, keepdim=True)),
}
REDUCED = {
    "sum": lambda x, d, k: x.sum(d, keepdim=k),
    "mean": lambda x, d, k: x.mean(d, keepdim=k),
    "amax": lambda x, d, k: x.amax(d, keepdim=k),
    "amin": lambda x, d, k: x.amin(d, keepdim=k),
    "prod": lambda x, d, k: torch.tanh(x).prod(d, keepdim=k),
    "any": lambda x, d, k: (x > 0.5).any(d, keepdim=k).to(x.dtype),
    "min": lambda x, d, k: x.min(d, keepdim=k)[0],
}


def _written(x, number):
    y = x.clone()
    if number == 0:
        y.add_(1.0)
    elif number == 1:
        y[..., :1] = 0.5
    elif number == 2:
        y[..., ::2].mul_(2.0)
    elif number == 3:
        y.transpose(0, -1)[0] += 1.5
    elif number == 4:
        y.clamp_(-1, 1)
    else:
        y[..., -1] = x[..., 0] * 2
    return y


def _padded(x, left, right, value):
    return functional.pad(x, (left, right), value=value)


def _indexed(x, number):
    rows = torch.tensor([0, -1, 0]) if number % 2 else torch.tensor([0])
    return x[rows] if number < 2 else x[..., rows]


def _parts(x, number):
    if number == 0:
        return torch.cat((x, x * 2), -1)
    if number == 1:
        return torch.stack((x, -x), 0)[1]
    a, b = x.repeat(*(1,) * (x.ndim - 1), 2).chunk(2, -1)
    return a * b


STEPS = {
    "smooth": lambda s, name: SMOOTH[name](s[-1]),
    "rough": lambda s, name: ROUGH[name](s[-1]),
    "binary": lambda s, name, k: BINARY[name](*torch.broadcast_tensors(s[-1], s[k])),
    "broadcast": lambda s, name, k: BINARY[name](s[-1], s[k]),
    "along": lambda s, name, d: ALONG[name](s[-1], d),
    "reduced": lambda s, name, d, keep: REDUCED[name](s[-1], d, keep),
    "reduced_all": lambda s: s[-1] + s[-1].sum(),
    "permute": lambda s, dims: s[-1].permute(dims),
    "reshape": lambda s, shape: s[-1].reshape(shape),
    "flat": lambda s: s[-1].flatten(),
    "unsqueeze": lambda s, d: s[-1].unsqueeze(d),
    "squeeze": lambda s: s[-1].squeeze(),
    "slice": lambda s, d, a, step: s[-1].transpose(0, d)[a::step].transpose(0, d),
    "select": lambda s, d, k: s[-1].select(d, k),
    "expand": lambda s, n: s[-1].unsqueeze(0).expand(n, *s[-1].shape),
    "written": lambda s, n: _written(s[-1], n),
    "padded": lambda s, a, b, v: _padded(s[-1], a, b, v),
    "indexed": lambda s, n: _indexed(s[-1], n),
    "parts": lambda s, n: _parts(s[-1], n),
    "matmul": lambda s: s[-1] @ s[-1].transpose(-1, -2),
    "narrow": lambda s, name, kind: SMOOTH[name](s[-1].to(getattr(torch, kind))).to(s[-1].dtype),
    "dropout": lambda s: functional.dropout(s[-1], 0.3, True),
    "tril": lambda s: s[-1].tril(),
}


class Program(nn.Module):
    """The steps in order; each pushes what it makes, and the last one or two are returned."""

    def __init__(self, steps, results):
        super().__init__()
        self.steps, self.results = steps, results

    def forward(self, *inputs):
        stack = list(inputs)
        for name, *arguments in self.steps:
            stack.append(STEPS[name](stack, *arguments))
        return tuple(stack[-self.results :])

    def __repr__(self):
        return "\n".join(map(repr, self.steps))


class Together(nn.Module):
    """Several programs in one module, which is compiled once."""

    def __init__(self, programs, counts):
        super().__init__()
        self.programs, self.counts = programs, counts

    def forward(self, *inputs):
        results, start = [], 0
        for program, count in zip(self.programs, self.counts, strict=True):
            results += program(*inputs[start : start + count])
            start += count
        return tuple(results)


def together(seeds, **options):
    """The programs of several numbers as one module, and its inputs."""
    made = [random_program(seed, **options) for seed in seeds]
    inputs = [x for _, given in made for x in given]
    return Together([p for p, _ in made], [len(given) for _, given in made]), inputs


def random_program(seed, *, narrow=False):
    """A program and its inputs, from a number."""
    draw = random.Random(seed)
    rank = draw.randint(1, 3)
    shape = [draw.choice((1, 2, 3, 4, 5)) for _ in range(rank)]
    other = [draw.choice((1, n)) for n in shape[draw.randint(0, rank - 1) :]]
    generator = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(s, dtype=torch.float64, generator=generator) for s in (shape, other)]
    steps = []
    stack = [torch.empty(s, dtype=torch.float64) for s in (shape, other)]
    for _ in range(draw.randint(3, 8)):
        step = _step(draw, stack, narrow)
        with torch.random.fork_rng():
            made = STEPS[step[0]]([torch.zeros_like(t) for t in stack], *step[1:])
        if made.numel() <= 400 and made.ndim <= 5:
            steps.append(step)
            stack.append(made)
    return Program(steps, min(draw.randint(1, 2), max(1, len(steps)))), inputs


def _step(draw, stack, narrow):
    top = stack[-1]
    kinds = ["smooth"] * 4 + ["rough", "reduced_all", "parts"] + ["broadcast"] * 2
    if top.ndim:
        kinds += ["along"] * 2 + ["reduced", "permute", "reshape", "flat", "unsqueeze", "squeeze"]
        kinds += ["slice", "select", "expand", "written", "padded", "indexed", "dropout"]
    if top.ndim >= 2:
        kinds += ["matmul", "tril"]
    if narrow:
        kinds += ["narrow"] * 3
    while True:
        kind = draw.choice(kinds)
        step = _arguments(draw, kind, stack)
        if step is not None:
            return (kind, *step)


def _arguments(draw, kind, stack):
    top = stack[-1]
    rank = top.ndim
    if not rank and kind in ("rough", "parts"):
        return None
    if not rank and kind == "smooth":
        return (draw.choice(["tanh", "sin", "add"]),)
    if kind == "broadcast":
        fits = [k for k, t in enumerate(stack) if _fits(top.shape, t.shape)]
        names = [n for n in BINARY if rank or n != "choose"]
        return draw.choice(names), draw.choice(fits)
    return DRAWN[kind](draw, top) if kind in DRAWN else ()


def _reshape_of(draw, top):
    n = draw.choice([n for n in range(1, top.numel() + 1) if top.numel() % n == 0])
    return ((n, top.numel() // n),)


def _slice_of(draw, top):
    d = draw.randrange(top.ndim)
    return d, draw.randrange(top.shape[d]), draw.choice((1, 2))


def _select_of(draw, top):
    d = draw.randrange(top.ndim)
    return d, draw.choice((0, -1, top.shape[d] - 1))


# The arguments of a step for the tensor on top.
DRAWN = {
    "smooth": lambda draw, _: (draw.choice(list(SMOOTH)),),
    "rough": lambda draw, _: (draw.choice(list(ROUGH)),),
    "along": lambda draw, top: (draw.choice(list(ALONG)), draw.randrange(top.ndim)),
    "reduced": lambda draw, top: (
        draw.choice(list(REDUCED)),
        draw.randrange(top.ndim),
        draw.random() < 0.5,
    ),
    "permute": lambda draw, top: (tuple(draw.sample(range(top.ndim), top.ndim)),),
    "reshape": _reshape_of,
    "unsqueeze": lambda draw, top: (draw.randint(-1, top.ndim),),
    "slice": _slice_of,
    "select": _select_of,
    "expand": lambda draw, _: (draw.choice((1, 3)),),
    "written": lambda draw, _: (draw.randrange(6),),
    "padded": lambda draw, _: (
        draw.choice((0, 1)),
        draw.choice((0, 1, 2)),
        draw.choice((0.0, 1.5)),
    ),
    "indexed": lambda draw, _: (draw.randrange(4),),
    "parts": lambda draw, _: (draw.randrange(3),),
    "narrow": lambda draw, _: (
        draw.choice(list(SMOOTH)),
        draw.choice(("float32", "bfloat16", "float16")),
    ),
}


def _fits(a, b):
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))
