"""What holds in every test: goldens, markers, hypothesis profiles, a verifier after every pass."""

import difflib
import functools
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tensorlang import lower
from tensorlang.ir.stmt import Program
from tensorlang.ir.verify import verify
from tensorlang.testing.coverage import Coverage

TESTS = Path(__file__).parent
GOLDENS = TESTS / "golden"

# A fixed seed and no clock in CI: the same commit gives the same verdict on any machine.  Deadlines
# are off everywhere, because the first example of a kernel pays for a compiler.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("dev", _COMMON)
settings.register_profile("ci", _COMMON, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def _verified(step: Callable[..., Program], *, first: bool, kinds: bool) -> Callable[..., Program]:
    """The pass, with what it makes verified, and for the first one what it is given."""

    @functools.wraps(step)
    def run(program: Program, *plan: object) -> Program:
        if first:
            verify(program, kinds=False)
        made = step(program, *plan)
        verify(made, kinds=kinds)
        return made

    return run


# Whatever a test lowers is verified before the passes and after each.  Before `check_lanes` a loop
# may still be one that cannot run as its schedule says: a ScheduleError is to come.
_SHIPPED = lower.PASSES
_CHECKED = [step.name for step in _SHIPPED].index("check_lanes")
lower.PASSES = tuple(
    replace(step, run=_verified(step.run, first=number == 0, kinds=number >= _CHECKED))
    for number, step in enumerate(_SHIPPED)
)


@pytest.fixture
def as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The passes without the verifier, for a test that measures their time."""
    monkeypatch.setattr(lower, "PASSES", _SHIPPED)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files instead of comparing with them (refused where CI is set)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden") and os.environ.get("CI"):
        raise pytest.UsageError("--update-golden in CI would approve whatever it sees")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needs_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if needs_gpu and not _has_cuda():
        for item in needs_gpu:
            item.add_marker(pytest.mark.skip(reason="no CUDA device here"))


def _has_cuda() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the drawn examples of tests/test_properties.py have reached, on each target."""
    found: dict[str, Coverage] = {}
    for report in (r for reports in terminalreporter.stats.values() for r in reports):
        for name, value in getattr(report, "user_properties", ()):
            if name == "coverage" and report.when == "call":
                target, examples, directives, forms = value
                counts = Coverage(examples, Counter(directives), Counter(forms))
                found[target] = found.get(target, Coverage()) + counts
    for target, coverage in found.items():
        terminalreporter.section(f"drawn on {target}")
        terminalreporter.write_line(str(coverage))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """golden(text, name=None): `text` is what tests/golden/<test file>/<name>.txt holds.

    The name is the test's own unless one is given, for a test that compares several texts.  A
    missing file is a failure.  `pytest --update-golden` writes the files.
    """
    own_name = re.sub(r"[^\w.=-]+", "-", request.node.name).strip("-")
    folder = GOLDENS / request.path.relative_to(TESTS).with_suffix("")
    update: bool = request.config.getoption("--update-golden")

    def check(text: str, name: str | None = None) -> None:
        __tracebackhide__ = True
        file = folder / f"{name or own_name}.txt"
        text = text.rstrip("\n") + "\n"
        if update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            return
        shown = file.relative_to(TESTS.parent)
        if not file.exists():
            pytest.fail(f"{shown} is missing; look at the text, then --update-golden:\n{text}")
        expected = file.read_text(encoding="utf-8")
        if text != expected:
            lines = (t.splitlines() for t in (expected, text))
            diff = "\n".join(difflib.unified_diff(*lines, str(shown), "now", lineterm=""))
            pytest.fail(f"the text is not that of {shown}:\n{diff}")

    return check
