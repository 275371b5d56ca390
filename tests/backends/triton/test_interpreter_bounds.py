"""An interpreted kernel that leaves its arrays is stopped, whatever it does there."""

import pytest
import torch
import triton.language as tl
from triton.runtime.errors import InterpreterError

from tensorlang.backends.triton.interpret import interpret
from tensorlang.errors import InternalError

STOPPED = pytest.raises((InternalError, InterpreterError), match="which is no array of it")


def copy(a, d, first, shift, count):
    lanes = tl.arange(0, 8)
    values = tl.load(a + first + lanes, mask=lanes < count)
    tl.store(d + shift + lanes, values, mask=lanes < count)


def count_one(d, at):
    tl.atomic_add(d + at, 1.0)


def call(first: int = 0, shift: int = 0, count: int = 5) -> torch.Tensor:
    # Nothing else lies within an element of either.
    a, d = torch.arange(5.0), torch.full((5,), -1.0)
    interpret(copy, 1, {"a": a, "d": d, "first": first, "shift": shift, "count": count})
    return d


@pytest.mark.parametrize("first", [1, -1, 1 << 30])
def test_a_load_outside_the_arrays_is_an_error(first: int) -> None:
    with STOPPED:
        call(first=first)


@pytest.mark.parametrize("shift", [1, -1, 1 << 30])
def test_a_store_outside_the_arrays_is_an_error(shift: int) -> None:
    with STOPPED:
        call(shift=shift)


@pytest.mark.parametrize("at", [5, -1])
def test_so_is_an_atomic_update(at: int) -> None:
    with STOPPED:
        interpret(count_one, 1, {"d": torch.zeros(5), "at": at})


def test_lanes_that_take_no_part_may_point_anywhere() -> None:
    assert torch.equal(call(), torch.arange(5.0))
    assert torch.equal(call(first=1 << 30, count=0), torch.full((5,), -1.0))


def test_overlapping_arrays_are_one_stretch_of_memory() -> None:
    whole = torch.arange(10.0).numpy()
    a, d = torch.from_numpy(whole[:5]), torch.from_numpy(whole[2:7])
    interpret(copy, 1, {"a": a, "d": d, "first": 0, "shift": 3, "count": 2})
    assert whole[5:7].tolist() == [0, 1]
    with STOPPED:
        interpret(copy, 1, {"a": a, "d": d, "first": 0, "shift": 4, "count": 2})


def test_other_kernels_in_the_process_see_nothing_of_it() -> None:
    from triton.runtime.interpreter import interpreter_builder

    before = interpreter_builder.create_masked_store
    call()
    with STOPPED:
        call(shift=1)
    assert interpreter_builder.create_masked_store == before
