import linecache
import subprocess
import sys
from pathlib import Path

import pytest

import tensorlang
from tensorlang.errors import TensorlangError
from tensorlang.ir.expr import Var
from tensorlang.ir.functions import select
from tensorlang.span import Span, caller_span


def run(source: str, name: str = "user.py", **names: object) -> TensorlangError:
    """The error that a user's file of this text raises."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    with pytest.raises(TensorlangError) as caught:
        exec(compile(source, name, "exec"), {"Var": Var, "select": select, **names})
    return caught.value


@pytest.mark.parametrize(
    ("source", "line", "marked"),
    [
        ("y = 1 + ~(Var('i') + 'a')", 1, "Var('i') + 'a'"),
        ("i = Var('i')\nif i < 1: pass", 2, "i < 1"),
        ("i = Var('i')\n\nq = [1,\n     i + None]", 4, "i + None"),
        ("def f(e):\n    return e + []\n\nf(Var('i'))", 2, "e + []"),
        ("Var('a b')", 1, "Var('a b')"),
        ("é = 'é', Var('i') + 'é'", 1, "Var('i') + 'é'"),
        ("if True:\n\tx = 0; Var('i') + 'a'", 2, "Var('i') + 'a'"),
    ],
)
def test_the_caret_marks_what_the_user_wrote(source: str, line: int, marked: str):
    span = run(source).span
    assert span is not None
    assert (span.path, span.line) == ("user.py", line)
    assert span.source()[span.start : span.end] == marked
    where, shown, carets = span.show().splitlines()
    assert where == f"  --> user.py:{line}:{span.start + 1}"
    assert shown[carets.index("^") : len(carets)] == marked


def test_an_expression_over_two_lines_is_marked_to_the_end_of_the_first():
    span = run("y = (Var('i') +\n     'a')").span
    assert span is not None
    assert span.source()[span.start : span.end] == "Var('i') +"


def test_the_frames_of_the_package_are_not_the_users():
    error = run("y = select(1, 2)")
    assert error.span is not None
    assert error.span.path == "user.py"


def test_a_folder_whose_name_begins_as_the_package_is_the_users():
    path = str(Path(tensorlang.__file__).parent) + "_examples/blur.py"
    error = run("y = Var('i') + 'a'", path)
    assert error.span is not None
    assert error.span.path == path


def test_code_given_on_the_command_line_is_the_users():
    program = "from tensorlang.ir.expr import Var\n\nVar('a b')"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "--> <string>:3:1" in ran.stderr


def test_a_span_without_columns_shows_its_line():
    assert Span("no.py", 3, text="  f(x)\n").show() == "  --> no.py:3\n      f(x)"


def test_a_span_whose_file_cannot_be_read_shows_its_place():
    assert Span("no such file.py", 3, 4, 5).show() == "  --> no such file.py:3:5"


def test_a_caret_stays_under_its_line():
    assert Span("no.py", 1, 2, 99, "  ab").show() == "  --> no.py:1:3\n      ab\n      ^^"
    assert Span("no.py", 1, 4, 5, "  ab").show() == "  --> no.py:1:5\n      ab\n        ^"


def test_a_path_is_shown_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert Span(str(tmp_path / "a" / "b.py"), 1, 0, 1).show() == "  --> a/b.py:1:1"
    assert Span("/elsewhere/b.py", 1, 0, 1).show() == "  --> /elsewhere/b.py:1:1"


def test_the_span_of_a_caller_is_its_call():
    span = caller_span()
    assert span is not None
    assert span.source()[span.start : span.end] == "caller_span()"
