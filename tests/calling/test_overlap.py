"""Which arrays share memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.arrays import info_of
from tensorlang.calling.overlap import overlap, overlaps_itself

_BASE = np.zeros(64, np.uint8)


@st.composite
def windows(draw):
    """A view of the base, of any strides that stay inside."""
    shape = draw(st.lists(st.integers(1, 3), max_size=3))
    strides = [draw(st.integers(-6, 6)) for _ in shape]
    low = sum(min(0, s * (n - 1)) for s, n in zip(strides, shape, strict=True))
    start = draw(st.integers(-low, -low + 10))
    return np.lib.stride_tricks.as_strided(_BASE[start:], shape, strides)


def elements(array):
    return [array[(*place, ...)].ctypes.data for place in np.ndindex(array.shape)]


@given(windows(), windows())
def test_overlap_is_exact(a, b):
    assert overlap(a, b) == bool(set(elements(a)) & set(elements(b)))


@given(windows())
def test_what_overlaps_itself_is_never_accepted(array):
    places = elements(array)
    if len(set(places)) < len(places):
        assert overlaps_itself(info_of(array))


def test_plain_layouts_do_not_overlap_themselves():
    base = np.zeros((4, 6), np.float32)
    for array in (base, base.T, base[::-1, ::2], base[:0], base[1, 2, ...], base[:, :1]):
        assert not overlaps_itself(info_of(array))
    assert overlaps_itself(info_of(np.broadcast_to(base[0], (2, 6))))


def test_tensors_are_compared_by_address():
    torch = pytest.importorskip("torch")
    base = torch.zeros(4, 6, dtype=torch.bfloat16)
    assert overlap(base, base[1:2])
    assert not overlap(base[:, ::2], base[:, 1::2])
    assert not overlap(base[:2], base[2:])
    assert not overlap(base[:0], base)
