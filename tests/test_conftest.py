"""The golden fixture: what it accepts, what it refuses, and when it writes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
Golden = Callable[..., None]


@pytest.fixture
def comparing(golden: Golden, request: pytest.FixtureRequest) -> Golden:
    """The fixture where it compares: --update-golden would write the wrong texts below."""
    if request.config.getoption("--update-golden"):
        pytest.skip("goldens are being written")
    return golden


def test_golden_accepts_the_text_of_its_file(golden: Golden) -> None:
    golden("one\ntwo\n")


def test_changed_text_fails_with_a_diff(comparing: Golden) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"(?s)-two.*\+three"):
        comparing("one\nthree\n", "test_golden_accepts_the_text_of_its_file")


def test_missing_golden_fails_and_shows_the_text(comparing: Golden) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"(?s)is missing.*some text"):
        comparing("some text", "no_such_file")


def test_ci_refuses_to_update_goldens() -> None:
    environment = {**os.environ, "CI": "true"}
    command = [sys.executable, "-m", "pytest", "--update-golden", "--co", "-q", __file__]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "would approve whatever it sees" in done.stderr
