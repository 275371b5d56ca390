"""The typing rules of expressions, one node at a time.

    neg: number -> same                            not: bool or integer -> same
    add sub mul min max: two numbers -> same       div: two floats -> same
    floordiv mod shl shr: two integers -> same     and or xor: two bools or integers -> same
    lt le eq ne: two of anything -> bool           Select: a bool and two of anything -> same
    Promise: three integers -> same                Cast: anything -> its dtype
    Load: indices of dtype index                   Call: as `functions.FUNCTIONS` says

Two or three of a thing are of one dtype, and `same` is that dtype.
"""

from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Name,
    Promise,
    Select,
    Unary,
)
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.types import DType, bool_, f32, i64, index

_NUMBERS = ("add", "sub", "mul", "min", "max")
_INTEGERS = ("floordiv", "mod", "shl", "shr")
_LOGIC = ("and", "or", "xor")
_COMPARISONS = ("lt", "le", "eq", "ne")


def type_fault(e: Expr) -> str | None:
    """What is wrong with the types of this node, its operands taken as right; None if nothing."""
    dtypes = [child.dtype for child in e.children]
    match e:
        case Const() | Name() | Cast():
            return None
        case Unary(op, a):
            known = not (a.dtype.is_bool if op == "neg" else a.dtype.is_float or op != "not")
            return None if known else f"`{op}` of {a.dtype}"
        case Binary(op, a, b):
            known = a.dtype is b.dtype and _takes(op, a.dtype)
            return None if known else f"`{op}` of {a.dtype} and {b.dtype}"
        case Compare(op, a, b):
            known = a.dtype is b.dtype and op in _COMPARISONS
            return None if known else f"`{op}` of {a.dtype} and {b.dtype}"
        case Select(condition, a, b):
            known = condition.dtype.is_bool and a.dtype is b.dtype
            return None if known else f"select of {condition.dtype}, {a.dtype} and {b.dtype}"
        case Promise(a, lo, hi):
            known = a.dtype.is_integer and a.dtype is lo.dtype is hi.dtype
            return None if known else f"promise of {a.dtype}, {lo.dtype} and {hi.dtype}"
        case Call():
            return _call_fault(e, dtypes)
        case Load():
            known = all(dtype is index for dtype in dtypes)
            return None if known else f"`{e.buffer}` indexed by {_listed(dtypes)}, not by index"
        case _:
            return f"{type(e).__name__} is not a node of the expression language"


def _takes(op: str, dtype: DType) -> bool:
    if op in _LOGIC:
        return not dtype.is_float
    if op in _INTEGERS:
        return dtype.is_integer
    return not dtype.is_bool if op in _NUMBERS else op == "div" and dtype.is_float


def _call_fault(e: Call, dtypes: list[DType]) -> str | None:
    function = FUNCTIONS.get(e.function)
    if function is None:
        return f"`{e.function}` is not a function"
    if len(dtypes) != function.arity:
        return f"`{e.function}` takes {function.arity} arguments, not {len(dtypes)}"
    first = i64 if function.rule == "random" else dtypes[0]
    accepted = all(dtype is first for dtype in dtypes) and (
        function.rule == "random"
        or first.is_float
        or (function.rule == "same" and not first.is_bool)
    )
    result = call_dtype(e.function, dtypes[0])
    return None if accepted and e.dtype is result else f"`{e.function}` of {_listed(dtypes)}"


def call_dtype(function: str, first: DType) -> DType:
    """The dtype of a call whose first argument has the dtype `first`."""
    rule = FUNCTIONS[function].rule
    return bool_ if rule == "test" else f32 if rule == "random" else first


def _listed(dtypes: list[DType]) -> str:
    return ", ".join(map(str, dtypes))
