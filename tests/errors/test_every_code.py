"""Every code of an error that stands in the package has a golden message."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tensorlang"
GOLDENS = ROOT / "tests" / "golden" / "errors"

_CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
_MAKES_AN_ERROR = re.compile(r"\w+Error|_?error|_refused|Assert")
_HEAD = re.compile(r"^\w+Error\[([a-z0-9-]+)\]: ", re.MULTILINE)

# What depends on the machine, or is refused earlier in a call; with the test that raises it.
ELSEWHERE = {
    "stride-not-whole": "tests/backends/c/test_executable.py",
    "compiler-failed": "tests/backends/c/test_compiler.py",
    "dlpack-refused": "tests/test_arrays.py",
    "dtype-needs-package": "tests/test_arrays.py",
    "not-as-captured": "tests/backends/triton/test_graph.py",
    "cold-in-capture": "tests/backends/triton/test_replay.py",
}


def codes_of(file: Path) -> Iterator[tuple[str, str]]:
    """Each code that an error of the file is made with, and the line."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if not _MAKES_AN_ERROR.fullmatch(name):
            continue
        for argument in node.args[:3]:
            for part in ast.walk(argument):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    if _CODE.fullmatch(part.value):
                        yield part.value, f"{file.relative_to(ROOT)}:{node.lineno}"


CODES = {code: place for f in sorted(PACKAGE.rglob("*.py")) for code, place in codes_of(f)}
SHOWN = {
    code
    for golden in GOLDENS.rglob("*.txt")
    for code in _HEAD.findall(golden.read_text(encoding="utf-8"))
}


def test_there_are_many_codes() -> None:
    assert len(CODES) > 100


@pytest.mark.parametrize("code", CODES)
def test_the_code_has_a_golden_message(code: str) -> None:
    if code in ELSEWHERE:
        assert code in (ROOT / ELSEWHERE[code]).read_text(encoding="utf-8")
    else:
        assert code in SHOWN, f"{CODES[code]} makes it; no file of tests/golden/errors has it"


def test_every_golden_message_has_a_code_of_the_package() -> None:
    made_by_a_test = {"input-too-small"}  # of the assertion that test_call_errors.py writes
    assert SHOWN - set(CODES) == made_by_a_test
