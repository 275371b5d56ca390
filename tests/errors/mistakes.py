"""Mistakes that a user can make, and the check of what each is told."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tensorlang.errors import InternalError, TensorlangError


class Mistakes(dict[str, Callable[[], Any]]):
    """Functions by the code of the error they end in: `wrong_rank`, `wrong_rank__of_an_output`."""

    def __call__(self, function: Callable[[], Any]) -> Callable[[], Any]:
        name = function.__name__.replace("__", "--").replace("_", "-")
        assert name not in self, f"two mistakes named {name}"
        self[name] = function
        return function

    def check(self, name: str, golden: Callable[[str, str], None]) -> None:
        """Make the mistake, and compare the whole message with its golden file."""
        with pytest.raises(TensorlangError) as caught:
            self[name]()
        error = caught.value
        assert not isinstance(error, InternalError)
        assert error.code == name.partition("--")[0]
        assert error.span is not None, "no place in the user's file"
        # The line of source is shown; its number would change with every line above it.
        golden(re.sub(r"(\.py):\d+:", r"\1:_:", str(error)), f"{type(error).__name__}-{name}")
