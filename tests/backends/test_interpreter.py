"""The interpreter runs loop IR and refuses every access that is not sound."""

from typing import Any

import numpy as np
import pytest

from tensorlang.backends.interpreter import Access, Interpreted, compile_program
from tensorlang.errors import BoundsError, InternalError, ShapeError
from tensorlang.ir.expr import Binary, Const, Expr, Load, Select, Size, Var, cast
from tensorlang.ir.functions import exp, fma, promise, random_uniform
from tensorlang.ir.stmt import Buffer, Dim, For, LoopKind, Program, Store
from tensorlang.ir.types import DType, bf16, f32, i64, index
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program


def compiled(text: str) -> Interpreted:
    return compile_program(parse_program(text), Target("interpreter"))


def run(
    text: str, *inputs: Any, shape: tuple[int, ...] = (4,), made: type = np.int32, **sizes: int
):
    """The one output of a program, which starts as all ones."""
    out = np.ones(shape, made)
    compiled(text).run(sizes, {}, inputs, [out])
    return out


def over(n: Expr | int, value: Expr, kind: LoopKind = LoopKind.SERIAL, *inputs: Buffer) -> Program:
    """for i in [0, n): out[i] = value"""
    extent = n if isinstance(n, Expr) else Const(n, index)
    out = Buffer("out", (value.dtype,), (Dim(Const(0, index), extent),))
    store = Store("out", (Var("i"),), (value,))
    loop = For("i", Const(0, index), extent, kind, store)
    return Program("p", (Size("n"),), (), inputs, (out,), loop)


def vector(name: str, dtype: DType, n: Expr) -> Buffer:
    return Buffer(name, (dtype,), (Dim(Const(0, index), n),))


# --- values -------------------------------------------------------------------------------------


def test_a_tiled_matmul_with_masked_tails_gives_the_product():
    text = """
    program matmul(M, N, K; A: f16[M, K], B: f16[K, N]) -> C: f16[M, N]:
      gpu_block t in [0, (M + 3)//4*((N + 3)//4)):
        let io = t//((N + 3)//4)
        let jo = t%((N + 3)//4)
        allocate S: f32[io*4: +4, jo*4: +4]
        stage S.0:
          vectorized i in [io*4, +4):
            vectorized j in [jo*4, +4):
              S[i, j] = 0.0:f32
        stage S.1:
          for reduction ko in [0, (K + 1)//2):
            vectorized i in [io*4, +4):
              vectorized j in [jo*4, +4):
                vectorized reduction ki in [0, 2):
                  if (ko*2 + ki < K) & (i < M) & (j < N):
                    S[i, j] = S[i, j] + f32(A[i, ko*2 + ki])*f32(B[ko*2 + ki, j])
        stage C.0:
          vectorized i in [io*4, +4):
            vectorized j in [jo*4, +4):
              if (i < M) & (j < N):
                C[i, j] = f16(S[i, j])
    """
    rng = np.random.default_rng(0)
    a = rng.standard_normal((7, 5)).astype(np.float16)
    b = rng.standard_normal((5, 9)).astype(np.float16)
    out = run(text, a, b, shape=(7, 9), made=np.float16, M=7, N=9, K=5)
    # Seven terms of one f32 accumulator, in order.
    expected = np.zeros((7, 9), np.float32)
    for k in range(5):
        expected += np.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
    assert np.array_equal(out, expected.astype(np.float16))


def test_nested_splits_that_do_not_divide_count_each_element_once():
    text = """
    program p(n; A: f32[n]) -> out: f32[1]:
      stage out.0:
        out[0] = 0.0:f32
      stage out.1:
        for o in [0, (n + 47)//48):
          for m in [0, (48 + 31)//32):
            for i in [0, 32):
              let j = m*32 + i
              let r = o*48 + j
              if (j < 48) & (r < n):
                out[0] = out[0] + A[r]
    """
    ones = np.ones(100, np.float32)
    assert run(text, ones, shape=(1,), made=np.float32, n=100)[0] == 100


def test_any_strides_are_read_and_written():
    text = """
    program p(n; A: i32[n, n]) -> out: i32[n, n]:
      for i in [0, n):
        for j in [0, n):
          out[i, j] = A[i, j] * 2:i32
    """
    base = np.arange(64, dtype=np.int32).reshape(8, 8)
    for view in (base[::2, ::2], base[::-2, 1::2].T, np.broadcast_to(base[0, ::2], (4, 4))):
        out = np.zeros((4, 8), np.int32)[:, ::-2]
        compiled(text).run({"n": 4}, {}, [view], [out])
        assert np.array_equal(out, view * 2)


def test_bf16_arrays_hold_bits():
    program = over(2, Binary("add", *[Load("A", (Var("i"),), 0, bf16)] * 2), LoopKind.SERIAL,
                   vector("A", bf16, Const(2, index)))  # fmt: skip
    out = np.zeros(2, np.uint16)
    compile_program(program, Target("interpreter")).run(
        {"n": 0}, {}, [np.array([0x3F80, 0x4049], np.uint16)], [out]
    )
    assert out.tolist() == [0x4000, 0x40C9]


def test_index_arithmetic_is_exact_and_a_stored_index_becomes_an_i64():
    text = """
    program p(n) -> out: index[2]:
      out[0] = n*n*n//(n*n) - n
      out[1] = n*n*n
    """
    out = run(text, shape=(2,), made=np.int64, n=2**40 + 1)
    assert out[0] == 0
    assert int(out[1]) == ((2**40 + 1) ** 3 + 2**63) % 2**64 - 2**63


def test_integer_division_floors_and_overflow_wraps():
    text = """
    program p(n; A: i32[5], B: i32[5]) -> out: i32[5]:
      for i in [0, 5):
        out[i] = A[i]//B[i] + A[i]%B[i]*100:i32
    """
    a = np.array([-7, 7, -7, 5, -(2**31)], np.int32)
    b = np.array([2, -2, -2, 0, -1], np.int32)
    assert run(text, a, b, shape=(5,), n=0).tolist() == [96, -104, -97, 0, -(2**31)]


def test_params_calls_and_casts_of_every_kind():
    i = Var("i")
    value = exp(cast(f32, i)) + random_uniform(7, i) + fma(cast(f32, i), 2.0, 1.0)
    value = value + cast(f32, cast(i64, i < 2)) + cast(f32, cast(index, cast(f32, i) * 1.5))
    out = np.zeros(4, np.float32)
    compile_program(over(4, value), Target("interpreter")).run({"n": 0}, {}, [], [out])
    assert 3 <= out[0] < 4
    assert out[3] == pytest.approx(np.exp(3) + 7 + 4, abs=1)


def test_a_tuple_valued_buffer_stores_all_components_after_all_loads():
    text = """
    program p(n; A: i32[n]) -> out: (i32, i64)[1]:
      out[0] = (1:i32, 2:i64)
      for i in [0, n):
        out[0] = (i32(out[0].1), i64(out[0].0) + i64(A[i]))
    """
    first, second = np.zeros(1, np.int32), np.zeros(1, np.int64)
    compiled(text).run({"n": 3}, {}, [np.array([10, 20, 30], np.int32)], [first, second])
    assert (first[0], second[0]) == (22, 41)


def test_loops_and_arrays_of_extent_zero_run_nothing():
    text = """
    program p(n; A: i32[n]) -> out: i32[n]:
      allocate T: i32[5: +n]
      for i in [0, n):
        T[5 + i] = A[i]
      parallel i in [0, n - 3):
        out[i] = T[5 + i]
      for i in [0, n):
        out[i] = T[5 + i]
    """
    empty = np.zeros(0, np.int32)
    assert run(text, empty, shape=(0,), n=0).shape == (0,)
    assert run(text, np.array([4], np.int32), shape=(1,), n=1)[0] == 4


def test_a_folded_buffer_is_a_ring_and_forgets_what_it_overwrote():
    text = """
    program p(n) -> out: i32[8]:
      allocate T: i32[-1: +9] fold(2)
      T[-1] = 0:i32
      for i in [0, 8):
        T[i] = T[i - 1] + 1:i32
        out[i] = T[i - {back}]
    """
    assert run(text.replace("{back}", "1"), shape=(8,), n=0).tolist() == [*range(8)]
    with pytest.raises(InternalError, match=r"load of T\[-2\], outside of T\[-1:8\]"):
        run(text.replace("{back}", "2"), shape=(8,), n=0)
    late = text.replace("{back}", "select(1 < i, 2, 1)")
    with pytest.raises(InternalError, match=r"load of T\[0\], which holds no value"):
        run(late, shape=(8,), n=0)


# --- what is refused ----------------------------------------------------------------------------


def test_a_load_outside_of_an_input_names_the_element_the_box_and_the_stage():
    text = """
    program p(n; A: i32[n]) -> out: i32[n]:
      stage out.0:
        for i in [0, n):
          out[i] = A[i - 1]
    """
    with pytest.raises(InternalError, match=r"load of A\[-1\], outside of A\[0:4\]") as caught:
        run(text, np.arange(4, dtype=np.int32), n=4)
    assert caught.value.__notes__ == ["in stage 0 of 'out'"]


def test_a_store_outside_of_a_buffer_is_refused():
    text = """
    program p(n) -> out: i32[4]:
      allocate T: i32[2: +3]
      for i in [2, +n):
        T[i] = 1:i32
      for i in [0, 4):
        out[i] = 0:i32
    """
    assert run(text, n=3).tolist() == [0] * 4
    with pytest.raises(InternalError, match=r"store to T\[5\], outside of T\[2:5\]"):
        run(text, n=4)


def test_reading_what_was_never_written_is_refused():
    text = """
    program p(n) -> out: i32[4]:
      allocate T: i32[4]
      for i in [0, n):
        T[i] = 1:i32
      for i in [0, 4):
        out[i] = T[i]
    """
    assert run(text, n=4).tolist() == [1] * 4
    with pytest.raises(InternalError, match=r"load of T\[3\], which holds no value yet"):
        run(text, n=3)


def test_an_allocation_starts_empty_each_time():
    text = """
    program p(n) -> out: i32[4]:
      for i in [0, 4):
        allocate T: i32[1]
        if i < 1:
          T[0] = 1:i32
        out[i] = T[0]
    """
    with pytest.raises(InternalError, match=r"load of T\[0\], which holds no value yet"):
        run(text, n=0)


def test_an_output_that_is_not_written_whole_is_refused_and_left_alone():
    text = """
    program p(n) -> out: i32[4]:
      for i in [0, n):
        out[i] = 0:i32
    """
    out = np.ones(4, np.int32)
    with pytest.raises(InternalError, match=r"1 of the 4 elements of the output 'out'"):
        compiled(text).run({"n": 3}, {}, [], [out])
    assert out.tolist() == [1] * 4


def test_a_broken_promise_is_the_users_error():
    a = vector("A", i64, Const(3, index))
    value = Load("A", (cast(index, promise(Load("A", (Var("i"),), 0, i64), 0, 2)),), 0, i64)
    executable = compile_program(over(3, value, LoopKind.SERIAL, a), Target("interpreter"))
    out = np.zeros(3, np.int64)
    executable.run({"n": 0}, {}, [np.array([2, 0, 1])], [out])
    assert out.tolist() == [1, 2, 0]
    with pytest.raises(BoundsError, match=r"a promised value is 3, which is not in \[0, 2\]") as e:
        executable.run({"n": 0}, {}, [np.array([2, 3, 1])], [out])
    assert e.value.code == "promise-broken"


def test_an_assert_that_fails_raises_its_error_with_the_values_filled_in():
    text = """
    program p(n) -> out: i32[4]:
      assert n < 4 else ShapeError("too-large", what="n is {0}", why="{0} > 3", fix="-", values=[n])
      for i in [0, 4):
        out[i] = 0:i32
    """
    run(text, n=3)
    with pytest.raises(ShapeError, match="n is 7") as caught:
        run(text, n=7)
    assert (caught.value.code, caught.value.why) == ("too-large", "7 > 3")


# --- select -------------------------------------------------------------------------------------


def test_only_the_chosen_side_of_select_is_evaluated():
    text = """
    program p(n; A: i32[4]) -> out: i32[6]:
      for i in [0, 6):
        out[i] = select((0 < i) & (i < 5), A[i - 1], -1:i32)
    """
    out = run(text, np.arange(4, dtype=np.int32), shape=(6,), n=0)
    assert out.tolist() == [-1, 0, 1, 2, 3, -1]


def test_what_two_sides_share_is_evaluated_when_either_is_chosen_and_only_then():
    seen: list[Access] = []
    i = Var("i")
    shared = Load("A", (i,), 0, i64)
    value = Select(i < 3, Select(i < 1, shared + 1, shared * shared), Const(7, i64))
    program = over(4, value, LoopKind.SERIAL, vector("A", i64, Const(3, index)))
    out = np.zeros(4, np.int64)
    compile_program(program, Target("interpreter"), seen.append).run(
        {"n": 0}, {}, [np.array([10, 20, 30])], [out]
    )
    assert out.tolist() == [11, 400, 900, 7]
    assert [a.indices for a in seen if a.kind == "load"] == [(0,), (1,), (2,)]


# --- races --------------------------------------------------------------------------------------

SHIFT = """
program p(n; A: i32[4]) -> out: i32[4]:
  for i in [0, 4):
    out[i] = A[i]
  {kind} i in [0, 3):
    out[i + {write}] = out[i + {read}]
"""


@pytest.mark.parametrize("kind", ["parallel", "gpu_block"])
@pytest.mark.parametrize(
    ("write", "read", "what"), [(0, 1, "read and write"), (1, 0, "write and read")]
)
def test_a_loop_carried_dependence_is_a_race(kind: str, write: int, read: int, what: str):
    text = SHIFT.format(kind=kind, write=write, read=read)
    message = rf"race in the parallel loop 'i': its iterations 0 and 1 {what} out\[1\]"
    with pytest.raises(InternalError, match=message):
        run(text, np.arange(4, dtype=np.int32), n=0)
    assert run(text.replace(kind, "for"), np.arange(4, dtype=np.int32), n=0).shape == (4,)


def test_writes_of_different_values_race_and_of_equal_values_do_not():
    text = """
    program p(n) -> out: i32[1]:
      parallel i in [0, 3):
        out[0] = i32(i//{d})
    """
    assert run(text.replace("{d}", "3"), shape=(1,), n=0)[0] == 0
    message = r"iterations 1 and 2 write different values to out\[0\]"
    with pytest.raises(InternalError, match=message):
        run(text.replace("{d}", "2"), shape=(1,), n=0)


def test_a_nan_equals_itself_as_a_value_written_twice():
    text = """
    program p(n) -> out: f32[1]:
      parallel i in [0, 3):
        out[0] = nan:f32
    """
    assert np.isnan(run(text, shape=(1,), made=np.float32, n=0)[0])


def test_an_accumulator_shared_by_parallel_iterations_is_a_race():
    text = """
    program p(n; A: i32[4]) -> out: i32[1]:
      out[0] = 0:i32
      parallel reduction i in [0, 4):
        out[0] = out[0] + A[i]
    """
    with pytest.raises(InternalError, match=r"race in the parallel loop 'i'.*out\[0\]"):
        run(text, np.arange(4, dtype=np.int32), shape=(1,), n=0)


def test_reading_long_after_two_iterations_read_still_finds_the_writer():
    text = """
    program p(n) -> out: i32[4]:
      for i in [0, 4):
        out[i] = 0:i32
      parallel i in [0, 3):
        out[i] = select(i < 2, out[3], 0:i32)
        if 1 < i:
          out[3] = 1:i32
    """
    with pytest.raises(InternalError, match=r"iterations 0 and 2 read and write out\[3\]"):
        run(text, n=0)


def test_a_reader_that_then_writes_races_with_another_reader():
    text = """
    program p(n) -> out: i32[4]:
      for i in [0, 4):
        out[i] = 0:i32
      parallel i in [0, 2):
        let first = i
        if first < 1:
          out[i] = out[3]
        if 0 < first:
          out[3] = out[3] + 1:i32
    """
    with pytest.raises(InternalError, match=r"iterations 0 and 1 read and write out\[3\]"):
        run(text, n=0)


def test_a_buffer_allocated_inside_an_iteration_is_private():
    text = """
    program p(n; A: i32[4]) -> out: i32[4]:
      parallel i in [0, 4):
        allocate T: i32[1]
        T[0] = A[i]
        T[0] = T[0] + 1:i32
        out[i] = T[0]
    """
    assert run(text, np.arange(4, dtype=np.int32), n=0).tolist() == [1, 2, 3, 4]


def test_nested_parallel_loops_name_the_one_that_races():
    text = """
    program p(n) -> out: i32[2]:
      parallel i in [0, 2):
        out[i] = 0:i32
        parallel j in [0, 2):
          out[i] = out[i] + 1:i32
    """
    with pytest.raises(InternalError, match="race in the parallel loop 'j'"):
        run(text, shape=(2,), n=0)


def test_successive_parallel_loops_may_touch_what_the_other_did():
    text = """
    program p(n) -> out: i32[4]:
      allocate T: i32[4]
      parallel i in [0, 4):
        T[i] = i32(i)
      parallel i in [0, 4):
        out[i] = T[3 - i]
    """
    assert run(text, n=0).tolist() == [3, 2, 1, 0]


# --- traces, and size ---------------------------------------------------------------------------


def test_a_trace_records_loads_and_stores_in_order():
    seen: list[Access] = []
    text = """
    program p(n; A: i32[n]) -> out: i32[n]:
      for i in [0, n):
        out[i] = A[i] + 1:i32
    """
    executable = compile_program(parse_program(text), Target("interpreter"), seen.append)
    executable.run({"n": 2}, {}, [np.array([5, 6], np.int32)], [np.zeros(2, np.int32)])
    assert seen == [
        Access("load", "A", (0,), 5),
        Access("store", "out", (0,), 6),
        Access("load", "A", (1,), 6),
        Access("store", "out", (1,), 7),
    ]


def test_a_sum_of_2000_terms_and_20_doublings_run_at_once():
    i = Var("i")
    chain: Expr = Load("A", (i,), 0, i64)
    for k in range(2000):
        chain = Select(chain < k, chain + 1, chain - 1) if k % 2 else chain + Const(k, i64)
    doubled: Expr = Load("A", (i,), 0, i64)
    for _ in range(20):
        doubled = doubled + doubled
    lazy: Expr = Load("A", (i,), 0, i64)
    for k in range(2000):
        lazy = Select(i < k + 5, lazy + 1, Const(0, i64))
    program = over(3, chain * 0 + doubled + lazy, LoopKind.SERIAL, vector("A", i64, Size("n")))
    out = np.zeros(3, np.int64)
    a = np.array([1, 2, 3])
    compile_program(program, Target("interpreter")).run({"n": 3}, {}, [a], [out])
    assert out.tolist() == [v * 2**20 + v + 2000 for v in (1, 2, 3)]


def test_an_input_that_reaches_far_but_holds_few_elements_costs_nothing():
    text = """
    program p(n; A: i32[n]) -> out: i32[1]:
      out[0] = A[n - 1] + A[n//2]
    """
    far = np.broadcast_to(np.int32(3), (2**33,))
    assert run(text, far, shape=(1,), n=2**33)[0] == 6
