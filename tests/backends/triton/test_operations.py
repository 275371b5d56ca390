"""Every operation on every dtype means what `backends/numerics.py` says, by bits where strict."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from tensorlang.arrays import torch_dtype
from tensorlang.backends import numerics
from tensorlang.backends.rounding import decode, encode, rounder
from tensorlang.backends.triton import compile_program
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
from tensorlang.ir.stmt import Buffer, Dim, For, If, LoopKind, Program, Stage, Store, block
from tensorlang.ir.types import DTYPES, DType, bool_, f32, index
from tests.backends.triton.running import DEVICES, TRITON, interpreted

N, i = Size("N"), Var("i")
COUNT = 48
DATA = [dtype for dtype in DTYPES.values() if dtype is not index]
LOGIC = ("and", "or", "xor")
INTEGERS = (*LOGIC, "floordiv", "mod", "shl", "shr")
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    np.inf,
    -np.inf,
    np.nan,
    0.5,
    -2.5,
    1e-3,
    -1e-39,
    3e38,
    -1e5,
    1.5,
    2.5,
    65504,
    1e-40,
]


def operations(dtype: DType) -> Iterator[tuple[str, Expr]]:
    a, b, c = (Load(name, (i,), 0, dtype) for name in "ABC")
    ops = LOGIC if dtype.is_bool else ("add", "sub", "mul", "min", "max")
    ops += ("div",) if dtype.is_float else () if dtype.is_bool else INTEGERS
    yield from ((op, Binary(op, a, b)) for op in ops)
    yield from ((op, Compare(op, a, b)) for op in ("lt", "le", "eq", "ne"))
    yield "select", Select(Compare("lt", a, b) if not dtype.is_bool else a, b, c)
    if not dtype.is_float:
        yield "not", Unary("not", a)
    if not dtype.is_bool:
        one = Const(1, dtype)
        yield "neg", Unary("neg", a)
        yield (
            "with a literal",
            Select(Compare("lt", a, b), Binary("max", a, one), Binary("add", b, one)),
        )
    for other in DATA:
        if other is not dtype:
            yield f"to {other}", Cast(other, a)


def calls(dtype: DType) -> Iterator[tuple[str, Expr]]:
    a, b, c = (Load(name, (i,), 0, dtype) for name in "ABC")
    if dtype.name == "i64":
        yield "random_uniform", Call("random_uniform", (a, b), f32)
    for name, function in FUNCTIONS.items():
        if dtype.is_float and function.rule != "random":
            result = bool_ if function.rule == "test" else dtype
            yield name, Call(name, (a, b, c)[: function.arity], result)


def program(dtype: DType, exprs: list[Expr]) -> Program:
    dims = (Dim(integer(0), N),)
    stages = [
        Stage(f"o{k}", 0, For("i", integer(0), integer(64), LoopKind.VECTORIZED,
                              If(i < N, Store(f"o{k}", (i,), (e,)))))
        for k, e in enumerate(exprs)
    ]  # fmt: skip
    inputs = tuple(Buffer(name, (dtype,), dims) for name in "ABC")
    outputs = tuple(Buffer(f"o{k}", (e.dtype,), dims) for k, e in enumerate(exprs))
    return Program("operations", (N,), (), inputs, outputs, block(*stages))


def sample(dtype: DType) -> np.ndarray:
    """Stored values: the ends of the range, and random ones."""
    rng = np.random.default_rng(0)
    if dtype.is_bool:
        return rng.integers(0, 2, COUNT).astype(bool)
    if dtype.is_integer:
        low, high = max(dtype.lowest, -(2**40)), min(dtype.highest, 2**40)
        ends = [0, 1, 2, 5, dtype.lowest, dtype.highest, -1 if dtype.is_signed else 3]
        values = [*ends, *(int(x) for x in rng.integers(low, high, COUNT))]
        return np.array(values[:COUNT], dtype=numerics.storage(dtype))
    values = np.array([*SPECIAL, *rng.normal(size=COUNT) * 10][:COUNT])
    with numerics.quiet():
        wide = values if dtype.name == "f64" else values.astype(np.float32)
        rounded = np.asarray(rounder(dtype)(wide))
        packed = dtype.name in ("bf16", "f8e4m3", "f8e5m2")
        return encode(dtype)(rounded) if packed else rounded.astype(numerics.storage(dtype))


def numbers(stored: np.ndarray, dtype: DType) -> np.ndarray:
    packed = dtype.name in ("bf16", "f8e4m3", "f8e5m2")
    return decode(dtype)(stored) if packed else stored


def to_torch(stored: np.ndarray, dtype: DType, device: str) -> torch.Tensor:
    return torch.from_numpy(stored.copy()).view(torch_dtype(dtype)).to(device)


def to_numpy(tensor: torch.Tensor, dtype: DType) -> np.ndarray:
    bits = {8: torch.uint8, 16: torch.int16}
    packed = dtype.name in ("bf16", "f8e4m3", "f8e5m2")
    tensor = tensor.cpu()
    return (
        (tensor.view(bits[dtype.bits]) if packed else tensor).numpy().view(numerics.storage(dtype))
    )


def agree(
    wanted: np.ndarray, got: np.ndarray, dtype: DType, ulp: float, *, zeros: bool
) -> np.ndarray:
    if not dtype.is_float:
        return wanted == got
    wanted, got = numbers(wanted, dtype).astype(np.float64), numbers(got, dtype).astype(np.float64)
    with numerics.quiet():
        same = (np.isnan(wanted) & np.isnan(got)) | (wanted == got)
        if not ulp and zeros:
            zero = (wanted == 0) & (got == 0)
            return same & (~zero | (np.signbit(wanted) == np.signbit(got)))
        if not ulp:
            return same
        # Functions may flush subnormal results to 0.
        tiny = {16: 2.0**-14, 64: 2.0**-1022}.get(
            dtype.bits if dtype.name != "bf16" else 32, 2.0**-126
        )
        flushed = (got == 0) & (np.abs(wanted) < tiny)
        step = np.maximum(np.abs(wanted), tiny) * 2.0**-dtype.mantissa
        return same | flushed | (np.abs(wanted - got) <= ulp * step)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DATA, ids=str)
def test_operations(dtype: DType, device: str) -> None:
    rows = [*operations(dtype), *calls(dtype)]
    made = program(dtype, [e for _, e in rows])
    stored = [np.roll(sample(dtype), shift) for shift in (0, 3, 8)]
    wanted = [np.zeros(COUNT, numerics.storage(e.dtype)) for _, e in rows]
    interpreted(made, {"N": COUNT}, stored, wanted)
    outputs = [torch.zeros(COUNT, dtype=torch_dtype(e.dtype), device=device) for _, e in rows]
    arrays = [to_torch(x, dtype, device) for x in stored]
    compile_program(made, TRITON).run({"N": COUNT}, {}, arrays, outputs)
    wrong: list[str] = []
    for (name, e), expected, output in zip(rows, wanted, outputs, strict=True):
        ulp = FUNCTIONS[name].ulp if name in FUNCTIONS else 0
        got = to_numpy(output, e.dtype)
        # min and max may give either zero.
        zeros = name not in ("min", "max", "with a literal")
        bad = np.flatnonzero(~agree(expected, got, e.dtype, ulp, zeros=zeros))
        wrong += [
            f"{name}: {[numbers(x, dtype)[k] for x in stored]} gives "
            f"{numbers(got, e.dtype)[k]}, not {numbers(expected, e.dtype)[k]}"
            for k in bad[:2]
        ]
    assert not wrong, "\n".join(wrong)
