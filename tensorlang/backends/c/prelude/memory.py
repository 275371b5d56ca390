"""Workspaces from the heap."""

from tensorlang.backends.c.prelude.definition import Asking, Definition, Table
from tensorlang.backends.c.types import CType


def _workspace(c: Asking, t: CType) -> Definition:
    """Room for `count` elements, aligned as vectors like it; NULL when there is none."""
    body = f"""\
if (count < 0) count = 0;
if (count > INT64_MAX / 64) return NULL;
return aligned_alloc(64, ((size_t)count * sizeof({t.name}) + 64) / 64 * 64);"""
    return Definition(t, ((CType("i64"), "count"),), body, returns_pointer=True)


MEMORY: Table = {"workspace": _workspace}
