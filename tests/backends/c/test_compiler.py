"""Finding the compiler, running it, and keeping what it made."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tensorlang.backends.c import cache, compiler, toolchain
from tensorlang.backends.c.toolchain import machine_of
from tensorlang.errors import TargetError

pytestmark = pytest.mark.cc

SOURCE = "int answer(const char *arguments) { return 42; }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of its own."""
    monkeypatch.setenv("TENSORLANG_CACHE", str(tmp_path / "cache"))
    compiler.load.cache_clear()
    return tmp_path / "cache" / "c"


def test_a_function_is_compiled_once_and_then_found(folder: Path) -> None:
    tools = toolchain.find_toolchain()
    assert compiler.load(SOURCE, "answer", tools)(b"") == 42
    made = sorted(folder.glob("answer-*.so"))
    assert len(made) == 1
    before = made[0].stat().st_mtime_ns
    compiler.load.cache_clear()
    assert compiler.load("// another comment\n" + SOURCE, "answer", tools)(b"") == 42
    assert sorted(folder.glob("answer-*.so")) == made
    assert made[0].stat().st_mtime_ns == before
    assert next(folder.glob("*.c")).read_text() == SOURCE


def test_the_cache_belongs_to_its_user_alone(folder: Path) -> None:
    compiler.load(SOURCE, "answer", toolchain.find_toolchain())
    assert folder.stat().st_mode & 0o077 == 0


def test_the_cache_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENSORLANG_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg" / "tensorlang" / "c"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.cache_folder() == tmp_path / "home" / ".cache" / "tensorlang" / "c"


def test_a_cache_that_cannot_be_written_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TENSORLANG_CACHE", str(tmp_path / "file"))
    assert cache.cache_folder().is_dir()


def test_processes_that_compile_the_same_at_once_agree(folder: Path) -> None:
    program = (
        "from tensorlang.backends.c import compiler, toolchain\n"
        f"print(compiler.load({SOURCE!r}, 'answer', toolchain.find_toolchain())(b''))\n"
    )
    command = [sys.executable, "-c", program]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [p.communicate()[0].strip() for p in running] == ["42"] * 4
    assert len(list(folder.glob("answer-*.so"))) == 1


def test_what_the_compiler_says_is_shown_with_the_source_kept(folder: Path) -> None:
    with pytest.raises(TargetError, match="compiler-failed") as caught:
        compiler.load("int answer( { }\n", "answer", toolchain.find_toolchain())
    assert "error:" in caught.value.why
    kept = folder / "answer-failed.c"
    assert str(kept) in caught.value.why
    assert kept.read_text() == "int answer( { }\n"


def test_no_compiler_is_an_error_that_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "c_compiler", lambda: None)
    with pytest.raises(TargetError, match="no-c-compiler") as caught:
        toolchain.find_toolchain()
    assert "tensorlang[c]" in caught.value.fix
    assert "interpreter" in caught.value.fix


def test_a_compiler_that_cannot_run_is_reported(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "cc"
    fake.write_text("#!/bin/sh\necho no licence >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(toolchain, "c_compiler", lambda: str(fake))
    with pytest.raises(TargetError, match="no licence"):
        compiler.load(SOURCE, "answer", toolchain.find_toolchain())


def test_the_machine_is_read_from_macros() -> None:
    avx2 = {"__AVX2__": "1", "__FMA__": "1"}
    assert machine_of(avx2, has_openmp=True).vector_bytes == 32
    wide = dict.fromkeys(("__AVX512F__", "__AVX512BW__", "__AVX512DQ__", "__AVX512VL__"), "1")
    assert machine_of(avx2 | wide, has_openmp=True).vector_bytes == 64
    arm = machine_of({"__aarch64__": "1"}, has_openmp=False)
    assert (arm.vector_bytes, arm.has_fma, arm.has_openmp) == (16, True, False)
    assert not machine_of({}, has_openmp=False).has_fma


def test_nothing_is_left_in_the_temporary_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    compiler.load(SOURCE, "answer", toolchain.find_toolchain())
    assert list(temporary.iterdir()) == []
