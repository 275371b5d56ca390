"""tensorlang: a scheduling language for tensor kernels.  What to compute, and how, apart."""

from typing import TYPE_CHECKING, Any

from tensorlang.autoschedule import autoschedule
from tensorlang.boundary import (
    constant_exterior,
    mirror_image,
    mirror_interior,
    repeat_edge,
    repeat_image,
)
from tensorlang.domain import RDom
from tensorlang.errors import (
    BoundsError,
    DefinitionError,
    InternalError,
    ParseError,
    ScheduleError,
    ShapeError,
    TargetError,
    TensorlangError,
)
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Param, Size, Var
from tensorlang.ir.functions import (
    abs,
    approx,
    ceil,
    clamp,
    cos,
    erf,
    exp,
    exp2,
    floor,
    fma,
    isinf,
    isnan,
    log,
    log2,
    maximum,
    minimum,
    pow,
    promise,
    random_uniform,
    round,
    rsqrt,
    select,
    sigmoid,
    sin,
    sqrt,
    tanh,
)
from tensorlang.ir.types import (
    bf16,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    tf32,
    u8,
    u16,
    u32,
    u64,
)
from tensorlang.ir.types import bool_ as bool
from tensorlang.kernel import Kernel
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import (
    all,
    any,
    argmax,
    argmin,
    cummax,
    cumprod,
    cumsum,
    max,
    min,
    prod,
    sum,
)
from tensorlang.schedule import Schedule
from tensorlang.target import Target, available

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tensorlang.module import Module, load, parse
    from tensorlang.torch.compiler import explain as explain
    from tensorlang.torch.compiler import warmup as warmup

__all__ = [
    "BoundsError",
    "DefinitionError",
    "Func",
    "Input",
    "InternalError",
    "Kernel",
    "Module",
    "Param",
    "ParseError",
    "Pipeline",
    "RDom",
    "Schedule",
    "ScheduleError",
    "ShapeError",
    "Size",
    "Target",
    "TargetError",
    "TensorlangError",
    "Var",
    "abs",
    "all",
    "any",
    "approx",
    "argmax",
    "argmin",
    "cummax",
    "cumprod",
    "cumsum",
    "autoschedule",
    "available",
    "bf16",
    "bool",
    "ceil",
    "clamp",
    "constant_exterior",
    "cos",
    "erf",
    "exp",
    "exp2",
    "f8e4m3",
    "f8e5m2",
    "f16",
    "f32",
    "f64",
    "floor",
    "fma",
    "i8",
    "i16",
    "i32",
    "i64",
    "isinf",
    "isnan",
    "load",
    "log",
    "log2",
    "max",
    "maximum",
    "min",
    "minimum",
    "mirror_image",
    "mirror_interior",
    "parse",
    "pow",
    "prod",
    "promise",
    "random_uniform",
    "repeat_edge",
    "repeat_image",
    "round",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "sqrt",
    "sum",
    "tanh",
    "tf32",
    "u8",
    "u16",
    "u32",
    "u64",
]


def __getattr__(name: str) -> Any:
    """What needs lark, or torch, is loaded when it is first asked for."""
    if name in ("Module", "load", "parse"):
        from tensorlang import module

        return getattr(module, name)
    if name in ("explain", "warmup"):
        # Not in __all__: to import * loads no torch.
        from tensorlang.torch import compiler

        return getattr(compiler, name)
    raise AttributeError(f"module 'tensorlang' has no attribute {name!r}")
