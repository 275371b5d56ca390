"""Gradients of softmax and of norms along rows, given the gradient of the result."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

import tensorlang as tl
from benchmarks.case import Call, Case, Contender, Place
from benchmarks.contenders import copy_of, ours
from tensorlang.nn import normalization
from tensorlang.nn.backward import norm_rows
from tensorlang.nn.norm_gradients import norm_gradients
from tensorlang.nn.softmax import softmax as softmax_of_rows
from tensorlang.nn.softmax_backward import softmax_gradients, softmax_rows

LENGTHS = (1024, 4096, 16384)
EPS = 1e-5


def cases(place: Place) -> list[Case]:
    m, lengths = (5, (64,)) if place.dry else (4096, LENGTHS)
    return [make(place, m, n) for make in (_layer_norm, _rms_norm, _softmax) for n in lengths]


def _layer_norm(place: Place, m: int, n: int) -> Case:
    def layer_norm(x: Any, w: Any, b: Any) -> Any:
        return functional.layer_norm(x, (n,), w, b, EPS)

    def derived() -> Any:
        forward = normalization.layer_norm(tl.bf16, tl.bf16, tl.bf16, kept=True)
        return norm_gradients(forward, ["x", "weight", "bias"])

    def view(inputs: Sequence[Any]) -> Sequence[Any]:
        x, w, _, slopes = inputs
        mean = x.float().mean(-1)
        return x, w, mean, _scale(x.float() - mean[:, None]), slopes

    found = _norm(derived, m, n, view)
    return _case(place, f"layer_norm backward {m}x{n}", ((m, n), (n,), (n,)), layer_norm, found)


def _rms_norm(place: Place, m: int, n: int) -> Case:
    def rms_norm(x: Any, w: Any) -> Any:
        return functional.rms_norm(x, (n,), w, EPS)

    def derived() -> Any:
        return norm_gradients(normalization.rms_norm(tl.bf16, tl.bf16, kept=True), ["x", "weight"])

    def view(inputs: Sequence[Any]) -> Sequence[Any]:
        x, w, slopes = inputs
        return x, w, _scale(x.float()), slopes

    found = _norm(derived, m, n, view)
    return _case(place, f"rms_norm backward {m}x{n}", ((m, n), (n,)), rms_norm, found)


def _scale(off: Any) -> Any:
    """1 / sqrt(mean(off^2) + eps) of each row, which the forward pass keeps."""
    return torch.rsqrt(off.square().mean(-1) + EPS)


def _norm(derived: Callable[[], Any], m: int, n: int, view: Callable[[Any], Any]) -> Contender:
    def made() -> Any:
        one = derived()
        return one, norm_rows(one, "triton", {"M": m, "N": n})

    return ours(made, view=view)


def _softmax(place: Place, m: int, n: int) -> Case:
    def softmax(x: Any) -> Any:
        return functional.softmax(x, -1)

    def made() -> Any:
        forward = softmax_of_rows(tl.bf16, logarithm=False, out_dtype="")
        one = softmax_gradients(forward, ["x"])
        return one, softmax_rows(one, "triton", {"M": m, "N": n})

    def kept(inputs: Sequence[Any]) -> Sequence[Any]:
        """The result of the forward pass, as torch keeps it, and the gradient of that."""
        return softmax(inputs[0]), inputs[1]

    return _case(place, f"softmax backward {m}x{n}", ((m, n),), softmax, ours(made, view=kept))


def _case(
    place: Place,
    name: str,
    shapes: tuple[tuple[int, ...], ...],
    function: Callable[..., Any],
    found: Contender,
) -> Case:
    """The inputs are those of the function, and the gradient of its result."""
    m, n = shapes[0]
    peers = [Contender("eager", _backward(function))]
    if not place.dry:
        peers += [Contender("compile", _backward(function, compiled=True)), copy_of(6 * m * n)]

    def reference(*inputs: Any) -> Any:
        return _backward(function)([a.double() for a in inputs])()

    return Case(
        name=f"{name} bf16",
        inputs=lambda at: tuple(at.randn(*s, dtype=torch.bfloat16) for s in (*shapes, shapes[0])),
        reference=reference,
        contenders=(found, *peers),
        bytes=6.0 * m * n,
        quick=n == 4096 or place.dry,
    )


def _backward(
    function: Callable[..., Any], *, compiled: bool = False
) -> Callable[[Sequence[Any]], Call]:
    """Only the backward pass: what the forward pass keeps is made once."""

    def wrapped(*arrays: Any) -> Any:
        return function(*arrays)

    def prepare(inputs: Sequence[Any]) -> Call:
        *tensors, slopes = inputs
        leaves = [t.detach().requires_grad_() for t in tensors]
        call = torch.compile(wrapped, dynamic=False) if compiled else wrapped
        made = call(*leaves)

        def backward() -> Any:
            found = torch.autograd.grad(made, leaves, slopes, retain_graph=True)
            return found if len(found) > 1 else found[0]

        return backward

    return prepare
