"""What could not be compiled runs as torch runs it, and says so."""

import warnings


class FallbackWarning(UserWarning):
    """A part of a model runs as torch runs it, because it could not be compiled."""


def tell_fallback(what: str, why: str) -> None:
    """Say that torch runs a part of a model."""
    warnings.warn(f"{what} is run by torch: {why}", FallbackWarning, stacklevel=3)


def first_line(error: Exception) -> str:
    """What went wrong, in a line."""
    return next(iter(str(error).splitlines()), type(error).__name__)
