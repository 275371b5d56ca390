"""What the tests of operators add: every sample on request, and a table of which pass."""

from collections import defaultdict

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="all of torch's samples, in all dtypes")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table op x dtype, of what the tests have recorded under "operator"."""
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    for reports in terminalreporter.stats.values():
        for report in reports:
            for key, value in getattr(report, "user_properties", ()):
                if key == "operator":
                    name, dtype, outcome = value
                    cells[name][dtype] = outcome
    if not cells:
        return
    dtypes = sorted({dtype for row in cells.values() for dtype in row})
    terminalreporter.section("torch's sample inputs: passed, refused of all")
    terminalreporter.write_line(" ".join([" " * 44, *(f"{d:>14}" for d in dtypes)]))
    for name, row in sorted(cells.items()):
        shown = (f"{row.get(d, '-'):>14}" for d in dtypes)
        terminalreporter.write_line(" ".join([f"{name:44}", *shown]))
