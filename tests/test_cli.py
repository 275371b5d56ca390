"""The command line, as a user types it."""

from pathlib import Path

import pytest

from tensorlang.cli import STAGES, main

PROGRAM = """
from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, f32

N = Size("N")
a = Input("a", f32, [N])
x, xo, xi = Var("x"), Var("xo"), Var("xi")
double = Func("double")
double[x] = a[x] * 2
pipeline = Pipeline("doubling", inputs=[a], outputs={double: [N]})

plain = Schedule(pipeline)
vectors = Schedule(pipeline)
vectors[double].split(x, xo, xi, 8).vectorize(xi)
blocks = Schedule(pipeline)
blocks[double].split(x, xo, xi, 128).gpu_blocks(xo).vectorize(xi)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return str(file)


def test_show_prints_the_loops_of_every_schedule(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", program]) == 0
    shown = capsys.readouterr().out
    assert shown.count("doubling: ") == 3
    assert "xo" in shown


def test_show_prints_only_the_schedule_that_is_named(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", program, "--schedule", "plain"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("doubling: ") == 1
    assert "xo" not in shown


@pytest.mark.parametrize(
    ("stage", "word"),
    [("loops", "gpu_block"), ("ir", "program doubling"), ("c", "double"), ("triton", "tl.load")],
)
def test_show_prints_each_stage(
    program: str, stage: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", program, "--schedule", "blocks", "--stage", stage]) == 0
    assert word in capsys.readouterr().out


@pytest.mark.slow
def test_show_prints_ptx_with_no_gpu(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", program, "--schedule", "blocks", "--stage", "ptx"]) == 0
    assert ".target sm_90" in capsys.readouterr().out


def test_every_stage_of_the_parser_is_tested_above() -> None:
    assert set(STAGES) == {"loops", "ir", "c", "triton", "ptx"}


def test_show_lists_the_schedules_when_the_name_is_wrong(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", program, "--schedule", "fast"]) == 1
    assert "plain, vectors, blocks" in capsys.readouterr().err


def test_show_of_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "nowhere.py"]) == 2
    assert "nowhere.py" in capsys.readouterr().err


def test_show_of_a_file_without_a_pipeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "empty.py"
    file.write_text("x = 1\n")
    assert main(["show", str(file)]) == 1
    assert "no Pipeline" in capsys.readouterr().err


def test_mistake_in_the_file_is_shown_with_its_line_and_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(PROGRAM + 'plain[double].split("z", xo, xi, 8)\n')
    assert main(["show", str(file)]) == 1
    message = capsys.readouterr().err
    assert message.startswith("ScheduleError[unknown-loop]")
    assert f"wrong.py:{len(PROGRAM.splitlines()) + 1}" in message


@pytest.mark.cc
@pytest.mark.slow
def test_demo_checks_every_schedule_and_writes_the_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    picture = tmp_path / "blur.png"
    assert main(["demo", "--picture", str(picture)]) == 0
    shown = capsys.readouterr().out
    for schedule in ("breadth_first", "inlined", "strips", "two_kernels", "fused", "dots"):
        assert f"how: {schedule}" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
