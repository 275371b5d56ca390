"""What users test their schedules with: strategies, and an oracle that knows how far is too far.

The strategies are in `testing.strategies`, which needs hypothesis; the oracle does not.
"""

from tensorlang.testing.oracle import Report, assert_equivalent

__all__ = ["Report", "assert_equivalent"]
