"""The command line, as a user types it."""

from pathlib import Path

import numpy as np
import pytest

from tensorlang.cli import main
from tensorlang.cli.show import STAGES

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
    [
        ("algorithm", "algorithm doubling("),
        ("schedule", "s[double].split"),
        ("loops", "gpu_block"),
        ("ir", "program doubling"),
        ("c", "double"),
        ("triton", "tl.load"),
    ],
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
    assert set(STAGES) == {"algorithm", "schedule", "loops", "ir", "c", "triton", "ptx"}


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


LINEAR_RELU = str(Path(__file__).parents[1] / "examples" / "linear_relu.tl")
DOUBLE = """
algorithm double(a: f32[N], times: f32) -> b[N], last[] {
  b[i] = a[i]*times
  last[] = a[N - 1]
}
algorithm iota(N: size) -> c[N] { c[i] = i }
schedule pairs for double on interpreter { s[b].split(i, io, ii, 2) }
"""


@pytest.fixture
def double(tmp_path: Path) -> str:
    file = tmp_path / "double.tl"
    file.write_text(DOUBLE)
    np.save(tmp_path / "a.npy", np.float32([1, 2, 3]))
    np.savez(tmp_path / "all.npz", a=np.float32([1, 2, 3]))
    return str(file)


def test_show_prints_the_stages_of_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", LINEAR_RELU, "--schedule", "tiles", "--stage", "schedule"]) == 0
    assert "s[C].compute_at(D, jo).vectorize(j)" in capsys.readouterr().out
    assert main(["show", LINEAR_RELU, "--schedule", "tiles", "--stage", "ir"]) == 0
    assert "program linear_relu(" in capsys.readouterr().out


def test_run_prints_the_outputs(double: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(Path(double).parent)
    arguments = [f"a={folder}/a.npy", "times=2", "--algorithm", "double", "--target", "interpreter"]
    assert main(["run", double, *arguments]) == 0
    shown = capsys.readouterr().out
    assert "b: float32[3]\n[2. 4. 6.]" in shown
    assert "last: float32[]\n3.0" in shown


def test_run_takes_a_schedule_sizes_and_archives(
    double: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(double).parent
    out = folder / "out.npz"
    archive = str(folder / "all.npz")
    assert main(["run", double, archive, "times=2", "--schedule", "pairs", "--out", str(out)]) == 0
    assert np.load(out)["b"].tolist() == [2, 4, 6]
    one = folder / "c.npy"
    command = ["run", double, "N=3", "--algorithm", "iota", "--target", "interpreter"]
    assert main([*command, "--out", str(one)]) == 0
    assert np.load(one).tolist() == [0, 1, 2]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["times=2"], 2, "choose an algorithm: --algorithm double | iota"),
        (["--algorithm", "triple"], 1, "no algorithm 'triple'"),
        (["--algorithm", "double", "times=2"], 2, "Input 'a' is not given"),
        (["--algorithm", "iota", "N=two"], 2, "N=two: a number"),
        (["--algorithm", "iota", "two"], 2, "neither NAME=VALUE nor a .npz"),
        (["--algorithm", "double", "a=none.npy"], 2, "none.npy cannot be read"),
        (["--algorithm", "iota", "N=2", "M=3"], 1, "ShapeError[unknown-param]"),
        (["--algorithm", "iota", "N=2", "--target", "gpu"], 1, "TargetError[unknown-target]"),
        (["--algorithm", "iota", "N=2", "--out", "c.txt"], 2, "--out c.txt: a .npz file"),
        (["--algorithm", "iota", "N=2", "--out", "no/c.npy"], 2, "there is no folder no"),
        (["--algorithm", "double", "--out", "b.npy"], 2, "a .npy file for one output"),
        (["--algorithm", "double", "aa=a.npy"], 2, "'double' has no Input 'aa'; its Inputs: a"),
        (["--algorithm", "iota", "a=a.npy"], 2, "'iota' has no Input 'a'; its Inputs: none"),
        (
            ["--algorithm", "double", "a=3", "times=2"],
            2,
            "so a=3 has to be a .npy",
        ),
    ],
)
def test_run_says_what_is_wrong(
    double: str,
    arguments: list[str],
    status: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", double, *arguments]) == status
    assert message in capsys.readouterr().err


def test_run_reads_and_writes_dtypes_that_a_file_has_no_name_for(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    file, array, out = tmp_path / "halve.tl", tmp_path / "a.npy", tmp_path / "b.npy"
    file.write_text("algorithm halve(a: bf16[N]) -> b[N] { b[i] = bf16(f32(a[i])/2) }\n")
    np.save(array, np.array([1, 3], ml_dtypes.bfloat16))
    command = ["run", str(file), f"a={array}", "--target", "interpreter", "--out", str(out)]
    assert main(command) == 0
    assert np.load(out).view(ml_dtypes.bfloat16).tolist() == [0.5, 1.5]


def test_what_is_no_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "picture.tl"
    file.write_bytes(b"\x89PNG")
    assert main(["show", str(file)]) == 1
    assert capsys.readouterr().err.startswith("ParseError[not-utf8]")


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_check_wants_at_least_one_example(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check", LINEAR_RELU, "--examples", number])
    assert "at least 1" in capsys.readouterr().err


def test_check_on_no_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", LINEAR_RELU, "--target", "gpu"]) == 1
    assert capsys.readouterr().err.startswith("TargetError[unknown-target]")


def test_check_compares_every_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", LINEAR_RELU, "--target", "interpreter", "--examples", "3"]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "tiles" in shown
    assert "blocks" in shown
    assert shown.count("equal") == 2


def test_check_shows_the_schedule_that_differs(
    double: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def differs(*_: object, **__: object) -> None:
        raise AssertionError("element 3 is wrong")

    monkeypatch.setattr("tensorlang.testing.checking.check_schedule", differs)
    assert main(["check", double]) == 1
    shown = capsys.readouterr().out
    assert "DIFFERS" in shown
    assert "double: pairs on interpreter\nelement 3 is wrong" in shown


def test_a_mistake_in_a_text_is_shown_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.tl"
    file.write_text(DOUBLE.replace("times\n", "twice\n"))
    assert main(["show", str(file)]) == 1
    message = capsys.readouterr().err
    assert message.startswith("ParseError[unknown-name]")
    assert "wrong.tl:3:15" in message
