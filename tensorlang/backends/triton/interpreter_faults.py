"""What Triton's interpreter (3.6 to 3.9) gets wrong, put right for the time of one launch.

- f32 -> bf16 truncates, and f32 -> f8 is wrong: casts go through our own rounding.
- arithmetic on bf16 is done on its raw bits: generated text computes in f32, but `tl.dot` takes
  bf16 operands, which are widened here (exactly, as the matrix unit does).
- `tl.fma` rounds twice, and `~` of an unsigned value fails, in 3.6.
- a comparison keeps the dtype of its operands, so that `scalar & block` is no mask.
- `tl.range` gives Python ints, and fails on bounds that were loaded or computed.
- `tl.reduce` and `tl.associative_scan` call the combine function for every single element.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorlang.backends.fma import fma_f32, fma_f64
from tensorlang.backends.rounding import decode, encode, rounder
from tensorlang.backends.triton.libraries import interpreter, tl
from tensorlang.ir.types import DType, bf16, f8e4m3, f8e5m2

_INTEGER_TESTS = ("SLE", "SLT", "SGE", "SGT", "ULE", "ULT", "UGE", "UGT", "EQ", "NE")
_FLOAT_TESTS = ("LT", "GT", "LE", "GE", "EQ", "NE")
_COMPARISONS = [
    *(f"create_icmp{test}" for test in _INTEGER_TESTS),
    *(f"create_fcmp{order}{test}" for order in "OU" for test in _FLOAT_TESTS),
]


@contextmanager
def corrected(function: Callable[..., None]) -> Generator[None]:
    """Triton's language as interpreter, without its faults; `function`'s globals name `tl`."""
    builder: Any = interpreter.interpreter_builder
    patches = _patches(builder)
    scope = interpreter._patch_lang(function)  # pyright: ignore[reportPrivateUsage]
    _patch_language(scope)
    for name, patch in patches.items():
        setattr(builder, name, patch)
    try:
        yield
    finally:
        for name in patches:
            delattr(builder, name)
        scope.restore()


def _patches(builder: Any) -> dict[str, Callable[..., Any]]:
    made = {name: _as_mask(getattr(builder, name)) for name in _COMPARISONS}
    cast = _cast(builder.cast_impl)
    made["cast_impl"] = cast
    made["create_fp_to_fp"] = _without_mode(cast)
    made["create_dot"] = _dot()
    made["create_fma"] = _fma()
    made["get_all_ones_value"] = _all_ones()
    return made


def _without_mode(cast: Callable[..., Any]) -> Callable[..., Any]:
    def cast_to_nearest(source: Any, dtype: Any, _: Any) -> Any:
        return cast(source, dtype)

    return cast_to_nearest


def _as_mask(compare: Callable[..., Any]) -> Callable[..., Any]:
    def test(a: Any, b: Any) -> Any:
        return interpreter.TensorHandle(compare(a, b).data.astype(np.bool_), tl.int1)

    return test


def _special() -> dict[Any, DType]:
    return {tl.bfloat16: bf16, tl.float8e4nv: f8e4m3, tl.float8e5: f8e5m2}


def _values(handle: Any) -> Any:
    """The numbers of a handle; those of bf16 and f8 from their bits, as float32."""
    ours = _special().get(handle.dtype.scalar)
    return handle.data if ours is None else decode(ours)(handle.data.view(_bits(ours)))


def _bits(dtype: DType) -> Any:
    return np.uint16 if dtype is bf16 else np.uint8


def _cast(plain: Callable[..., Any]) -> Callable[..., Any]:
    def cast(source: Any, dtype: Any) -> Any:
        made, special = dtype.scalar, _special()
        if source.dtype.scalar is made or not {source.dtype.scalar, made} & set(special):
            return plain(source, dtype)
        values = _values(source)
        if made not in special:
            wide = interpreter.TensorHandle(values, tl.float32)
            return wide if made is tl.float32 else plain(wide, dtype)
        ours = special[made]
        if values.dtype != np.float64:
            values = values.astype(np.float32)
        rounded = np.asarray(rounder(ours)(values), np.float32)
        bits = encode(ours)(rounded).astype(_bits(ours))
        return interpreter.TensorHandle(bits.reshape(np.shape(values)), made)

    return cast


def _dot() -> Callable[..., Any]:
    def dot(a: Any, b: Any, acc: Any, *_: Any) -> Any:
        made = acc.data.dtype
        product = np.matmul(_values(a).astype(made), _values(b).astype(made))
        return interpreter.TensorHandle(product + acc.data, acc.dtype.scalar)

    return dot


def _fma() -> Callable[..., Any]:
    def fma(a: Any, b: Any, c: Any) -> Any:
        exact = fma_f64 if c.data.dtype == np.float64 else fma_f32
        return interpreter.TensorHandle(exact(a.data, b.data, c.data), c.dtype.scalar)

    return fma


def _all_ones() -> Callable[..., Any]:
    def all_ones(dtype: Any) -> Any:
        # NumPy holds no int1, so `~` of a mask is its complement.
        bits = np.array([-1]).astype(np.bool_ if dtype.name == "int1" else dtype.scalar.name)
        return interpreter.TensorHandle(bits, dtype.scalar)

    return all_ones


def _patch_language(scope: Any) -> None:
    def scalar(value: int) -> Any:
        wide = not -(2**31) <= value < 2**31
        dtype, made = (tl.int64, np.int64) if wide else (tl.int32, np.int32)
        return tl.tensor(interpreter.TensorHandle(np.array([value], made), dtype), dtype)

    def steps(first: Any, end: Any = None, step: Any = 1, **_: Any) -> Iterator[Any]:
        low, high = (0, first) if end is None else (first, end)
        return (scalar(v) for v in range(_int(low), _int(high), _int(step)))

    def reduce(x: Any, axis: Any, combine: Any, keep_dims: bool = False, **_: Any) -> Any:
        parts = _tuple(x)
        total, *rest = _slices(parts, _int(axis))
        for part in rest:
            total = _tuple(_function(combine)(*total, *part))
        return total if isinstance(x, tuple) else total[0]

    scope.set_attr(tl, "range", steps)
    scope.set_attr(tl, "associative_scan", _scan)
    scope.set_attr(tl, "reduce", reduce)


def _scan(x: Any, axis: Any, combine: Any, reverse: Any = False, **_: Any) -> Any:
    """In each slice of the axis the slices up to it, combined."""
    parts, step = _tuple(x), -1 if _int(reverse) else 1
    running: list[tuple[Any, ...]] = []
    for part in [*_slices(parts, _int(axis))][::step]:
        running.append(_tuple(_function(combine)(*running[-1], *part)) if running else part)
    columns = zip(*running[::step], strict=True)
    made = tuple(_stacked(c, p, _int(axis)) for c, p in zip(columns, parts, strict=True))
    return made if isinstance(x, tuple) else made[0]


def _stacked(slices: tuple[Any, ...], whole: Any, axis: int) -> Any:
    """What `_slices` took apart, with the shape and dtype of `whole`."""
    shape = [n for k, n in enumerate(whole.handle.data.shape) if k != axis]
    return _tensor(np.stack([s.handle.data.reshape(shape) for s in slices], axis), whole.dtype)


def _int(value: Any) -> int:
    value = getattr(value, "value", value)
    return int(value.handle.data.reshape(-1)[0]) if hasattr(value, "handle") else int(value)


def _function(combine: Any) -> Callable[..., Any]:
    return getattr(combine, "fn", combine)


def _tuple(values: Any) -> tuple[Any, ...]:
    return (values,) if hasattr(values, "handle") else tuple(values)


def _slices(parts: tuple[Any, ...], axis: int) -> Iterator[tuple[Any, ...]]:
    """The tensors at each index of one axis, without that axis."""
    for k in range(parts[0].handle.data.shape[axis]):
        yield tuple(_tensor(np.take(p.handle.data, k, axis), p.dtype) for p in parts)


def _tensor(data: Any, dtype: Any) -> Any:
    shape = list(np.shape(data))
    made = tl.block_type(dtype, shape) if shape else dtype
    array = np.ascontiguousarray(data) if shape else np.array([data])
    return tl.tensor(interpreter.TensorHandle(array, dtype.scalar), made)
