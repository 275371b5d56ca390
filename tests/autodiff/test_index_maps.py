"""What is read elsewhere gets its gradient back: index maps inverted, or scattered through."""

import numpy as np
import pytest

from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Size,
    Var,
    clamp,
    constant_exterior,
    f64,
    i32,
    mirror_image,
    mirror_interior,
    repeat_edge,
    repeat_image,
    select,
    sum,
)
from tensorlang.autodiff import gradients
from tests.autodiff.checking import check_differences

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")
X, x = Input("X", f64, [M, N]), Input("x", f64, [N])


def array(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def of_matrix(build, shape):
    f = Func("f")
    f[i, j] = build(X)
    return Pipeline("p", inputs=[X], outputs={f: shape})


# Gathered: no update scatters.
GATHERED = {
    "transposed and flipped": (
        lambda: of_matrix(lambda X: X[j, i] * X[M - 1 - j, N - 1 - i], [N, M]), (3, 4)
    ),
    "offsets": (lambda: of_matrix(lambda X: X[i, j + 1] * X[i + 1, j], [M - 1, N - 1]), (3, 4)),
    "a diagonal and a fixed row": (lambda: of_matrix(lambda X: X[i, i] * X[0, j], [M, N]), (4, 4)),
    "quotients and remainders": (
        lambda: of_matrix(lambda X: X[i // 2, j % 3] * X[i // 2, j // 3], [2 * M, 9]), (3, 3)
    ),
    "a stride": (lambda: of_matrix(lambda X: X[2 * i + 1, 3 * j], [2, 2]), (4, 4)),
    "broadcast": (lambda: of_matrix(lambda X: X[i, 0] * X[0, j] * X[1, 1], [M, N]), (3, 4)),
    "a skewed index": (lambda: of_matrix(lambda X: X[i + j, j], [M - 2, 3]), (5, 3)),
    "digits": (
        lambda: of_matrix(
            lambda X: X[i // 4, i % 4] * 2 + X[j // 6, j // 2 % 3] * X[0, j % 2], [12, 12]
        ),
        (3, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GATHERED)
def test_an_index_that_inverts_is_gathered(name):
    build, shape = GATHERED[name]
    pipeline = build()
    check_differences(pipeline, [array(*shape)])
    for func in gradients(pipeline).algorithm.funcs:
        for definition in func.definitions:
            assert all(
                v is not None or not e.free
                for v, e in zip(definition.pure, definition.indices, strict=True)
            )


@pytest.mark.parametrize("target", ["interpreter", pytest.param("c", marks=pytest.mark.cc)])
@pytest.mark.parametrize(
    "edge",
    [repeat_edge, repeat_image, mirror_image, mirror_interior, lambda a: constant_exterior(a, 3)],
)
def test_a_boundary_condition_scatters(edge, target):
    e, f = edge(x), Func("f")
    f[i] = e[i - 2] * e[i] + e[2 * i + 1]
    for n in (1, 2, 5):
        check_differences(Pipeline("p", inputs=[x], outputs={f: [N]}), [array(n)], target=target)


@pytest.mark.parametrize("target", ["interpreter", pytest.param("c", marks=pytest.mark.cc)])
def test_an_index_that_is_data_scatters(target):
    ids, f = Input("ids", i32, [N]), Func("f")
    f[i, j] = X[clamp(ids[i], 0, M - 1), j] * X[j, clamp(ids[i] + j, 0, N - 1)]
    pipeline = Pipeline("p", inputs=[X, ids], outputs={f: [N, 3]})
    check_differences(pipeline, [array(4, 5), np.array([3, 0, 3, 9, 1], np.int32)], target=target)


def test_an_index_that_is_data_of_the_other_is_a_condition():
    """Fewer rows than X has: of the others nothing is known, and their gradient is 0."""
    ids, f = Input("ids", i32, [Size("K")]), Func("f")
    f[i] = X[i, clamp(ids[i], 0, N - 1)] * X[i, 0]
    pipeline = Pipeline("p", inputs=[X, ids], outputs={f: [Size("K")]})
    check_differences(pipeline, [array(5, 4), np.array([3, 0, 9], np.int32)])
    definitions = [d for g in gradients(pipeline).algorithm.funcs for d in g.definitions]
    assert all(None not in d.pure for d in definitions)


def test_a_chain_of_stencils_with_several_consumers_and_outputs():
    f, g, h = Func("f"), Func("g"), Func("h")
    f[i] = x[i] * x[i + 1]
    g[i] = f[i] * f[i + 1]
    h[i] = g[i] + f[i + 1] * x[i]
    pipeline = Pipeline("p", inputs=[x], outputs={h: [N - 2], g: [N - 2]})
    check_differences(pipeline, [array(7)])
    check_differences(pipeline, [array(7)], grad_outputs=None)


def test_a_guard_keeps_what_is_read_inside():
    f = Func("f")
    f[i] = select(i > 0, x[i - 1] * x[i - 1], 0.0) + select(i < N - 1, x[i + 1] * x[i], 1.0)
    check_differences(Pipeline("p", inputs=[x], outputs={f: [N]}), [array(6)])


def test_a_domain_with_a_condition():
    r = RDom("r", N, N)
    r = r.where(r[0] <= r[1])
    f = Func("f")
    f[i] = sum(X[i, r[0]] * X[i, r[1]], over=r[0])
    check_differences(Pipeline("p", inputs=[X], outputs={f: [M]}), [array(3, 4)])


def test_a_condition_over_pure_variables():
    k, f = RDom("k", N), Func("f")
    f[i, j] = sum(X[i, k.where(k <= j)], over=k.where(k <= j)) * X[i, j]
    check_differences(Pipeline("p", inputs=[X], outputs={f: [M, N]}), [array(3, 4)])


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_arrays_of_size_zero(shape):
    k, f = RDom("k", N), Func("f")
    f[i, j] = sum(X[i, k], over=k) * X[i, j]
    check_differences(Pipeline("p", inputs=[X], outputs={f: [M, N]}), [np.zeros(shape)])
