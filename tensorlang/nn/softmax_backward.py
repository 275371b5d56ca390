"""The gradient of softmax of rows, from its result: neither exponentials nor sums again."""

from collections.abc import Mapping, Sequence

from tensorlang.func import Func, Input
from tensorlang.ir.functions import exp
from tensorlang.nn.numbers import M, N, i, j, over, wide
from tensorlang.nn.schedules import soft_rows
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum
from tensorlang.schedule import Schedule

# The longest row that a program holds.
_LONGEST_ROW = 1 << 15


def softmax_gradients(forward: Pipeline, wrt: Sequence[str]) -> Pipeline:
    """Of `softmax`, where out[i, :] is its result:

    softmax       grad_x[i, j] = out[i, j] * (grad_out[i, j] - sum(grad_out[i, :] * out[i, :]))
    its logarithm grad_x[i, j] = grad_out[i, j] - exp(out[i, j]) * sum(grad_out[i, :])
    """
    (given,), algorithm = wrt, forward.algorithm
    x, result = algorithm.inputs[0].dtype, algorithm.func("out").dtypes[0]
    w, a = wide(result), over("a")
    Y, G = Input("out", result, [M, N]), Input("grad_out", result, [M, N])
    slope, grad = Func("slope"), Func(f"grad_{given}")
    y, g = w(Y[i, j]), w(G[i, j])
    if forward.name == "log_softmax":
        slope[i] = sum(w(G[i, a]), over=a)
        grad[i, j] = x(g - exp(y) * slope[i])
    else:
        slope[i] = sum(w(G[i, a]) * w(Y[i, a]), over=a)
        grad[i, j] = x(y * (g - slope[i]))
    inputs = [Y, G]
    return Pipeline(f"{forward.name}_gradients", inputs=inputs, outputs={grad: [M, N]})


def softmax_rows(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """Of softmax, `soft_rows`; of its gradient on Triton a row a program, its two reads at once.

    None where a formula is as good.
    """
    length = sizes.get("N", 0)
    of_gradient = any(f.name == "slope" for f in pipeline.algorithm.funcs)
    if target != "triton" or not of_gradient or not 0 < length <= _LONGEST_ROW:
        return soft_rows(pipeline, target, sizes)
    schedule = Schedule(pipeline)
    ((name, _),) = pipeline.algorithm.outputs
    warps = 2 if length <= 1024 else 4 if length <= 4096 else 16
    schedule[name].gpu_blocks("i").vectorize("j").gpu_warps(warps)
    schedule["slope"].compute_at(name, "i").update(0).vectorize("a")
    return schedule
