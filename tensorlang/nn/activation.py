"""Activations, of one element each, and gates, which multiply one by another."""

from collections.abc import Callable
from math import e, log2, pi, sqrt

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr
from tensorlang.ir.functions import approx, erf, select, sigmoid, tanh
from tensorlang.ir.types import DType
from tensorlang.nn.numbers import M, i, wide
from tensorlang.pipeline import Pipeline


def relu(z: Expr) -> Expr:
    """max(z, 0), whose slope at 0 is 0, as torch's"""
    return select(z <= 0, 0, z)


def silu(z: Expr) -> Expr:
    """z * sigmoid(z)"""
    return z * sigmoid(z)


def quick_silu(z: Expr) -> Expr:
    """z * sigmoid(z) to a few units of f32, for results of fewer bits"""
    return z * approx.rcp(1 + approx.exp2(z * -log2(e)))


def gelu(z: Expr) -> Expr:
    """z * (1 + erf(z / sqrt(2))) / 2"""
    return z * 0.5 * (1 + erf(z * sqrt(0.5)))


def gelu_tanh(z: Expr) -> Expr:
    """z * (1 + tanh(sqrt(2/pi) * (z + 0.044715 z^3))) / 2"""
    return z * 0.5 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 * z * z * z)))


def identity(z: Expr) -> Expr:
    """z"""
    return z


ACTIVATIONS: dict[str, Callable[[Expr], Expr]] = {
    "none": identity,
    "relu": relu,
    "silu": silu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
}


def activation(x: DType, *, kind: str) -> Pipeline:
    """out[i] = kind(x[i])"""
    X, out = Input("x", x, [M]), Func("out")
    out[i] = x(ACTIVATIONS[kind](wide(x)(X[i])))
    return Pipeline(kind, inputs=[X], outputs={out: [M]})


def gate(x: DType, y: DType, *, kind: str) -> Pipeline:
    """out[i] = kind(x[i]) * y[i]: swiglu where kind is silu, geglu where it is gelu."""
    X, Y, out = Input("x", x, [M]), Input("y", y, [M]), Func("out")
    out[i] = x(ACTIVATIONS[kind](wide(x)(X[i])) * wide(x)(Y[i]))
    return Pipeline(f"{kind}_gate", inputs=[X, Y], outputs={out: [M]})
