"""Calls like one that was seen before: what is left out of them, and what is not."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tensorlang import Func, Input, Kernel, Pipeline, Size, Var, f32, kernel
from tensorlang.errors import ShapeError

pytestmark = pytest.mark.cc

N, I = Size("N"), Var("i")


def shifted(outputs: int = 1) -> Kernel:
    """out_k[i] = a[i + 1] + b[i] + k, which may not be written over a."""
    a, b = Input("a", f32, [N + 1]), Input("b", f32, [N])
    funcs = [Func(f"out_{k}") for k in range(outputs)]
    for k, f in enumerate(funcs):
        f[I] = a[I + 1] + b[I] + k
    return Pipeline("shifted", inputs=[a, b], outputs={f: [N] for f in funcs}).compile(target="c")


def test_a_repeated_call_with_out_is_checked_for_overlaps_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = shifted()
    room = np.arange(20, dtype=np.float32)
    a, b, out = room[:6], room[6:11], room[11:16]
    made(a, b, out=out)
    monkeypatch.setattr(kernel, "check_overlap", lambda *_: pytest.fail("checked in full"))
    monkeypatch.setattr(kernel, "make_plan", lambda *_: pytest.fail("planned again"))
    b[:] = 3
    assert made(a, b, out=out) is out
    assert np.array_equal(out, a[1:] + 3)


def test_a_repeated_call_with_an_out_that_overlaps_is_refused() -> None:
    made = shifted()
    room = np.arange(20, dtype=np.float32)
    made(room[:6], room[6:11], out=room[11:16])
    before = room.copy()
    with pytest.raises(ShapeError, match="out-overlaps"):
        made(room[:6], room[6:11], out=room[4:9])
    with pytest.raises(ShapeError, match="out-overlaps"):
        made(room[:6], room[6:11], out=room[1:6])
    assert np.array_equal(room, before)
    # Element by element it may be replaced.
    b = room[6:11].copy()
    assert np.array_equal(made(room[:6], room[6:11], out=room[6:11]), room[1:6] + b)


def test_repeated_calls_with_two_outputs_keep_them_apart() -> None:
    made = shifted(2)
    room = np.arange(30, dtype=np.float32)
    a, b, outs = room[:6], room[6:11], (room[11:16], room[16:21])
    for _ in range(2):
        assert made(a, b, out=outs) is outs
        assert np.array_equal(outs[1], a[1:] + b + 1)
    with pytest.raises(ShapeError, match="out-overlaps"):
        made(a, b, out=(room[11:16], room[15:20]))
    with pytest.raises(ShapeError, match="out-count"):
        made(a, b, out=outs[0])


def test_calls_of_other_strides_and_sizes_get_their_own_addresses() -> None:
    made = shifted()
    for n in (3, 5, 3):
        for step in (1, 2, -1):
            a, b = np.arange(2 * n + 2, dtype=np.float32)[::step][: n + 1], np.ones(n, "f4")
            out = np.zeros(n, np.float32)
            assert np.array_equal(made(a, b, out=out), a[1:] + 1)
            assert np.array_equal(made(a, b), a[1:] + 1)


FIRST = """
import sys
import numpy as np
from tensorlang import Func, Input, Pipeline, Size, Var, f32
before = set(sys.modules)
a, f, i = Input("a", f32, [Size("N")]), Func("f"), Var("i")
f[i] = a[i] + 1
assert Pipeline("first", inputs=[a], outputs={f: [Size("N")]})(np.zeros(3, np.float32))[0] == 1
print(*sorted({"subprocess", "tempfile", "random"} & (set(sys.modules) - before)))
"""


def test_a_first_call_that_finds_its_code_in_the_cache_loads_nothing_to_compile_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORLANG_CACHE", str(tmp_path))
    command = [sys.executable, "-c", FIRST]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        for _ in range(2)
    ]
    assert runs == ["random subprocess tempfile", ""]
