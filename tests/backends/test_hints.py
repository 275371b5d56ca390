"""A hint that a backend has no use for leaves a note, whatever it stands on."""

import pytest

from tensorlang import Func, Input, Pipeline, Schedule, Size, Target, Var, f32
from tensorlang.backends.hints import ignored_hints
from tensorlang.text.loop_ir import parse_program

HINTED = """
program p(N; A: f32[N] cache="evict_first" load_with="pointer") -> B: f32[N]:
  for i in [0, N) stages=3:
    for j in [0, 2) stages=3:
      B[i] = A[i]
"""


def test_each_hint_that_is_not_used_is_named_once() -> None:
    program = parse_program(HINTED)
    assert ignored_hints(program, "c", lambda name, hint: (name, hint) == ("j", "stages")) == (
        "the hint cache=evict_first of 'A' is ignored by the target c",
        "the hint stages=3 of 'i' is ignored by the target c",
    )


@pytest.mark.parametrize("target", [Target("triton", arch="sm_90"), Target("c")], ids=str)
def test_what_a_kernel_ignores_is_in_its_notes(target: Target) -> None:
    n, i = Size("N"), Var("i")
    a, f, g = Input("A", f32, [n]), Func("f"), Func("g")
    f[i] = a[i] * 2
    g[i] = f[i] + 1
    s = Schedule(Pipeline("p", inputs=[a], outputs={g: [n]}))
    s[g].split(i, "io", "ii", 16)
    (s[g].gpu_blocks("io") if target.name == "triton" else s[g].parallel("io")).vectorize("ii")
    s[f].compute_at(g, "io").load_with("descriptor").cache("streaming")
    notes = Pipeline("p", inputs=[a], outputs={g: [n]}).compile(s, target=target).notes
    for hint in ("cache=streaming of 'f'", "load_with=descriptor of 'f'"):
        assert f"the hint {hint} is ignored by the target {target.name}" in notes
