"""The golden fixture, in a process of its own: loading conftest sets hypothesis profiles."""

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ONE_GOLDEN = """
    def test_text(golden):
        golden({text!r})
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project with this project's conftest."""
    tests = Path(__file__).parent
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(tests.parent))
    shutil.copy(tests / "conftest.py", pytester.path)
    return pytester


def test_missing_golden_fails(project: pytest.Pytester) -> None:
    project.makepyfile(ONE_GOLDEN.format(text="one"))
    result = project.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*is missing*"])


def test_update_golden_writes_what_then_passes(project: pytest.Pytester) -> None:
    project.makepyfile(ONE_GOLDEN.format(text="one"))
    project.runpytest_subprocess("--update-golden").assert_outcomes(passed=1)
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_changed_text_fails_with_a_diff(project: pytest.Pytester) -> None:
    project.makepyfile(ONE_GOLDEN.format(text="one\ntwo"))
    project.runpytest_subprocess("--update-golden")
    project.makepyfile(ONE_GOLDEN.format(text="one\nthree"))
    result = project.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*-two*", "*+three*"])


def test_ci_refuses_to_update_goldens(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    project.makepyfile(ONE_GOLDEN.format(text="one"))
    result = project.runpytest_subprocess("--update-golden")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
