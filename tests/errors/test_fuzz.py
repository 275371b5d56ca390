"""Whatever a user writes, what comes back is a TensorlangError or a result.

Never a KeyError, AssertionError, RecursionError, InternalError or any other exception that passes
through the package.
"""

import contextlib
import inspect
import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang import Func, Input, Param, Pipeline, RDom, Schedule, Size, TensorlangError, Var
from tensorlang.directives import DIRECTIVES
from tensorlang.schedule import Stage
from tensorlang.text.loop_ir import parse_program

PACKAGE = str(Path(tl.__file__).parent)
fuzz = settings(
    max_examples=int(os.environ.get("TENSORLANG_EXAMPLES", "60")),
    suppress_health_check=list(HealthCheck),
)


@contextlib.contextmanager
def only_our_errors() -> Iterator[None]:
    """Python's own errors, at a line that Python itself refuses, are no concern of the package."""
    try:
        yield
    except TensorlangError:
        return
    except (AttributeError, TypeError) as error:
        places = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        if any(place.startswith(PACKAGE) for place in places):
            raise


# --- texts ---------------------------------------------------------------------------------------

MODULE = """\
# tensorlang module 1
algorithm matmul(A: f32[M, K], B: f16[K, N], alpha: f32, T: size) -> C[M, N], best[M] {
  P[i, j] = sum(A[i, k]*f32(B[k, j]), over=k in [0, K), initial=0.5)
  best[i] = argmax(A[i, k], over=k in [0, K))
  C[i, j] = select(P[i, j] > 0 & true, P[i, j]*alpha, -1e-3) + { t = A[i, 0]; t*t }
  C[i, r_0] += max(C[i, r_0 - 1], T) over r(r_0 in [1, N), r_1 in [0, +3)) where r_1 <= r_0
  C[0, j] = (P[0, j])
}
schedule fast for matmul on c {
  s[C].tile(i, j, io, jo, ii, ji, 8, 8, tail="guard").parallel(io).vectorize(ji)
  s[P].compute_at(C, jo)
  A_in_P = s[A].in_(P)
  s[P].update(0).split(k, ko, ki, 4).reorder(ko, i, j, ki).unroll(ki)
}
"""
SCHEDULE = MODULE.partition(" on c {")[2].rstrip().removesuffix("}")
PROGRAM = """\
program double(N; scale: f32; a: f32[N]) -> b: (f32, i64)[N]:
  assert 1 <= N else ShapeError("few",
    what="{0} points", why="b", fix="c",
    values=[N])
  allocate t: f32[0 : +8] in heap fold (8)
  stage b.0:
    for reduction b.io in [0, (N + 7)//8) stages=3:
      let b.i = b.io*8
      if (b.i < N) & true:
        b[b.i] = (a[b.i]*scale + -1.5:f32, i64(b.i))
"""
WORDS = (
    *("algorithm", "schedule", "for", "over", "where", "in", "on", "sum", "max", "select", "f32"),
    *("i", "j", "k", "A", "B", "C", "P", "M", "s", "`", '"', "index", "size", "update", "let"),
    *("[", "]", "(", ")", "{", "}", ",", ";", ":", ".", "=", "==", "+=", "<", ">", "+", "-", "*"),
    *("/", "//", "%", "&", "|", "^", "~", "<<", ">>", "->", "#", "\n", "  ", "\t", "0", "-1", "3"),
    *("1.5", "1e999", "3:i32", "1.5:f16", "nan:f32", "9" * 30, "é", "\0", "true", "r_0", "_0"),
)


@st.composite
def broken(draw: st.DrawFn, text: str) -> str:
    """The text with a few words left out, put in, doubled or exchanged."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        end = at + draw(st.sampled_from((0, 0, 1, 2, 5, 20)))
        piece = draw(st.sampled_from(WORDS) | st.just("") | st.just(text[at:end] * 2))
        text = text[:at] + piece + text[end:]
    return text


PIPELINE = tl.parse(MODULE).pipelines["matmul"]
READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "module": (MODULE, tl.parse),
    "schedule": (SCHEDULE, lambda text: Schedule.parse(text, PIPELINE)),
    "program": (PROGRAM, parse_program),
}


@pytest.mark.parametrize("reader", READERS)
def test_the_text_that_is_broken_reads_whole(reader: str) -> None:
    text, read = READERS[reader]
    read(text)


@pytest.mark.parametrize("reader", READERS)
@fuzz
@given(st.data())
def test_broken_texts(reader: str, data: st.DataObject) -> None:
    text, read = READERS[reader]
    with only_our_errors():
        read(data.draw(broken(text)))


@pytest.mark.parametrize("reader", READERS)
@fuzz
@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(("", " ")))
def test_words_in_any_order(reader: str, words: list[str], between: str) -> None:
    with only_our_errors():
        READERS[reader][1](between.join(words))


@pytest.mark.parametrize(
    "piece", ["(", "-", "~", "sum(", "f32(", "A[", "{ t = ", "select(true, ", "1 + ", "k*"]
)
@pytest.mark.parametrize("reader", ["module", "program"])
def test_three_thousand_of_anything(reader: str, piece: str) -> None:
    text, read = READERS[reader]
    place = "alpha," if reader == "module" else "scale "
    with only_our_errors():
        read(text.replace(place, piece * 3000 + place))


def test_sums_in_sums() -> None:
    nested = "a[i]"
    for n in range(200):
        nested = f"sum({nested}, over=k{n} in [0, 2))"
    with only_our_errors():
        tl.parse(f"algorithm p(a: f32[N]) -> f[N] {{ f[i] = {nested} }}")


# --- values that have no place -------------------------------------------------------------------

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")
A, B = Input("A", tl.f32, [M, N]), Input("B", tl.i32, [N])
K = RDom("k", N)
R = RDom("r", (0, 3), (1, N)).where(Var("r_0") < Var("r_1"))
DEFINED, PAIR, BARE = Func("defined"), Func("pair"), Func("bare")
DEFINED[i] = B[i]
PAIR[i] = (B[i], 0.5)

STRANGE: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**70, 0.5, float("nan"), "i", "", "k", b"x", 1j, object(), [], {}, ()),
    *(np.float32(3), np.int64(-1), np.zeros(3), slice(None), ..., int, len, (1, 2), ["i", "j"]),
    *(i, j, M, N, A, B, K, R, DEFINED, PAIR, BARE, Param("alpha", tl.f32), tl.f32, tl.bool),
    *(B[i], A[i, j], DEFINED[j], PAIR[i], PAIR[i][1], B[i] < 3, R[0], K + 1, tl.sum(B[K], over=K)),
)
anything = st.sampled_from(STRANGE)

UNARY = ("abs", "floor", "exp", "isnan", "sqrt", "f32", "i8", "bool", "u64", "f8e4m3")
BINARY = ("minimum", "maximum", "pow", "random_uniform")
OPERATORS: tuple[Callable[[Any, Any], Any], ...] = (
    *(lambda a, b: a + b, lambda a, b: a // b, lambda a, b: a % b, lambda a, b: a / b),
    *(lambda a, b: a**b, lambda a, b: a << b, lambda a, b: a & b, lambda a, b: a < b),
    *(lambda a, b: a[b], lambda a, b: a[b, b], lambda a, b: a == b, lambda a, b: a.where(b)),
)


def is_ours(value: object) -> bool:
    return type(value).__module__.startswith("tensorlang")


@st.composite
def expressions(draw: st.DrawFn) -> Any:
    """A value that some operations on strange values give; refusals are raised."""
    value = draw(anything)
    for _ in range(draw(st.integers(0, 3))):
        other = draw(anything)
        match draw(st.integers(0, 5)):
            case 0:
                value = getattr(tl, draw(st.sampled_from(UNARY)))(value)
            case 1:
                value = getattr(tl, draw(st.sampled_from(BINARY)))(value, other)
            case 2:
                value = tl.select(value, other, draw(anything))
            case 3:
                name = draw(st.sampled_from(("sum", "max", "argmin", "any", "prod")))
                value = getattr(tl, name)(value, over=other)
            case 4:
                value = tl.clamp(value, other, draw(anything))
            case _:
                operator = draw(st.sampled_from(OPERATORS))
                if is_ours(value) and hasattr(value, "as_expr"):  # else it is Python's operator
                    value = operator(value, other)
    return value


@fuzz
@given(st.data())
def test_definitions_of_anything(data: st.DataObject) -> None:
    with only_our_errors():
        f = Func("f")
        for _ in range(data.draw(st.integers(1, 3))):
            key = data.draw(st.one_of(st.just((i,)), st.just((i, j)), anything))
            value = data.draw(st.one_of(expressions(), st.tuples(anything, anything)))
            f[key] = value
        inputs = data.draw(st.just([A, B]) | st.lists(anything, max_size=2))
        shape = data.draw(st.lists(st.sampled_from((N, M, 3)) | anything, max_size=2))
        Pipeline("p", inputs=inputs, outputs={f: shape})


@fuzz
@given(st.data())
def test_names_and_shapes_of_anything(data: st.DataObject) -> None:
    with only_our_errors():
        match data.draw(st.integers(0, 6)):
            case 0:
                Func(data.draw(anything))
            case 1:
                Input(data.draw(anything), data.draw(anything), data.draw(anything))
            case 2:
                RDom("r", *data.draw(st.lists(anything, max_size=3)))
            case 3:
                Param(data.draw(anything), data.draw(anything))
            case 4:
                Pipeline(
                    data.draw(anything), inputs=data.draw(anything), outputs=data.draw(anything)
                )
            case 5:
                make = data.draw(st.sampled_from((tl.repeat_edge, tl.mirror_image)))
                make(data.draw(anything), data.draw(anything))
            case _:
                tl.constant_exterior(data.draw(anything), data.draw(anything))


# --- schedules -----------------------------------------------------------------------------------

NAMES = ("i", "j", "k", "io", "ii", "r_0", "r_1", "P", "C", "A", "best", "best_argmax", "", "x y")
arguments = st.sampled_from((*NAMES, *NAMES, 0, 1, 2, 8, 2**40, -3)) | anything


def apply_something(data: st.DataObject, s: Schedule) -> None:
    stage = s[data.draw(arguments)]
    if data.draw(st.booleans()):
        stage = stage.update(data.draw(st.sampled_from((0, 0, 1, -1, 7)) | anything))
    method = getattr(Stage, data.draw(st.sampled_from(sorted(DIRECTIVES))))
    taken: list[Any] = []
    named: dict[str, Any] = {}
    for p in list(inspect.signature(method).parameters.values())[1:]:
        if p.kind is p.VAR_POSITIONAL:
            taken += data.draw(st.lists(arguments, max_size=4))
        elif p.default is p.empty:
            taken.append(data.draw(arguments))
        elif data.draw(st.booleans()):
            tails = st.sampled_from(("guard", "ragged", "round_up", "shift_inwards", "atomic", 2))
            named[p.name] = data.draw(tails | arguments)
    method(stage, *taken, **named)


@fuzz
@given(st.data())
def test_schedules_of_anything(data: st.DataObject) -> None:
    s = Schedule(PIPELINE)
    for _ in range(data.draw(st.integers(1, 6))):
        with only_our_errors():
            apply_something(data, s)
    with only_our_errors():
        Schedule.parse(str(s), PIPELINE)
        s.loop_nest()
        PIPELINE.lower(s)


# --- calls ---------------------------------------------------------------------------------------

KERNEL = PIPELINE.compile(target="interpreter")
RIGHT = (np.ones((2, 3), np.float32), np.ones((3, 4), np.float16))


@fuzz
@given(st.data())
def test_calls_with_anything(data: st.DataObject) -> None:
    shapes = st.lists(st.integers(0, 4), max_size=3)
    dtypes = st.sampled_from(("f4", "f2", "f8", "i4", "u1", "?", "c8", "O", "S3", ">f4", "M8[s]"))
    arrays = st.builds(lambda shape, dtype: np.zeros(shape, dtype), shapes, dtypes)
    values = arrays | st.sampled_from(RIGHT) | anything
    inputs = data.draw(st.just(RIGHT) | st.lists(values, max_size=3).map(tuple))
    named = data.draw(st.dictionaries(st.sampled_from(("alpha", "beta", "A", "T")), values))
    named.setdefault("alpha", 1.0)
    sizes = data.draw(
        st.just({"T": 1}) | st.dictionaries(st.sampled_from(("T", "M", N, 3)), values) | anything
    )
    out = data.draw(st.none() | st.tuples(values, values) | values)
    with only_our_errors():
        KERNEL(*inputs, out=out, sizes=sizes, **named)


@fuzz
@given(anything, anything)
def test_targets_of_anything(name: Any, arch: Any) -> None:
    with only_our_errors():
        PIPELINE.compile(target=tl.Target(name, arch))
    with only_our_errors():
        PIPELINE.compile(target=name)
    with only_our_errors():
        PIPELINE.compile(name)
    with only_our_errors():
        PIPELINE.explain_bounds(name)
