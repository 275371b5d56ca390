"""Programs over arrays that end, or begin, where memory may not be touched.

A test of test_statements runs this as a process of its own: what touches anything else ends it.
"""

import sys

from tensorlang.backends.c import compile_program
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program
from tests.backends.c import programs
from tests.walls import walled


def main(names: list[str]) -> None:
    """Run each program for each of the sizes, at both walls."""
    for name in names or programs.PROGRAMS:
        program = parse_program(programs.PROGRAMS[name])
        compiled = compile_program(program, Target("c"))
        for sizes in programs.SIZES:
            own = {size.name: sizes[size.name] for size in program.sizes}
            params = {p.name: programs.PARAMS[p.name] for p in program.params}
            for behind in (True, False):
                arrays = [programs.array_of(b, own, k) for k, b in enumerate(program.inputs)]
                print(name, own, "behind" if behind else "before", flush=True)
                inputs = [walled(a, behind=behind) for a in arrays]
                outputs = [walled(a, behind=behind) for a in programs.outputs_of(program, own)]
                compiled.run(own, params, inputs, outputs)
    print("done")


if __name__ == "__main__":
    main(sys.argv[1:])
