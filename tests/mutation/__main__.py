"""`python -m tests.mutation`: small mistakes in the engine, and whether the tests notice.

The first run finds out which test reaches which line (minutes); later runs use what it wrote, until
`--reach` asks for it again.  With `--tests` only those are run, first and again.  What is asked of
survivors or of one module joins what is known of the others.
"""

import argparse
import json
import os
import random
import sys
from pathlib import Path

from tqdm import tqdm

from tests.mutation import results
from tests.mutation.operators import Mutant
from tests.mutation.running import Reach, Run, Session, Verdict, collect, reach_of
from tests.mutation.targets import ROOT, TESTS, chosen, modules, mutants_of

_REACH = ROOT / "out" / "mutation" / "reach.json"


def main() -> int:
    """Run the mutants that were asked for; 1 where one survives unexplained."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=400, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default: %(default)s)")
    parser.add_argument("--module", help="only those of this module")
    parser.add_argument("--tests", nargs="+", help="ask only these files of tests")
    parser.add_argument("--survivors", action="store_true", help="only the last run's survivors")
    parser.add_argument("--workers", type=int, default=2, help="at once (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=10, help="seconds of tests for each")
    parser.add_argument(
        "--again", type=float, default=60, help="seconds for those that are not caught so"
    )
    parser.add_argument("--reach", action="store_true", help="find out what tests reach again")
    parser.add_argument("--write", action="store_true", help="write results.json and results.md")
    options = parser.parse_args()
    os.environ["CI"] = "true"  # the same draws each time
    os.environ["OMP_NUM_THREADS"] = "1"
    status: list[int] = []
    tests = options.tests or TESTS
    collect([str(ROOT / t) for t in tests], lambda session: status.append(_work(session, options)))
    return status[0] if status else 2


def _work(session: Session, options: argparse.Namespace) -> int:
    run = Run(session, _reach(session, options), options.workers)
    mutants = _asked(options)
    found = {v.mutant.key: v for v in _verdicts(run, mutants, options.budget)}
    # Survivors meet more tests: most were let off by the budget.
    doubtful = [v.mutant for v in found.values() if not v.by]
    if options.again > options.budget:
        for v in _verdicts(run, doubtful, options.again):
            found[v.mutant.key] = v
    if options.survivors or options.module:
        known = {r.mutant.key: Verdict(r.mutant, r.by, 0, 0) for r in _as_they_stand()}
        found = known | found
    if options.write:
        results.write(found.values())
    why = results.equivalent()
    survivors = [v for v in found.values() if not v.by]
    print(f"\n{len(found)} mutants: {len(found) - len(survivors)} caught")
    for v in survivors:
        print(f"{v.mutant.key}\n    line {v.mutant.lines[0]}, {v.tests} tests; ", end="")
        print(why.get(v.mutant.key, "NOT EXPLAINED"))
    return int(any(v.mutant.key not in why for v in survivors))


def _verdicts(run: Run, mutants: list[Mutant], budget: float) -> list[Verdict]:
    verdicts = run.verdicts(mutants, budget=budget, limit=6 * budget)
    return list(tqdm(verdicts, total=len(mutants), unit="mutant", mininterval=5))


def _asked(options: argparse.Namespace) -> list[Mutant]:
    if options.survivors:
        return [r.mutant for r in _as_they_stand() if not r.by]
    if options.module:
        found = mutants_of(options.module).found
        return random.Random(options.seed).sample(found, min(options.mutants, len(found)))
    return chosen(options.mutants, options.seed)


def _as_they_stand() -> list[results.Record]:
    """The records whose mutant the sources still have, with its lines of today."""
    today = {m.key: m for name in modules() for m in mutants_of(name).found}
    return [
        results.Record(today[r.mutant.key], r.by) for r in results.read() if r.mutant.key in today
    ]


def _reach(session: Session, options: argparse.Namespace) -> Reach:
    if options.tests:
        return reach_of(session, options.workers, tqdm.write)
    if options.reach or not _REACH.exists():
        reach = reach_of(session, options.workers, tqdm.write)
        _REACH.parent.mkdir(parents=True, exist_ok=True)
        Path(_REACH).write_text(json.dumps(reach), encoding="utf-8")
    return json.loads(_REACH.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
