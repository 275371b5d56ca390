"""The target `reference`: the algorithm by whole-array NumPy, with no schedule and no lowering.

Each Func is computed over the one box that its consumers need, in the order of its definitions: the
pure definition over the whole box, then each update, which runs over its domain point by point and
over its pure Vars at once.  It is the oracle of every other target, and slow.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tensorlang.algorithm import Algorithm
from tensorlang.backends import numerics
from tensorlang.backends.reference.evaluation import Evaluation
from tensorlang.ir.types import Scalar


def compile_algorithm(algorithm: Algorithm, *, wide: bool = False) -> "Reference":
    """An Executable that evaluates `algorithm`.

    Args: wide: compute every float in f64, so that only casts to a narrower dtype round; what the
        outputs of a float dtype are given is then f64 values, so pass f64 arrays for them.
    """
    return Reference(algorithm, wide=wide)


class Reference:
    """An Executable (executable.py) that evaluates an algorithm."""

    source = ""
    notes: tuple[str, ...] = ()

    def __init__(self, algorithm: Algorithm, *, wide: bool) -> None:
        self.algorithm = algorithm
        self.wide = wide

    def run(
        self,
        sizes: Mapping[str, int],
        params: Mapping[str, Scalar],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        """Compute the outputs, in place.

        Raises: BoundsError: region-outside-array, promise-broken.
        """
        with numerics.quiet():
            evaluation = Evaluation(self.algorithm, sizes, params, inputs, wide=self.wide)
            values = evaluation.outputs()
            dtypes = [t for n, _ in self.algorithm.outputs for t in self.algorithm.func(n).dtypes]
            for array, dtype, value in zip(outputs, dtypes, values, strict=True):
                is_wide = self.wide and dtype.is_float
                array[...] = value if is_wide else numerics.pack(dtype)(value)
