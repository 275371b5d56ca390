"""The mutation check itself: what its operators make, and that a mutant gets into what runs."""

import ast
from pathlib import Path

import pytest

from tests.mutation import results
from tests.mutation.operators import Mutants
from tests.mutation.putting_in import put_in
from tests.mutation.targets import chosen, modules, mutants_of

SOURCE = """
def f(a, b):
    if a < b and a:
        raise ValueError("a < b")
    return If(a, max(b - 1, 0))
"""
MADE = {
    ("off by one", "a < b", "a <= b"),
    ("and or", "a < b and a", "a < b or a"),
    ("dropped condition", "a < b and a", "a < b"),
    ("negated condition", "if a < b and a", "if not (a < b and a)"),
    ("lost check", "raise ValueError('a < b')", "pass"),
    ("lost guard", "If(a, max(b - 1, 0))", "max(b - 1, 0)"),
    ("min max", "max", "min"),
    ("swapped operands", "b - 1", "1 - b"),
    ("off by one", "0", "1"),
}


def test_operators_make_the_mistakes_that_they_are_named_for() -> None:
    found = {(m.operator, m.before, m.after) for m in Mutants("m", SOURCE).found}
    assert found >= MADE


def test_each_mutant_is_one_change_of_the_source() -> None:
    mutants = Mutants("m", SOURCE)
    texts = {ast.unparse(mutants.tree(m.key)) for m in mutants.found}
    assert len(texts) == len(mutants.found)
    assert ast.unparse(mutants.original) not in texts


def _minimum(a: int, b: int) -> int:
    return min(a, b)


def test_a_mutant_is_put_into_the_functions_that_live(request: pytest.FixtureRequest) -> None:
    code = _minimum.__code__
    request.addfinalizer(lambda: setattr(_minimum, "__code__", code))
    module = _minimum.__module__
    mutants = Mutants(module, Path(__file__).read_text(encoding="utf-8"))
    (mutant,) = (m for m in mutants.found if m.function == "_minimum" and m.operator == "min max")
    assert put_in(module, mutants.original, mutants.tree(mutant.key)) == 1
    assert _minimum(1, 2) == 2


def test_the_sources_have_thousands_of_mutants_and_a_choice_is_of_every_module() -> None:
    assert sum(len(mutants_of(module).found) for module in modules()) > 3000
    picked = chosen(400)
    assert len({m.key for m in picked}) == len(picked)
    assert {m.module for m in picked} >= {m for m in modules() if len(mutants_of(m).found) > 40}


def test_the_page_is_that_of_the_data() -> None:
    records = results.read()
    assert len(records) >= 200
    assert results.page(records) == results.PAGE.read_text(encoding="utf-8")


def test_reasons_are_for_survivors() -> None:
    survivors = {r.mutant.key for r in results.read() if not r.by}
    assert set(results.equivalent()) <= survivors
