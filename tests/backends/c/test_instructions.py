"""Vector instructions: they compile for every x86, and keep the meaning of the scalar ones."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, f32, i8, i16, i32, u8, u16
from tensorlang.backends.c.prelude import Prelude
from tensorlang.backends.c.types import CType

pytestmark = pytest.mark.cc

OPERATIONS = ("fma", "sqrt", "floor", "ceil", "rint", "abs", "load_where", "store_where", "stream")
OPERATIONS += ("log", "sin", "erf", "pow")
FLAGS = {
    "avx512": ("-mavx512f", "-mavx512dq"),
    "avx2": ("-mavx2", "-mfma"),
    "avx": ("-mavx",),
    "sse": ("-msse4.1",),
    "plain": (),
}
EDGES = [0.0, -0.0, 0.9, -0.9, 127.5, 128, -128.9, -129, 255.9, 256, 32767.9, 32768, -32769, 65536]
EDGES += [2147483520, 2147483648, -2147483648, -2147483904, 1e30, -1e30, np.inf, -np.inf, np.nan]


def text() -> str:
    prelude = Prelude()
    for operation in OPERATIONS:
        for t in (CType(e, n) for e in ("f32", "f64") for n in (2, 4, 8, 16, 32)):
            prelude.helper(operation, t)
    return prelude.text() + "int used;\n"


GCC = pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("gcc") is None, reason="flags of gcc on x86"
)


@GCC
@pytest.mark.parametrize("machine", FLAGS)
def test_they_compile_with_and_without_the_instructions(machine: str, tmp_path: Path) -> None:
    source = tmp_path / "prelude.c"
    source.write_text(text())
    flags = ("-std=c11", "-Wall", "-Werror", "-Wno-unused-function", "-Wno-psabi", "-fsyntax-only")
    done = subprocess.run(
        ("gcc", *flags, *FLAGS[machine], str(source)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@GCC
@pytest.mark.parametrize(
    ("machine", "lanes", "load", "store"),
    [
        ("avx2", 8, r"maskmov\w+\s\(%\w+\), %ymm", r"maskmov\w+\s%ymm\d+, %ymm\d+, \(%"),
        ("avx512", 16, r"movups\s\(%\w+\), %zmm0{%k1}{z}", r"movups\s%zmm\d, \(%\w+\){%k1}"),
    ],
)
def test_a_masked_load_and_a_masked_store_are_an_instruction_each(
    machine: str, lanes: int, load: str, store: str, tmp_path: Path
) -> None:
    prelude, t = Prelude(), CType("f32", lanes)
    names = [prelude.helper(op, t) for op in ("load_where", "store_where")]
    text = prelude.text().replace("static inline", "extern")
    source = tmp_path / "masked.c"
    source.write_text(text)
    flags = ("-std=c11", "-O3", "-w", "-S", "-o", "-", *FLAGS[machine])
    made = subprocess.run(("gcc", *flags, source), capture_output=True, text=True, check=True)
    for name, instruction in zip(names, (load, store), strict=True):
        body = made.stdout.partition(f"\n{name}:")[2].partition(".cfi_endproc")[0]
        assert re.search(instruction, body)
        assert "\tj" not in body


@pytest.mark.parametrize("dtype", [i8, i16, i32, u8, u16])
def test_lanes_saturate_when_they_become_integers(dtype) -> None:
    N, x, a, out = Size("N"), Var("x"), Input("a", f32, [Size("N")]), Func("out")
    out[x] = dtype(a[x])
    p = Pipeline("saturated", inputs=[a], outputs={out: [N]})
    s = Schedule(p)
    s[out].vectorize(x)
    values = np.array(EDGES * 3, np.float32)
    kind = np.dtype(("int" if dtype.is_signed else "uint") + str(dtype.bits))
    limits = np.iinfo(kind)
    whole = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0, posinf=1e40, neginf=-1e40))
    expected = np.clip(whole, limits.min, limits.max).astype(kind)
    np.testing.assert_array_equal(p.compile(s, "c")(values), expected)
