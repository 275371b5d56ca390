"""Arrays to try a pipeline on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlang.arrays import numpy_dtype
from tensorlang.calling.evaluate import evaluate
from tensorlang.ir.expr import Compare, Const, Size
from tensorlang.ir.stmt import Assert
from tensorlang.ir.types import DType, Scalar
from tensorlang.pipeline import Pipeline

# Odd, and different, so that tails and transposed shapes show.
_SIZES = (13, 7, 17, 5, 11, 3)
_MOST_DOUBLINGS = 6


def random_array(
    rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], *, special: bool
) -> Any:
    """Small values of every sign; `special`: one element in eight is NaN, inf, -0.0 or extreme."""
    as_numpy = numpy_dtype(dtype)
    if dtype.is_bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        small = rng.integers(max(dtype.lowest, -9), 10, shape).astype(as_numpy)
        extreme = rng.choice(np.array([dtype.lowest, dtype.highest], as_numpy), shape)
        return np.where(rng.random(shape) < (0.125 if special else 0), extreme, small)
    values = rng.standard_normal(shape).astype(np.float32)
    if special:
        odd = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0], np.float32), shape)
        values = np.where(rng.random(shape) < 0.125, odd, values)
    return values.astype(as_numpy)


def sample_inputs(
    pipeline: Pipeline, params: dict[str, Scalar], asserts: Sequence[Assert] | None = None
) -> tuple[tuple[Any, ...], dict[str, int]]:
    """Arrays of small odd sizes that the asserts of the pipeline allow, and the sizes.

    Args: asserts: of a program, which may ask for more than the pipeline does.
    Raises: ValueError: no such sizes are found.
    """
    algorithm = pipeline.algorithm
    asserts = pipeline.asserts if asserts is None else asserts
    for doubling in range(_MOST_DOUBLINGS):
        sizes = {
            size.name: _SIZES[k % len(_SIZES)] << doubling for k, size in enumerate(algorithm.sizes)
        }
        sizes |= fixed_sizes(asserts)
        names: dict[str, Scalar] = {**params, **sizes}
        if all(evaluate(a.condition, names) for a in asserts):
            rng = np.random.default_rng(0)
            shapes = [tuple(int(evaluate(n, names)) for n in a.shape) for a in algorithm.inputs]
            pairs = zip(algorithm.inputs, shapes, strict=True)
            return tuple(random_array(rng, a.dtype, s, special=False) for a, s in pairs), sizes
    raise ValueError(f"no small sizes fit {pipeline.name!r}: pass inputs=")


def fixed_sizes(asserts: Sequence[Assert]) -> dict[str, int]:
    """The Sizes that have to be one number."""
    return {
        a.condition.a.name: int(a.condition.b.value)
        for a in asserts
        if isinstance(a.condition, Compare)
        and a.condition.op == "eq"
        and isinstance(a.condition.a, Size)
        and isinstance(a.condition.b, Const)
    }
