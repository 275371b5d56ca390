"""A `.tl` file: algorithms and named schedules, both ways."""

from pathlib import Path

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import Module, Schedule, TensorlangError
from tensorlang.testing import assert_equivalent

TEXT = """\
# tensorlang module 1

algorithm linear_relu(A: f16[M, K], B: f16[K, N], bias: f16[N]) -> D[M, N] {
  C[i, j] = sum(f32(A[i, k])*f32(B[k, j]), over=k in [0, K))
  D[i, j] = f16(max(C[i, j] + f32(bias[j]), 0.0))
}

algorithm double(a: i32[N]) -> b[N] {
  b[i] = a[i]*2
}

schedule tiled for linear_relu on c {
  s[D].tile(i, j, io, jo, ii, ji, 8, 8).vectorize(ji)
  s[C].compute_at(D, jo)
  A_in_C = s[A].in_(C)
  s[A_in_C].compute_at(D, jo)
}

schedule dots for linear_relu on triton "sm_90" {
  s[D].tile(i, j, io, jo, ii, ji, 64, 64).fuse(io, jo, t).gpu_blocks(t)
}

schedule plain for double {
}
"""


def test_a_module_prints_what_it_was_parsed_from() -> None:
    assert str(tl.parse(TEXT)) + "\n" == TEXT


def test_a_module_is_a_mapping_of_pipelines_and_schedules() -> None:
    module = tl.parse(TEXT)
    assert list(module) == ["linear_relu", "double", "tiled", "dots", "plain"]
    assert len(module) == 5
    assert module["double"] is module.pipelines["double"]
    assert module["tiled"] is module.schedules["tiled"]
    assert {name: str(t) for name, t in module.targets.items()} == {
        "tiled": "c",
        "dots": "triton(sm_90)",
    }
    with pytest.raises(KeyError):
        module["other"]


def test_what_is_parsed_computes() -> None:
    module = tl.parse(TEXT)
    assert_equivalent(module.pipelines["linear_relu"], module.schedules["tiled"], "interpreter")
    doubled = module.pipelines["double"].compile(module.schedules["plain"], "interpreter")
    assert doubled(np.int32([1, 2])).tolist() == [2, 4]


def test_a_module_of_schedules_written_in_python_reads_back(tmp_path: Path) -> None:
    module = tl.parse(TEXT)
    relu = module.pipelines["linear_relu"]
    schedule = Schedule(relu)
    schedule["D"].parallel("i")
    file = tmp_path / "relu.tl"
    file.write_text(str(Module({relu.name: relu}, {"rows": schedule})))
    read = tl.load(file)
    assert read.pipelines["linear_relu"].algorithm == relu.algorithm
    assert read.schedules["rows"] == schedule


@pytest.mark.parametrize(
    ("part", "other", "code", "word"),
    [
        ("for double", "for doubled", "unknown-name", "doubled"),
        ("schedule plain", "schedule tiled", "name-twice", "tiled"),
        ("on c", "on cc", "unknown-target", "cc"),
        ("sm_90", "sm_1", "unknown-arch", 'triton "sm_1"'),
        ("compute_at(D, jo)", "compute_at(D, jj)", "unknown-loop", ".compute_at(D, jj)"),
        ("vectorize(ji)", "vectorise(ji)", "unknown-directive", ".vectorise(ji)"),
        ("vectorize(ji)", "vectorize(ji, 3)", "bad-arguments", ".vectorize(ji, 3)"),
        ("vectorize(ji)", "update(j)", "bad-update", ".update(j)"),
        ("vectorize(ji)", "update(3).vectorize(ji)", "unknown-update", ".vectorize(ji)"),
        ("s[D].tile", "s[E].tile", "algorithm-changed", None),
        ("module 1", "module 2", "unknown-version", "2"),
        ("schedule plain", "plan plain", "unexpected-text", "plan"),
        ("b[i] = a[i]*2", "b[i] = a[i + 1]*c", "unknown-name", "c"),
    ],
)
def test_what_is_wrong_is_shown_at_its_place(
    part: str, other: str, code: str, word: str | None
) -> None:
    assert part in TEXT
    with pytest.raises(TensorlangError) as caught:
        tl.parse(TEXT.replace(part, other, 1), "linear.tl")
    assert caught.value.code == code
    span = caught.value.span
    assert span is not None
    assert span.path == "linear.tl"
    assert word in (None, span.source()[span.start : span.end])


def test_an_empty_file_is_an_empty_module() -> None:
    assert list(tl.parse("")) == []
    assert list(tl.parse("# only a comment\n")) == []


@pytest.mark.parametrize("text", ['"\x00few"', '"a\\qb"', '"\\u12"', '"a\tb"'])
def test_a_string_has_no_control_characters_and_no_escapes_of_its_own(text: str):
    with pytest.raises(tl.ParseError, match="unexpected-text"):
        tl.parse(f"""
            algorithm p(A: f32[N]) -> f[N] {{ f[i] = A[i] }}
            schedule s for p {{ s[f].split(i, io, ii, 4, tail={text}) }}""")
