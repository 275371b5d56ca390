"""The C compiler: which one, what it says of this machine, and with which flags it is run."""

import ctypes
import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tensorlang.backends.c.cache import cache_folder, keep
from tensorlang.backends.c.machine import Machine
from tensorlang.errors import TargetError
from tensorlang.machine import c_compiler

if TYPE_CHECKING:
    import subprocess

# IEEE arithmetic as written: no contraction, no reassociation; signed integers wrap.  Errno and
# floating-point traps are not observed, which lets sqrt and selects become single instructions.
# Vectors are written out, and making more of them out of lanes is where GCC 12 is wrong: of
# `r[l] = a[l] != 0` in each lane l it makes -1 (tests/test_traps.py).
_FLAGS = (
    "-O3", "-std=c11", "-shared", "-fPIC", "-w", "-fwrapv", "-ffp-contract=off", "-fno-math-errno",
    "-fno-trapping-math", "-fno-tree-slp-vectorize",
)  # fmt: skip
# For this machine's processor; the first that the compiler takes.
_NATIVE = ("-march=native", "-mcpu=native")
_OPENMP = "-fopenmp"
# The version of GCC that has __builtin_shufflevector; clang always had it.
_SHUFFLES_SINCE = 12


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler as it will be run, the machine it compiles for, and what tells it from others."""

    command: tuple[str, ...]
    flags: tuple[str, ...]
    machine: Machine
    identity: str


def find_toolchain() -> Toolchain:
    """The compiler of this machine.

    Raises: TargetError: no-c-compiler.
    """
    found = c_compiler()
    if found is None:
        raise TargetError(
            "no-c-compiler",
            "the target 'c' has no C compiler",
            why="neither $CC nor cc, gcc or clang on PATH is one, and ziglang is not installed",
            fix="install gcc or clang, or pip install 'tensorlang[c]' for one from PyPI; "
            'or target="interpreter", which needs none',
        )
    command = (sys.executable, "-m", "ziglang", "cc") if found == "ziglang" else (found,)
    return _asked(command, str(cache_folder()))


@cache
def _asked(command: tuple[str, ...], folder: str) -> Toolchain:
    """What the compiler says of itself; asked once, and remembered between processes."""
    identity = _identity(command)
    memory = Path(folder) / f"compiler-{identity[:32]}.json"
    try:
        known = json.loads(memory.read_text())
        return Toolchain(command, tuple(known["flags"]), Machine(**known["machine"]), identity)
    except (OSError, ValueError, KeyError, TypeError):
        made = _ask(command, identity)
    answer = {"flags": made.flags, "machine": asdict(made.machine)}
    keep(memory, json.dumps(answer).encode())
    return made


def _identity(command: tuple[str, ...]) -> str:
    """A hash that changes with the compiler and with the processor."""
    binary = _program_of(command).resolve()
    status = binary.stat()
    processor = Path("/proc/cpuinfo")
    features = ""
    if processor.exists():
        lines = processor.read_text().splitlines()
        features = next((x for x in lines if x.startswith(("flags", "Features"))), "")
    asked = (field.name for field in fields(Machine))
    facts = (*command, str(binary), status.st_mtime_ns, status.st_size, features, *_FLAGS, *asked)
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _program_of(command: tuple[str, ...]) -> Path:
    """The file that changes with the compiler: of `python -m package`, the package's."""
    found = importlib.util.find_spec(command[2]) if command[1:2] == ("-m",) else None
    return Path(found.origin if found is not None and found.origin else command[0])


def _ask(command: tuple[str, ...], identity: str) -> Toolchain:
    native = next(((f,) for f in _NATIVE if _macros(command, (f,)) is not None), ())
    macros = _macros(command, native) or {}
    has_openmp = _runs(command, (*_FLAGS, *native, _OPENMP))
    flags = (*_FLAGS, *native, *((_OPENMP,) if has_openmp else ()))
    return Toolchain(command, flags, machine_of(macros, has_openmp=has_openmp), identity)


def _macros(command: tuple[str, ...], flags: Sequence[str]) -> dict[str, str] | None:
    """The compiler's predefined macros under the flags; None when it refuses them."""
    asked = run_quietly((*command, *flags, "-dM", "-E", "-x", "c", os.devnull))
    if asked is None or asked.returncode != 0:
        return None
    words = (line.split(maxsplit=2) for line in asked.stdout.splitlines())
    return {w[1]: w[2] if len(w) > 2 else "" for w in words if len(w) > 1 and w[0] == "#define"}


def machine_of(macros: dict[str, str], *, has_openmp: bool) -> Machine:
    """What the macros say of the vector registers."""
    wide = {"__AVX512F__", "__AVX512BW__", "__AVX512DQ__", "__AVX512VL__"} <= set(macros)
    is_arm = "__aarch64__" in macros
    return Machine(
        vector_bytes=64 if wide else 32 if "__AVX2__" in macros else 16,
        vector_registers=32 if wide or is_arm else 16,
        has_fma="__FMA__" in macros or is_arm,
        has_openmp=has_openmp,
        has_shuffles="__clang__" in macros or int(macros.get("__GNUC__", 0)) >= _SHUFFLES_SINCE,
    )


_PROBE = (
    "int probe(int n) {\n#pragma omp parallel for\nfor (int i = 0; i < n; ++i) {}\nreturn n;\n}\n"
)


def _runs(command: tuple[str, ...], flags: Sequence[str]) -> bool:
    """Whether a library with a parallel loop can be made and loaded.

    Some linkers leave a missing runtime to the loader (zig has OpenMP's headers, not its library).
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tensorlang-") as folder:
        source, made = Path(folder, "probe.c"), Path(folder, "probe.so")
        source.write_text(_PROBE)
        asked = run_quietly((*command, *flags, str(source), "-o", str(made)))
        if asked is None or asked.returncode != 0:
            return False
        try:
            return ctypes.CDLL(str(made)).probe(3) == 3
        except OSError:
            return False


def run_quietly(command: Sequence[str]) -> "subprocess.CompletedProcess[str] | None":
    """Run a command and keep what it says; None when it cannot be started."""
    # A process that finds all in the cache does without.
    import subprocess

    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
