"""Expressions of tile IR as Triton text.

An expression is printed for a *frame*: the ordered lanes of the tile that it must be.  What lacks
some of them is printed for its own lanes and broadcast: (i < M)[:, None] & (j < N)[None, :].
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tensorlang.backends.triton.dialect import Identifiers, triton_dtype
from tensorlang.backends.triton.masks import Knowledge
from tensorlang.backends.triton.tiles import Dot, Inverse, Lane, Lanes, Part, RandomRow, Reduce
from tensorlang.errors import InternalError
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Name,
    Select,
    Unary,
    Var,
)
from tensorlang.ir.linear import integer
from tensorlang.ir.types import DType, Kind, f32, index, tf32

Frame = tuple[Lane, ...]

# Precedence of Python's operators; higher binds tighter.
_OR, _XOR, _AND, _COMPARE, _SHIFT, _SUM, PRODUCT, _UNARY, _ATOM = 1, 2, 3, 0, 4, 5, 6, 7, 9
OPERATORS = {
    "add": ("+", _SUM), "sub": ("-", _SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT),
    "floordiv": ("//", PRODUCT), "mod": ("%", PRODUCT),
    "and": ("&", _AND), "or": ("|", _OR), "xor": ("^", _XOR),
    "lt": ("<", _COMPARE), "le": ("<=", _COMPARE), "eq": ("==", _COMPARE), "ne": ("!=", _COMPARE),
}  # fmt: skip
REDUCERS = {
    "add": "sum", "mul": "prod", "min": "min", "max": "max", "and": "all", "or": "any", "xor": "xor"
}  # fmt: skip
# Functions that Triton itself has in both modes, and those of our runtime.
_BUILTIN = {name: f"tl.{name}" for name in ("exp2", "log", "log2", "sin", "cos", "erf", "fma")}


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text, and how tightly its outermost operator binds."""

    text: str
    level: int = _ATOM

    def inside(self, level: int) -> str:
        """In parentheses unless it binds at least as tightly as `level`."""
        return self.text if self.level >= level else f"({self.text})"


class ExprPrinter:
    """Prints the expressions of one kernel; iterative in depth through an explicit stack."""

    def __init__(
        self,
        lanes: Lanes,
        names: Identifiers,
        facts: Knowledge,
        parts: Mapping[str, tuple[Part, ...]],
    ) -> None:
        self.lanes, self.names, self.facts, self.parts = lanes, names, facts, parts
        self._memo: dict[tuple[Expr, Frame], Text] = {}

    def text(self, e: Expr, frame: Frame | None = None) -> str:
        """`e` as a tile of this frame, or of its own lanes."""
        return self.placed(e, self.lanes.of(e) if frame is None else frame).text

    def bound(self, e: Expr, frame: Frame) -> str:
        """The right side of an assignment: a literal says its dtype."""
        return self.typed(e, frame).text

    def placed(self, e: Expr, frame: Frame) -> Text:
        """`e` where a tile of `frame` is wanted: broadcast with None where it lacks lanes."""
        own = set(self.lanes.of(e))
        if not own or len(own) == len(frame):
            return self._of(e, frame if own else ())
        part = self._of(e, tuple(lane for lane in frame if lane in own))
        axes = ", ".join(":" if lane in own else "None" for lane in frame)
        return Text(f"{part.inside(_ATOM)}[{axes}]")

    def whole(self, e: Expr, frame: Frame) -> str:
        """`e` as a tile that has every lane of the frame."""
        if isinstance(e, Const):
            return self.full(e, frame).text
        text = self.placed(e, frame)
        if len(self.lanes.of(e)) == len(frame):
            return text.text
        return f"tl.broadcast_to({text.text}, {self.shape(frame)})"

    def _of(self, e: Expr, frame: Frame) -> Text:
        """Print operands before what uses them, so that depth costs no recursion."""
        stack = [(e, frame)]
        while stack:
            top = stack[-1]
            if top in self._memo:
                stack.pop()
                continue
            missing = [task for task in self._operands(*top) if task not in self._memo]
            if missing:
                stack.extend(missing)
                continue
            self._memo[top] = self._print(*top)
            stack.pop()
        return self._memo[e, frame]

    def _operands(self, e: Expr, frame: Frame) -> list[tuple[Expr, Frame]]:
        """What `_print` will ask `_of` for."""
        if isinstance(e, Dot):
            return [*zip((e.a, e.b), self._dot_frames(e), strict=True)]
        children = e.children
        if isinstance(e, Reduce):
            children, frame = (e.term,), self._reduce_frame(e, frame)
        tasks: list[tuple[Expr, Frame]] = []
        for child in children:
            own = set(self.lanes.of(child))
            tasks.append((child, tuple(lane for lane in frame if lane in own)))
        return tasks

    def _print(self, e: Expr, frame: Frame) -> Text:
        match e:
            case Name():
                return self._name(e, frame)
            case Const():
                return self._const(e)
            case Unary():
                return self._unary(e, frame)
            case Binary():
                return self._binary(e, frame)
            case Compare():
                return self._infix(e.op, e.a, e.b, frame)
            case Select():
                return self._select(e, frame)
            case Cast():
                return self._cast(e, frame)
            case Call():
                return self._call(e, frame)
            case Reduce():
                inner = self._reduce_frame(e, frame)
                axis = next(k for k, lane in enumerate(inner) if lane.var is e.lane)
                return Text(f"rt.{REDUCERS[e.op]}({self.whole(e.term, inner)}, {axis})")
            case Dot():
                return self._dot(e, frame)
            case Inverse():
                return Text(f"1.0 / {self.names[e.extent]}", PRODUCT)
            case RandomRow():
                seed, first = (self.typed(x, ()).text for x in (e.seed, e.first))
                multiple = e.multiple if isinstance(e.multiple, int) else self.names[e.multiple]
                width = self.extent(frame[0])
                return Text(f"rt.random_row({seed}, {first}, {width}, {multiple})")
            case _:
                raise InternalError(f"a {type(e).__name__} stands in tile IR")

    # ---------------------------------------------------------------- leaves

    def _name(self, e: Name, frame: Frame) -> Text:
        own = self.lanes.of_name(e.name)
        if len(own) == 1 and own[0].var is e:
            return Text(f"tl.arange(0, {self.extent(own[0])})")
        name = self.names[e.name]
        for part in self.parts.get(e.name, ()):
            name = _part(name, part)
        if own == frame:
            return Text(name)
        order = [own.index(lane) for lane in frame]
        if len(order) == 2:
            return Text(f"tl.trans({name})")
        return Text(f"tl.permute({name}, {tuple(order)})")

    def extent(self, lane: Lane) -> str:
        return str(lane.extent) if isinstance(lane.extent, int) else self.names[lane.extent]

    def _const(self, e: Const) -> Text:
        if e.dtype.is_bool or not e.dtype.is_float:
            return Text(str(e.value), _ATOM if e.value >= 0 else _UNARY)
        text = repr(float(e.value))
        if text in ("inf", "-inf", "nan"):
            return Text(f'float("{text}")')
        return Text(text, _UNARY if text.startswith("-") else _ATOM)

    def typed(self, e: Expr, frame: Frame) -> Text:
        """`e`, a literal with its dtype said."""
        return self.full(e, ()) if isinstance(e, Const) else self.placed(e, frame)

    def full(self, e: Const, frame: Frame) -> Text:
        """A tile that holds one number everywhere."""
        shape = self.shape(frame)
        literal = self._const(e).text
        if e.dtype is index and -(2**31) <= e.value < 2**31:
            return Text(f"tl.full({shape}, {literal}, tl.int32)")
        if e.dtype.is_float and e.dtype.bits < 32 and e.dtype.name != "f16":
            # The interpreter of Triton 3.6 makes no bf16 and no f8 of a number.
            return self._to(Text(f"tl.full({shape}, {literal}, tl.float32)"), e.dtype)
        return Text(f"tl.full({shape}, {literal}, {triton_dtype(e.dtype)})")

    def shape(self, frame: Frame) -> str:
        """The extents of a tile, as a tuple."""
        extents = ", ".join(self.extent(lane) for lane in frame)
        return f"({extents},)" if len(frame) == 1 else f"({extents})"

    # ---------------------------------------------------------------- operators

    def _wide(self, e: Expr, frame: Frame, *, typed: bool = False) -> Text:
        """A narrow float in f32, in which its arithmetic is done."""
        narrow = _is_narrow(e.dtype)
        if isinstance(e, Const):
            return (
                self.typed(Const(e.value, f32) if narrow else e, frame) if typed else self._const(e)
            )
        text = self.placed(e, frame)
        return (
            Text(f"{text.inside(_ATOM)}.to(tl.float32)") if narrow and e.dtype is not tf32 else text
        )

    def _narrowed(self, text: Text, dtype: DType) -> Text:
        if dtype is tf32:
            return Text(f"rt.tf32({text.text})")
        if _is_narrow(dtype):
            return Text(f"{text.inside(_ATOM)}.to({triton_dtype(dtype)})")
        return text

    def _unary(self, e: Unary, frame: Frame) -> Text:
        if e.op == "not":
            a = self.placed(e.a, frame)
            if e.dtype.is_bool:
                return Text(f"{a.inside(_COMPARE + 1)} == 0", _COMPARE)
            return Text(f"~{a.inside(_UNARY)}", _UNARY)
        if e.dtype.is_float:
            return self._narrowed(
                Text(f"rt.negate({self._wide(e.a, frame, typed=True).text})"), e.dtype
            )
        return Text(f"-{self.placed(e.a, frame).inside(_UNARY)}", _UNARY)

    def _binary(self, e: Binary, frame: Frame) -> Text:
        if e.dtype.is_float:
            return self._narrowed(self._float_binary(e, frame), e.dtype)
        special = self._integer_function(e)
        if special:
            plain = special in ("minimum", "maximum") and e.dtype.name in ("i32", "index")
            args = [(self.placed if plain else self.typed)(x, frame).text for x in (e.a, e.b)]
            if e.op in ("shl", "shr"):
                args.append(str(e.dtype.bits))
            return Text(f"rt.{special}({', '.join(args)})")
        return self._infix(e.op, e.a, e.b, frame)

    def _float_binary(self, e: Binary, frame: Frame) -> Text:
        exact = e.op == "div" and e.dtype.name != "f64"
        typed = e.op in ("min", "max") and e.dtype.name == "f64"
        a, b = (self._wide(x, frame, typed=typed) for x in (e.a, e.b))
        if e.op in ("min", "max"):
            return Text(f"rt.{e.op}imum({a.text}, {b.text})")
        if exact:
            return Text(f"rt.div({a.text}, {b.text})")
        symbol, level = OPERATORS[e.op]
        return Text(f"{a.inside(level)} {symbol} {b.inside(level + 1)}", level)

    def _select(self, e: Select, frame: Frame) -> Text:
        # Beside a tile of f32 or i32 a literal takes its dtype; elsewhere it must say it.
        both = isinstance(e.a, Const) and isinstance(e.b, Const)
        typed = both or e.dtype.name not in ("f32", "i32", "index")
        sides = [(self.typed if typed else self.placed)(x, frame).text for x in (e.a, e.b)]
        return Text(f"tl.where({self.typed(e.condition, frame).text}, {', '.join(sides)})")

    def _integer_function(self, e: Binary) -> str:
        """The runtime's function for an operator that is not Triton's own."""
        unsigned = e.dtype.kind in (Kind.UNSIGNED, Kind.BOOL)
        match e.op:
            case "min" | "max":
                return f"{e.op}imum"
            case "floordiv" | "mod" if e.dtype is not index or not self._is_plain(e):
                return f"{e.op}_unsigned" if unsigned else e.op
            case "shl" | "shr":
                return f"{e.op}_unsigned" if unsigned and e.op == "shr" else e.op
            case _:
                return ""

    def _is_plain(self, e: Binary) -> bool:
        """Whether truncation is floor and the divisor is not 0."""
        over_zero = self.facts.proves(Compare("le", integer(0), e.a))
        return over_zero and self.facts.proves(Compare("lt", integer(0), e.b))

    def _infix(self, op: str, a: Expr, b: Expr, frame: Frame) -> Text:
        symbol, level = OPERATORS[op]
        if a.dtype.is_float and op in ("lt", "le", "eq", "ne"):
            left, right = self._wide(a, frame), self._wide(b, frame)
        else:
            left, right = self.placed(a, frame), self.placed(b, frame)
        below = level + 1 if level == _COMPARE else level
        return Text(f"{left.inside(below)} {symbol} {right.inside(level + 1)}", level)

    # ---------------------------------------------------------------- casts and calls

    def _cast(self, e: Cast, frame: Frame) -> Text:
        source, made = e.a.dtype, e.dtype
        a = self.typed(e.a, frame)
        if made is index:
            return Text(f"{a.inside(_ATOM)}.to(INDEX)")
        if source is made:
            return a
        if source.is_float and made.is_integer:
            wide = self._wide(e.a, frame, typed=True).text
            return Text(f"rt.to_int({wide}, {triton_dtype(made)}, {made.lowest}, {made.highest})")
        if made.is_bool:
            return Text(f"{self._wide(e.a, frame).inside(_COMPARE + 1)} != 0", _COMPARE)
        if made is f32 and source is tf32:
            return a
        first = f32 if made is tf32 or _in_two_steps(source, made) else made
        if source is index and not self.lanes.of(e.a):
            # An extent that the call fixes is a constexpr, which has no methods.
            a = Text(f"tl.cast({a.text}, {triton_dtype(first)})")
        elif source is not first:
            a = self._to(a, first)
        if made is tf32:
            return Text(f"rt.tf32({a.text})")
        return a if first is made else self._to(a, made)

    def _to(self, a: Text, dtype: DType) -> Text:
        return Text(f"{a.inside(_ATOM)}.to({triton_dtype(dtype)})")

    def _call(self, e: Call, frame: Frame) -> Text:
        name = e.function
        if e.dtype.name == "f64" and name.startswith("approx."):
            # There are cheap forms for f32 only.
            name = name.removeprefix("approx.")
        args = [self._wide(x, frame, typed=True).text for x in e.args]
        if name == "random_uniform":
            return Text(f"rt.random_uniform({', '.join(args)})")
        if name in ("isnan", "isinf"):
            return Text(f"rt.{name}({args[0]})")
        if name == "abs":
            return self._narrowed(Text(f"tl.abs({args[0]})"), e.dtype)
        if name == "sqrt":
            function = "tl.sqrt" if e.dtype.name == "f64" else "tl.sqrt_rn"
        else:
            function = _BUILTIN.get(name) or "rt." + name.replace(".", "_")
        return self._narrowed(Text(f"{function}({', '.join(args)})"), e.dtype)

    # ---------------------------------------------------------------- reductions

    def _reduce_frame(self, e: Reduce, frame: Frame) -> Frame:
        """The frame of the term: the result's lanes, and the reduced lane in its own place."""
        [lane] = self.lanes.of(e.lane)
        before = sum(1 for other in frame if other.position < lane.position)
        return (*frame[:before], lane, *frame[before:])

    def _dot_frames(self, e: Dot) -> tuple[Frame, Frame]:
        [k] = self.lanes.of(e.lane)
        acc = self._acc_frame(e)
        return (*acc[:-1], k), (*acc[:-2], k, acc[-1])

    def _acc_frame(self, e: Dot) -> Frame:
        return self.lanes.of_name(e.acc.name) if isinstance(e.acc, Var) else self.lanes.of(e.acc)

    def _dot(self, e: Dot, frame: Frame) -> Text:
        a, b = (
            self.placed(x, f).text for x, f in zip((e.a, e.b), self._dot_frames(e), strict=True)
        )
        acc = self._acc_frame(e)
        precision = {"f32": ', input_precision="ieee"', "tf32": ', input_precision="tf32"'}
        more = precision.get(e.a.dtype.name, "")
        if e.a.dtype.bits == 8 and e.a.dtype.is_float:
            more = ", max_num_imprecise_acc=128"
        if e.dtype.name == "i32":
            more = ", out_dtype=tl.int32"
        text = f"tl.dot({a}, {b}, {self.placed(e.acc, acc).text}{more})"
        if acc == frame:
            return Text(text)
        order = tuple(acc.index(lane) for lane in frame)
        return Text(f"tl.permute({text}, {order})")


def _part(tile: str, part: Part) -> str:
    """rt.half(tile, axis, which), of it again for a quarter, and so on."""
    count = part.count
    while count > 1:
        count //= 2
        tile = f"rt.half({tile}, {part.axis}, {part.number // count % 2})"
    return tile


def _in_two_steps(source: DType, made: DType) -> bool:
    """Whether a conversion goes by way of f32."""
    if source.name in ("f32", "tf32"):
        return False
    return _is_narrow(made) or (made.name == "f64" and source.is_float and source.bits == 8)


def _is_narrow(dtype: DType) -> bool:
    """Whether arithmetic is done in f32 and rounded."""
    return dtype.is_float and (dtype.bits < 32 or dtype is tf32)
