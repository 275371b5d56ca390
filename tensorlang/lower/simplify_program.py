"""Simplify every expression and statement of a program."""

from dataclasses import replace

from tensorlang.ir.simplify_stmt import simplify_stmt
from tensorlang.ir.stmt import Program


def simplify_program(program: Program) -> Program:
    """The same program with expressions canonical, proven guards dropped, small Lets inlined.

    See: ir/simplify.py, ir/simplify_stmt.py.
    """
    body = simplify_stmt(program.body)
    return program if body is program.body else replace(program, body=body)
