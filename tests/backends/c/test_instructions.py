"""Vector instructions: they compile for every x86, and keep the meaning of the scalar ones."""

import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, f32, i8, i16, i32, u8, u16
from tensorlang.backends.c.prelude import Prelude
from tensorlang.backends.c.types import CType

pytestmark = pytest.mark.cc

OPERATIONS = ("fma", "sqrt", "floor", "ceil", "rint", "abs", "load_where", "store_where")
FLAGS = {
    "avx512": ("-mavx512f",),
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


@pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("gcc") is None, reason="flags of gcc on x86"
)
@pytest.mark.parametrize("machine", FLAGS)
def test_they_compile_with_and_without_the_instructions(machine: str, tmp_path: Path) -> None:
    source = tmp_path / "prelude.c"
    source.write_text(text())
    flags = ("-std=c11", "-Wall", "-Werror", "-Wno-unused-function", "-Wno-psabi", "-fsyntax-only")
    done = subprocess.run(
        ("gcc", *flags, *FLAGS[machine], str(source)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


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
