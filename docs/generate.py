"""Pages made from the package: the API and the directives from docstrings, the errors from goldens.

A hook of mkdocs, which calls `on_files`.  Each page is a function of what it is made from, so that
tests/test_site.py can look at it without mkdocs.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorlang
from tensorlang import errors, testing
from tensorlang.directives import DIRECTIVES
from tensorlang.ir.types import DType
from tensorlang.schedule import Stage
from tensorlang.testing import checking, strategies, trials

_ABOUT_DIRECTIVES = """\
Directives are called on a stage of a `Schedule`, `s[f]` or `s[f].update(n)`, and return it, so that
they chain. Loops are named outermost first. Each is shown with the rewrite of loops that it stands
for. None changes a value that the algorithm defines, but by the order of a reduction and the repair
of `rolling_update`, within stated bounds."""
_ABOUT_ERRORS = """\
Each message says what cannot be done, where you wrote it, why, and what would be legal.
`error.code` is stable. The messages here are those that the tests compare with."""
_ABOUT_TESTING = """\
`tensorlang.testing` has what the project tests itself with. `tensorlang check FILE` does the same
for every schedule of a file. Three lines test an operator, under schedules that nobody wrote:

```python
@given(trials(softmax))
def test_softmax(trial):
    trial.check("all")
```

A failure shrinks to a schedule none of whose directives can be left out, on small inputs, and has a
note with a program that reproduces it."""
GOLDENS = Path(__file__).parents[1] / "tests" / "golden" / "errors"
_HEAD = re.compile(r"^(\w+Error)\[([a-z0-9-]+)\]: ")
_PLACE = re.compile(r"--> \S+\.py:(?:_|\d+):\d+")


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for name, make in PAGES.items():
        files.append(File.generated(config, name, content=make()))
    return files


# --- the API -------------------------------------------------------------------------------------

_GROUPS = {
    "Writing an algorithm": ("Var", "Size", "Param", "Input", "Func", "RDom", "Pipeline"),
    "Scheduling and running it": ("Schedule", "Target", "Kernel", "autoschedule"),
    "Files": ("Module", "load", "parse"),
    "Reductions": ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax"),
    "Scans": ("cumsum", "cumprod", "cummax"),
    "Boundary conditions": (
        *("repeat_edge", "constant_exterior", "repeat_image", "mirror_image", "mirror_interior"),
    ),
}


def api() -> str:
    """Every public name with its docstring."""
    listed = {n for group in _GROUPS.values() for n in group}
    dtypes = sorted(n for n in tensorlang.__all__ if isinstance(_of(n), DType))
    failures = [n for n in tensorlang.__all__ if n.endswith("Error")]
    functions = [n for n in tensorlang.__all__ if n not in {*listed, *dtypes, *failures}]
    groups = {**_GROUPS, "Functions": tuple(functions)}
    parts = ["# Python", "All of these are names of the package `tensorlang`."]
    for title, members in groups.items():
        parts += [f"## {title}", *(part for n in members for part in _entry(n, _of(n)))]
    listing = " ".join(f"`{n}`" for n in dtypes)
    parts += ["## Scalar types", f"{listing}\n\nCalling one casts: `f32(e)`."]
    parts += ["## Errors", *(part for n in failures for part in _entry(n, _of(n)))]
    return "\n\n".join(parts) + "\n"


def _of(name: str) -> Any:
    return getattr(tensorlang, name)


def _error(name: str) -> Any:
    return getattr(errors, name, None)


def _entry(name: str, thing: Any, level: int = 3) -> Iterator[str]:
    """A heading with the signature, the docstring, and the methods that have one."""
    yield f"{'#' * level} `{name}{_signature(thing)}`"
    yield _fenced(inspect.getdoc(thing) or "")
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        for member, held in vars(thing).items():
            value = getattr(held, "__func__", held)  # a static or class method holds one
            public = not member.startswith("_") or member == "__call__"
            documented = getattr(value, "__doc__", None)
            if public and documented and (inspect.isfunction(value) or isinstance(value, property)):
                yield from _entry(f"{name}.{member}", value, level + 1)


def _signature(thing: Any) -> str:
    if isinstance(thing, property) or (inspect.isclass(thing) and issubclass(thing, Exception)):
        return ""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    own = [p for p in signature.parameters.values() if p.name != "self"]
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in own]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```" if text else ""


# --- directives ----------------------------------------------------------------------------------


def directives() -> str:
    """Every directive with its rewrite, by the family whose file it is in."""
    parts = ["# Directives", _ABOUT_DIRECTIVES]
    families: dict[str, list[str]] = {}
    for keyword, directive in DIRECTIVES.items():
        families.setdefault(directive.__module__, []).append(keyword)
    for module, keywords in families.items():
        title = module.rpartition(".")[2].capitalize()
        parts += [f"## {title}", _first_line(inspect.getmodule(DIRECTIVES[keywords[0]]))]
        for keyword in keywords:
            parts.append(f"### `{keyword}{_signature(getattr(Stage, keyword))}`")
            parts.append(_fenced(inspect.getdoc(DIRECTIVES[keyword]) or ""))
    return "\n\n".join(parts) + "\n"


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n", maxsplit=1)[0].replace("\n", " ")


# --- errors --------------------------------------------------------------------------------------


def error_manual() -> str:
    """Every code with the messages that the tests raise it with."""
    parts = ["# Errors", _ABOUT_ERRORS]
    for kind, codes in sorted(messages().items()):
        parts += [f"## {kind}", _fenced(inspect.getdoc(_error(kind)) or "")]
        for code, shown in sorted(codes.items()):
            parts.append(f"### {code}")
            parts += [_fenced(message) for message in shown]
    return "\n\n".join(parts) + "\n"


def messages() -> dict[str, dict[str, list[str]]]:
    """The golden messages by class and code."""
    found: dict[str, dict[str, list[str]]] = {}
    for file in sorted(GOLDENS.rglob("*.txt")):
        for message in file.read_text(encoding="utf-8").strip().split("\n\n"):
            head = _HEAD.match(message)
            if head is not None:
                shown = _PLACE.sub("--> your_program.py", message)
                found.setdefault(head[1], {}).setdefault(head[2], []).append(shown)
    return found


# --- testing -------------------------------------------------------------------------------------


def testing_page() -> str:
    """What `tensorlang.testing` has."""
    listed = {
        "assert_equivalent": testing.assert_equivalent,
        "Report": testing.Report,
        "trials": trials.trials,
        "Trial": trials.Trial,
        "check_schedule": checking.check_schedule,
        "schedules": strategies.schedules,
        "inputs": strategies.inputs,
    }
    parts = ["# Testing", _ABOUT_TESTING, _fenced(inspect.getdoc(strategies) or "")]
    parts += [part for name, thing in listed.items() for part in _entry(name, thing)]
    return "\n\n".join(parts) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api,
    "directives.md": directives,
    "errors.md": error_manual,
    "testing.md": testing_page,
}
