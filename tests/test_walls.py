"""The walls that C runs between stand where the arrays end and begin."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.walls import walled

ROOT = Path(__file__).parents[1]
TOUCH = """
import ctypes, sys
import numpy as np
from tests.walls import walled
behind, offset = sys.argv[1] == "behind", int(sys.argv[2])
array = walled(np.arange(5, dtype=np.float32)[::-1], behind=behind)
lowest = array[-1:].__array_interface__["data"][0]
print(ctypes.c_char.from_address(lowest + offset).value)
"""


@pytest.mark.parametrize(
    ("side", "offset", "inside"),
    [("behind", 19, True), ("behind", 20, False), ("before", 0, True), ("before", -1, False)],
)
def test_the_byte_past_an_array_ends_the_process(side: str, offset: int, inside: bool) -> None:
    command = [sys.executable, "-c", TOUCH, side, str(offset)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == (0 if inside else -signal.SIGSEGV)


def test_a_walled_copy_is_laid_out_as_its_array() -> None:
    whole = np.arange(24, dtype=np.int16).reshape(4, 6)
    for array in (whole, whole.T, whole[::-1, ::2], whole[:, :0], whole[1, 1]):
        for behind in (True, False):
            made = walled(np.asarray(array), behind=behind)
            assert np.array_equal(made, array)
            assert made.strides == np.asarray(array).strides
