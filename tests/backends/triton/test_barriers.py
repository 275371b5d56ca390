"""A barrier stands between a write and another access to the same memory, and nowhere else."""

from tests.backends.triton import programs
from tests.backends.triton.running import compiled


def kernel(text: str, name: str) -> str:
    return next(k.text for k in compiled(text).kernels if k.name == name)


def test_one_barrier_between_scratch_written_and_read() -> None:
    text = kernel(programs.BLUR_AT_TILE, "blur_out")
    assert text.count("tl.debug_barrier()") == 1
    written, read = text.index("tl.store("), text.index("bx_1 = tl.load(")
    assert written < text.index("tl.debug_barrier()") < read


def test_a_kernel_that_only_reads_or_only_writes_has_none() -> None:
    for name in ("LINEAR_RELU", "SOFTMAX", "SCALE", "BLUR_AT_ROOT"):
        assert "debug_barrier" not in compiled(getattr(programs, name)).source


def test_a_scan_has_one_stage_and_a_barrier_each_way() -> None:
    text = kernel(programs.CUMSUM, "scan_c_update0")
    assert "num_stages=1" in text
    assert text.count("tl.debug_barrier()") == 2
