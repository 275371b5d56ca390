"""A sum of products is a dot where the matrix unit can take it; other reductions are tl.reduce."""

import pytest
import torch

from tests.backends.triton import programs
from tests.backends.triton.running import compiled, nan, run

PRODUCT = "f32(A[C.i, C.k])*f32(B[C.k, C.j])"


def linear_relu(term: str, dtype: str = "f16") -> str:
    text = programs.LINEAR_RELU.replace(PRODUCT, term)
    return text.replace("A: f16", f"A: {dtype}").replace("B: f16", f"B: {dtype}")


@pytest.mark.parametrize(
    ("dtype", "term", "wanted"),
    [
        ("f16", PRODUCT, "tl.dot(A, B, C)"),
        ("bf16", PRODUCT, "tl.dot(A, B, C)"),
        ("f32", "A[C.i, C.k]*B[C.k, C.j]", 'tl.dot(A, B, C, input_precision="ieee")'),
        ("f32", "f32(tf32(A[C.i, C.k]))*f32(tf32(B[C.k, C.j]))", 'input_precision="tf32"'),
        ("f8e4m3", PRODUCT, "max_num_imprecise_acc=128"),
    ],
)
def test_products_become_dots(dtype: str, term: str, wanted: str) -> None:
    text = linear_relu(term, dtype).replace("*16 + C.ki", "*32 + C.ki")
    text = text.replace("[0, 16)", "[0, 32)").replace("(K + 15)//16", "(K + 31)//32")
    assert wanted in compiled(text).source


@pytest.mark.parametrize(
    ("dtype", "total"), [("f64", "f64"), ("i16", "i32"), ("u8", "i32"), ("i32", "i32")]
)
def test_products_that_the_matrix_unit_does_not_take_are_added_up(dtype: str, total: str) -> None:
    text = f"""
program product(M, N, K; A: {dtype}[M, K], B: {dtype}[K, N]) -> C: {total}[M, N]:
  stage C.0:
    gpu_block C.t in [0, 1):
      vectorized C.i in [0, 16):
        vectorized C.j in [0, 16):
          if (C.i < M) & (C.j < N):
            C[C.i, C.j] = 0:{total}
  stage C.1:
    gpu_block C.t in [0, 1):
      vectorized C.i in [0, 16):
        vectorized C.j in [0, 16):
          vectorized reduction C.k in [0, 16):
            if (C.k < K) & (C.i < M) & (C.j < N):
              C[C.i, C.j] = C[C.i, C.j] + {total}(A[C.i, C.k])*{total}(B[C.k, C.j])
"""
    if dtype == total:
        text = text.replace(f"{total}(A[C.i, C.k])", "A[C.i, C.k]")
        text = text.replace(f"{total}(B[C.k, C.j])", "B[C.k, C.j]")
    of, sum_of = (getattr(torch, {"f64": "float64", "u8": "uint8"}.get(t, f"int{t[1:]}"))
                  for t in (dtype, total))  # fmt: skip
    a, b = (torch.arange(n).reshape(shape).to(of) for n, shape in ((6, (2, 3)), (12, (3, 4))))
    c = torch.empty((2, 4), dtype=sum_of)
    executable = run(text, {"M": 2, "N": 4, "K": 3}, [a, b], [c])
    assert "tl.dot" not in executable.source
    assert torch.equal(c, a.to(sum_of) @ b.to(sum_of))


def test_a_factor_that_padding_does_not_zero_is_zeroed() -> None:
    source = compiled(linear_relu("f32(f16(exp(f32(A[C.i, C.k]))))*f32(B[C.k, C.j])")).source
    assert "tl.where(C_k_ok[None, :], rt.exp(" in source
    a, b = torch.randn(3, 5).half(), torch.randn(5, 4).half()
    d = nan(3, 4, dtype=torch.float16)
    text = linear_relu("f32(f16(exp(f32(A[C.i, C.k]))))*f32(B[C.k, C.j])")
    run(text, {"M": 3, "N": 4, "K": 5}, [a, b, torch.zeros(4).half()], [d])
    wanted = (a.float().exp().half().float() @ b.float()).relu()
    torch.testing.assert_close(d.float(), wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("depth", [4, 8])
def test_a_short_axis_is_multiplied_and_said(depth: int) -> None:
    text = programs.with_tiles(programs.LINEAR_RELU, 32, depth)
    executable = compiled(text)
    assert "tl.dot" not in executable.source
    assert "under the 16 that the matrix unit takes" in executable.notes[0]
    a, b, bias = torch.randn(5, 9).half(), torch.randn(9, 7).half(), torch.zeros(7).half()
    d = nan(5, 7, dtype=torch.float16)
    executable.run({"M": 5, "N": 7, "K": 9}, {}, [a, b, bias], [d])
    torch.testing.assert_close(d.float(), (a.float() @ b.float()).relu(), rtol=2e-3, atol=2e-3)


def test_a_bf16_dot_is_exact_in_the_interpreter() -> None:
    a, b = torch.randn(4, 8).bfloat16(), torch.randn(6, 8).bfloat16()
    c = nan(4, 6)
    run(programs.MATMUL_NT, {"M": 4, "N": 6, "K": 8}, [a, b], [c])
    torch.testing.assert_close(c, a.float() @ b.float().T)


@pytest.mark.parametrize(
    ("op", "start", "wanted"),
    [
        ("s[s.i] + A[s.i, s.j]", "0.0", torch.sum),
        ("s[s.i]*A[s.i, s.j]", "1.0", torch.prod),
        ("max(s[s.i], A[s.i, s.j])", "-inf", torch.amax),
        ("min(s[s.i], A[s.i, s.j])", "inf", torch.amin),
    ],
)
def test_reductions_ignore_padding(op: str, start: str, wanted: object) -> None:
    text = programs.ROW_SUMS.replace("s[s.i] + A[s.i, s.j]", op).replace("0.0:", f"{start}:")
    for rows in (torch.randn(5, 11), -torch.rand(5, 11) - 1, torch.rand(5, 11) + 1):
        s = nan(5)
        run(text, {"M": 5, "N": 11}, [rows], [s])
        torch.testing.assert_close(s, wanted(rows, 1))  # type: ignore[operator]


def test_nan_survives_a_maximum() -> None:
    text = programs.ROW_SUMS.replace("s[s.i] + A[s.i, s.j]", "max(s[s.i], A[s.i, s.j])")
    rows, s = torch.randn(3, 11), nan(3)
    rows[1, 4] = float("nan")
    run(text.replace("0.0:", "-inf:"), {"M": 3, "N": 11}, [rows], [s])
    assert s.isnan().tolist() == [False, True, False]


def test_an_update_that_is_not_associative_runs_serially() -> None:
    text = programs.ROW_SUMS.replace("s[s.i] + A[s.i, s.j]", "s[s.i]*0.5:f32 + A[s.i, s.j]")
    rows, s = torch.randn(5, 11), nan(5)
    executable = run(text, {"M": 5, "N": 11}, [rows], [s])
    wanted = torch.zeros(5)
    for column in rows.T:
        wanted = wanted * 0.5 + column
    assert torch.equal(s, wanted)
    assert "'s.ji' runs serially: the update of 's' is not proved" in executable.notes[0]
