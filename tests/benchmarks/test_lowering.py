"""The work of lowering grows with the number of stages, not with its square."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from benchmarks.lowering import at_root, sliding
from tensorlang import Pipeline, Schedule

SMALL = 5


def calls(make: Callable[[int, str], tuple[Pipeline, Schedule]], stages: int, prefix: str) -> int:
    """How many Python functions are called to lower that many stages, under names of their own."""
    pipeline, schedule = make(stages, prefix)
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        pipeline.lower(schedule)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.usefixtures("as_shipped")
@pytest.mark.parametrize("make", [at_root, sliding])
def test_twice_the_stages_are_about_twice_the_work(make) -> None:
    calls(make, 2, "warm")
    once, twice = (calls(make, n, f"n{n}_") for n in (SMALL, 2 * SMALL))
    assert twice <= 2.5 * once
