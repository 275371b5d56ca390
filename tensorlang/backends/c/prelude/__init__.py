"""The C prelude: the helpers that a translation unit uses, and nothing else.

A helper is a C function for one operation on one type: `floordiv_i32`, `exp_f32x8`.  Scalar ones
are written out; a vector one is either written out too, or made of the scalar one lane by lane.
"""

from tensorlang.backends.c.prelude.definition import Definition, Table
from tensorlang.backends.c.prelude.elementary import ELEMENTARY
from tensorlang.backends.c.prelude.f16 import F16_VECTORS
from tensorlang.backends.c.prelude.floats import FLOATS
from tensorlang.backends.c.prelude.functions import FUNCTIONS
from tensorlang.backends.c.prelude.instructions import INSTRUCTIONS
from tensorlang.backends.c.prelude.integers import INTEGERS
from tensorlang.backends.c.prelude.memory import MEMORY, STREAMS
from tensorlang.backends.c.prelude.narrow import NARROW
from tensorlang.backends.c.prelude.threads import THREADS
from tensorlang.backends.c.prelude.vectors import VECTORS, division_by
from tensorlang.backends.c.types import SCALARS, CType
from tensorlang.errors import InternalError

_SCALAR: Table = {**INTEGERS, **FLOATS, **NARROW, **FUNCTIONS, **MEMORY, **THREADS}
_VECTOR: Table = {**VECTORS, **INSTRUCTIONS, **F16_VECTORS, **ELEMENTARY, **STREAMS}

_HEADERS = ("math.h", "stdbool.h", "stdint.h", "stdlib.h", "string.h")


class Prelude:
    """Collects the types and helpers that are asked for, operands before what uses them."""

    def __init__(self) -> None:
        self._types: dict[CType, str] = {}
        self._helpers: dict[str, Definition] = {}

    def type(self, t: CType) -> str:
        """The C name of a type, defining it if it is a vector."""
        if t.lanes > 1 and t not in self._types:
            self._types[t] = (
                f"typedef {SCALARS[t.element]} {t.tag} __attribute__((vector_size({t.bytes})));\n"
                f"typedef {SCALARS[t.element]} {t.tag}_at "
                f"__attribute__((vector_size({t.bytes}), aligned({t.bits // 8})));"
            )
        return t.name

    def helper(self, op: str, t: CType) -> str:
        """The name of the function that does `op` on `t`, defining it and what it needs."""
        name = _name(op, t)
        if name not in self._helpers:
            definition = self._define(op, t)
            for used in (definition.result, *(p for p, _ in definition.parameters)):
                if used is not None:
                    self.type(used)
            self._helpers[name] = definition
        return name

    def _define(self, op: str, t: CType) -> Definition:
        division, _, divisor = op.partition("_by_")
        if divisor:
            return division_by(division, int(divisor))(self, t)
        if t.lanes > 1 and op in _VECTOR:
            return _VECTOR[op](self, t)
        if op not in _SCALAR:
            raise InternalError(f"the C prelude has no {op} of {t.tag}")
        scalar = _SCALAR[op](self, t.scalar)
        return scalar if t.lanes == 1 else self._lanewise(op, scalar, t)

    def _lanewise(self, op: str, scalar: Definition, t: CType) -> Definition:
        """result[l] = op(a[l], b[l], ...) in every lane."""
        function = self.helper(op, t.scalar)
        assert scalar.result is not None
        parameters = tuple((p.of(t.lanes), name) for p, name in scalar.parameters)
        operands = ", ".join(f"{name}[l]" for _, name in parameters)
        result = scalar.result.of(t.lanes)
        body = f"""\
{self.type(result)} result;
for (int l = 0; l < {t.lanes}; ++l) result[l] = {function}({operands});
return result;"""
        return Definition(result, parameters, body)

    def text(self) -> str:
        """Headers, types and helpers, as a translation unit begins."""
        headers = [f"#include <{h}>" for h in _HEADERS]
        helpers = [d.text(name) for name, d in self._helpers.items()]
        parts = ("\n".join(headers), "\n".join(self._types.values()), *helpers)
        return "\n\n".join(part for part in parts if part) + "\n"


def _name(op: str, t: CType) -> str:
    if op in NARROW or "_from_" in op:  # the op names its types
        return op if t.lanes == 1 else f"{op}_x{t.lanes}"
    return f"{op.replace('.', '_')}_{t.tag}"
