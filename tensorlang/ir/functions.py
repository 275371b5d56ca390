"""The functions an expression may call, with the types they take and what each returns.

Strict functions (`abs floor ceil round sqrt fma isnan isinf` and `random_uniform`) give the same
bits on every backend.  The others are accurate to a documented number of ulp per target
(`tensorlang.testing` checks them against it).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tensorlang.errors import DefinitionError
from tensorlang.ir.expr import (
    Call,
    Const,
    Expr,
    Operand,
    Operators,
    Promise,
    Select,
    arithmetic,
    as_expr,
    cast,
    together,
)
from tensorlang.ir.types import DType, bool_, f32, i32, i64

Rule = Literal["float", "same", "test", "random"]


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its arity, and how its result's dtype follows from its arguments'.

    `float`: integers become f32, the result has the dtype of the arguments.  `same`: any numeric
    dtype.  `test`: a bool.  `random`: f32 of two integers.  `ulp`: the error allowed in f32 by any
    backend, 0 for a strict function.
    """

    name: str
    arity: int
    rule: Rule
    ulp: float
    doc: str


def _table(*rows: Function) -> dict[str, Function]:
    return {row.name: row for row in rows}


FUNCTIONS: dict[str, Function] = _table(
    Function("abs", 1, "same", 0, "|a|; the lowest integer stays itself"),
    Function("floor", 1, "float", 0, "the largest integer <= a, as a float"),
    Function("ceil", 1, "float", 0, "the smallest integer >= a, as a float"),
    Function("round", 1, "float", 0, "the nearest integer as a float, ties to even"),
    Function("sqrt", 1, "float", 0, "the square root, correctly rounded"),
    Function("fma", 3, "float", 0, "a*b + c, rounded once"),
    Function("isnan", 1, "test", 0, "whether a is NaN"),
    Function("isinf", 1, "test", 0, "whether a is +inf or -inf"),
    Function("exp", 1, "float", 4, "e to the a"),
    Function("exp2", 1, "float", 4, "2 to the a"),
    Function("log", 1, "float", 4, "the natural logarithm"),
    Function("log2", 1, "float", 4, "the logarithm to base 2"),
    Function("rsqrt", 1, "float", 4, "1 / sqrt(a)"),
    Function("sin", 1, "float", 4, "the sine of a, in radians"),
    Function("cos", 1, "float", 4, "the cosine of a, in radians"),
    Function("tanh", 1, "float", 8, "the hyperbolic tangent"),
    Function(
        "erf", 1, "float", 16, "the error function 2/sqrt(pi) * integral of exp(-t*t), 0 to a"
    ),
    Function("sigmoid", 1, "float", 8, "1 / (1 + exp(-a))"),
    Function("pow", 2, "float", 16, "a to the b, as IEEE pow"),
    Function("approx.tanh", 1, "float", 2**13, "tanh within 2^-10.9 relative (PTX tanh.approx)"),
    Function(
        "approx.exp2", 1, "float", 8, "exp2 within 2 ulp, flushing subnormals (ex2.approx.ftz)"
    ),
    Function("approx.erf", 1, "float", 2**13, "erf within 3e-7 absolute (one ex2.approx)"),
    Function(
        "approx.rcp", 1, "float", 4, "1 / a within 1 ulp, flushing subnormals (rcp.approx.ftz)"
    ),
    Function(
        "random_uniform", 2, "random", 0, "word b of the Philox-4x32-7 stream of seed a, in [0, 1)"
    ),
)


def call(name: str, *args: Operand) -> Expr:
    """FUNCTIONS[name](*args), with the arguments promoted by its rule."""
    function = FUNCTIONS[name]
    if function.rule == "random":
        return Call(name, tuple(_integer(a, name) for a in args), f32)
    operands = _all_together(args, f"`{name}`")
    dtype = operands[0].dtype
    if not dtype.is_float and function.rule in ("float", "test"):
        if function.rule == "test":
            return Const(False, bool_)
        operands, dtype = [cast(f32, e) for e in operands], f32
    if dtype.is_bool:
        operands, dtype = [cast(i32, e) for e in operands], i32
    return Call(name, tuple(operands), bool_ if function.rule == "test" else dtype)


def _integer(a: Operand, name: str) -> Expr:
    e = as_expr(a, i64)
    if not e.dtype.is_integer:
        raise DefinitionError(
            "integers-only",
            f"`{name}` takes integers, not {e.dtype}",
            why="its arguments are a seed and an index, each of 64 bits",
            fix="cast to an integer first, as in i64(e)",
        )
    return cast(i64, e)


def _all_together(args: Sequence[Operand], what: str) -> list[Expr]:
    """All as expressions of their common dtype, which Python scalars take and never widen."""
    typed = [a for a in args if isinstance(a, Operators)]
    common = as_expr(typed[0] if typed else args[0])
    for a in (*typed, *args):
        common, _ = together(common, a, what)
    return [together(common, a, what)[1] for a in args]


def abs(a: Operand) -> Expr:
    """|a|.  The lowest value of a signed integer type stays itself (it wraps)."""
    return call("abs", a)


def floor(a: Operand) -> Expr:
    """The largest integer <= a, as a float."""
    return call("floor", a)


def ceil(a: Operand) -> Expr:
    """The smallest integer >= a, as a float."""
    return call("ceil", a)


def round(a: Operand) -> Expr:
    """The integer nearest to a, ties to even, as a float."""
    return call("round", a)


def sqrt(a: Operand) -> Expr:
    """The square root, correctly rounded; NaN below 0."""
    return call("sqrt", a)


def rsqrt(a: Operand) -> Expr:
    """1 / sqrt(a)."""
    return call("rsqrt", a)


def exp(a: Operand) -> Expr:
    """e to the a."""
    return call("exp", a)


def exp2(a: Operand) -> Expr:
    """2 to the a."""
    return call("exp2", a)


def log(a: Operand) -> Expr:
    """The natural logarithm; -inf at 0, NaN below."""
    return call("log", a)


def log2(a: Operand) -> Expr:
    """The logarithm to base 2; -inf at 0, NaN below."""
    return call("log2", a)


def sin(a: Operand) -> Expr:
    """The sine of a, in radians."""
    return call("sin", a)


def cos(a: Operand) -> Expr:
    """The cosine of a, in radians."""
    return call("cos", a)


def tanh(a: Operand) -> Expr:
    """The hyperbolic tangent."""
    return call("tanh", a)


def erf(a: Operand) -> Expr:
    """The error function."""
    return call("erf", a)


def sigmoid(a: Operand) -> Expr:
    """1 / (1 + exp(-a))."""
    return call("sigmoid", a)


def pow(a: Operand, b: Operand) -> Expr:
    """a to the b, as IEEE pow; see also the operator `**`, which multiplies for small int b."""
    return call("pow", a, b)


def fma(a: Operand, b: Operand, c: Operand) -> Expr:
    """a*b + c with one rounding."""
    return call("fma", a, b, c)


def isnan(a: Operand) -> Expr:
    """Whether a is NaN; false for integers."""
    return call("isnan", a)


def isinf(a: Operand) -> Expr:
    """Whether a is +inf or -inf; false for integers."""
    return call("isinf", a)


def random_uniform(seed: Operand, index: Operand) -> Expr:
    """A number in [0, 1), f32: a pure function of two integers, the same bits on every backend.

    Word `index % 4` of Philox-4x32-7 at counter `index // 4` (a 128-bit counter whose low 64 bits
    are given) under the 64-bit key `seed`; its top 24 bits times 2^-24.
    See: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
    """
    return call("random_uniform", seed, index)


class approx:
    """Cheap hardware or polynomial forms; an algorithm that wants them names them."""

    @staticmethod
    def tanh(a: Operand) -> Expr:
        """tanh within 2^-10.9 relative error."""
        return call("approx.tanh", a)

    @staticmethod
    def exp2(a: Operand) -> Expr:
        """exp2 within 2 ulp; subnormal results may be 0."""
        return call("approx.exp2", a)

    @staticmethod
    def erf(a: Operand) -> Expr:
        """erf within 3e-7 absolute error."""
        return call("approx.erf", a)

    @staticmethod
    def rcp(a: Operand) -> Expr:
        """1 / a within 1 ulp; what is subnormal may be taken as 0."""
        return call("approx.rcp", a)


def minimum(a: Operand, b: Operand) -> Expr:
    """The smaller of two values; NaN where either is NaN."""
    return arithmetic("min", a, b)


def maximum(a: Operand, b: Operand) -> Expr:
    """The larger of two values; NaN where either is NaN."""
    return arithmetic("max", a, b)


def clamp(a: Operand, lo: Operand, hi: Operand) -> Expr:
    """minimum(maximum(a, lo), hi): it bounds an index that depends on data."""
    return minimum(maximum(a, lo), hi)


def promise(a: Operand, lo: Operand, hi: Operand) -> Expr:
    """a, which the writer promises to lie in [lo, hi]; it bounds an index that depends on data.

    Raises: BoundsError (promise-broken) on the targets reference and interpreter; elsewhere a
    broken promise is undefined behaviour.
    """
    e = as_expr(a)
    if not e.dtype.is_integer:
        raise DefinitionError(
            "integers-only",
            f"promise takes an integer, not {e.dtype}",
            why="a promise bounds an index",
            fix="cast to an integer first, as in i32(e)",
        )
    return Promise(e, cast(e.dtype, as_expr(lo, e.dtype)), cast(e.dtype, as_expr(hi, e.dtype)))


def select(*args: Operand) -> Expr:
    """select(c1, a1, c2, a2, ..., otherwise): the value beside the first condition that holds.

    Only the chosen value has to be defined, so a condition may guard an index.
    """
    if len(args) < 3 or len(args) % 2 == 0:
        raise DefinitionError(
            "select-arguments",
            f"select takes pairs of condition and value, and one value more; not {len(args)} terms",
            why="the last value is the one for points where no condition holds",
            fix="select(condition, a, b) or select(c1, a, c2, b, otherwise)",
        )
    *values, result = _all_together((*args[1:-1:2], args[-1]), "select")
    for condition, value in reversed(list(zip(args[:-1:2], values, strict=True))):
        test = as_expr(condition)
        if not test.dtype.is_bool:
            raise DefinitionError(
                "condition-not-bool",
                f"the condition of select is of dtype {test.dtype}",
                why="a condition is a bool, and numbers are not converted silently",
                fix="compare, as in select(e != 0, a, b)",
            )
        result = Select(test, value, result)
    return result


def identity(op: str, dtype: DType) -> Const:
    """The value that `op` leaves unchanged: 0 for add, -inf or the lowest integer for max, ..."""
    floats = {"add": 0.0, "mul": 1.0, "max": float("-inf"), "min": float("inf")}
    if dtype.is_float:
        return Const(floats[op], dtype)
    integers = {
        "add": 0, "mul": 1, "max": dtype.lowest, "min": dtype.highest,
        "or": False if dtype.is_bool else 0, "and": True if dtype.is_bool else -1, "xor": 0,
    }  # fmt: skip
    return Const(integers[op], dtype)
