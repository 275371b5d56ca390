"""C identifiers for the names of a program: `C.i` becomes `i` where no other name ends so."""

import re
from collections import Counter
from collections.abc import Iterator

from tensorlang.ir.stmt import Allocate, For, Let, Program, walk

_KEYWORDS = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while bool true false asm typeof main arguments status OUT_OF_MEMORY
    NULL NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL MATH_ERRNO EOF RAND_MAX EXIT_SUCCESS
    EXIT_FAILURE MB_CUR_MAX CHAR_BIT FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL
    malloc free calloc realloc memcpy memset posix_memalign aligned_alloc abs labs div ldiv exit
    abort end atexit rand srand system qsort bsearch strtol strtod atoi atof getenv size_t ptrdiff_t
    wchar_t linux unix
    """.split()  # noqa: SIM905 (a table of words reads better than a list of strings)
)
# Typedefs, helpers of the prelude (all end in a type: exp_f32x8), libm, and what C reserves.
_TAKEN = re.compile(
    r"(.*_)?(bool|index|[iu](8|16|32|64)|f(16|32|64)|bf16|tf32|f8e4m3|f8e5m2)(_?x\d+)?(_at)?"
    r"|u?int(_least|_fast)?\d+_t|u?intptr_t|u?intmax_t|U?INT.*|_.*|omp_.*"
    r"|(a?(sin|cos|tan)h?|atan2|exp2?|expm1|log(2|10|1p|b)?|pow|sqrt|cbrt|hypot|erfc?|[lt]gamma"
    r"|ceil|floor|trunc|l?l?r(int|ound)|round|nearbyint|fmod|remainder|remquo|copysign|nan"
    r"|next(after|toward)|f(dim|max|min|ma|abs)|frexp|ldexp|modf|scalbl?n|ilogb|[jy][01n]|gamma"
    r"|isnan|isinf|isfinite|isnormal|signbit|fpclassify|signgam)[fl]?"
)


class Names:
    """Gives each name of a program one identifier, and makes further ones that clash with none."""

    def __init__(self, program: Program) -> None:
        names = tuple(dict.fromkeys(_names_of(program)))
        last = Counter(name.rpartition(".")[2] for name in names)
        self._made: dict[str, str] = {}
        self._used: set[str] = set()
        # The highest number given to a name so far.
        self._count: Counter[str] = Counter()
        for name in names:
            short = name.rpartition(".")[2]
            wanted = short if last[short] == 1 else name
            self._made[name] = self.fresh(wanted)

    def __getitem__(self, name: str) -> str:
        if name not in self._made:
            self._made[name] = self.fresh(name)
        return self._made[name]

    def fresh(self, wanted: str) -> str:
        """An identifier like `wanted` that nothing else has."""
        base = wanted.replace(".", "_")
        base = "".join(c if c.isascii() else f"u{ord(c):x}" for c in base)
        if base in _KEYWORDS or _TAKEN.fullmatch(base):
            base += "_"
        made, count = base, self._count[base]
        while made in self._used:
            count += 1
            made = f"{base}{'' if base.endswith('_') else '_'}{count}"
        self._count[base] = count
        self._used.add(made)
        return made


def _names_of(program: Program) -> Iterator[str]:
    yield from (buffer.name for buffer in (*program.inputs, *program.outputs))
    yield from (name.name for name in (*program.sizes, *program.params))
    for stmt in walk(program.body):
        match stmt:
            case For() | Let():
                yield stmt.var
            case Allocate():
                yield stmt.buffer.name
            case _:
                pass
