"""exp, log, sin ... are within about two ulp of the truth, in vectors too, edges included."""

import math

import numpy as np
import pytest

from tensorlang.backends.c import compile_program
from tensorlang.ir.expr import Call, Load, Size, Var
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import Block, Buffer, Dim, For, LoopKind, Program, Store
from tensorlang.ir.types import DType, f32, f64
from tensorlang.target import Target

pytestmark = pytest.mark.cc

N, X = Size("N"), Var("x")
KINDS = (LoopKind.SERIAL, LoopKind.VECTORIZED)
TRUTH = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "approx.tanh": np.tanh,
    "approx.exp2": np.exp2,
    "approx.erf": np.vectorize(math.erf, otypes=[float]),
    "approx.rcp": lambda x: 1 / x,
}
# libm's tanh, and the four roundings of sigmoid.
LIMITS = {"tanh": 2.5, "approx.tanh": 2.5, "sigmoid": 2.5}
EDGES = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45, 1e-40, 3e38, -3e38, 1.0, -1.0]
EDGES += [88.7, 88.8, -87.3, -103.9, -104.1, 127.9, 128.0, -149.0, -149.5, -150.1, 0.625, 4.0]


def compiled(function: str, dtype: DType, operands: str = "A"):
    array = (dtype,), (Dim(integer(0), N),)
    e = Call(function, tuple(Load(name, (X,), 0, dtype) for name in operands), dtype)
    outputs = tuple(Buffer(f"B_{kind.value}", *array) for kind in KINDS)
    loops = tuple(
        For("x", integer(0), N, kind, Store(b.name, (X,), (e,)))
        for kind, b in zip(KINDS, outputs, strict=True)
    )
    arrays = tuple(Buffer(name, *array) for name in operands)
    program = Program("functions", (N,), (), arrays, outputs, Block(loops))
    return compile_program(program, Target("c"))


def inputs() -> np.ndarray:
    """Every exponent, dense near the places where formulas change, and the edges."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = rng.uniform(-20, 20, 200_000).astype(np.float32)
    wide = rng.uniform(-160, 160, 100_000).astype(np.float32)
    small = rng.normal(0, 0.5, 100_000).astype(np.float32)
    ones = (1 + rng.normal(0, 1e-3, 50_000)).astype(np.float32)
    return np.concatenate([np.array(EDGES, np.float32), bits, near, wide, small, ones])


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The error of f32 results in units of the last place of the exact ones."""
    with np.errstate(all="ignore"):
        nearest = want.astype(np.float32)
        unit = np.spacing(np.minimum(np.abs(nearest), np.float32(3.4028235e38)).astype(np.float32))
        error = np.abs(got.astype(np.float64) - want) / unit
        same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error))


@pytest.mark.parametrize("function", TRUTH)
def test_f32_functions_stay_within_their_error(function: str) -> None:
    x = inputs()
    made = [np.zeros_like(x) for _ in KINDS]
    compiled(function, f32).run({"N": x.size}, {}, [x], made)
    with np.errstate(all="ignore"):
        want = TRUTH[function](x.astype(np.float64))
    for kind, got in zip(KINDS, made, strict=True):
        error = ulps(got, want)
        k = int(np.argmax(error))
        wrong = f"{kind.value}: {function}({x[k]!r}) is {got[k]!r}, not {want[k]!r}"
        assert error[k] <= LIMITS.get(function, 2), wrong


@pytest.mark.parametrize("function", ["exp", "log", "tanh", "sigmoid"])
def test_f64_functions_come_from_libm(function: str) -> None:
    x = np.random.default_rng(1).uniform(0.01, 30, 1001)
    made = [np.zeros_like(x) for _ in KINDS]
    compiled(function, f64).run({"N": x.size}, {}, [x], made)
    for got in made:
        np.testing.assert_allclose(got, TRUTH[function](x), rtol=1e-15)


def test_powers_stay_within_their_error_and_keep_all_special_cases() -> None:
    rng = np.random.default_rng(2)
    edges = [*EDGES, 2.0, -2.0, 3.0, 0.5, -0.5, 2.5, -2.5, 16777217.0, 1.0000001, 0.9999999]
    x, y = (grid.ravel() for grid in np.meshgrid(edges, edges))
    size = np.exp2(rng.uniform(-149, 128, 200_000))
    power = rng.uniform(-1, 1, 200_000) * 150 / np.maximum(np.abs(np.log2(size)), 1e-3)
    near = 1 + rng.normal(0, 1e-3, 100_000)
    x = np.concatenate([x, size, near]).astype(np.float32)
    y = np.concatenate([y, power, rng.uniform(-1e5, 1e5, 100_000)]).astype(np.float32)
    made = [np.zeros_like(x) for _ in KINDS]
    compiled("pow", f32, "AB").run({"N": x.size}, {}, [x, y], made)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
    for kind, got in zip(KINDS, made, strict=True):
        error = ulps(got, want)
        k = int(np.argmax(error))
        assert error[k] <= 1, f"{kind.value}: pow({x[k]!r}, {y[k]!r}) = {got[k]!r}, not {want[k]!r}"
        signs = np.signbit(got) == np.signbit(want)
        assert (signs | np.isnan(got)).all()
