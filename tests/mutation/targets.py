"""What is mutated, and which tests are asked whether they notice."""

import importlib
import random
from collections import defaultdict
from pathlib import Path

from tests.mutation.operators import Mutant, Mutants

ROOT = Path(__file__).parents[2]

# The passes and directives, what they stand on, and where the backends emit masks and barriers.
_FOLDERS = ("lower", "directives")
_FILES = (
    *("ir/associativity", "ir/dependence", "ir/regions", "ir/sliding"),
    *("backends/c/accumulate", "backends/c/guards", "backends/c/interior", "backends/c/loads"),
    *("backends/c/partition", "backends/c/stores"),
    *("backends/triton/barriers", "backends/triton/masks", "backends/triton/match_reductions"),
    *("backends/triton/partition", "backends/triton/storage", "backends/triton/stores"),
)
# Only printed for a reader.
_LEFT_OUT = {"lower/explain_bounds"}

TESTS = (
    "tests/mutation/oracle.py",
    "tests/lower",
    "tests/directives",
    "tests/errors/test_schedule_errors.py",
    "tests/errors/test_placement_errors.py",
    "tests/errors/test_hardware_errors.py",
    "tests/test_schedule_text.py",
    "tests/test_lessons.py",
    "tests/test_traps.py",
    "tests/ir/test_accesses.py",
    "tests/backends/c/test_guards.py",
    "tests/backends/c/test_statements.py",
    "tests/backends/c/test_vectorize.py",
    "tests/backends/triton",
)
# Of the tests that run on every target, the interpreter is enough, and the quickest.
_ON_EVERY_TARGET = (
    "tests/lower",
    "tests/directives",
    "tests/test_lessons.py",
    "tests/test_traps.py",
)


def is_asked(test: str) -> bool:
    """Whether a test of these is worth its time."""
    if not test.startswith(_ON_EVERY_TARGET):
        return True
    name = test.partition("[")[2]
    return not any(word in ("c", "triton") for word in name.rstrip("]").split("-"))


def modules() -> list[str]:
    """The names of the modules that are mutated."""
    package = ROOT / "tensorlang"
    found = [f for folder in _FOLDERS for f in sorted((package / folder).glob("*.py"))]
    found += [package / f"{file}.py" for file in _FILES]
    inner = [f.relative_to(package).with_suffix("").as_posix() for f in found]
    names = [name for name in inner if name not in _LEFT_OUT]
    return [f"tensorlang.{n.replace('/', '.').removesuffix('.__init__')}" for n in names]


def mutants_of(module: str) -> Mutants:
    """All the mutants of a module, from its source."""
    file = importlib.util.find_spec(module).origin
    return Mutants(module, Path(file).read_text(encoding="utf-8"))


def chosen(total: int, seed: int = 0) -> list[Mutant]:
    """So many mutants: of every module in proportion to its size, and in each of every operator."""
    rng = random.Random(seed)
    every = {module: mutants_of(module).found for module in modules()}
    whole = sum(map(len, every.values()))
    picked: list[Mutant] = []
    for found in every.values():
        by_operator: dict[str, list[Mutant]] = defaultdict(list)
        for mutant in found:
            by_operator[mutant.operator].append(mutant)
        for group in by_operator.values():
            rng.shuffle(group)
        wanted = round(total * len(found) / whole)
        while wanted > 0 and by_operator:
            for operator in list(by_operator):
                picked.append(by_operator[operator].pop())
                wanted -= 1
                if not by_operator[operator]:
                    del by_operator[operator]
                if wanted == 0:
                    break
    return picked
