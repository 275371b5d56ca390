"""The promise of the project in small pieces: drawn programs under drawn schedules, by fixed seeds.

Not collected with the other tests, which draw the same: here each piece is a test of its own, so
that the mutants of a function meet the pieces that reach it, and the first failure is the last.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.test_properties import compare

PIECES = {"interpreter": 40, "c": 12, "triton": 12}


@pytest.mark.parametrize(
    ("target", "number"), [(t, n) for t, pieces in PIECES.items() for n in range(pieces)]
)
def test_drawn(target: str, number: int) -> None:
    @seed(number)
    @settings(
        max_examples=12,
        phases=[Phase.generate],
        derandomize=False,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def piece(data: st.DataObject) -> None:
        compare(data, target)

    piece()
