"""Every tutorial runs from its first cell to its last, as a notebook."""

from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

TUTORIALS = Path(__file__).parents[2] / "tutorials"


@pytest.mark.cc
@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(TUTORIALS.glob("*.py")), ids=lambda path: path.stem)
def test_tutorial_runs(path: Path, tmp_path: Path) -> None:
    notebook = jupytext.read(path)
    assert [cell for cell in notebook.cells if cell.cell_type == "code"]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
