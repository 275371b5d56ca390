"""Sizes that fit their tiles run a text without masks, and others never do."""

import pytest
import torch

import tensorlang as tl
from tensorlang.backends.triton.variants import Exact, Multiple
from tests.backends.triton import programs
from tests.backends.triton.running import compiled, nan, run

M, N = tl.Size("M"), tl.Size("N")
i, j = tl.Var("i"), tl.Var("j")


def linear_relu(m: int, n: int, k: int) -> set[str]:
    """Run it at these sizes; the texts other than the general one that ran."""
    a, b, bias = torch.randn(m, k).half(), torch.randn(k, n).half(), torch.randn(n).half()
    d = nan(m, n, dtype=torch.float16)
    executable = run(programs.LINEAR_RELU, {"M": m, "N": n, "K": k}, [a, b, bias], [d])
    wanted = (a.float() @ b.float() + bias.float()).relu()
    torch.testing.assert_close(d.float(), wanted, rtol=2e-3, atol=2e-3)
    launchers = executable.routers["linear_relu_D"].launchers
    return {launcher.text.text for held, launcher in launchers.items() if held}


def test_what_may_be_assumed_is_read_off_the_text() -> None:
    [router] = compiled(programs.LINEAR_RELU).routers.values()
    assert set(router.assumptions) == {Multiple("M", 32), Multiple("N", 32), Multiple("K", 16)}
    [router] = compiled(programs.SOFTMAX).routers.values()
    assert router.assumptions == (Exact("N_P2"),)


def test_sizes_that_fit_need_no_mask() -> None:
    [text] = linear_relu(64, 32, 32)
    assert "mask" not in text
    assert "tl.where" not in text


@pytest.mark.parametrize("k", [16, 32])
def test_a_depth_that_fits_unmasks_only_itself(k: int) -> None:
    [text] = linear_relu(37, 50, k)
    assert "mask=C_i_ok[:, None]," in text
    assert "K_of16" in text


def test_sizes_that_do_not_fit_run_the_general_text() -> None:
    assert linear_relu(37, 50, 33) == set()


def test_a_row_of_a_power_of_two_needs_no_mask() -> None:
    for n, masked in ((64, False), (63, True), (1, False)):
        a, out = torch.randn(3, n), nan(3, n)
        executable = run(programs.SOFTMAX, {"M": 3, "N": n}, [a], [out])
        torch.testing.assert_close(out, a.softmax(1))
        launchers = executable.routers["softmax_out"].launchers
        [text] = [x.text.text for held, x in launchers.items() if bool(held) is not masked]
        assert ("mask" in text) is masked


def test_one_kernel_serves_all_sizes_in_any_order() -> None:
    executable = compiled(programs.SOFTMAX)
    for n in (64, 5, 64, 16, 7):
        a, out = torch.randn(2, n), nan(2, n)
        executable.run({"M": 2, "N": n}, {}, [a], [out])
        torch.testing.assert_close(out, a.softmax(1))


def test_a_mean_over_a_power_of_two_is_a_product() -> None:
    k = tl.RDom("k", N)
    x, total, y = tl.Input("x", tl.f32, [M, N]), tl.Func("total"), tl.Func("y")
    total[i] = tl.sum(x[i, k], over=k)
    y[i, j] = x[i, j] - total[i] / tl.f32(N)
    pipeline = tl.Pipeline("centred", inputs=[x], outputs={y: [M, N]})
    s = tl.Schedule(pipeline)
    s["y"].gpu_blocks(i).vectorize(j)
    s["total"].compute_at("y", i).update(0).vectorize("k")
    kernel = pipeline.compile(s, target="triton")
    for n, divides in ((64, False), (60, True)):
        given = torch.randn(3, n)
        reference = pipeline.compile(target="reference")(given)
        torch.testing.assert_close(kernel(given), reference, rtol=1e-6, atol=1e-6)
        launchers = kernel._executable.routers["centred_y"].launchers
        [text] = [x.text.text for held, x in launchers.items() if bool(held) is not divides]
        assert ("rt.div" in text) is divides
        assert ("1.0 / N_P2" in text) is not divides
