"""The loops of a program as pseudo-code: what runs where, in what order, and nothing else.

    gpu_block t in [0, ceil(M/128)*ceil(N/128)):
      allocate C[128, 128]
      vectorized i in [0, 128):
        vectorized j in [0, 128):
          C[...] = ...

Names lose their Func where that leaves them unique, the bounds of regions are put in where they
are used, guards are left out, and (n + 7)//8 reads ceil(n/8).  For people: it does not parse.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tensorlang.ir.expr import Binary, Call, Const, Expr, Var
from tensorlang.ir.expr_text import print_expr
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Stage,
    Stmt,
    Store,
)
from tensorlang.ir.types import index
from tensorlang.ir.walk import rewrite, substitute

_INDENT = "  "
_ZERO = Const(0, index)

# A bound of a region is put in where it is no longer than this.
_SHORT = 40


def loop_nest(stmt: Stmt) -> str:
    """One line a loop, indented, and one for what each stage stores."""
    lines: list[str] = []
    for line in _lines(stmt, _Place()):
        # An unrolled store is told once.
        if not lines or line != lines[-1]:
            lines.append(line)
    return "\n".join(lines)


def nest_line(stmt: Stmt, func: str | None = None) -> str:
    """`for y in [0, H): for x in [0, W): blur_y`: the loops in one line.

    Args: func: only the loops around the stages of this Func.
    """
    return "; ".join(_parts(stmt, _Place(), func))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement stands: what to print for each name, which vary, and in which stage."""

    shown: Mapping[str, Expr] = field(default_factory=dict[str, Expr])
    varying: frozenset[str] = frozenset()
    stage: Stage | None = None

    def text(self, e: Expr) -> str:
        return print_expr(rewrite(substitute(e, self.shown), _as_ceil))

    def in_loop(self, loop: For) -> "_Place":
        return self._with(loop.var, Var(self._short(loop.var)), varies=True)

    def in_let(self, let: Let) -> "_Place":
        value = substitute(let.value, self.shown)
        varies = bool(value.reads) or not value.free.isdisjoint(self.varying)
        # "C.i.min" is a bound of a region; "C.i" is a variable that the schedule named.
        if let.var.count(".") < 2 or len(self.text(let.value)) > _SHORT:
            value = Var(self._short(let.var), value.dtype)
        return self._with(let.var, value, varies=varies)

    def _with(self, name: str, shown: Expr, *, varies: bool) -> "_Place":
        # What a value mentions is in there already, or does not vary.
        varying = self.varying | {shown.name} if varies and isinstance(shown, Var) else self.varying
        return replace(self, shown={**self.shown, name: shown}, varying=varying)

    def _short(self, name: str) -> str:
        """The name without its Func, unless that is the name of something else here."""
        short = Var(name.partition(".")[2] or name)
        return name if any(e is short for e in self.shown.values()) else short.name

    def head(self, loop: For) -> str:
        kind = "for" if loop.kind is LoopKind.SERIAL else loop.kind.value
        low, extent = self.text(loop.min), self.text(loop.extent)
        span = f"[0, {extent})" if low == "0" else f"[{low}, +{extent})"
        hints = "".join(f" {name}={value}" for name, value in loop.hints)
        return f"{kind} {self.text(self.shown[loop.var])} in {span}{hints}:"

    def allocation(self, buffer: Buffer) -> str:
        memory = "" if buffer.memory == "auto" else f" in {buffer.memory}"
        sizes = ", ".join(self.text(dim.extent) for dim in buffer.dims)
        return f"allocate {buffer.name}[{sizes}]{memory}"

    def update(self) -> str:
        """`.update(0)` in the first update of a Func, nothing in its pure definition."""
        number = self.stage.number if self.stage else 0
        return f".update({number - 1})" if number else ""

    def is_chosen_by_call(self, condition: Expr) -> bool:
        """Whether a condition picks a variant by sizes and params, and is no guard of a loop."""
        shown = substitute(condition, self.shown)
        return not shown.reads and shown.free.isdisjoint(self.varying)


def _lines(stmt: Stmt, place: _Place) -> Iterator[str]:
    match stmt:
        case Block(statements):
            for s in statements:
                yield from _lines(s, place)
        case Stage(body=body):
            yield from _lines(body, replace(place, stage=stmt))
        case For(body=body):
            inner = place.in_loop(stmt)
            yield inner.head(stmt)
            yield from (_INDENT + line for line in _lines(body, inner))
        case Let(body=body):
            yield from _lines(body, place.in_let(stmt))
        case If(condition, body) if place.is_chosen_by_call(condition):
            yield f"if {place.text(condition)}:"
            yield from (_INDENT + line for line in _lines(body, place))
        case If(body=body):
            yield from _lines(body, place)
        case Allocate(buffer, body):
            if place.varying:
                yield place.allocation(buffer)
            yield from _lines(body, place)
        case Store(buffer=name):
            update = place.update()
            yield f"{name}[...] = ..." + (f"  # {name}{update}" if update else "")
        case Assert():
            pass


def _parts(stmt: Stmt, place: _Place, func: str | None) -> Iterator[str]:
    """The one-line texts of the statements, each once."""
    match stmt:
        case Block(statements):
            texts = (text for s in statements for text in _parts(s, place, func))
            yield from dict.fromkeys(texts)
        case Stage(body=body):
            yield from _parts(body, replace(place, stage=stmt), func)
        case For(body=body):
            inner = place.in_loop(stmt)
            parts = list(_parts(body, inner, func))
            if parts:
                text = parts[0] if len(parts) == 1 else f"{{ {'; '.join(parts)} }}"
                yield f"{inner.head(stmt)} {text}"
        case Let(body=body):
            yield from _parts(body, place.in_let(stmt), func)
        case If(body=body) | Allocate(body=body):
            yield from _parts(body, place, func)
        case Store(buffer=name):
            if func in (None, name):
                yield f"{name}{place.update()}"
        case Assert():
            pass


def _as_ceil(e: Expr) -> Expr:
    """(a + (n - 1))//n   ->   ceil(a/n), a node that is only ever printed."""
    match e:
        case Binary("floordiv", Binary("add", a, Const(value=less)), Const(value=n)) if (
            less == n - 1 and n > 1
        ):
            divisor = Const(n, index)
        case Binary("floordiv", Binary("sub", Binary("add", a, divisor), Const(value=1)), n) if (
            divisor is n
        ):
            pass
        case _:
            return e
    return Call("ceil", (Binary("div", a, divisor),), index)
