"""The text of generated kernels: what a reader sees."""

from collections.abc import Callable

import pytest

from tensorlang import Func, Pipeline, Schedule, Size, Var, i32
from tests.backends.triton import programs
from tests.backends.triton.running import compiled

GOLDEN = {
    "linear_relu": programs.with_tiles(programs.LINEAR_RELU, 128, 64),
    "scale": programs.SCALE,
    "softmax": programs.SOFTMAX,
    "row_sums": programs.ROW_SUMS,
    "blur_at_tile": programs.BLUR_AT_TILE,
    "blur_at_root": programs.BLUR_AT_ROOT,
    "cumsum": programs.CUMSUM,
    "argmax": programs.ARGMAX,
    "histogram": programs.HISTOGRAM,
    "matmul_nt": programs.MATMUL_NT,
}


@pytest.mark.parametrize("name", GOLDEN)
def test_generated_text(name: str, golden: Callable[..., None]) -> None:
    golden(compiled(GOLDEN[name]).source, name)


def test_no_line_is_long() -> None:
    for text in GOLDEN.values():
        assert max(map(len, compiled(text).source.splitlines())) <= 110


def test_the_same_program_gives_the_same_text() -> None:
    assert compiled(programs.SOFTMAX).source == compiled(programs.SOFTMAX).source


def test_the_variable_of_a_serial_loop_is_cast_also_where_it_is_a_python_int():
    n, i, f = Size("N"), Var("i"), Func("f")
    f[i] = i32(i) * 3
    p = Pipeline("p", inputs=[], outputs={f: [n]})
    out = p.compile(Schedule(p), target="triton")(sizes={"N": 5})
    assert out.tolist() == [0, 3, 6, 9, 12]
