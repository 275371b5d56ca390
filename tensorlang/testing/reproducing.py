"""A failure as a program of its own: algorithm, schedule and arrays, to paste and run."""

import pprint
from collections.abc import Mapping, Sequence
from typing import Any

from tensorlang.arrays import in_numpy, numpy_dtype
from tensorlang.ir.types import DType
from tensorlang.module import Module
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule
from tensorlang.target import Target

# Elements of all arrays together; more is no program that anybody reads.
_MOST_ELEMENTS = 4096
_WIDTH = 96


def reproduction(
    pipeline: Pipeline,
    schedule: Schedule,
    target: Target,
    inputs: Sequence[Any],
    *,
    sizes: Mapping[str, int],
    params: Mapping[str, Any],
) -> str:
    """A Python program that makes this comparison again, or words that say why there is none.

    Args:
        inputs: NumPy arrays in storage types, one for each Input.
    """
    elements = sum(array.size for array in inputs)
    if elements > _MOST_ELEMENTS:
        return f"# The inputs have {elements} elements; fewer would be shown as a program."
    algorithm = pipeline.algorithm
    name = "failing" if algorithm.name != "failing" else "schedule"
    module = Module({algorithm.name: pipeline}, {name: schedule})
    dtypes = [record.dtype for record in algorithm.inputs]
    listed = [_array(array, dtype) for array, dtype in zip(inputs, dtypes, strict=True)]
    where = repr(target.name)
    if target.arch is not None:
        where = f"tensorlang.Target({target.name!r}, arch={target.arch!r})"
    imports = ["import numpy as np", "import tensorlang"]
    if not all(map(in_numpy, dtypes)):
        imports.insert(0, "import ml_dtypes")
    arguments = f"sizes={dict(sizes)!r}, params={_plain(params)!r}"
    return "\n".join(
        [
            *imports,
            "from numpy import inf, nan",
            "from tensorlang.testing import assert_equivalent",
            "",
            f'module = tensorlang.parse(r"""\n{module}\n""")',
            f"pipeline, schedule = module[{algorithm.name!r}], module[{name!r}]",
            "inputs = [",
            *(f"    {array}," for array in listed),
            "]",
            f"assert_equivalent(pipeline, schedule, {where}, inputs, {arguments})",
        ]
    )


def _array(array: Any, dtype: DType) -> str:
    """The text of an array; of bf16 and f8 their bits."""
    if array.size == 0:
        made = f'np.zeros({array.shape}, "{array.dtype}")'
    else:
        values = pprint.pformat(array.tolist(), width=_WIDTH, compact=True)
        made = f'np.array({values}, "{array.dtype}")'
    return made if in_numpy(dtype) else f"{made}.view(ml_dtypes.{numpy_dtype(dtype)})"


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Params as Python's numbers, which print as they are written."""
    return {name: v.item() if hasattr(v, "item") else v for name, v in params.items()}
