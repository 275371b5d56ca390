"""Whole programs give the numbers that NumPy and torch give, interpreted and on a GPU."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from tensorlang.text.loop_ir import parse_program
from tests.backends.triton import programs
from tests.backends.triton.running import DEVICES, interpreted, nan, run

SHAPES = [(5, 37), (1, 1), (4, 16), (0, 3)]


class Arrays:
    """Random inputs and unwritten outputs on one device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.generator = torch.Generator().manual_seed(0)

    def random(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(shape, generator=self.generator).to(self.device, dtype)

    def nan(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return nan(*shape, dtype=dtype, device=self.device)


@pytest.fixture(params=DEVICES)
def arrays(request: pytest.FixtureRequest) -> Arrays:
    return Arrays(request.param)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(37, 50, 33), (32, 64, 16), (1, 1, 1), (0, 5, 3), (3, 5, 0)]
)
def test_linear_relu_over_odd_sizes(arrays: Arrays, m: int, n: int, k: int) -> None:
    a = arrays.random(m, k, dtype=torch.float16)
    b = arrays.random(k, n, dtype=torch.float16)
    bias = arrays.random(n, dtype=torch.float16)
    d = arrays.nan(m, n, dtype=torch.float16)
    run(programs.LINEAR_RELU, {"M": m, "N": n, "K": k}, [a, b, bias], [d])
    wanted = (a.float() @ b.float() + bias.float()).relu().half()
    torch.testing.assert_close(d, wanted, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_a_guarded_tail_is_masked(arrays: Arrays, m: int, n: int) -> None:
    a, d = arrays.random(m, n), arrays.nan(m, n)
    run(programs.SCALE, {"M": m, "N": n}, [a], [d])
    assert torch.equal(d, a * 2 + 1)


@pytest.mark.parametrize(("m", "n"), [(5, 37), (3, 64), (2, 1)])
def test_softmax_of_whole_rows(arrays: Arrays, m: int, n: int) -> None:
    a, out = arrays.random(m, n), arrays.nan(m, n)
    run(programs.SOFTMAX, {"M": m, "N": n}, [a], [out])
    torch.testing.assert_close(out, a.softmax(1))


def test_padding_joins_no_maximum(arrays: Arrays) -> None:
    a, out = torch.full((2, 5), -7.0, device=arrays.device), arrays.nan(2, 5)
    run(programs.SOFTMAX, {"M": 2, "N": 5}, [a], [out])
    torch.testing.assert_close(out, torch.full_like(a, 0.2))


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_sums_of_rows_in_blocks(arrays: Arrays, m: int, n: int) -> None:
    a, s = arrays.random(m, n), arrays.nan(m)
    run(programs.ROW_SUMS, {"M": m, "N": n}, [a], [s])
    torch.testing.assert_close(s, a.sum(1))


@pytest.mark.parametrize("program", [programs.BLUR_AT_TILE, programs.BLUR_AT_ROOT])
@pytest.mark.parametrize(("h", "w"), [(7, 11), (4, 8), (1, 1)])
def test_a_stencil_over_an_intermediate(arrays: Arrays, program: str, h: int, w: int) -> None:
    image, out = arrays.random(h + 2, w + 2), arrays.nan(h, w)
    run(program, {"H": h, "W": w}, [image], [out])
    bx = image[:, :-2] + image[:, 1:-1] + image[:, 2:]
    assert torch.equal(out, bx[:-2] + bx[1:-1] + bx[2:])


def test_a_scan_over_rows(arrays: Arrays) -> None:
    a, c = arrays.random(5, 9), arrays.nan(5, 9)
    run(programs.CUMSUM, {"M": 5, "N": 9}, [a], [c])
    torch.testing.assert_close(c, a.cumsum(1))


def test_argmax_takes_the_first_and_nan_is_largest(arrays: Arrays) -> None:
    a = arrays.random(5, 21)
    a[1, 3] = a[1, 20] = 9.0
    a[2, 5] = a[2, 17] = float("nan")
    a[3, :] = -float("inf")
    best, at = arrays.nan(5), torch.full((5,), -1, device=arrays.device)
    run(programs.ARGMAX, {"M": 5, "N": 21}, [a], [best, at])
    wanted = np.argmax(a.cpu().numpy(), axis=1)
    assert at.tolist() == wanted.tolist()
    np.testing.assert_array_equal(best.cpu().numpy(), a.cpu().numpy()[np.arange(5), wanted])


def test_a_histogram_runs_serially_and_says_so(arrays: Arrays) -> None:
    a = torch.tensor([0, 3, 1, 3, 3, 9, -4], dtype=torch.int32, device=arrays.device)
    h = torch.full((4,), -1, dtype=torch.int32, device=arrays.device)
    executable = run(programs.HISTOGRAM, {"N": 7, "B": 4}, [a], [h])
    assert h.tolist() == [2, 1, 0, 4]
    [note] = executable.notes
    assert "'h.r' runs serially" in note


def test_a_matmul_that_accumulates_in_its_output(arrays: Arrays) -> None:
    a = arrays.random(19, 45, dtype=torch.bfloat16)
    b = arrays.random(37, 45, dtype=torch.bfloat16)
    c = arrays.nan(19, 37)
    run(programs.MATMUL_NT, {"M": 19, "N": 37, "K": 45}, [a, b], [c])
    torch.testing.assert_close(c, a.float() @ b.float().T)


def test_any_strides_are_honoured(arrays: Arrays) -> None:
    a = arrays.random(37, 10).T[::2]
    d = arrays.nan(37, 5).T
    run(programs.SCALE, {"M": 5, "N": 37}, [a], [d])
    assert torch.equal(d, a * 2 + 1)
    row = arrays.random(37).expand(5, 37)
    run(programs.SCALE, {"M": 5, "N": 37}, [row], [d])
    assert torch.equal(d, row * 2 + 1)


def test_a_row_beyond_two_to_the_31_elements_is_reached() -> None:
    # Three rows, 2^30 elements apart, of a buffer whose pages are mostly never touched.
    rows = torch.empty((2 << 30) + 64, dtype=torch.int8).as_strided((3, 40), (1 << 30, 1))
    rows.copy_(torch.arange(120).reshape(3, 40))
    out = torch.zeros(3, 40, dtype=torch.int8)
    text = programs.SCALE.replace("f32", "i8").replace("2.0:", "1:").replace("1.0:", "1:")
    run(text, {"M": 3, "N": 40}, [rows], [out])
    assert out.flatten().tolist() == list(range(1, 121))


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "tf32", "f8e4m3", "i8", "index"])
def test_the_variable_of_a_loop_becomes_any_dtype(arrays: Arrays, dtype: str) -> None:
    text = f"""
program p(M; A: f32[M]) -> D: f32[M, 5]:
  gpu_block i in [0, M):
    for j in [0, 5):
      D[i, j] = A[i] + f32({dtype}(j))
"""
    a, d = arrays.random(3), arrays.nan(3, 5)
    run(text, {"M": 3}, [a], [d])
    assert torch.equal(d, a[:, None] + torch.arange(5, device=arrays.device))


def test_random_numbers_along_a_row_take_their_seed_from_the_definition(arrays: Arrays) -> None:
    a, d = arrays.random(3, 64), arrays.nan(3, 64)
    run(programs.NOISE, {"M": 3}, [a], [d])
    wanted = np.full((3, 64), np.nan, np.float32)
    interpreted(parse_program(programs.NOISE), {"M": 3}, [a.cpu().numpy()], [wanted])
    assert np.array_equal(d.cpu().numpy(), wanted)


MIRRORED = """
program p(N; A: f32[N]) -> D: f32[3, 5]:
  gpu_block i in [0, 3):
    for j in [i, +5):
      D[i, j - i] = A[(j - 4) % N]
"""


def test_a_process_in_which_triton_itself_is_to_interpret_is_no_different() -> None:
    """There Triton's own functions, ours of `runtime` among them, are interpreted ones."""
    program = f"""
import torch
from tests.backends.triton.running import nan, run
d = nan(3, 5)
run({MIRRORED!r}, {{"N": 4}}, [torch.arange(4.0)], [d])
print(d.int().tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    wanted = [[(j - 4 + i) % 4 for j in range(5)] for i in range(3)]
    assert done.stdout.strip() == str(wanted), done.stderr
