"""Where the region of a Func or an Input comes from, in words."""

import pytest

from tensorlang import DefinitionError
from tests.lower.algorithms import two_stages


def test_each_access_is_shown_with_its_interval_and_its_line() -> None:
    text = two_stages().explain_bounds("A")
    assert "its shape: [0, N + 1)" in text
    assert "[0, N]" in text
    assert "algorithms.py:" in text


def test_a_func_is_explained_by_its_consumers() -> None:
    text = two_stages().explain_bounds("f")
    assert "[0, N - 1]" in text
    assert "[1, N]" in text


def test_an_unknown_name_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(DefinitionError, match="unknown-func") as caught:
        two_stages().explain_bounds("q")
    assert all(name in str(caught.value) for name in ("f", "g", "A"))
