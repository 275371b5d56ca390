"""The host side of a program as Python text: what runs, in order."""

from collections.abc import Sequence

from tensorlang.backends.triton.dialect import Identifiers
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.emit_expr import OPERATORS, PRODUCT, Text
from tensorlang.backends.triton.partition import (
    HostIf,
    HostLet,
    HostLoop,
    HostStep,
    Workspace,
    alignment,
)
from tensorlang.backends.triton.tiles import Kernel
from tensorlang.errors import InternalError
from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Name, Promise, Select, Unary
from tensorlang.ir.facts import prove
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import Program
from tensorlang.ir.types import index
from tensorlang.ir.walk import fold

_INDENT = "    "
_CALLS = {"min": "min", "max": "max", "floordiv": "host.floordiv", "mod": "host.mod"}


class HostText:
    """Writes the host function of a program whose launches have been emitted."""

    def __init__(self, program: Program, kernels: Sequence[KernelText]) -> None:
        self.program, self.kernels = program, iter(kernels)
        self.names = Identifiers({"host": "host"})
        self.lines: list[str] = []
        self._read: set[str] = set()

    @property
    def deciding(self) -> tuple[str, ...]:
        """The Params that what was written computes with, so that it does not do the same for all.

        Those of the dtype index also decide which compiled kernel runs.
        """
        params = self.program.params
        return tuple(p.name for p in params if p.name in self._read or p.dtype is index)

    def write(self, steps: Sequence[HostStep]) -> str:
        """def linear_relu(host, A, B, bias, D, M, N, K): ..."""
        tensors = [
            self.names[name]
            for buffer in (*self.program.inputs, *self.program.outputs)
            for name in components(buffer.name, len(buffer.dtypes))
        ]
        scalars = [self.names[x.name] for x in (*self.program.sizes, *self.program.params)]
        self.lines.append(
            f"def {self.program.name.replace('.', '_')}_host("
            + ", ".join(["host", *tensors, *scalars])
            + "):"
        )
        self._steps(steps, 1)
        return "\n".join(self.lines) + "\n"

    def _steps(self, steps: Sequence[HostStep], depth: int) -> None:
        count = len(self.lines)
        for step in steps:
            self._step(step, depth)
        if len(self.lines) == count:
            self._line(depth, "pass")

    def _step(self, step: HostStep, depth: int) -> None:
        match step:
            case HostLet():
                self._line(depth, f"{self.names[step.name]} = {self._expr(step.value)}")
            case HostIf():
                self._line(depth, f"if {self._expr(step.condition)}:")
                self._steps(step.body, depth + 1)
            case HostLoop():
                low, high = self._expr(step.min), self._expr(step.min + step.extent)
                self._line(depth, f"for {self.names[step.name]} in range({low}, {high}):")
                self._steps(step.body, depth + 1)
            case Workspace():
                self._workspace(step, depth)
            case _:
                self._launch(next(self.kernels), depth)

    def _workspace(self, step: Workspace, depth: int) -> None:
        multiples = {dim: alignment(step.buffer, dim) for dim in range(len(step.shape))}
        aligned = {dim: n for dim, n in multiples.items() if n > 1}
        pad = f", pad={aligned}" if aligned else ""
        folds = step.buffer.fold or (0,) * len(step.shape)
        sizes = [
            str(fold) if fold else self._expr(e) for fold, e in zip(folds, step.shape, strict=True)
        ]
        for name, dtype in zip(
            components(step.buffer.name, len(step.buffer.dtypes)), step.buffer.dtypes, strict=True
        ):
            shape = ", ".join(sizes)
            self._line(depth, f'{self.names[name]} = host.empty("{dtype}", {shape}{pad})')

    def _launch(self, text: KernelText, depth: int) -> None:
        kernel = text.kernel
        grid = self._grid(kernel)
        for scratch in kernel.scratch:
            shape = ["programs"] + [self._extent(kernel.extents, e) for e in scratch.shape]
            memory = scratch.memory
            self._line(depth, f"programs = {grid}")
            grid = "programs"
            for name, dtype in zip(
                components(memory.parameter, len(memory.dtypes)), memory.dtypes, strict=True
            ):
                self._line(depth, f'{self.names[name]} = host.empty("{dtype}", {", ".join(shape)})')
        for counter in kernel.counters:
            count = self._expr(counter.extents[0])
            self._line(depth, f"{self.names[counter.parameter]} = host.counters({count})")
        tensors = [self.names[m.pointer(c)] for _, m, c in text.pointers]
        scalars = [self.names[name] for _, name, _ in text.scalars]
        extents = [self._expr(e) for _, _, e in text.extents]
        arguments = [text.name, grid, *(_tuple(x) for x in (tensors, scalars, extents))]
        whole = f"host.launch({', '.join(arguments)})"
        if len(whole) + len(_INDENT) * depth <= 100:
            self._line(depth, whole)
            return
        self._line(depth, "host.launch(")
        for argument in arguments:
            self._line(depth + 1, f"{argument},")
        self._line(depth, ")")

    def _grid(self, kernel: Kernel) -> str:
        counts = [self._count(g.extent, len(kernel.grid) > 1) for g in kernel.grid]
        return " * ".join(counts) or "1"

    def _count(self, extent: Expr, is_factor: bool) -> str:
        """The iterations of a grid loop: none when its extent is negative."""
        if not prove(Compare("le", integer(0), extent)):
            return f"max({self._expr(extent)}, 0)"
        return self._expr(extent, PRODUCT + 1 if is_factor else 0)

    def _extent(self, extents: object, e: Expr | str | int) -> str:
        if isinstance(e, int):
            return str(e)
        if isinstance(e, str):
            return f"host.next_power_of_2({self._expr(extents[e])})"  # type: ignore[index]
        return self._expr(e)

    def _expr(self, e: Expr, level: int = 0) -> str:
        self._read |= e.free
        return fold(e, self._print).inside(level)

    def _print(self, e: Expr, operands: list[Text]) -> Text:
        match e:
            case Name():
                return Text(self.names[e.name])
            case Const():
                return Text(f'float("{e.value}")' if repr(e.value) in _ODD else repr(e.value))
            case Binary() if e.op in _CALLS and not _is_plain(e):
                return Text(f"{_CALLS[e.op]}({', '.join(a.text for a in operands)})")
            case Binary() | Compare() if e.op in OPERATORS:
                symbol, level = OPERATORS[e.op]
                return Text(
                    f"{operands[0].inside(level)} {symbol} {operands[1].inside(level + 1)}", level
                )
            case Select():
                condition, a, b = (x.text for x in operands)
                return Text(f"({a} if {condition} else {b})")
            case Unary():
                symbol = "-" if e.op == "neg" else "not " if e.dtype.is_bool else "~"
                return Text(f"({symbol}{operands[0].text})")
            case Cast() if e.dtype.is_integer and e.a.dtype.is_integer:
                return operands[0]
            case Promise():
                return operands[0]
            case _:
                raise InternalError(f"the host cannot compute {e!r}")

    def _line(self, depth: int, text: str) -> None:
        self.lines.append(_INDENT * depth + text)


def _is_plain(e: Binary) -> bool:
    """Whether Python's own operator has the meaning: the divisor is a number that is not 0."""
    return e.op in ("floordiv", "mod") and isinstance(e.b, Const) and e.b.value != 0


_ODD = ("inf", "-inf", "nan")


def components(name: str, count: int) -> list[str]:
    """The names of the tensors of a buffer: one a component."""
    return [name] if count == 1 else [f"{name}.c{k}" for k in range(count)]


def _tuple(parts: Sequence[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
