"""Calls in flight: what several threads call at a time shares the cores."""

# One element a call: appending and popping are atomic, in every thread.
IN_FLIGHT: list[None] = []
