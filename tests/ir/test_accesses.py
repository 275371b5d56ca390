"""Where a program touches a buffer, and what guards say of it."""

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, constant_exterior, f64
from tensorlang.ir import accesses
from tensorlang.ir.expr import Load
from tensorlang.ir.stmt import For, LoopKind, Store

N = Size("N")
i = Var("i")


def test_a_copy_placed_under_a_boundary_condition_reads_only_what_select_lets_it():
    a, out = Input("A", f64, [N]), Func("out")
    edge = constant_exterior(a, 3)
    out[i] = edge[i * 2 - 2] - edge[i + 1]
    p = Pipeline("boundary", inputs=[a], outputs={out: [N]})
    s = Schedule(p)
    copy = s[a].in_(edge)
    s[copy].compute_at(out, i)
    values = np.arange(5.0) + 1
    padded = np.concatenate([[3, 3], values, [3] * 8])
    expected = padded[np.arange(5) * 2] - padded[np.arange(5) + 3]
    np.testing.assert_array_equal(p.compile(s, "interpreter")(values), expected)


def test_a_store_of_a_func_to_its_own_region_asks_nothing_of_what_stands_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entered: list[object] = []
    enter = accesses._enter  # pyright: ignore[reportPrivateUsage]

    def counted(stmt: For, scope: accesses._Scope) -> object:  # pyright: ignore[reportPrivateUsage]
        entered.append(stmt)
        return enter(stmt, scope)

    monkeypatch.setattr(accesses, "_enter", counted)
    x = Var("f.x")
    store = Store("f", (x,), (Load("g", (x,), 0, f64),))
    loop = For("f.x", Var("f.x.min"), Var("f.x.extent"), LoopKind.SERIAL, store)
    (own,) = accesses.accesses_of(loop, "f", ("x",))
    assert own.is_store
    assert own.loose == own.tight == (None,)
    assert not entered
    (read,) = accesses.accesses_of(loop, "g", ("x",))
    assert read.loose[0] is not None
    assert entered == [loop]
