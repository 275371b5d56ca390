"""The whole message of everything that can be wrong with an algorithm."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import (
    Func,
    Input,
    Param,
    Pipeline,
    RDom,
    Size,
    Var,
    clamp,
    constant_exterior,
    f16,
    f32,
    i8,
    i32,
    i64,
    promise,
    random_uniform,
    repeat_edge,
    select,
    u64,
)
from tests.errors.mistakes import Mistakes

mistake = Mistakes()

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")
a = Input("a", f32, [M, N])
b = Input("b", i32, [N])
k = RDom("k", N)


@mistake
def scan_domain():
    k = RDom("k", N)
    return tl.cumsum(b[k], over=k.where(k > 2))


@mistake
def scan_not_on_the_left():
    f, k = Func("f"), RDom("k", N)
    f[i] = tl.cumsum(b[k], over=k)


@mistake
def scan_misplaced():
    f, k = Func("f"), RDom("k", N)
    f[i] = tl.sum(tl.cumsum(b[k], over=k), over=k)


@mistake
def bad_name():
    return Func("my func")


@mistake
def bad_name__of_a_pipeline():
    f = Func("f")
    f[i] = b[i]
    return Pipeline("a-b", inputs=[b], outputs={f: [N]})


@mistake
def bad_dtype():
    return Input("x", np.float32, [M])


@mistake
def bad_dtype__of_a_param():
    return Param("alpha", float)


@mistake
def bad_shape():
    return Input("x", f32, M)


@mistake
def bad_shape__of_an_output():
    f = Func("f")
    f[i] = b[i]
    return Pipeline("p", inputs=[b], outputs={f: N})


@mistake
def bad_range():
    return RDom("r", (0, N, 2))


@mistake
def bad_extent():
    return Input("x", f32, [M, 1.5])


@mistake
def bad_extent__of_a_domain():
    return RDom("r", (0, b[0]))


@mistake
def bad_input():
    f = Func("f")
    f[i] = i
    return Pipeline("p", inputs=[N], outputs={f: [N]})


@mistake
def no_output():
    return Pipeline("p", inputs=[a], outputs={})


@mistake
def undefined_func():
    f, g = Func("f"), Func("g")
    g[i] = f[i] + 1


@mistake
def undefined_func__as_output():
    return Pipeline("p", inputs=[a], outputs={Func("f"): [M]})


@mistake
def wrong_rank():
    f = Func("f")
    f[i] = a[i]


@mistake
def wrong_rank__of_an_output():
    f = Func("f")
    f[i, j] = a[i, j]
    return Pipeline("p", inputs=[a], outputs={f: [M]})


@mistake
def index_not_integer():
    f = Func("f")
    f[i] = b[a[0, i]]


@mistake
def first_definition_not_pure():
    f = Func("f")
    f[i + 1] = b[i]


@mistake
def first_definition_not_pure__of_a_diagonal():
    f = Func("f")
    f[i, i] = b[i]


@mistake
def frozen_func():
    f = Func("f")
    f[i] = b[i]
    Pipeline("p", inputs=[b], outputs={f: [N]})
    f[0] = 1


@mistake
def unknown_var():
    f = Func("f")
    f[i] = a[i, j]


@mistake
def two_domains():
    f, r = Func("f"), RDom("r", M)
    f[i] = f32(0)
    f[i] += a[r, k]


@mistake
def wrong_components():
    f = Func("f")
    f[i] = (b[i], i)
    f[0] = 1


@mistake
def update_changes_dtype():
    f = Func("f")
    f[i] = b[i]
    f[0] = 0.5


@mistake
def pure_var_moved():
    f = Func("f")
    f[i] = b[i]
    f[i] = f[i - 1] + b[i]


@mistake
def circular_region():
    f, g = Func("f"), Func("g")
    f[i, j] = i32(0)
    f[i, i + 1] = 1
    f[j + 1, j] = 2
    g[i, j] = f[i, j]
    return Pipeline("p", inputs=[], outputs={g: [N, N]})


@mistake
def name_twice():
    f, other = Func("f"), Func("f")
    other[i] = b[i]
    f[i] = other[i] + 1
    return Pipeline("p", inputs=[b], outputs={f: [N]})


@mistake
def name_twice__as_input_and_param():
    f = Func("f")
    f[i] = b[i] + Param("b", i32)
    return Pipeline("p", inputs=[b], outputs={f: [N]})


@mistake
def name_twice__within_a_definition():
    f = Func("f")
    f[i] = b[i] + Input("b", i32, [M])[i]


@mistake
def cyclic_definition():
    f, g = Func("f"), Func("g")
    f[i] = b[i]
    g[i] = f[i] * 2
    f[i] = g[i] + 1
    return Pipeline("p", inputs=[b], outputs={f: [N]})


@mistake
def unlisted_input():
    f = Func("f")
    f[i] = a[0, i] + b[i]
    return Pipeline("p", inputs=[a], outputs={f: [N]})


@mistake
def reserved_name():
    f = Func("f")
    f[i] = b[i] + Param("out", i32)
    return Pipeline("p", inputs=[b], outputs={f: [N]})


@mistake
def not_an_expression():
    f = Func("f")
    f[i] = b[i] + "1"


@mistake
def not_an_expression__an_array():
    f = Func("f")
    f[i] = b[i] * np.ones(3)


@mistake
def constant_out_of_range():
    return i8(b[i]) + 300


@mistake
def no_common_dtype():
    return u64(b[i]) + i64(b[i])


@mistake
def integers_only():
    return a[i, j] // 2


@mistake
def integers_only__of_a_complement():
    return ~a[i, j]


@mistake
def integers_only__of_a_promise():
    return promise(a[i, j], 0, 1)


@mistake
def integers_only__of_random_numbers():
    return random_uniform(0.5, i)


@mistake
def integer_power():
    return b[i] ** 7


@mistake
def bool_arithmetic():
    return (b[i] > 0) + (b[i] < 9)


@mistake
def no_truth_value():
    return 1 if b[i] > 0 else 0


@mistake
def no_truth_value__of_a_chain():
    return select(0 <= b[i] < 9, 1, 0)


@mistake
def not_iterable():
    x, y = b[i]
    return x + y


@mistake
def not_iterable__an_array():
    return max(b)


@mistake
def not_iterable__a_func():
    f = Func("f")
    f[i] = b[i]
    return sum(f)


@mistake
def select_arguments():
    return select(b[i] > 0, 1)


@mistake
def condition_not_bool():
    return select(b[i], 1, 0)


@mistake
def condition_not_bool__of_a_domain():
    return RDom("r", N).where(b[0])


@mistake
def rdom_without_dims():
    return RDom("r")


@mistake
def rdom_axis():
    return RDom("r", 3, 3)[2]


@mistake
def rdom_axis__of_a_domain_as_its_variable():
    return RDom("r", 3, 3) + 1


@mistake
def over_not_a_domain():
    return tl.sum(b[i], over=i)


@mistake
def empty_reduction():
    return tl.max(b[i], over=RDom("none", 0))


@mistake
def argmax_rank():
    r = RDom("r", M, N)
    return tl.argmax(a[r[0], r[1]], over=r)


@mistake
def tuple_boundary():
    f = Func("f")
    f[i] = (b[i], i)
    return constant_exterior(f, 0, [(0, N)])


@mistake
def boundary_bounds():
    f = Func("f")
    f[i] = b[i]
    return repeat_edge(f)


@mistake
def boundary_bounds__of_another_kind():
    return repeat_edge(b, [(0, N, 1)])


@mistake
def boundary_source():
    return repeat_edge(b[i])


@mistake
def reductions_too_deep():
    e = b[i]
    for n in range(100):
        e = tl.sum(e, over=RDom(f"k{n}", 2))
    return e


@mistake
def not_an_expression__a_list():
    return Var(["i", "j"])


@mistake
def unbounded_index():
    f, g = Func("f"), Func("g")
    f[i] = b[i] + 0
    g[i] = f[i64(a[0, i])] + f[clamp(b[i], 0, 7)]
    return Pipeline("p", inputs=[a, b], outputs={g: [N]})


@mistake
def unknown_func__of_explained_bounds():
    f = Func("f")
    f[i] = b[i]
    return Pipeline("p", inputs=[b], outputs={f: [N]}).explain_bounds("g")


@mistake
def no_common_dtype__of_a_half():
    return u64(b[i]) % i32(f16(b[i]))


@pytest.mark.parametrize("name", mistake)
def test_the_message_of_a_wrong_definition(name, golden):
    mistake.check(name, golden)
