"""Loop IR as text that parses back (`tensorlang.text.loop_ir`) to the same program.

    program = "program" name "(" [sizes] [";" params] [";" inputs] ")" ["->" outputs] ":" suite
    sizes   = name, ...
    params  = name ":" dtype, ...
    inputs  = outputs = buffer, ...
    buffer  = name ":" dtypes "[" dim, ... "]" ["in" memory] ["fold" "(" int, ... ")"] hint ...
    dtypes  = dtype | "(" dtype, ... ")"          one a component
    dim     = extent | min ":" "+" extent         a min left out is 0
    hint    = name "=" (int | string)

    suite   = statements, one a line, indented; "pass" where there is none
    stmt    = kind ["reduction"] name "in" range hint ... ":" suite
            | "let" name "=" expr [":" suite]     without a suite: over the rest of its suite
            | "allocate" buffer [":" suite]       likewise
            | "if" expr ":" suite
            | "stage" func "." number ":" suite
            | ["atomic"] name "[" expr, ... "]" "=" (expr | "(" expr, ... ")")
            | "assert" expr "else" error "(" code, what=, why=, fix= [, values=[expr, ...]] ")"
    kind    = "for" | "parallel" | "unrolled" | "vectorized" | "gpu_block"
    range   = "[0," extent ")" | "[" min ", +" extent ")"

    expr    = Python's operators with Python's precedence: | ^ & << >> + - * / // % unary - ~, and
              below them one of < <= == !=, which does not chain
            | min(a, b) | max(a, b) | select(condition, a, b) | promise(a, lo, hi)
            | dtype(a) | function(a, ...)         a Cast; a Call
            | name | buffer[a, ...] | buffer[a, ...].component
            | 3 | 3:i32 | 0.5:f16 | -inf:f32 | nan:f64 | true | false     a bare int is an index
            | "{" name "=" expr ";" ... expr "}"  parts that stand there often, written once

A name that is a word of this grammar stands between backquotes; a comment runs from # to the end
of its line.  All that a Program holds is in its text, but for spans.
"""

import json
from collections.abc import Iterable, Iterator

from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.expr_text import print_expr, print_name
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Buffer,
    Dim,
    For,
    Hints,
    If,
    Let,
    LoopKind,
    Program,
    Stage,
    Stmt,
    Store,
)
from tensorlang.ir.types import index

__all__ = ["print_expr", "print_program", "print_stmt"]

_INDENT = "  "
_ZERO = Const(0, index)


def print_program(program: Program) -> str:
    """The program as text, with a newline at its end."""
    sections = (
        ", ".join(print_name(size.name) for size in program.sizes),
        ", ".join(f"{print_name(param.name)}: {param.dtype}" for param in program.params),
        ", ".join(map(_buffer, program.inputs)),
    )
    header = f"program {print_name(program.name)}({'; '.join(filter(None, sections))})"
    if program.outputs:
        header += " -> " + ", ".join(map(_buffer, program.outputs))
    return "\n".join([f"{header}:", *_suite(program.body)]) + "\n"


def print_stmt(stmt: Stmt) -> str:
    """The statement as it stands in a program, with a newline at its end."""
    return "\n".join(_lines_of(stmt)) + "\n"


def opening_of(stmt: Stmt) -> str:
    """The statement without what stands below it: `for C.i in [0, M)`."""
    match stmt:
        case Stage():
            return f"stage {print_name(stmt.func)}.{stmt.number}"
        case For():
            return _loop(stmt)
        case Let():
            return f"let {print_name(stmt.var)} = {print_expr(stmt.value)}"
        case If():
            return f"if {print_expr(stmt.condition)}"
        case Allocate():
            return f"allocate {_buffer(stmt.buffer)}"
        case Store():
            atomic = "atomic " if stmt.atomic else ""
            at = f"{print_name(stmt.buffer)}[{_listed(stmt.indices)}]"
            return f"{atomic}{at} = {_values(stmt.values)}"
        case Assert():
            return f"assert {print_expr(stmt.condition)}"
        case Block():
            return "block"


def _suite(stmt: Stmt) -> Iterator[str]:
    return (_INDENT + line for line in _lines_of(stmt))


def _lines_of(stmt: Stmt) -> Iterator[str]:
    """The lines of a statement and all below it; a Let or Allocate runs to the suite's end."""
    statements = list(_opened(stmt))
    if not statements:
        yield "pass"
    for k, s in enumerate(statements):
        last = k == len(statements) - 1
        match s:
            case Let() | Allocate() if last:
                yield opening_of(s)
                if any(_opened(s.body)):
                    yield from _lines_of(s.body)
            case Stage() | For() | If() | Let() | Allocate():
                yield f"{opening_of(s)}:"
                yield from _suite(s.body)
            case Assert():
                yield from _assert(s)
            case Store() | Block():
                yield opening_of(s)


def _opened(stmt: Stmt) -> Iterator[Stmt]:
    """The statements of nested Blocks, in order."""
    if isinstance(stmt, Block):
        for s in stmt.statements:
            yield from _opened(s)
    else:
        yield stmt


def _loop(loop: For) -> str:
    kind = "for" if loop.kind is LoopKind.SERIAL else loop.kind.value
    reduction = " reduction" if loop.reduction else ""
    low, extent = print_expr(loop.min), print_expr(loop.extent)
    span = f"[0, {extent})" if loop.min is _ZERO else f"[{low}, +{extent})"
    return f"{kind}{reduction} {print_name(loop.var)} in {span}{_hints(loop.hints)}"


def _buffer(buffer: Buffer) -> str:
    dtypes = ", ".join(map(str, buffer.dtypes))
    element = dtypes if len(buffer.dtypes) == 1 else f"({dtypes})"
    text = f"{print_name(buffer.name)}: {element}[{', '.join(map(_dim, buffer.dims))}]"
    if buffer.memory != "auto":
        text += f" in {print_name(buffer.memory)}"
    if buffer.fold:
        text += f" fold ({', '.join(map(str, buffer.fold))})"
    return text + _hints(buffer.hints)


def _dim(dim: Dim) -> str:
    extent = print_expr(dim.extent)
    return extent if dim.min is _ZERO else f"{print_expr(dim.min)} : +{extent}"


def _hints(hints: Hints) -> str:
    return "".join(
        f" {print_name(name)}={value if isinstance(value, int) else _string(value)}"
        for name, value in hints
    )


def _values(values: tuple[Expr, ...]) -> str:
    return _listed(values) if len(values) == 1 else f"({_listed(values)})"


def _listed(operands: Iterable[Expr]) -> str:
    return ", ".join(map(print_expr, operands))


def _assert(stmt: Assert) -> Iterator[str]:
    yield f"{opening_of(stmt)} else {stmt.error}({_string(stmt.code)},"
    yield f"{_INDENT}what={_string(stmt.what)},"
    yield f"{_INDENT}why={_string(stmt.why)},"
    end = "," if stmt.values else ")"
    yield f"{_INDENT}fix={_string(stmt.fix)}{end}"
    if stmt.values:
        yield f"{_INDENT}values=[{_listed(stmt.values)}])"


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# str(program) is its text.  The nodes, which this module reads, cannot import it.
Program.__str__ = lambda self: print_program(self)  # noqa: PLW0108 (a method names it `self`)
