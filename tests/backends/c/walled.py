"""Programs of test_statements over arrays that end, or begin, where memory may not be touched.

A test of test_statements runs this as a process of its own: what touches anything else ends it.
"""

import ctypes
import mmap
import sys

import numpy as np

from tensorlang.backends.c import compile_program
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program
from tests.backends.c import test_statements as statements

_PROTECT = ctypes.CDLL(None, use_errno=True).mprotect
_PROTECT.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
# The mappings live as long as the process.
_KEPT: list[mmap.mmap] = []


def walled(array: np.ndarray, *, behind: bool) -> np.ndarray:
    """A copy of the array, behind which (or before which) nothing may be read or written."""
    page = mmap.PAGESIZE
    room = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, room + page)
    _KEPT.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert _PROTECT(start + room if behind else start, page, 0) == 0
    first = room - array.nbytes if behind else page
    made = np.frombuffer(memory, array.dtype, array.size, first).reshape(array.shape)
    made[...] = array
    return made


def main(names: list[str]) -> None:
    """Run each program for each of the sizes, at both walls."""
    for name in names or statements.PROGRAMS:
        program = parse_program(statements.PROGRAMS[name])
        compiled = compile_program(program, Target("c"))
        for sizes in statements.SIZES:
            own = {size.name: sizes[size.name] for size in program.sizes}
            params = {p.name: statements.PARAMS[p.name] for p in program.params}
            for behind in (True, False):
                arrays = [statements.array_of(b, own, k) for k, b in enumerate(program.inputs)]
                print(name, own, "behind" if behind else "before", flush=True)
                inputs = [walled(a, behind=behind) for a in arrays]
                outputs = [walled(a, behind=behind) for a in statements.outputs_of(program, own)]
                compiled.run(own, params, inputs, outputs)
    print("done")


if __name__ == "__main__":
    main(sys.argv[1:])
