"""How many threads a parallel loop may have, so that there are no more of them than cores."""

from tensorlang.backends.c.prelude.definition import Asking, Definition, Table
from tensorlang.backends.c.types import CType


def _threads(c: Asking, t: CType) -> Definition:
    """OpenMP's number shared among `calls` at a time; inside a parallel region of others, one."""
    body = """\
extern int omp_get_max_threads(void), omp_in_parallel(void);
const int share = omp_in_parallel() ? 1 : omp_get_max_threads() / (int)calls;
return share > 1 ? share : 1;"""
    return Definition(CType("i32"), ((CType("i64"), "calls"),), body)


THREADS: Table = {"threads": _threads}
