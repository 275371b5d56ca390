"""Workspaces from the heap, and stores that go past the caches."""

from tensorlang.backends.c.prelude.definition import Asking, Definition, Table
from tensorlang.backends.c.types import CType


def _workspace(c: Asking, t: CType) -> Definition:
    """Room for `count` elements, aligned as vectors like it; NULL when there is none."""
    body = f"""\
if (count < 0) count = 0;
if (count > INT64_MAX / 64) return NULL;
return aligned_alloc(64, ((size_t)count * sizeof({t.name}) + 64) / 64 * 64);"""
    return Definition(t, ((CType("i64"), "count"),), body, returns_pointer=True)


def _stream(c: Asking, t: CType) -> Definition:
    """Store a whole vector without reading its cache line first, where it is aligned."""
    store = f"{c.helper('store', t)}(p, x);"
    if t.bytes not in (16, 32, 64):
        return Definition(None, ((t.scalar, "*p"), (t, "x")), store)
    floats = CType("f32", t.bytes // 4)
    size, macro = {16: ("", "SSE"), 32: ("256", "AVX"), 64: ("512", "AVX512F")}[t.bytes]
    body = f"""\
if ((uintptr_t)p % {t.bytes}) {store}
#if defined(__clang__)
else __builtin_nontemporal_store(x, ({t.tag} *)p);
#elif defined(__{macro}__)
else __builtin_ia32_movntps{size}((void *)p, ({c.type(floats)})x);
#else
else {store}
#endif"""
    return Definition(None, ((t.scalar, "*p"), (t, "x")), body)


MEMORY: Table = {"workspace": _workspace}
STREAMS: Table = {"stream": _stream}
