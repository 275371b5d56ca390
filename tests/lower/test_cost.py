"""What lowering costs, counted in steps of proofs: time depends on the machine."""

import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f16, f32, maximum, sum
from tensorlang.ir import interval, search
from tensorlang.ir.facts import Facts

M, N, K = Size("M"), Size("N"), Size("K")
i, j, k = Var("i"), Var("j"), RDom("k", K)


def persistent() -> tuple[Pipeline, Schedule]:
    """linear_relu in L2 groups of 16 rows of tiles, on 132 programs."""
    a, b, bias = Input("A", f16, [M, K]), Input("B", f16, [K, N]), Input("bias", f16, [N])
    c, d = Func("C"), Func("D")
    c[i, j] = sum(f32(a[i, k]) * f32(b[k, j]), over=k)
    d[i, j] = f16(maximum(c[i, j] + f32(bias[j]), 0.0))
    pipeline = Pipeline("linear_relu", inputs=[a, b, bias], outputs={d: [M, N]})
    s = Schedule(pipeline)
    s[d].tile(i, j, "io", "jo", "ii", "ji", 128, 256).split("io", "g", "ir", 16, tail="ragged")
    s[d].reorder("g", "jo", "ir").fuse("jo", "ir", "within").fuse("g", "within", "t")
    s[d].split("t", "turn", "sm", 132).reorder("sm", "turn").gpu_blocks("sm")
    s[d].vectorize("ii").vectorize("ji")
    s[c].compute_at(d, "turn").vectorize(i).vectorize(j)
    update = s[c].update(0).split(k, "ko", "ki", 64).reorder("ko", i, j, "ki")
    update.vectorize(i).vectorize(j).vectorize("ki").pipeline("ko", stages=4)
    return pipeline, s


class Steps:
    """Counts the steps of all proofs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        prove = search._Search.prove  # pyright: ignore[reportPrivateUsage]

        def counted(*arguments: object) -> bool:
            self.count += 1
            return prove(*arguments)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(search._Search, "prove", counted)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.usefixtures("as_shipped")
def test_a_persistent_matmul_takes_few_steps_and_again_takes_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline, schedule = persistent()
    Facts.none.forget()
    interval.forget()
    steps = Steps(monkeypatch)
    first = pipeline.lower(schedule)
    # 4,500 when what is false was searched for a proof of.
    assert 0 < steps.count < 1500
    steps.count = 0
    assert str(pipeline.lower(schedule)) == str(first)
    # What the sets of facts have proved they know.
    assert steps.count < 100
