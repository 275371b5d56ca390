"""What the documents promise: the first example runs, the commands are there, the links lead on."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")])


def _blocks(language: str) -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)


@pytest.mark.cc
def test_first_example_of_the_readme_runs(tmp_path: Path) -> None:
    (example,) = _blocks("python")
    assert len(example.splitlines()) <= 25
    file = tmp_path / "example.py"
    file.write_text(example, encoding="utf-8")
    command = [sys.executable, "-W", "error", str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True\n")


def test_the_readme_has_the_two_commands_alone_in_their_blocks() -> None:
    assert [block.strip() for block in _blocks("sh")] == [
        "pip install -e '.[all]' && tensorlang demo",
        "pip install -e '.[all]' && pytest",
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_of_the_project(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)\)", document.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (document.parent / link).exists()] == []
