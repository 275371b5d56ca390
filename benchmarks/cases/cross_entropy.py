"""Cross-entropy over a vocabulary: reading the logits is all that counts."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch.nn import functional

import tensorlang as tl
from benchmarks.case import Call, Case, Contender, Place
from benchmarks.cases.matmul import TORCH
from benchmarks.contenders import compiled, copy_of, eager, ours
from tensorlang.autodiff import gradients
from tensorlang.nn.schedules import in_slices
from tensorlang.nn.softmax import cross_entropy, cross_entropy_with_gradient

TOKENS, VOCABULARIES = 8192, (32000, 128256)
# Length and warps of a slice, stages of the loop over them, programs.
SLICES = ((4096, 8, 3, 0), (8192, 8, 0, 0), (2048, 4, 0, 0), (2048, 2, 0, 0))
SLICES_WITH_GRADIENT = (
    (4096, 4, 3, 0),
    (2048, 4, 0, 0),
    (4096, 8, 0, 0),
    (8192, 8, 3, 0),
    (8192, 16, 3, 0),
    (8192, 16, 4, 132),
    (4096, 16, 4, 132),
)
OPTIONS = {"ignore_index": -100, "label_smoothing": 0.0}


def cases(place: Place) -> list[Case]:
    tokens, vocabularies = (3, (70,)) if place.dry else (TOKENS, VOCABULARIES)
    made = (_forward, _two_kernels, _one_kernel)
    return [make(place, tokens, n) for make in made for n in vocabularies]


def _forward(place: Place, tokens: int, classes: int) -> Case:
    def contender(variant: str, *options: int) -> Contender:
        def made() -> Any:
            pipeline = cross_entropy(getattr(tl, place.half), tl.i64, None, **OPTIONS)
            return pipeline, _sliced(pipeline, *options)

        return ours(made, variant)

    peers = () if place.dry else (*compiled(_torch_loss), copy_of(2 * tokens * classes))
    return _case(
        place,
        "cross_entropy",
        (tokens, classes),
        (*_variants(place, contender, SLICES), eager(_torch_loss), *peers),
        lambda x, target: _torch_loss(x.double(), target),
        2.0,
    )


def _two_kernels(place: Place, tokens: int, classes: int) -> Case:
    """The loss; then the gradient, which finds the sum of a row again."""

    def contender(variant: str, *options: int) -> Contender:
        def prepare(inputs: Sequence[Any]) -> Call:
            forward = cross_entropy(getattr(tl, place.half), tl.i64, None, **OPTIONS)
            gradient = gradients(forward, ["x"], constant=["top"])
            losses, slopes = (
                p.compile(_sliced(p, *options), target="triton") for p in (forward, gradient)
            )
            x, target = inputs
            counts = torch.full_like(target, 1 / len(target), dtype=x.dtype)
            return lambda: (losses(x, target).float().mean(), slopes(x, target, counts))

        return Contender(f"tensorlang {variant}".strip(), prepare)

    return _whole(place, "two kernels", (tokens, classes), contender)


def _one_kernel(place: Place, tokens: int, classes: int) -> Case:
    """The gradient is formed where the loss is, of which it is known what it counts for."""

    def contender(variant: str, *options: int) -> Contender:
        def prepare(inputs: Sequence[Any]) -> Call:
            p = cross_entropy_with_gradient(
                getattr(tl, place.half), tl.i64, None, tl.f32, **OPTIONS
            )
            both = p.compile(_sliced(p, *options), target="triton")
            x, target = inputs
            counts = torch.full_like(target, 1 / len(target), dtype=torch.float32)

            def call() -> Any:
                loss, gradient = both(x, target, counts)
                return loss.mean(), gradient

            return call

        return Contender(f"tensorlang {variant}".strip(), prepare)

    return _whole(place, "one kernel", (tokens, classes), contender)


def _whole(
    place: Place,
    kind: str,
    shape: tuple[int, int],
    contender: Callable[..., Contender],
) -> Case:
    peers = (Contender("eager", partial(_torch_step, _torch_mean)),)
    if not place.dry:
        peers += (
            Contender("compile", lambda inputs: _torch_step(_compiled_mean(), inputs)),
            Contender("liger", _liger, checked=False),
            copy_of(4 * shape[0] * shape[1]),
        )
    return _case(
        place,
        f"cross_entropy and gradient, {kind},",
        shape,
        (*_variants(place, contender, SLICES_WITH_GRADIENT), *peers),
        lambda x, target: _torch_step(_torch_mean, (x.double(), target))(),
        4.0,
    )


def _variants(
    place: Place, contender: Callable[..., Contender], choices: Sequence[tuple[int, ...]]
) -> list[Contender]:
    """The schedule that counts; and others."""
    if place.dry:
        return [contender("", 16, 4, 0, 0)]
    tuned = choices if place.tune else ()
    names = ("{} w{} s{} p{}".format(*t) for t in tuned)
    return [contender(""), *(contender(n, *t) for n, t in zip(names, tuned, strict=True))]


def _sliced(pipeline: tl.Pipeline, *options: int) -> tl.Schedule:
    names = ("length", "warps", "stages", "programs")
    return in_slices(pipeline, **dict(zip(names, options, strict=False)))


def _case(
    place: Place,
    name: str,
    shape: tuple[int, int],
    contenders: Sequence[Contender],
    reference: Callable[..., Any],
    moved: float,
) -> Case:
    tokens, classes = shape
    return Case(
        name=f"{name} {tokens}x{classes} {place.half}",
        inputs=lambda at: _inputs(at, tokens, classes),
        reference=reference,
        contenders=tuple(contenders),
        bytes=moved * tokens * classes,
        quick=True,
    )


def _inputs(place: Place, tokens: int, classes: int) -> Sequence[Any]:
    random = torch.Generator(device=place.device).manual_seed(place.seed)
    target = torch.randint(classes, (tokens,), generator=random, device=place.device)
    return place.randn(tokens, classes, dtype=TORCH[place.half]), target


def _torch_loss(x: Any, target: Any) -> Any:
    return functional.cross_entropy(x, target, reduction="none")


def _torch_mean(x: Any, target: Any) -> Any:
    return functional.cross_entropy(x, target)


def _compiled_mean() -> Callable[..., Any]:
    return torch.compile(lambda x, target: _torch_mean(x, target), dynamic=False)


def _torch_step(function: Callable[..., Any], inputs: Sequence[Any]) -> Call:
    """Forward and backward."""
    x, target = inputs
    leaf = x.detach().requires_grad_()

    def step() -> Any:
        loss = function(leaf, target)
        (gradient,) = torch.autograd.grad(loss, [leaf])
        return loss.detach(), gradient

    return step


def _liger(inputs: Sequence[Any]) -> Call:
    """Liger's, which writes the gradient over the scores: of a copy, and so wrong when repeated."""
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

    def loss(x: Any, target: Any) -> Any:
        return LigerCrossEntropyFunction.apply(x, target, None, -100)[0]

    x, target = inputs
    return _torch_step(loss, (x.clone(), target))
