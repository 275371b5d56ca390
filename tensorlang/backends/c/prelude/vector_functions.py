"""Vector forms of functions that compilers do not vectorise by themselves."""

from tensorlang.backends.c.prelude.definition import Table

VECTOR_FUNCTIONS: Table = {}
