"""From the outputs to the record of everything they need."""

import pytest

from tensorlang import DefinitionError, Func, Input, Param, Pipeline, Size, Var, f32, i32

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")


def chain() -> tuple[Input, Func, Func, Func]:
    a, f, g, h = Input("A", f32, [N]), Func("f"), Func("g"), Func("h")
    f[i] = a[i] * Param("scale", f32)
    g[i] = f[i] + 1
    h[i] = g[i] * f[i]
    return a, f, g, h


def test_funcs_come_producers_first_and_each_once() -> None:
    a, _, g, h = chain()
    algorithm = Pipeline("p", inputs=[a], outputs={h: [N], g: [N]}).algorithm
    names = [f.name for f in algorithm.funcs]
    assert sorted(names) == ["f", "g", "h"]
    assert names.index("f") < names.index("g") < names.index("h")
    assert [name for name, _ in algorithm.outputs] == ["h", "g"]


def test_sizes_and_params_are_found() -> None:
    a, _, _, h = chain()
    algorithm = Pipeline("p", inputs=[a], outputs={h: [M]}).algorithm
    assert [s.name for s in algorithm.sizes] == ["N", "M"]
    assert [p.name for p in algorithm.params] == ["scale"]


def test_what_no_output_needs_is_left_out() -> None:
    a, f, _, _ = chain()
    algorithm = Pipeline("p", inputs=[a], outputs={f: [N]}).algorithm
    assert [f.name for f in algorithm.funcs] == ["f"]


def test_a_func_that_a_pipeline_took_has_no_further_definition() -> None:
    a, f, g, _ = chain()
    Pipeline("p", inputs=[a], outputs={g: [N]})
    with pytest.raises(DefinitionError, match="frozen-func"):
        f[i] = f[i] + 1


@pytest.mark.parametrize(
    ("close", "code"),
    [
        (lambda a, f, g, h: Pipeline("p", inputs=[a], outputs={}), "no-output"),
        (lambda a, f, g, h: Pipeline("p", inputs=[a], outputs={Func("q"): [N]}), "undefined-func"),
        (lambda a, f, g, h: Pipeline("p", inputs=[a], outputs={h: [N, N]}), "wrong-rank"),
        (lambda a, f, g, h: Pipeline("p", inputs=[], outputs={h: [N]}), "unlisted-input"),
        (lambda a, f, g, h: Pipeline("p", inputs=[f], outputs={h: [N]}), "bad-input"),
        (lambda a, f, g, h: Pipeline("a b", inputs=[a], outputs={h: [N]}), "bad-name"),
    ],
)
def test_what_cannot_be_closed_is_refused(close, code: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        close(*chain())
    assert caught.value.code == code


def test_one_name_is_one_thing() -> None:
    a, other, f = Input("A", f32, [N]), Input("A", f32, [N]), Func("f")
    with pytest.raises(DefinitionError, match="name-twice"):
        f[i] = a[i] + other[i]
    g, size = Func("g"), Func("N")
    size[i] = i32(i)
    g[i] = size[i] + i32(N)
    with pytest.raises(DefinitionError, match="name-twice"):
        Pipeline("p", inputs=[], outputs={g: [N]})
