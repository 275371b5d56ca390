"""Who may import whom (docs/design.md, section 10), proven by parsing every import.

The tables below are the rule; a new module or a new edge is a line added here, on purpose.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tensorlang"

_BASE = {"errors", "span", "ir"}
_WRITING = {"domain", "reductions", "scanning", "func", "boundary", "closing", "algorithm_text"}
_SCHEDULING = {"directives", "schedule", "schedule_text"}
_WHAT_AND_HOW = _BASE | _WRITING | _SCHEDULING | {"algorithm", "text", "target"}
_RUNNING = {"arrays", "backends", "calling", "kernel", "lower", "pipeline"}
_EVERYTHING = _WHAT_AND_HOW | _RUNNING | {"autoschedule"}

# layer: the layers whose modules it may import, besides its own.
LAYERS: dict[str, set[str]] = {
    "span": set(),
    "recursion": set(),
    "errors": {"span"},
    "ir": {"errors", "span"},
    "machine": set(),
    "target": _BASE | {"machine"},
    "arrays": _BASE | {"target"},
    # The record of an algorithm, and above it what writes one.
    "algorithm": _BASE,
    "domain": _BASE | {"algorithm"},
    "reductions": _BASE | {"algorithm", "domain"},
    "scanning": _BASE | {"domain"},
    "func": _BASE | {"algorithm", "domain", "reductions", "scanning"},
    "boundary": _BASE | {"domain", "func"},
    "algorithm_text": _BASE | {"algorithm", "domain", "reductions"},
    "closing": _BASE | {"algorithm", "domain", "func"},
    "directives": _BASE | {"algorithm", "target"},
    # A text of an algorithm is read by writing the algorithm.
    "text": _BASE | _WRITING | {"algorithm"},
    # A schedule shows its loops, so it knows the passes; they know only the directives' data.
    "lower": _BASE | {"algorithm", "directives", "target"},
    "schedule_text": _BASE | {"algorithm", "directives", "text"},
    "schedule": _BASE
    | {"algorithm", "directives", "lower", "recursion", "schedule_text", "target", "text"},
    "backends": _BASE | {"machine", "target"},
    "calling": _BASE | {"arrays", "backends", "target"},
    "kernel": _BASE | {"arrays", "backends", "calling", "target"},
    "autoschedule": _WHAT_AND_HOW | {"lower"},
    "pipeline": _EVERYTHING | {"recursion"},
    "autodiff": _EVERYTHING,
    # Asked for by name, never by `import tensorlang`: so they may import torch at their top.
    "torch": _EVERYTHING | {"autodiff"},
    "nn": _EVERYTHING | {"autodiff", "torch"},
    "module": _EVERYTHING,
    "testing": _EVERYTHING | {"module", "tensorlang"},
    "cli": _EVERYTHING | {"tensorlang", "demo", "testing"},
    "demo": _EVERYTHING | {"machine", "tensorlang", "testing"},
    "__main__": {"cli"},
    "tensorlang": _EVERYTHING | {"module", "torch"},
}

# Modules that may import more than the rest of their layer.
ALSO: dict[str, set[str]] = {
    "tensorlang.backends": {"algorithm"},
    # Compiles what models ask for by operators and schedules of nn, which knows no compiler.
    "tensorlang.torch.compiler.attention": {"nn"},
    # Compiles kernels side by side, as many as there are cores.
    "tensorlang.torch.compiler.ahead": {"machine"},
    # The oracle evaluates the algorithm itself and shares no pass with the other backends.
    "tensorlang.backends.reference": {"algorithm"},
    "tensorlang.backends.reference.evaluation": {"algorithm"},
    "tensorlang.backends.reference.folds": {"algorithm"},
    "tensorlang.backends.reference.stages": {"algorithm"},
}

# Passes share through ir/, never by importing one another; __init__ lists them all.
PASSES = "tensorlang.lower"
# What the passes that still see a schedule are given.
SHARED_BY_PASSES = {
    "bring_beside",
    "data_extremes",
    "data_limits",
    "plan",
    "rolling_terms",
    "shared_loops",
}
# Questions about an algorithm, answered by means of passes.
ANALYSES = {"check_inputs", "explain_bounds"}

# third party: the layers that may import it at the top of a module.
AT_THE_TOP: dict[str, set[str] | None] = {
    "numpy": None,  # None: every layer
    "lark": {"text"},
    "hypothesis": {"testing"},
    # backends/__init__ loads backends.triton when it first compiles for it; the others no one does.
    "torch": {"backends.triton", "nn", "torch"},
    "triton": {"backends.triton"},
    "rich": {"demo"},
    "skimage": {"demo"},
    "PIL": {"demo"},
}

# third party or module of ours: the layers that may import it inside a function, and why.
INSIDE_A_FUNCTION: dict[str, set[str]] = {
    # Costs a second to import and may be absent.
    "torch": {"arrays", "backends.triton", "demo", "nn", "torch", "testing"},
    "triton": {"backends.triton", "nn", "torch"},
    # Asked for only where an array already has one of its dtypes.
    "ml_dtypes": {"arrays"},
    # Written in Triton's language, so it imports triton at its top.
    "tensorlang.backends.triton.runtime": {"backends.triton"},
    # Needs the packages of the `demo` extra.
    "tensorlang.demo": {"cli"},
    # A third of the time of `import tensorlang`, and needed by the first Pipeline, not before.
    "tensorlang.lower": {"pipeline", "schedule"},
    "tensorlang.lower.check_inputs": {"pipeline"},
    "tensorlang.lower.explain_bounds": {"pipeline"},
    "tensorlang.autoschedule.c": {"autoschedule"},
    "tensorlang.autoschedule.default": {"autoschedule"},
    "tensorlang.autoschedule.triton": {"autoschedule"},
    # Brings torch, whose models it compiles.
    "tensorlang.torch.compiler": {"tensorlang"},
    # Bring lark, which only a text needs.
    "tensorlang.module": {"tensorlang"},
    "tensorlang.text.schedules": {"schedule"},
    # Run a compiler, which a first call does not where all is in the cache: 7 ms of it.
    "subprocess": {"backends.c"},
    "tempfile": {"backends.c"},
    # Needs hypothesis, of the `test` extra.
    "tensorlang.testing.checking": {"cli"},
}

# Files over the limit, with the reason: tables.
LONGEST = 600
TABLES: dict[str, str] = {}


@dataclass(frozen=True)
class Import:
    """`module` imports `name` at `line`, at its top or inside a function."""

    module: str
    name: str
    line: int
    inside: bool

    def __str__(self) -> str:
        where = "inside a function" if self.inside else "at the top"
        return f"{self.module}:{self.line} imports {self.name} {where}"


def _modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found: dict[str, Path] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _imports_of(module: str) -> Iterator[Import]:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    yield from _imports_below(tree, module, inside=False)


def _imports_below(node: ast.AST, module: str, *, inside: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(module, alias.name, child.lineno, inside)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{module}:{child.lineno}: a relative import"
            for alias in child.names:
                full = f"{child.module}.{alias.name}"
                name = full if full in MODULES else str(child.module)
                yield Import(module, name, child.lineno, inside)
        else:
            function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from _imports_below(child, module, inside=inside or function)


ALL = [i for module in MODULES for i in _imports_of(module)]


def _layer(module: str) -> str:
    """`tensorlang.ir.expr` is of layer `ir`; the package itself of layer `tensorlang`."""
    return module.split(".")[1] if "." in module else module


def _is_in(module: str, layers: set[str]) -> bool:
    """Whether the module is in one of the layers, or parts of layers (`backends.triton`)."""
    inner = module.removeprefix("tensorlang.")
    return any(inner == layer or inner.startswith(layer + ".") for layer in layers)


def _is_ours(name: str) -> bool:
    return name == "tensorlang" or name.startswith("tensorlang.")


def test_every_module_has_a_layer() -> None:
    assert {_layer(m) for m in MODULES} <= set(LAYERS)


def test_layers_import_only_what_the_table_allows() -> None:
    wrong = [
        str(i)
        for i in ALL
        if _is_ours(i.name)
        and _layer(i.name) != _layer(i.module)
        and _layer(i.name) not in LAYERS[_layer(i.module)]
        and _layer(i.name) not in ALSO.get(i.module, set())
    ]
    assert wrong == []


def test_no_two_modules_import_each_other() -> None:
    graph = {m: {i.name for i in ALL if i.module == m and _is_ours(i.name)} for m in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle of imports: {' -> '.join(error.args[1])}")


def test_passes_do_not_import_each_other() -> None:
    passes = {m for m in MODULES if m.startswith(PASSES + ".")}
    wrong = [
        str(i)
        for i in ALL
        if i.module in passes - {f"{PASSES}.{a}" for a in ANALYSES}
        and i.name in passes - {f"{PASSES}.{s}" for s in SHARED_BY_PASSES}
    ]
    assert wrong == []


def test_third_party_imports_are_those_of_the_tables() -> None:
    known = sys.stdlib_module_names | {"tensorlang"}
    foreign = [i for i in ALL if i.name.split(".")[0] not in known]
    assert [str(i) for i in foreign if not _foreign_is_allowed(i)] == []


def _foreign_is_allowed(i: Import) -> bool:
    package = i.name.split(".")[0]
    if i.inside:
        return _is_in(i.module, INSIDE_A_FUNCTION.get(package, set()))
    layers = AT_THE_TOP.get(package, set())
    return layers is None or _is_in(i.module, layers)


def test_our_own_modules_are_imported_at_the_top() -> None:
    wrong = [
        str(i)
        for i in ALL
        if i.inside
        and i.name.split(".")[0] in sys.stdlib_module_names | {"tensorlang"}
        and not _is_in(i.module, INSIDE_A_FUNCTION.get(i.name, set()))
    ]
    assert wrong == []


@pytest.mark.parametrize("module", MODULES)
def test_files_are_short_enough_to_read(module: str) -> None:
    lines = len(MODULES[module].read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST or module in TABLES, f"{lines} lines: split it by job"


def test_the_tables_name_only_what_exists() -> None:
    named = {f"{PASSES}.{m}" for m in SHARED_BY_PASSES | ANALYSES}
    assert named | set(TABLES) | set(ALSO) <= set(MODULES)
