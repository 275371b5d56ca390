"""An algorithm's text and its record are two forms of one thing."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tensorlang as tl
from tensorlang import (
    DefinitionError,
    Func,
    Input,
    Param,
    ParseError,
    Pipeline,
    RDom,
    Size,
    Var,
    clamp,
    exp,
    f16,
    f32,
    i32,
    minimum,
    select,
    u8,
)
from tensorlang.testing.families import pipelines

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")


def again(pipeline: Pipeline) -> Pipeline:
    return tl.parse(str(pipeline)).pipelines[pipeline.name]


@settings(suppress_health_check=list(HealthCheck), max_examples=60)
@given(pipelines())
def test_a_pipeline_prints_and_parses_to_an_equal_one(pipeline: Pipeline) -> None:
    read = again(pipeline)
    assert read.algorithm == pipeline.algorithm, str(pipeline)
    assert str(read) == str(pipeline)


def histogram() -> Pipeline:
    image, hist, r = Input("image", u8, [M, N]), Func("hist"), RDom("r", M, N)
    hist[i] = i32(0)
    hist[image[r[0], r[1]]] += 1
    return Pipeline("histogram", inputs=[image], outputs={hist: [256]})


def softmax() -> Pipeline:
    a, k, out = Input("a", f32, [M, N]), RDom("k", N), Func("out")
    best = Func("best")
    best[i] = tl.max(a[i, k], over=k)
    out[i, j] = exp(a[i, j] - best[i]) / tl.sum(exp(a[i, k] - best[i]), over=k)
    return Pipeline("softmax", inputs=[a], outputs={out: [M, N]})


def triangle() -> Pipeline:
    a, out = Input("a", f32, [N, N]), Func("out")
    r = RDom("r", (0, N), (0, N))
    r = r.where(r[1] <= r[0])
    out[()] = tl.sum(a[r[0], r[1]], over=r, initial=1.5)
    return Pipeline("triangle", inputs=[a], outputs={out: []})


def scan() -> Pipeline:
    a, f, r = Input("a", f16, [M, N]), Func("f"), RDom("r", (1, N - 1))
    f[i, j] = f32(a[i, j])
    f[i, r] = f[i, r - 1] * Param("decay", f32) + f[i, r]
    return Pipeline("scan", inputs=[a], outputs={f: [M, N]})


def scans() -> Pipeline:
    a, h, k = Input("a", f32, [M, K]), Input("h", f16, [K]), RDom("k", K)
    part = RDom("part", (1, K - 1))
    rows, columns, inside, narrow = Func("rows"), Func("columns"), Func("inside"), Func("narrow")
    rows[i, k] = tl.cumsum(a[i, k] * 2, over=k)
    columns[k, i] = tl.cumprod(a[i, k], over=k)
    columns[i, j] += 1
    inside[i, k] = exp(tl.cummax(a[i, k], over=k) - a[i, k]) + tl.cumsum(h[k], over=k)
    narrow[part] = tl.cumsum(h[part], over=part, dtype=f16)
    shapes = {rows: [M, K], columns: [K, M], inside: [M, K], narrow: [K]}
    return Pipeline("scans", inputs=[a, h], outputs=shapes)


def largest() -> Pipeline:
    a, k, top, out = Input("a", f32, [M, N]), RDom("k", N), Func("top"), Func("out")
    top[i] = (f32(-1.0), i32(0))
    better = top[i][0] < a[i, k]
    top[i] = (select(better, a[i, k], top[i][0]), select(better, i32(k), top[i][1]))
    out[i] = top[i][1] + i32(tl.argmax(a[i, k], over=k)) + i32(tl.argmin(a[i, k], over=k))
    return Pipeline("largest", inputs=[a], outputs={out: [M], top: [M]})


def options() -> Pipeline:
    a, k, f = Input("a", f16, [M, N]), RDom("k", N), Func("f")
    g, h, p = Func("g"), Func("h"), Func("p")
    f[i] = tl.sum(a[i, k], over=k, dtype=f16)
    g[i] = tl.min(a[i, k], over=k, initial=2.5)
    h[i] = tl.any(a[i, k] < 0, over=k) & tl.all(a[i, k] < 1, over=k)
    p[i] = tl.prod(a[i, k], over=k, initial=float("inf"))
    return Pipeline("options", inputs=[a], outputs={f: [M], g: [M], h: [M], p: [M]})


def iota() -> Pipeline:
    f = Func("f")
    f[i] = i % 3 + clamp(minimum(i, 5), 0, N - 1)
    f[0] = 7
    return Pipeline("iota", inputs=[], outputs={f: [N * 2]})


def shared() -> Pipeline:
    a, f, e = Input("a", f32, [N]), Func("f"), None
    e = a[i]
    for _ in range(20):
        e = e * e + 0.5
    f[i] = e
    return Pipeline("shared", inputs=[a], outputs={f: [N]})


def named_as_words() -> Pipeline:
    over, size, f = Input("over", f32, [Size("sum")]), Input("where", f32, [2]), Func("for")
    f[Var("in")] = over[Var("in")] + size[1] + Param("let", f32)
    return Pipeline("algorithm", inputs=[over, size], outputs={f: [Size("sum")]})


@pytest.mark.parametrize(
    "make",
    [
        histogram,
        softmax,
        triangle,
        scan,
        scans,
        largest,
        options,
        iota,
        shared,
        named_as_words,
    ],
)
def test_every_form_of_definition_reads_back(
    make: Callable[[], Pipeline], golden: Callable[[str], None]
) -> None:
    pipeline = make()
    assert again(pipeline).algorithm == pipeline.algorithm, str(pipeline)
    golden(str(pipeline))


def test_a_text_may_be_written_as_python_is() -> None:
    module = tl.parse(
        """
        # A comment.
        algorithm smooth(a: f32[N], weight: f32) -> out[N - 2] {
          edge[x] = a[clamp(x, 0, N - 1)]
          out[x] = maximum(edge[x] * 2 + edge[x + 1] ** 1, 0) / weight    # another
        }
    """.replace(" ** 1", "")
    )
    out = module.pipelines["smooth"](np.arange(5, dtype=np.float32), weight=2.0)
    assert np.array_equal(out, np.float32([0.5, 2.0, 3.5]))


def test_a_nested_reduction_becomes_a_func_of_its_own() -> None:
    text = "algorithm p(a: f32[M, K]) -> d[M] { d[i] = 1/sum(a[i, k], over=k in [0, K)) }"
    made = tl.parse(text).pipelines["p"].algorithm
    assert [f.name for f in made.funcs] == ["d_sum", "d"]
    assert made.funcs[0].home == "d"


def test_outside_a_scan_its_variable_is_that_of_the_definition() -> None:
    text = "algorithm p(a: i32[N]) -> f[N] { f[k] = cumsum(a[k], over=k in [0, N)) - a[k]*10 }"
    found = tl.parse(text).pipelines["p"](np.array([1, 2, 3], np.int32))
    assert found.tolist() == [1 - 10, 3 - 20, 6 - 30]


def test_producers_keep_the_order_of_the_text() -> None:
    text = "algorithm p(a: f32[N]) -> h[N] { g[i] = a[i] + 1 f[i] = a[i]*2 h[i] = f[i] + g[i] }"
    assert [f.name for f in tl.parse(text).pipelines["p"].algorithm.funcs] == ["g", "f", "h"]


def test_a_domain_may_begin_anywhere() -> None:
    text = "algorithm p(a: i32[N]) -> d[] { d[] = sum(a[k], over=k in [2, N)) }"
    assert tl.parse(text).pipelines["p"](np.arange(6, dtype=np.int32)) == 2 + 3 + 4 + 5


def test_definitions_may_stand_in_one_line_and_a_header_in_several() -> None:
    text = "algorithm p(\n a: f32[N],\n) -> g[N] { f[x] = a[x] g[x] = f[x] + 1 }"
    assert [f.name for f in tl.parse(text).pipelines["p"].algorithm.funcs] == ["f", "g"]


SCAN = "f[i] = cumsum(w, over=k in [0, N))"
BODY = "algorithm p(a: f32[M, N], b: i32[N], w: f32) -> f[M] {{ {} }}"


@pytest.mark.parametrize(
    ("definitions", "code", "word"),
    [
        ("f[i] = a[i, 0] + c[i]", "unknown-name", "c"),
        ("f[i] = a[i, q]", "unknown-name", "q"),
        ("f[i] = sine(a[i, 0])", "unknown-name", "sine"),
        ("f[i] = a + w", "not-indexed", "a"),
        ("f[i] = sum(a[i, k], over=k)", "unexpected-text", ")"),
        ("f[i] = sum(a[i, 0])", "bad-reduction", "sum"),
        ("f[i] = exp(w, over=k in [0, N))", "bad-reduction", "exp"),
        ("f[i] = max(w, over=k in [0, N), dtype=f32)", "bad-reduction", "max"),
        ("f[i] = cummax(w, over=i in [0, M), x=1)", "bad-reduction", "cummax"),
        ("f[i] += w", "not-defined-first", "f"),
        ("f[i] = w over k in [0, N)", "not-defined-first", "f"),
        ("a[i] = w", "name-twice", "a"),
        ("g[i] = w", "unknown-name", "f"),
        ("f[i] = w for h", "unknown-name", "h"),
        ("f[i] = sum(a[i, k], over=k in [0, k))", "unknown-name", "k"),
        ("f[i] = { t = u; u = w; t }", "unknown-name", "u"),
        ("f[i] = w + ", "unexpected-text", "}"),
        ("f[i] = f16(a[i, 0], w)", "wrong-count", "f16"),
        ("f[i] = a[i, 0].1", "no-such-component", "1"),
        ("f[i] = 1:f33", "bad-constant", "1:f33"),
    ],
)
def test_what_is_no_algorithm_is_refused_at_the_word(
    definitions: str, code: str, word: str
) -> None:
    text = BODY.format(definitions)
    with pytest.raises(ParseError) as caught:
        tl.parse(text)
    assert caught.value.code == code
    span = caught.value.span
    assert span is not None
    assert text[span.start : span.end] == word


@pytest.mark.parametrize(
    ("definitions", "code", "place"),
    [
        ("f[i, j] = a[i, j]", "wrong-rank", "p"),
        ("f[i] = a[i]", "wrong-rank", "a"),
        ("f[i] = w // 2", "integers-only", "//"),
        ("f[i] = a[w, 0]", "index-not-integer", "a"),
        ("f[i] = select(w, 1, 2)", "condition-not-bool", "select"),
        ("f[i] = w f[i] = i32(i) + 0.5:f64", "update-changes-dtype", "f[i] = i32(i) + 0.5:f64"),
        ("f[i] = (w, b[i]) f[i] = w", "wrong-components", "f[i] = w"),
        ("f[i] = w f[i] = f[i + 1]", "pure-var-moved", "f[i] = f[i + 1]"),
        (SCAN, "scan-not-on-the-left", SCAN),
        (f"f[i] = w {SCAN}", "scan-misplaced", SCAN),
        ("f[i + 1] = w", "unknown-name", "i"),
        ("f[0] = w", "first-definition-not-pure", "f[0] = w"),
    ],
)
def test_a_wrong_definition_is_shown_in_the_text(definitions: str, code: str, place: str) -> None:
    text = BODY.format(definitions)
    with pytest.raises((DefinitionError, ParseError)) as caught:
        tl.parse(text)
    assert caught.value.code == code
    span = caught.value.span
    assert span is not None
    assert text[span.start : span.end] == place


@pytest.mark.parametrize(
    ("head", "code"),
    [
        ("a: f32[N], a: f32[N]", "name-twice"),
        ("a: f32[N], b: f32, b: f32", "name-twice"),
        ("a: f32[N], b: f32", "unused-name"),
        ("a: f32[N], K: size", "unused-name"),
        ("a: f33[N]", "unknown-name"),
        ("a: f32[N], b: float", "unknown-name"),
        ("a: f32[1.5*N]", "bad-extent"),
    ],
)
def test_a_wrong_header_is_refused(head: str, code: str) -> None:
    with pytest.raises((DefinitionError, ParseError)) as caught:
        tl.parse(f"algorithm p({head}) -> f[N] {{ f[i] = a[i] }}")
    assert caught.value.code == code
    assert caught.value.span is not None
    assert caught.value.span.path == "<text>"
