"""Programs between the passes of lowering, and what they compute."""

from dataclasses import replace
from typing import Any

from tensorlang import Pipeline, Schedule, Target
from tensorlang.backends import interpreter
from tensorlang.ir.printer import print_program
from tensorlang.ir.stmt import Program, block
from tensorlang.kernel import Kernel


def programs(pipeline: Pipeline, schedule: Schedule) -> dict[str, Program]:
    """The program after `build_nests` and after each pass, by the name of what made it."""
    found: dict[str, Program] = {}
    pipeline.lower(schedule, trace=found.__setitem__)
    return found


def around(pipeline: Pipeline, schedule: Schedule, step: str) -> tuple[Program, Program]:
    """The program before and after one pass."""
    found = programs(pipeline, schedule)
    names = list(found)
    return found[names[names.index(step) - 1]], found[step]


def run(pipeline: Pipeline, program: Program, *arrays: Any, **arguments: Any) -> tuple[Any, ...]:
    """What a program computes in the interpreter, one array an output."""
    program = replace(program, body=block(*pipeline.asserts, program.body))
    return executed(program, *arrays, **arguments)


def text(program: Program) -> str:
    return print_program(program)


def executed(program: Program, *arrays: Any, **arguments: Any) -> tuple[Any, ...]:
    """What a program without asserts computes in the interpreter."""
    target = Target("interpreter")
    kernel = Kernel(program, interpreter.compile_program(program, target), target)
    made = kernel(*arrays, **arguments)
    return made if isinstance(made, tuple) else (made,)
