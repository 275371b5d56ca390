"""The gradient of softmax of rows, from its result: neither exponentials nor sums again."""

from collections.abc import Mapping, Sequence

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Size
from tensorlang.ir.functions import exp
from tensorlang.nn.numbers import M, N, i, j, over, wide
from tensorlang.nn.quantized_rows import in_one_read
from tensorlang.nn.schedules import soft_rows
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum
from tensorlang.schedule import Schedule

# The longest row that a program holds.
_LONGEST_ROW = 1 << 15


def softmax_gradients(forward: Pipeline, wrt: Sequence[str]) -> Pipeline:
    """Of `softmax`, where out[i, :] is its result, and the same with respect to a residual:

    softmax       grad_x[i, j] = out[i, j] * (grad_out[i, j] - sum(grad_out[i, :] * out[i, :]))
    its logarithm grad_x[i, j] = grad_out[i, j] - exp(out[i, j]) * sum(grad_out[i, :])
    """
    algorithm = forward.algorithm
    dtypes = {a.name: a.dtype for a in algorithm.inputs}
    result = algorithm.func("out").dtypes[0]
    w, a = wide(result), over("a")
    Y, G = Input("out", result, [M, N]), Input("grad_out", result, [M, N])
    slope, y, g = Func("slope"), w(Y[i, j]), w(G[i, j])
    if forward.name == "log_softmax":
        slope[i] = sum(w(G[i, a]), over=a)
        value = g - exp(y) * slope[i]
    else:
        slope[i] = sum(w(G[i, a]) * w(Y[i, a]), over=a)
        value = y * (g - slope[i])
    outputs = dict[Func, list[Size]]()
    for name in wrt:
        grad = Func(f"grad_{name}")
        grad[i, j] = dtypes[name](value)
        outputs[grad] = [M, N]
    inputs = [Y, G]
    return Pipeline(f"{forward.name}_gradients", inputs=inputs, outputs=outputs)


def softmax_rows(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """Of softmax, `soft_rows`, or `in_one_read` of 8 bits.

    Of its gradient on Triton a row a program, whose two reads are in flight at once.

    None where a formula is as good.
    """
    if pipeline.algorithm.outputs[0][0] == "q":
        return in_one_read(pipeline, target, sizes)
    length = sizes.get("N", 0)
    of_gradient = any(f.name == "slope" for f in pipeline.algorithm.funcs)
    if target != "triton" or not of_gradient or not 0 < length <= _LONGEST_ROW:
        return soft_rows(pipeline, target, sizes)
    schedule = Schedule(pipeline)
    name = pipeline.algorithm.outputs[0][0]
    warps = 2 if length <= 1024 else 4 if length <= 4096 else 16
    schedule[name].gpu_blocks("i").vectorize("j").gpu_warps(warps)
    schedule["slope"].compute_at(name, "i").update(0).vectorize("a")
    return schedule
