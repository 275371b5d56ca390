"""C identifiers for the names of a program: `C.i` becomes `i` where no other name ends so."""

from collections import Counter
from collections.abc import Iterator

from tensorlang.ir.stmt import Allocate, For, Let, Program, walk
from tensorlang.ir.types import DTYPES

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
# The functions of libm, each also with an f or an l behind it.
_LIBM = frozenset(
    """
    sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 exp exp2 expm1 log log2 log10
    log1p logb pow sqrt cbrt hypot erf erfc lgamma tgamma ceil floor trunc rint lrint llrint round
    lround llround nearbyint fmod remainder remquo copysign nan nextafter nexttoward fdim fmax fmin
    fma fabs frexp ldexp modf scalbn scalbln ilogb j0 j1 jn y0 y1 yn gamma isnan isinf isfinite
    isnormal signbit fpclassify signgam
    """.split()  # noqa: SIM905 (a table of words reads better than a list of strings)
)
# What the tags of types begin with; a number of lanes may follow.
_ELEMENTS = frozenset((*DTYPES, "index"))
_RESERVED = ("_", "omp_", "INT", "UINT")


def _is_taken(name: str) -> bool:
    """Whether a name is one of libm's, a typedef, a helper of the prelude, or reserved by C.

    Helpers and typedefs end in a type: exp_f32x8, f32x8_at.
    """
    if name.startswith(_RESERVED) or (name.endswith("_t") and "int" in name):
        return True
    if name in _LIBM or (name[-1:] in "fl" and name[:-1] in _LIBM):
        return True
    words = name.removesuffix("_at").split("_")
    if _is_lanes(words[-1]) and len(words) > 1:
        words.pop()
    element, _, lanes = words[-1].rpartition("x")
    return words[-1] in _ELEMENTS or (element in _ELEMENTS and lanes.isdecimal())


def _is_lanes(word: str) -> bool:
    return word[:1] == "x" and word[1:].isdecimal()


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
        if base in _KEYWORDS or _is_taken(base):
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
