"""Expressions, loop IR, and the mathematics on them: no Func, no schedule, no backend."""
