"""The expression language, shared by algorithms and loop IR.

    Expr = Const(value, dtype)              a literal
         | Var(name, dtype)                 a loop variable, or a name bound by Let
         | Size(name) | Param(name, dtype)  what a call gives: an extent; a scalar
         | Unary(op, a)                     neg not
         | Binary(op, a, b)                 add sub mul div floordiv mod min max and or xor shl shr
         | Compare(op, a, b)                lt le eq ne
         | Select(condition, a, b)          lazy: only the chosen side has to be defined
         | Cast(dtype, a)
         | Call(function, args, dtype)      a name of `functions.FUNCTIONS`
         | Load(buffer, indices, component, dtype)
         | Promise(a, lo, hi)               a, of which the writer promises lo <= a <= hi

Nodes are immutable, typed when built, and interned: two equal expressions are one object, so that
structural equality is `is`, a memo is a dict, and a shared sub-expression stays shared.  `==`
builds a comparison; its truth value is defined only between names, so that `Var("i") == Var("i")`.

Meaning (it holds on every backend):
- both operands of an operation have one dtype; only Cast and Call change it;
- `index` arithmetic is exact; other integers wrap; floordiv and mod floor, and give 0 when b is 0;
- shifts by the width or more give 0 (shr of a negative value: -1);
- f16 and bf16 round after each operation; min and max propagate NaN;
- Cast float -> int truncates and saturates, NaN to 0; int -> narrower int wraps.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from tensorlang.errors import DefinitionError
from tensorlang.ir.conversion import convert
from tensorlang.ir.interning import Interning, node, not_an_operand
from tensorlang.ir.types import (
    DType,
    Scalar,
    bool_,
    f32,
    i32,
    i64,
    index,
    promote,
    set_cast,
)

_NONE: frozenset[str] = frozenset()


def as_expr(value: object, like: DType | None = None) -> "Expr":
    """`value` as an expression; a Python scalar takes the dtype of its partner `like`.

    A Python scalar never widens: with a float partner it becomes that float, an int or bool with an
    integer partner becomes that integer (and must fit); only a float beside an integer makes f32.
    """
    if isinstance(value, Operators):
        return value.as_expr()
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        array: Any = value
        value = array.item()
    if not isinstance(value, (bool, int, float)):
        raise not_an_operand(value)
    if like is None:
        like = bool_ if isinstance(value, bool) else f32 if isinstance(value, float) else i32
    elif isinstance(value, float) and not like.is_float:
        like = f32
    elif like.is_bool and not isinstance(value, bool):
        like = i64
    if isinstance(value, int) and like.is_integer and not like.lowest <= value <= like.highest:
        raise DefinitionError(
            "constant-out-of-range",
            f"the constant {value} does not fit {like}",
            why=f"a Python scalar takes the dtype of the expression beside it, and {like} holds "
            f"{like.lowest} to {like.highest}",
            fix="cast the expression to a wider dtype first, as in i64(e)",
        )
    return Const(value, like)


def together(a: object, b: object, what: str) -> tuple["Expr", "Expr"]:
    """Both operands as expressions of their common dtype."""
    if isinstance(a, Operators):
        x = a.as_expr()
        y = as_expr(b, x.dtype)
    else:
        y = as_expr(b)
        x = as_expr(a, y.dtype)
    dtype = promote(x.dtype, y.dtype)
    if dtype is None:
        raise DefinitionError(
            "no-common-dtype",
            f"{what} of {x.dtype} and {y.dtype} has no dtype",
            why="no integer dtype holds the values of both",
            fix="cast one of them, as in i64(e) or u64(e)",
        )
    return cast(dtype, x), cast(dtype, y)


def cast(dtype: DType, e: "Expr") -> "Expr":
    """`e` converted to `dtype`; `e` itself when it has that dtype."""
    if e.dtype is dtype:
        return e
    if isinstance(e, Const):
        return Const(convert(e.value, dtype), dtype)
    return Cast(dtype, e)


def make_cast(dtype: DType, value: object) -> "Expr":
    """What calling a dtype does: f32(e) rounds to nearest even; f8 saturates; to ints truncates."""
    if isinstance(value, (bool, int, float)):
        return Const(convert(value, dtype), dtype)
    return cast(dtype, as_expr(value))


set_cast(make_cast)


def arithmetic(op: str, a: object, b: object) -> "Expr":
    """a op b in their common dtype."""
    x, y = together(a, b, f"`{SYMBOLS[op]}`")
    if op in _INTEGER_OPS and x.dtype.is_float:
        raise DefinitionError(
            "integers-only",
            f"`{SYMBOLS[op]}` is not defined on {x.dtype}",
            why="it is an operation on integers" + (" and bools" if op in _LOGIC else ""),
            fix="use floor(a / b) and a - floor(a / b) * b" if op in ("floordiv", "mod")
            else "cast to an integer first, as in i32(e), or compare to get a bool",
        )  # fmt: skip
    if x.dtype.is_bool and op not in _LOGIC:
        if op not in ("min", "max"):
            raise DefinitionError(
                "bool-arithmetic",
                f"`{SYMBOLS[op]}` is not defined on two bools",
                why="a bool is a truth value, not a number",
                fix="use & | ^ ~ for logic, or cast to an integer first, as in i32(e)",
            )
        op = "and" if op == "min" else "or"
    return Binary(op, x, y)


SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%",
    "min": "minimum", "max": "maximum", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
    "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
}  # fmt: skip
_LOGIC = ("and", "or", "xor")
_INTEGER_OPS = (*_LOGIC, "floordiv", "mod", "shl", "shr")


def divide(a: object, b: object) -> "Expr":
    """a / b: correctly rounded; of two integers in f32, as torch."""
    x, y = together(a, b, "`/`")
    if not x.dtype.is_float:
        x, y = cast(f32, x), cast(f32, y)
    return Binary("div", x, y)


def power(a: object, b: object) -> "Expr":
    """a ** b: an int exponent from 0 to 4 multiplies, any other calls pow."""
    if type(b) is int and 0 <= b <= 4:
        x = as_expr(a)
        result = Const(1, x.dtype) if b == 0 else x
        for _ in range(b - 1):
            result = arithmetic("mul", result, x)
        return result
    x, y = together(a, b, "`**`")
    if not x.dtype.is_float:
        raise DefinitionError(
            "integer-power",
            f"`**` of {x.dtype} needs an exponent that is a Python int from 0 to 4",
            why="an integer power wraps, and a negative exponent has no integer value",
            fix="multiply, or cast to a float first, as in f32(e) ** n",
        )
    return Call("pow", (x, y), x.dtype)


def compare(op: str, a: object, b: object) -> "Expr":
    """a op b as a bool."""
    return Compare(op, *together(a, b, f"`{SYMBOLS[op]}`"))


def negate(a: object) -> "Expr":
    """-a; an integer wraps."""
    x = as_expr(a)
    if x.dtype.is_bool:
        return arithmetic("sub", 0, cast(i32, x))
    return Const(-x.value, x.dtype) if isinstance(x, Const) else Unary("neg", x)


def invert(a: object) -> "Expr":
    """~a: not of a bool, bitwise of an integer."""
    x = as_expr(a)
    if x.dtype.is_float:
        raise DefinitionError(
            "integers-only",
            f"`~` is not defined on {x.dtype}",
            why="it is an operation on bools and integers",
            fix="compare to get a bool, as in ~(e > 0)",
        )
    return Unary("not", x)


def _left(build: Callable[..., "Expr"], *op: str) -> Callable[["Operators", "Operand"], "Expr"]:
    return lambda self, other: build(*op, self, other)


def _right(build: Callable[..., "Expr"], *op: str) -> Callable[["Operators", "Operand"], "Expr"]:
    return lambda self, other: build(*op, other, self)


class Operators:
    """Python's operators, for everything that stands for an expression."""

    __slots__ = ()

    def as_expr(self) -> "Expr":
        """The expression that this stands for."""
        raise NotImplementedError

    __add__, __radd__ = _left(arithmetic, "add"), _right(arithmetic, "add")
    __sub__, __rsub__ = _left(arithmetic, "sub"), _right(arithmetic, "sub")
    __mul__, __rmul__ = _left(arithmetic, "mul"), _right(arithmetic, "mul")
    __floordiv__, __rfloordiv__ = _left(arithmetic, "floordiv"), _right(arithmetic, "floordiv")
    __mod__, __rmod__ = _left(arithmetic, "mod"), _right(arithmetic, "mod")
    __and__, __rand__ = _left(arithmetic, "and"), _right(arithmetic, "and")
    __or__, __ror__ = _left(arithmetic, "or"), _right(arithmetic, "or")
    __xor__, __rxor__ = _left(arithmetic, "xor"), _right(arithmetic, "xor")
    __lshift__, __rlshift__ = _left(arithmetic, "shl"), _right(arithmetic, "shl")
    __rshift__, __rrshift__ = _left(arithmetic, "shr"), _right(arithmetic, "shr")
    __truediv__, __rtruediv__ = _left(divide), _right(divide)
    __pow__, __rpow__ = _left(power), _right(power)
    __lt__, __gt__ = _left(compare, "lt"), _right(compare, "lt")
    __le__, __ge__ = _left(compare, "le"), _right(compare, "le")
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> "Expr":  # type: ignore[override]
        return compare("eq", self, other)

    def __ne__(self, other: object) -> "Expr":  # type: ignore[override]
        return compare("ne", self, other)

    def __neg__(self) -> "Expr":
        return negate(self)

    def __pos__(self) -> "Expr":
        return self.as_expr()

    def __invert__(self) -> "Expr":
        return invert(self)

    def __bool__(self) -> bool:
        raise DefinitionError(
            "no-truth-value",
            "an expression has no truth value while the algorithm is written",
            why="it stands for a value at every point, so `if`, `and`, `or`, `not` cannot test it",
            fix="use select(condition, a, b), and & | ~ between conditions",
        )

    def __iter__(self) -> Any:
        raise DefinitionError(
            "not-iterable",
            "an expression cannot be iterated over or unpacked",
            why="it stands for one scalar at each point",
            fix="index a Func or an RDom with [...], and unpack only a tuple-valued Func",
        )


class Expr(Operators, metaclass=Interning):
    """Base of all expression nodes: `dtype`, the names it is free in, the buffers it reads."""

    __slots__ = ("__weakref__", "children", "dtype", "free", "reads")
    # The names of what a node is made of, and their defaults.
    parts: ClassVar[tuple[str, ...]] = ()
    defaults: ClassVar[tuple[Any, ...]] = ()
    dtype: DType
    children: tuple["Expr", ...]
    free: frozenset[str]
    reads: frozenset[str]

    def as_expr(self) -> "Expr":
        return self

    def rebuild(self, children: tuple["Expr", ...]) -> "Expr":
        """The same node over other operands."""
        given: list[Any] = []
        rest = iter(children)
        for part in type(self).parts:
            value = getattr(self, part)
            if isinstance(value, Expr):
                value = next(rest)
            elif isinstance(value, tuple):
                value = tuple(next(rest) for _ in value)  # type: ignore[arg-type]
            given.append(value)
        return type(self)(*given)

    def __repr__(self) -> str:
        return _shallow(self, 3)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, part) for part in type(self).parts)

    def _set(self, dtype: DType, *operands: "Expr") -> None:
        put = object.__setattr__
        put(self, "dtype", dtype)
        put(self, "children", operands)
        free, reads = _NONE, _NONE
        for operand in operands:
            free = _union(free, operand.free)
            reads = _union(reads, operand.reads)
        put(self, "free", free)
        put(self, "reads", reads)


def _shallow(value: object, depth: int) -> str:
    """For debugging; depth-limited, because a shared expression is exponential as a tree."""
    if isinstance(value, tuple):
        return "(" + ", ".join(_shallow(v, depth) for v in value) + ")"  # type: ignore[misc]
    if not isinstance(value, Expr):
        return repr(value)
    inner = (_shallow(getattr(value, part), depth - 1) for part in type(value).parts)
    return f"{type(value).__name__}({', '.join(inner) if depth else '...'})"


def _union(a: frozenset[str], b: frozenset[str]) -> frozenset[str]:
    """a | b, keeping one of the two objects where it can."""
    if a is b or not b:
        return a
    if not a or a <= b:
        return b
    return a if b <= a else a | b


Operand = Operators | Scalar


@node
class Const(Expr):
    """A literal: floats are already rounded to `dtype`, integers already wrapped."""

    value: Scalar
    dtype: DType
    # What tells two apart is the bits of the value: 1, 1.0 and True are equal, and NaN is not.
    by_bits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set(self.dtype)


class Name(Expr):
    """A named leaf."""

    __slots__ = ()
    name: str

    def __str__(self) -> str:
        return self.name

    def _named(self, dtype: DType) -> None:
        check_name(self.name, type(self).__name__)
        self._set(dtype)
        object.__setattr__(self, "free", frozenset((self.name,)))


def check_name(name: object, what: str) -> None:
    """Raise unless `name` is an identifier; dots are for names that lowering makes."""
    if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
        raise DefinitionError(
            "bad-name",
            f"{name!r} cannot name a {what}",
            why="names become identifiers of the generated code",
            fix=f'use letters, digits and underscores: {what}("x")',
        )


@node
class Var(Name):
    """A pure variable of a definition, a loop variable, or a name bound by Let."""

    name: str
    dtype: DType = index

    def __post_init__(self) -> None:
        self._named(self.dtype)


@node
class Size(Name):
    """A symbolic extent, >= 0, solved from the shapes of a call or given by `sizes=`."""

    name: str

    def __post_init__(self) -> None:
        self._named(index)


@node
class Param(Name):
    """A scalar argument of a call."""

    name: str
    dtype: DType

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, DType):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DefinitionError(
                "bad-dtype",
                f"{self.dtype!r} is not a dtype for Param {self.name!r}",
                why="a scalar has one of tensorlang's dtypes",
                fix=f'Param("{self.name}", f32)',
            )
        self._named(self.dtype)


@node
class Unary(Expr):
    """neg (wraps for integers) | not (of bool; bitwise of integers)."""

    op: str
    a: Expr

    def __post_init__(self) -> None:
        self._set(self.a.dtype, self.a)


@node
class Binary(Expr):
    """a op b, both of one dtype, which is the result's."""

    op: str
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        self._set(self.a.dtype, self.a, self.b)


@node
class Compare(Expr):
    """a op b as a bool; any comparison with NaN but `ne` is false."""

    op: str
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        self._set(bool_, self.a, self.b)

    def __bool__(self) -> bool:
        if self.op in ("eq", "ne") and isinstance(self.a, Name) and isinstance(self.b, Name):
            return (self.a is self.b) == (self.op == "eq")
        return Operators.__bool__(self)


@node
class Select(Expr):
    """a where the condition holds, else b; the other side need not be defined there."""

    condition: Expr
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        self._set(self.a.dtype, self.condition, self.a, self.b)


@node
class Cast(Expr):
    """The value converted to another dtype."""

    dtype: DType
    a: Expr

    def __post_init__(self) -> None:
        self._set(self.dtype, self.a)


@node
class Call(Expr):
    """A function of `functions.FUNCTIONS`."""

    function: str
    args: tuple[Expr, ...]
    dtype: DType

    def __post_init__(self) -> None:
        self._set(self.dtype, *self.args)


@node
class Load(Expr):
    """An element of a Func, an Input or a buffer; `component` picks from a tuple-valued one."""

    buffer: str
    indices: tuple[Expr, ...]
    component: int
    dtype: DType

    def __post_init__(self) -> None:
        self._set(self.dtype, *self.indices)
        object.__setattr__(self, "reads", _union(self.reads, frozenset((self.buffer,))))


@node
class Promise(Expr):
    """a, of which the writer promises lo <= a <= hi; reference and interpreter check it."""

    a: Expr
    lo: Expr
    hi: Expr

    def __post_init__(self) -> None:
        self._set(self.a.dtype, self.a, self.lo, self.hi)
