"""Every operation on every dtype gives the bits that numerics.py says, in vectors too."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tensorlang.backends import numerics
from tensorlang.backends.c import compile_program
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Select,
    Size,
    Unary,
    Var,
)
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import Block, Buffer, Dim, For, LoopKind, Program, Store
from tensorlang.ir.types import DTYPES, DType, bool_, f32, i64
from tensorlang.target import Target

pytestmark = pytest.mark.cc

N = Size("N")
X = Var("x")
DATA = [t for t in DTYPES.values() if t.name != "index"]
KINDS = (LoopKind.SERIAL, LoopKind.VECTORIZED)
Case = tuple[Expr, Callable[..., object]]


def values(dtype: DType, seed: int, count: int = 301) -> np.ndarray:
    """As an array stores them: the edges of the dtype, then random values and random bits."""
    rng = np.random.default_rng(seed)
    made = numerics.storage(dtype)
    if dtype.is_bool:
        return rng.integers(0, 2, count).astype(made)
    if dtype.is_integer:
        edges = [dtype.lowest, dtype.highest, 0, 1, dtype.highest - 1, dtype.lowest + 1, 2, 3, 7]
        edges += [-1, -2, -7] if dtype.is_signed else []
        small = rng.integers(max(dtype.lowest, -20), 20, count // 2, dtype=made)
        bits = np.frombuffer(rng.bytes(count * made.itemsize), made)
        return rng.permutation(np.concatenate([np.array(edges, made), small, bits])[:count])
    bits = np.frombuffer(rng.bytes(count * made.itemsize), made)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, math.nan, 127.0, 1e-8]
    numbers = np.concatenate(
        [edges, [dtype.largest, -dtype.largest], rng.normal(0, 30, count // 2)]
    )
    with numerics.quiet():
        plain = numerics.pack(dtype)(numerics.cast(numerics_f64, dtype)(numbers))
        if dtype.name == "tf32":
            bits = numerics.cast(f32, dtype)(bits)
    return rng.permutation(np.concatenate([plain.astype(made), bits])[:count])


numerics_f64 = DTYPES["f64"]


def run(cases: dict[str, tuple[Expr, DType]], inputs: dict[str, tuple[DType, np.ndarray]]) -> dict:
    """The value of each expression at each x, by a serial and by a vectorized loop."""
    outputs, loops = [], []
    for name, (e, dtype) in cases.items():
        for kind in KINDS:
            buffer = Buffer(f"{name}_{kind.value}", (dtype,), (Dim(integer(0), N),))
            outputs.append(buffer)
            store = Store(buffer.name, (X,), (e,))
            loops.append(For("x", integer(0), N, kind, store))
    buffers = tuple(Buffer(n, (t,), (Dim(integer(0), N),)) for n, (t, _) in inputs.items())
    program = Program("ops", (N,), (), buffers, tuple(outputs), Block(tuple(loops)))
    arrays = [array for _, array in inputs.values()]
    count = len(arrays[0])
    made = [np.zeros(count, numerics.storage(b.dtypes[0])) for b in outputs]
    compile_program(program, Target("c")).run({"N": count}, {}, arrays, made)
    return {b.name: array for b, array in zip(outputs, made, strict=True)}


def same(got: np.ndarray, want: np.ndarray, dtype: DType, *, zeros: bool = False) -> np.ndarray:
    """Where the stored values are the same bits; any NaN is as good as another."""
    a, b = (numerics.unpack(dtype)(x) for x in (got, want))
    equal = got.view(f"u{got.itemsize}") == want.view(f"u{want.itemsize}")
    if dtype.is_float:
        equal |= (a != a) & (b != b)
    return equal | (a == b) if zeros else equal


def load(name: str, dtype: DType) -> Load:
    return Load(name, (X,), 0, dtype)


def check(
    dtype: DType,
    cases: dict[str, tuple[Expr, DType, Callable[..., object]]],
    inputs: dict[str, tuple[DType, np.ndarray]],
) -> None:
    got = run({name: (e, t) for name, (e, t, _) in cases.items()}, inputs)
    carried = [numerics.unpack(t)(array) for t, array in inputs.values()]
    wrong = []
    for name, (_, result, meaning) in cases.items():
        with numerics.quiet():
            want = numerics.pack(result)(np.asarray(meaning(*carried)))
        want = want.astype(numerics.storage(result))
        for kind in KINDS:
            found = got[f"{name}_{kind.value}"]
            zeros = name in ("min", "max")
            bad = np.flatnonzero(~same(found, want, result, zeros=zeros))
            if bad.size:
                k = bad[0]
                given = [c[k] for c in carried]
                wrong.append(
                    f"{name} {kind.value}: {given} -> {found[k]}, not {want[k]} ({bad.size})"
                )
    assert wrong == []


def operations_of(dtype: DType) -> list[str]:
    if dtype.is_bool:
        return ["and", "or", "xor"]
    if dtype.is_float:
        return ["add", "sub", "mul", "div", "min", "max"]
    return ["add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "or", "xor"]


@pytest.mark.parametrize("dtype", DATA, ids=str)
def test_operators_mean_what_numerics_says(dtype: DType) -> None:
    a, b = load("A", dtype), load("B", dtype)
    cases = {}
    for op in operations_of(dtype):
        cases[op] = (Binary(op, a, b), dtype, numerics.binary(op, dtype))
    for op in ("lt", "le", "eq", "ne"):
        cases[op] = (Compare(op, a, b), bool_, numerics.comparison(op))
    if not dtype.is_bool:
        cases["neg"] = (Unary("neg", a), dtype, lambda x, y: numerics.unary("neg", dtype)(x))
    if not dtype.is_float:
        cases["not"] = (Unary("not", a), dtype, lambda x, y: numerics.unary("not", dtype)(x))
    chosen = Select(Compare("lt", a, b), b, a)
    cases["select"] = (chosen, dtype, lambda x, y: np.where(x < y, y, x))
    check(dtype, cases, {"A": (dtype, values(dtype, 1)), "B": (dtype, values(dtype, 2))})


@pytest.mark.parametrize("dtype", [t for t in DATA if t.is_integer], ids=str)
def test_shifts_by_any_amount(dtype: DType) -> None:
    a, b = load("A", dtype), load("B", dtype)
    amounts = np.random.default_rng(3).integers(0, dtype.bits + 5, 301)
    cases = {op: (Binary(op, a, b), dtype, numerics.binary(op, dtype)) for op in ("shl", "shr")}
    inputs = {"A": (dtype, values(dtype, 1)), "B": (dtype, amounts.astype(numerics.storage(dtype)))}
    check(dtype, cases, inputs)


@pytest.mark.parametrize("dtype", DATA, ids=str)
def test_casts_to_every_dtype(dtype: DType) -> None:
    a = load("A", dtype)
    cases = {f"to_{t}": (Cast(t, a), t, numerics.cast(dtype, t)) for t in DATA if t is not dtype}
    check(dtype, cases, {"A": (dtype, values(dtype, 4))})


STRICT = [f for f in FUNCTIONS.values() if f.ulp == 0 and f.rule != "random"]


@pytest.mark.parametrize("dtype", [t for t in DATA if t.is_float], ids=str)
def test_strict_functions_give_the_same_bits(dtype: DType) -> None:
    names = ("A", "B", "C")
    cases = {}
    for f in STRICT:
        args = tuple(load(name, dtype) for name in names[: f.arity])
        result = bool_ if f.rule == "test" else dtype
        meaning = numerics.function(f.name, dtype)
        cases[f.name] = (
            Call(f.name, args, result), result, lambda *xs, m=meaning, n=f.arity: m(*xs[:n]),
        )  # fmt: skip
    check(dtype, cases, {name: (dtype, values(dtype, k)) for k, name in enumerate(names)})


def test_random_uniform_is_philox() -> None:
    seed, index = load("A", i64), load("B", i64)
    cases = {
        "random": (
            Call("random_uniform", (seed, index), f32), f32,
            numerics.function("random_uniform", i64),
        )
    }  # fmt: skip
    check(f32, cases, {"A": (i64, values(i64, 5)), "B": (i64, values(i64, 6))})


@pytest.mark.parametrize("dtype", [t for t in DATA if t.is_integer], ids=str)
def test_division_by_a_constant(dtype: DType) -> None:
    a = load("A", dtype)
    divisors = [1, 2, 3, 7, 64, 100, dtype.highest] + ([-1, -3] if dtype.is_signed else [])
    cases = {}
    for op in ("floordiv", "mod"):
        for d in divisors:
            made = numerics.storage(dtype).type(d)
            cases[f"{op}_{d}".replace("-", "m")] = (
                Binary(op, a, Const(d, dtype)), dtype,
                lambda x, op=op, d=made: numerics.binary(op, dtype)(x, d),
            )  # fmt: skip
    check(dtype, cases, {"A": (dtype, values(dtype, 7))})
