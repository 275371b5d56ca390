"""Random modules by the thousand, beside eager torch: `python -m tests.torch.compiler.fuzz`.

Programs are compiled several at a time; of a group that fails each is tried alone, and those that
fail are named by their seeds.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import torch

from tensorlang.torch.compiler import FallbackWarning
from tests.torch.compiler.comparing import compare
from tests.torch.compiler.random_modules import together


@dataclass(frozen=True)
class Kind:
    """How programs are compared, and which share of all: of 20."""

    name: str
    share: int
    group: int
    narrow: bool
    options: tuple[tuple[str, object], ...]


REFERENCE = ("target", "reference")
KINDS = (
    Kind("forward", 11, 20, False, (REFERENCE, ("tolerance", 1e-9), ("grad", False))),
    Kind("gradients", 4, 10, False, (REFERENCE, ("tolerance", 1e-9))),
    Kind("as C", 3, 10, False, (("tolerance", 1e-9), ("grad", False))),
    Kind("narrow", 2, 10, True, (REFERENCE, ("tolerance", 5e-2))),
)


@dataclass(frozen=True)
class Group:
    kind: Kind
    seeds: tuple[int, ...]


def groups(count: int, first: int) -> Iterator[Group]:
    """All programs, in groups of one kind."""
    seed = first
    for kind in KINDS:
        end = seed + count * kind.share // 20
        while seed < end:
            seeds = tuple(range(seed, min(seed + kind.group, end)))
            yield Group(kind, seeds)
            seed += len(seeds)


def failures(group: Group) -> list[str]:
    """What went wrong, one line a program; a fallback of a fault of ours counts."""
    torch.set_num_threads(1)
    if not _fault(group.kind, group.seeds):
        return []
    found = [(seed, _fault(group.kind, (seed,))) for seed in group.seeds]
    named = [f"{group.kind.name} {seed}: {fault}" for seed, fault in found if fault]
    return named or [f"{group.kind.name} {group.seeds[0]} to {group.seeds[-1]} together"]


def _fault(kind: Kind, seeds: Sequence[int]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FallbackWarning)
            module, inputs = together(seeds, narrow=kind.narrow)
            compare(module, *inputs, **dict(kind.options))
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what is looked for)
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--first", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing after so long")
    chosen = parser.parse_args()
    started, done, found = time.perf_counter(), 0, 0
    work = list(groups(chosen.count, chosen.first))
    # All kinds in the time that there is.
    work.sort(key=lambda g: g.seeds[0] % 997)
    with ProcessPoolExecutor(chosen.workers) as pool:
        waiting = [(g, pool.submit(failures, g)) for g in work]
        for group, future in waiting:
            if time.perf_counter() - started > chosen.seconds:
                future.cancel()
                continue
            for line in future.result():
                found += 1
                print(line, flush=True)
            done += len(group.seeds)
    spent = time.perf_counter() - started
    print(f"{done} programs in {spent:.0f} s, {found} failed")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
