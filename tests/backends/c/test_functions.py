"""exp, log, sin ... are within about two ulp of the truth, in vectors too, edges included."""

import math
import re

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


WIDE = np.longdouble
needs_wide = pytest.mark.skipif(np.finfo(WIDE).nmant < 63, reason="no float wider than f64 here")
F64_EDGES = [709.7, 709.8, -745.1, -745.2, -746.0, 1023.9, 1024.0, -1074.5, -1075.0, -1075.1, 5.95]
F64_EDGES += [5e-324, -5e-324, 1e-310, 1.7e308, -1.7e308, 2.0**25, 33554433.0]


def erf(x: np.ndarray) -> np.ndarray:
    """2/sqrt(pi)*exp(-x^2) times the sum of 2^n*x^(2n+1)/(1*3*...*(2n+1)), all terms positive."""
    size = np.minimum(np.abs(x), WIDE(7))
    term = total = size
    for n in range(1, 300):
        term = term * (2 * size * size) / (2 * n + 1)
        total = total + term
    value = (
        total * 2 / np.sqrt(WIDE("3.14159265358979323846264338327950288")) * np.exp(-size * size)
    )
    return np.where(np.isnan(x), x, np.copysign(np.minimum(value, 1), x))


def f64_inputs() -> np.ndarray:
    """As `inputs`; and multiples of pi/2, of which little is left but what rounding has lost."""
    rng = np.random.default_rng(3)
    parts = [
        np.array(EDGES + F64_EDGES),
        rng.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64),
        rng.uniform(-20, 20, 20_000),
        rng.uniform(-1100, 1100, 10_000),
        rng.normal(0, 0.5, 10_000),
        1 + rng.normal(0, 1e-3, 5_000),
        np.arange(1, 20_000, 7) * (np.pi / 2),
        rng.uniform(-3e7, 3e7, 5_000),
    ]
    return np.concatenate(parts)


def f64_ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The error of f64 results in units of the last place of the exact ones."""
    with np.errstate(all="ignore"):
        nearest = want.astype(np.float64)
        unit = np.spacing(np.minimum(np.abs(nearest), np.finfo(np.float64).max))
        error = np.abs(got.astype(WIDE) - want) / unit
        same = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error)).astype(np.float64)


@needs_wide
@pytest.mark.parametrize("function", TRUTH)
def test_f64_functions_stay_within_their_error(function: str) -> None:
    x = f64_inputs()
    made = [np.zeros_like(x) for _ in KINDS]
    compiled(function, f64).run({"N": x.size}, {}, [x], made)
    with np.errstate(all="ignore"):
        truth = erf if function.endswith("erf") else TRUTH[function]
        want = truth(x.astype(WIDE))
    for kind, got in zip(KINDS, made, strict=True):
        error = f64_ulps(got, want)
        k = int(np.argmax(error))
        wrong = f"{kind.value}: {function}({x[k]!r}) is {got[k]!r}, not {want[k]!r}"
        assert error[k] <= LIMITS.get(function, 2), wrong


@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize("function", ["sin", "tanh", "erf"])
def test_odd_functions_keep_the_sign_of_zero(function: str, dtype: DType) -> None:
    # Alone: sines of vectors with an infinity in them go lane by lane.
    x = np.array([0.0, -0.0] * 9, np.float32 if dtype is f32 else np.float64)
    made = [np.ones_like(x) for _ in KINDS]
    compiled(function, dtype).run({"N": x.size}, {}, [x], made)
    for got in made:
        assert np.array_equal(got, x)
        assert np.array_equal(np.signbit(got), np.signbit(x))


@pytest.mark.parametrize("function", [*TRUTH, "pow"])
def test_vectors_of_f64_call_no_function_of_one_number(function: str) -> None:
    made = compiled(function, f64, "AB" if function == "pow" else "A")
    vector = re.split(r"static inline f64x\d+ ", made.source)[1:]
    beyond = re.findall(r"= (\w+)_f64\(x\[l\]", "".join(vector))
    # Only where three parts of pi/2 do not reach.
    assert beyond == ([function] if function in ("sin", "cos") else [])


@needs_wide
def test_powers_of_f64_stay_within_their_error_and_keep_all_special_cases() -> None:
    rng = np.random.default_rng(4)
    edges = [
        *EDGES,
        *F64_EDGES,
        2.0,
        -2.0,
        3.0,
        0.5,
        -0.5,
        2.5,
        -2.5,
        2.0**53,
        2.0**53 + 2,
        2.0**54,
    ]
    edges += [1 + 2.0**-52, 1 - 2.0**-53, 1e300, -1e300]
    x, y = (grid.ravel() for grid in np.meshgrid(edges, edges))
    size = np.exp2(rng.uniform(-1074, 1024, 50_000))
    power = rng.uniform(-1, 1, 50_000) * 1100 / np.maximum(np.abs(np.log2(size)), 1e-3)
    near = 1 + rng.normal(0, 1e-9, 20_000)
    x = np.concatenate([x, size, near, rng.uniform(0.5, 2, 20_000)])
    far = rng.uniform(-1e12, 1e12, 20_000)
    y = np.concatenate([y, power, far, rng.uniform(-1000, 1000, 20_000)])
    made = [np.zeros_like(x) for _ in KINDS]
    compiled("pow", f64, "AB").run({"N": x.size}, {}, [x, y], made)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(WIDE), y.astype(WIDE))
    for kind, got in zip(KINDS, made, strict=True):
        error = f64_ulps(got, want)
        k = int(np.argmax(error))
        assert error[k] <= 1, f"{kind.value}: pow({x[k]!r}, {y[k]!r}) = {got[k]!r}, not {want[k]!r}"
        signs = np.signbit(got) == np.signbit(want)
        assert (signs | np.isnan(got)).all()


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
