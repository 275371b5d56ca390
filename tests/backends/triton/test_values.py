"""Whole programs give the numbers that NumPy and torch give, in Triton's interpreter."""

import numpy as np
import pytest
import torch

from tests.backends.triton import programs
from tests.backends.triton.running import nan, run

SHAPES = [(5, 37), (1, 1), (4, 16), (0, 3)]


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(37, 50, 33), (32, 64, 16), (1, 1, 1), (0, 5, 3), (3, 5, 0)]
)
def test_linear_relu_over_odd_sizes(rng: torch.Generator, m: int, n: int, k: int) -> None:
    a = torch.randn(m, k, generator=rng).half()
    b = torch.randn(k, n, generator=rng).half()
    bias = torch.randn(n, generator=rng).half()
    d = nan(m, n, dtype=torch.float16)
    run(programs.LINEAR_RELU, {"M": m, "N": n, "K": k}, [a, b, bias], [d])
    wanted = (a.float() @ b.float() + bias.float()).relu().half()
    torch.testing.assert_close(d, wanted, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_a_guarded_tail_is_masked(rng: torch.Generator, m: int, n: int) -> None:
    a, d = torch.randn(m, n, generator=rng), nan(m, n)
    run(programs.SCALE, {"M": m, "N": n}, [a], [d])
    assert torch.equal(d, a * 2 + 1)


@pytest.mark.parametrize(("m", "n"), [(5, 37), (3, 64), (2, 1)])
def test_softmax_of_whole_rows(rng: torch.Generator, m: int, n: int) -> None:
    a, out = torch.randn(m, n, generator=rng), nan(m, n)
    run(programs.SOFTMAX, {"M": m, "N": n}, [a], [out])
    torch.testing.assert_close(out, a.softmax(1))


def test_padding_joins_no_maximum() -> None:
    a, out = torch.full((2, 5), -7.0), nan(2, 5)
    run(programs.SOFTMAX, {"M": 2, "N": 5}, [a], [out])
    torch.testing.assert_close(out, torch.full((2, 5), 0.2))


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_sums_of_rows_in_blocks(rng: torch.Generator, m: int, n: int) -> None:
    a, s = torch.randn(m, n, generator=rng), nan(m)
    run(programs.ROW_SUMS, {"M": m, "N": n}, [a], [s])
    torch.testing.assert_close(s, a.sum(1))


@pytest.mark.parametrize("program", [programs.BLUR_AT_TILE, programs.BLUR_AT_ROOT])
@pytest.mark.parametrize(("h", "w"), [(7, 11), (4, 8), (1, 1)])
def test_a_stencil_over_an_intermediate(rng: torch.Generator, program: str, h: int, w: int) -> None:
    image, out = torch.randn(h + 2, w + 2, generator=rng), nan(h, w)
    run(program, {"H": h, "W": w}, [image], [out])
    bx = image[:, :-2] + image[:, 1:-1] + image[:, 2:]
    assert torch.equal(out, bx[:-2] + bx[1:-1] + bx[2:])


def test_a_scan_over_rows(rng: torch.Generator) -> None:
    a, c = torch.randn(5, 9, generator=rng), nan(5, 9)
    run(programs.CUMSUM, {"M": 5, "N": 9}, [a], [c])
    torch.testing.assert_close(c, a.cumsum(1))


def test_argmax_takes_the_first_and_nan_is_largest(rng: torch.Generator) -> None:
    a = torch.randn(5, 21, generator=rng)
    a[1, 3] = a[1, 20] = 9.0
    a[2, 5] = a[2, 17] = float("nan")
    a[3, :] = -float("inf")
    best, at = nan(5), torch.full((5,), -1)
    run(programs.ARGMAX, {"M": 5, "N": 21}, [a], [best, at])
    wanted = np.argmax(a.numpy(), axis=1)
    assert at.tolist() == wanted.tolist()
    np.testing.assert_array_equal(best.numpy(), a.numpy()[np.arange(5), wanted])


def test_a_histogram_runs_serially_and_says_so() -> None:
    a = torch.tensor([0, 3, 1, 3, 3, 9, -4], dtype=torch.int32)
    h = torch.full((4,), -1, dtype=torch.int32)
    executable = run(programs.HISTOGRAM, {"N": 7, "B": 4}, [a], [h])
    assert h.tolist() == [2, 1, 0, 4]
    [note] = executable.notes
    assert "'h.r' runs serially" in note


def test_a_matmul_that_accumulates_in_its_output(rng: torch.Generator) -> None:
    a = torch.randn(19, 45, generator=rng).bfloat16()
    b = torch.randn(37, 45, generator=rng).bfloat16()
    c = nan(19, 37)
    run(programs.MATMUL_NT, {"M": 19, "N": 37, "K": 45}, [a, b], [c])
    torch.testing.assert_close(c, a.float() @ b.float().T)


def test_any_strides_are_honoured(rng: torch.Generator) -> None:
    a = torch.randn(37, 10, generator=rng).T[::2]
    d = torch.full((37, 5), float("nan")).T
    run(programs.SCALE, {"M": 5, "N": 37}, [a], [d])
    assert torch.equal(d, a * 2 + 1)
    row = torch.randn(37, generator=rng).expand(5, 37)
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
