"""Func and Input, apart from what their definitions compute."""

import pytest

from tensorlang import DefinitionError, Func, Input, Pipeline, RDom, Var, clamp, f32, i32

i, j = Var("i"), Var("j")


def test_funcs_of_one_name_are_apart_though_both_are_alive() -> None:
    reads = []
    for dtype in (f32, i32):
        a, f, g = Input("a", dtype, [8]), Func("f"), Func("g")
        f[i] = a[i] + 1
        reads.append(f[i])
        g[i] = f[i] * 2
        pipeline = Pipeline("p", inputs=[a], outputs={g: [8]})
        assert pipeline.algorithm.func("f").dtypes == (dtype,)
    assert reads[0] is not reads[1]


def zeros() -> Func:
    f = Func("f")
    f[i, j] = i32(0)
    return f


def test_a_pure_var_with_a_place_of_its_own_may_stand_in_other_indices() -> None:
    a, k = Input("a", i32, [8, 8]), RDom("k", 8)
    f = zeros()
    f[i, clamp(a[i, k], 0, 7)] += 1
    f[clamp(a[j, k], 0, 7), j] += 1
    f[i, i] = f[i, 0]
    f[i, i] = f[0, i]
    assert [d.pure for d in f.definitions[1:]] == [
        ("i", None), (None, "j"), ("i", None), (None, "i"),
    ]  # fmt: skip


@pytest.mark.parametrize("read", [lambda f: f[i + 1, j], lambda f: f[j, i], lambda f: f[i, 0]])
def test_a_pure_var_stands_at_its_place_wherever_the_func_is_read(read) -> None:
    f = zeros()
    with pytest.raises(DefinitionError, match="pure-var-moved"):
        f[i, j] = read(f)


def test_two_places_of_which_neither_stays_are_refused() -> None:
    f = zeros()
    with pytest.raises(DefinitionError, match="pure-var-moved"):
        f[i, i] = f[i, 0] + f[0, i]
