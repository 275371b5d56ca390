"""What the pages that are made from the package have; CI builds the site itself."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import tensorlang
from tensorlang.directives import DIRECTIVES
from tests.errors.test_every_code import CODES, ELSEWHERE

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_has_an_entry_with_its_docstring(generate: ModuleType) -> None:
    page = generate.api()
    missing = [n for n in tensorlang.__all__ if f"`{n}" not in page]
    assert missing == []
    bare = re.findall(r"^### (`.*`)\n\n(?!```text)", page, re.MULTILINE)
    assert bare == []


def test_every_directive_has_an_entry_with_its_docstring(generate: ModuleType) -> None:
    page = generate.directives()
    assert [k for k in DIRECTIVES if f"### `{k}(" not in page] == []
    assert page.count("```text") == len(DIRECTIVES)


def test_every_code_is_in_the_manual_with_a_message(generate: ModuleType) -> None:
    page = generate.error_manual()
    assert [c for c in CODES if f"### {c}\n\n```text" not in page and c not in ELSEWHERE] == []
    assert ".py:_:" not in page


def _block(page: str, language: str) -> str:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[0]


def test_the_example_of_the_text_language_is_one() -> None:
    module = tensorlang.parse(_block("text.md", "text"))
    assert list(module) == ["linear_relu", "tiles"]
    assert tensorlang.parse(str(module)).schedules == module.schedules


@pytest.mark.cc
def test_the_first_example_runs() -> None:
    names: dict[str, object] = {}
    exec(compile(_block("index.md", "python"), "index.md", "exec"), names)
    assert isinstance(names["kernel"], tensorlang.Kernel)


def test_the_pages_of_the_menu_exist(generate: ModuleType) -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    pages = re.findall(r"(\w+\.md)", menu)
    written = {p.name for p in (ROOT / "docs").glob("*.md")}
    assert set(pages) == written | set(generate.PAGES)
