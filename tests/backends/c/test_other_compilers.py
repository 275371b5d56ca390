"""Compilers that are not the machine's own: ziglang from PyPI, and one without OpenMP's library."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tensorlang.backends.c import toolchain
from tensorlang.machine import has_package

pytestmark = pytest.mark.cc

ROOT = Path(__file__).parents[3]
SERIAL = "the parallel loop 'i' runs serially: the C compiler has no OpenMP"
# It links in a step that does not know of OpenMP: that a function is missing the loader finds.
WITHOUT_LIBRARY = """#!/bin/sh
for word in "$@"; do
    if [ "$before" = -o ]; then made=$word; fi
    before=$word
done
case "$*" in
*-fopenmp*) gcc "$@" -c -o "$made.o" && exec gcc -shared "$made.o" -o "$made" ;;
*) exec gcc "$@" ;;
esac
"""


def said(folder: Path, **environment: str) -> str:
    """What `other_compiler` prints, in an environment that names no other compiler."""
    kept = {k: v for k, v in os.environ.items() if k not in ("CC", "TENSORLANG_CACHE")}
    env = kept | {"TENSORLANG_CACHE": str(folder / "cache")} | environment
    command = (sys.executable, "-m", "tests.backends.c.other_compiler")
    asked = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    return asked.stdout


@pytest.mark.slow
@pytest.mark.skipif(not has_package("ziglang"), reason="ziglang is not installed")
def test_ziglang_compiles_where_there_is_no_other_compiler(tmp_path: Path) -> None:
    text = said(tmp_path, PATH=str(tmp_path))
    assert f"command: {sys.executable} -m ziglang cc" in text
    # It has OpenMP's header, and not its library.
    assert "OpenMP: False" in text
    assert SERIAL in text


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_a_compiler_without_the_library_of_openmp_goes_without_threads(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(WITHOUT_LIBRARY.replace("gcc", str(shutil.which("gcc"))))
    compiler.chmod(0o755)
    text = said(tmp_path, CC=str(compiler))
    assert "OpenMP: False" in text
    assert SERIAL in text


def test_a_package_that_changes_is_another_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "tensorlang_test_compiler"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    command = (sys.executable, "-m", package.name, "cc")
    before = toolchain._identity(command)
    assert toolchain._identity(command) == before
    (package / "__init__.py").write_text("VERSION = 2\n")
    assert toolchain._identity(command) != before
