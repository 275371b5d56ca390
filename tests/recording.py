"""A backend that records what a Kernel gives it."""

import numpy as np
import pytest

from tensorlang.errors import BoundsError, ShapeError, TargetError
from tensorlang.ir.expr import Size, as_expr
from tensorlang.ir.stmt import Allocate, Block, Buffer, Dim, Program
from tensorlang.ir.types import f32, index
from tensorlang.kernel import Kernel
from tensorlang.target import Target

M, N, K = Size("M"), Size("N"), Size("K")


def buffer(name, dtype, *shape):
    dtypes = dtype if isinstance(dtype, tuple) else (dtype,)
    dims = tuple(Dim(as_expr(0, index), as_expr(e, index)) for e in shape)
    return Buffer(name, dtypes, dims)


def program(inputs, outputs, *, params=(), asserts=(), sizes=(M, N, K)):
    body = Block((*asserts, Allocate(buffer("t", f32, 1), Block(()))))
    return Program("p", sizes, params, tuple(inputs), tuple(outputs), body)


class Recorder:
    """A backend that computes `compute(*inputs)` and records what it was given."""

    source, notes = "the source", ("a note",)

    def __init__(self, compute=None):
        self.compute, self.runs = compute, []

    def run(self, sizes, params, inputs, outputs):
        self.runs.append((dict(sizes), dict(params), list(inputs), list(outputs)))
        if self.compute is not None:
            results = self.compute(*inputs)
            for out, result in zip(outputs, results, strict=True):
                out[...] = result

    @property
    def last(self):
        return self.runs[-1]


def kernel_of(program, compute=None, target="c"):
    backend = Recorder(compute)
    return Kernel(program, backend, Target.of(target)), backend


def product():
    inputs = [buffer("A", f32, M, K), buffer("B", f32, K, N)]
    return kernel_of(
        program(inputs, [buffer("C", f32, M, N)]), lambda a, b: (np.asarray(a) @ np.asarray(b),)
    )


def arange(*shape, dtype=np.float32):
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


def code_of(kernel, *args, **named):
    with pytest.raises((ShapeError, TargetError, BoundsError)) as caught:
        kernel(*args, **named)
    assert caught.value.why
    assert caught.value.fix
    return caught.value.code
