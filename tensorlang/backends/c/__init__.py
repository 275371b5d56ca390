"""The backend `c`: loop IR -> readable C with vector types and OpenMP, compiled and loaded.

    program --vectorize--> lane loops --Statements, Expressions--> C text --compiler--> function

Read in this order: `vectorize` (which loop becomes lanes), `statements`, `expressions`,
`operations` (what each node becomes), `prelude` (what C itself lacks), `toolchain`, `compiler`.
"""

from tensorlang.backends.c.executable import CExecutable
from tensorlang.backends.c.toolchain import find_toolchain
from tensorlang.backends.executable import Executable
from tensorlang.ir.stmt import Program
from tensorlang.target import Target

__all__ = ["compile_program"]


def compile_program(program: Program, target: Target) -> Executable:
    """Compile a program for this machine.

    Raises: TargetError: no-c-compiler, compiler-failed.
    """
    return CExecutable(program, find_toolchain())
