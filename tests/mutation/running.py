"""Run mutants: everything is imported and collected once, and each mutant is a fork of that.

A mutant meets only the tests that reach its lines, the quickest first, and those that have caught
its neighbours before them; it is done with the first that fails.
"""

import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.mutation.operators import Mutant
from tests.mutation.putting_in import put_in
from tests.mutation.targets import is_asked, modules, mutants_of

_MEMORY = 12 << 30
_NO_MEMORY = 3
_POLL = 0.02
Item = pytest.Item
Reach = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: `by` is the test that caught it, or "" where none did."""

    mutant: Mutant
    by: str
    seconds: float
    tests: int


class Session:
    """A plugin of pytest that has it collect, and then hands the tests to `work`."""

    def __init__(self, work: Callable[["Session"], None]) -> None:
        self.items: dict[str, Item] = {}
        self._work = work

    def pytest_sessionstart(self) -> None:
        """A failure is enough: nothing is shrunk, and each run draws the same."""
        # Not before pytest has begun, whose plugin for it complains of that.
        from hypothesis import HealthCheck, Phase, settings

        quick = settings(
            phases=[Phase.explicit, Phase.generate],
            derandomize=True,
            database=None,
            deadline=None,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
        )
        settings.register_profile("mutation", quick)
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        skipped = {"skip", "gpu"}
        self.items = {
            item.nodeid: item
            for item in session.items
            if is_asked(item.nodeid) and not any(item.get_closest_marker(name) for name in skipped)
        }
        self._work(self)
        return True


def collect(tests: Iterable[str], work: Callable[[Session], None]) -> None:
    """Collect tests and do the work with them."""
    options = ["-qq", "--no-header", "-s", "-p", "no:cacheprovider", "-p", "no:xdist"]
    pytest.main([*options, *tests], plugins=[Session(work)])


# --- forks ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Fork:
    pid: int
    file: Path
    until: float
    begun: float = field(default_factory=time.perf_counter)


def _fork(work: Callable[[], Any], limit: float) -> _Fork:
    """Do the work in a copy of this process, which prints nothing and hands back JSON."""
    # Not a pipe, which would be full before the work is done and the result is read.
    handle, name = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    pid = os.fork()
    if pid:
        return _Fork(pid, Path(name), time.perf_counter() + limit)
    status = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_WRONLY)
        shown = os.dup(2)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        Path(name).write_text(json.dumps(work()), encoding="utf-8")
        status = 0
    except MemoryError:
        status = _NO_MEMORY
    except BaseException:
        os.dup2(shown, 2)
        traceback.print_exc()
        raise
    finally:
        os._exit(status)


def _result(fork: _Fork) -> tuple[bool, Any]:
    """(ended, what it handed back or the reason why nothing)."""
    late = time.perf_counter() > fork.until
    if late:
        os.killpg(fork.pid, signal.SIGKILL)
    pid, status = os.waitpid(fork.pid, 0 if late else os.WNOHANG)
    if not pid:
        return False, None
    text = fork.file.read_text(encoding="utf-8")
    fork.file.unlink()
    if late:
        return True, "(time)"
    if status == 0:
        return True, json.loads(text)
    if os.WIFSIGNALED(status):
        return True, "(crash)"
    # Where the harness itself fails, which stderr shows, the mutant counts as a survivor.
    return True, "(memory)" if os.WEXITSTATUS(status) == _NO_MEMORY else ""


def forked(
    jobs: Iterable[tuple[Any, Callable[[], Any]]], workers: int, limit: float
) -> Iterator[tuple[Any, Any, float]]:
    """(name, result, seconds) of each job as it ends, so many at a time."""
    running: dict[int, tuple[Any, _Fork]] = {}
    queue = iter(jobs)
    more = True
    while more or running:
        while more and len(running) < workers:
            job = next(queue, None)
            more = job is not None
            if job is not None:
                name, work = job
                fork = _fork(work, limit)
                running[fork.pid] = name, fork
        for pid, (name, fork) in list(running.items()):
            ended, result = _result(fork)
            if ended:
                del running[pid]
                yield name, result, time.perf_counter() - fork.begun
        time.sleep(_POLL)


def _passes(item: Item) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


# --- which test reaches what ---------------------------------------------------------------------


def reach_of(session: Session, workers: int, said: Callable[[str], None]) -> Reach:
    """For each test that passes: its seconds, and the lines that it runs of each mutated module."""
    names = list(session.items)
    parts = [names[k::workers] for k in range(workers)]
    found: Reach = {}
    jobs = [(k, lambda part=part: _reached(session, part)) for k, part in enumerate(parts)]
    for _, part, seconds in forked(jobs, workers, limit=3600):
        assert isinstance(part, dict), part
        found.update(part)
        said(f"{len(part)} tests that pass in {seconds:.0f} s")
    return found


def _reached(session: Session, names: Iterable[str]) -> Reach:
    files = {str(Path(importlib.import_module(m).__file__ or "")): m for m in modules()}
    found: Reach = {}
    for name in names:
        lines: dict[str, set[int]] = defaultdict(set)

        def enter(frame: FrameType, event: str, _: Any) -> Any:
            module = files.get(frame.f_code.co_filename)
            if module is None:
                return None
            seen = lines[module]  # noqa: B023 - of this test
            seen.add(frame.f_lineno)

            def inside(frame: FrameType, event: str, _: Any) -> Any:
                seen.add(frame.f_lineno)
                return inside

            return inside

        start = time.perf_counter()
        sys.settrace(enter)
        passed = _passes(session.items[name])
        sys.settrace(None)
        if passed:
            reached = {module: sorted(seen) for module, seen in lines.items()}
            found[name] = {"seconds": round(time.perf_counter() - start, 3), "lines": reached}
    return found


# --- mutants -------------------------------------------------------------------------------------


class Run:
    """Mutants against the tests that reach them."""

    def __init__(self, session: Session, reach: Reach, workers: int) -> None:
        self._session, self._reach, self._workers = session, reach, workers
        self._catches: dict[str, Counter[str]] = defaultdict(Counter)

    def verdicts(
        self, mutants: Iterable[Mutant], *, budget: float, limit: float
    ) -> Iterator[Verdict]:
        """A verdict each, as they come.

        Args:
            budget: seconds of tests that a mutant meets.
            limit: seconds after which it is taken for one that does not end.
        """
        jobs = ((m, self._job(m, budget)) for m in mutants)
        for mutant, result, seconds in forked(jobs, self._workers, limit):
            by, tests = (result, 0) if isinstance(result, str) else result
            if tests and by:
                self._catches[mutant.module][by] += 1
            yield Verdict(mutant, by, round(seconds, 1), tests)

    def _job(self, mutant: Mutant, budget: float) -> Callable[[], Any]:
        tests = self._tests(mutant)
        return lambda: self._caught(mutant, tests, budget)

    def _tests(self, mutant: Mutant) -> list[str]:
        """The tests that reach the mutant, those that have caught others of its module first."""
        first, last = mutant.lines
        catches = self._catches[mutant.module]
        reaching = [
            (-catches[name], reached["seconds"], name)
            for name, reached in self._reach.items()
            if name in self._session.items
            and any(first <= n <= last for n in reached["lines"].get(mutant.module, ()))
        ]
        return [name for *_, name in sorted(reaching)]

    def _caught(self, mutant: Mutant, tests: list[str], budget: float) -> tuple[str, int]:
        source = mutants_of(mutant.module)
        changed = put_in(mutant.module, source.original, source.tree(mutant.key))
        assert changed or not tests, f"{mutant.key} is in no function that lives"
        until = time.perf_counter() + budget
        for number, name in enumerate(tests):
            if not _passes(self._session.items[name]):
                return name, number + 1
            if time.perf_counter() > until:
                return "", number + 1
        return "", len(tests)
