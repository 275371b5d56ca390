"""Families of rarer forms under their default schedule, on every target.

The property suite draws all of them, under all schedules.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorlang.ir.types import f32, i32
from tensorlang.testing import assert_equivalent
from tensorlang.testing.families import noise, scan, scatter, several, triangle, two_largest
from tensorlang.testing.strategies import inputs

FORMS = (noise, scan, scatter, several, triangle, two_largest)
TARGETS = ("interpreter", pytest.param("c", marks=pytest.mark.cc), "triton")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("family", FORMS, ids=lambda f: f.__name__)
@settings(max_examples=2, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_a_family_computes_what_it_says(family, target, data):
    dtype = data.draw(st.sampled_from((f32, i32)))
    pipeline = family(data.draw, dtype)
    case = data.draw(inputs(pipeline, sizes=(0, 1, 5, 8)))
    assert_equivalent(pipeline, None, target, case.arrays, sizes=case.sizes)
