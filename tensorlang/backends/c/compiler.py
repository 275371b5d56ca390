"""C text -> a loaded function, compiled once for all processes."""

import ctypes
import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from tensorlang.backends.c.cache import cache_folder, keep
from tensorlang.backends.c.toolchain import Toolchain, run_quietly
from tensorlang.errors import TargetError

Function = Callable[[bytes], int]
# Of a compiler's message; a template of errors may be long.
_LONGEST_MESSAGE = 2000


@lru_cache(maxsize=512)
def load(source: str, function: str, toolchain: Toolchain) -> Function:
    """The function of a translation unit, which takes the bytes of its struct of arguments.

    Raises: TargetError: compiler-failed.
    """
    library = ctypes.CDLL(str(_compiled(source, function, toolchain)))
    loaded = getattr(library, function)
    loaded.argtypes, loaded.restype = [ctypes.c_char_p], ctypes.c_int
    return loaded


def _compiled(source: str, function: str, toolchain: Toolchain) -> Path:
    """The path of the shared library, made now unless some process has made it before."""
    # Comments carry line numbers of the user's file, which change more often than the code.
    code = "\n".join(x for x in source.splitlines() if not x.lstrip().startswith("//"))
    facts = repr((code, toolchain.command, toolchain.flags, toolchain.identity))
    name = f"{function}-{hashlib.sha256(facts.encode()).hexdigest()[:32]}"
    path = cache_folder() / f"{name}.so"
    if not path.exists():
        # A process that finds all in the cache does without.
        import tempfile

        with tempfile.TemporaryDirectory(prefix="tensorlang-") as folder:
            made = _compile(source, function, Path(folder), toolchain)
            keep(path.with_suffix(".c"), source.encode())
            keep(path, made.read_bytes())
    return path


def _compile(source: str, function: str, folder: Path, toolchain: Toolchain) -> Path:
    text, made = folder / f"{function}.c", folder / f"{function}.so"
    text.write_text(source, encoding="utf-8")
    command = (*toolchain.command, *toolchain.flags, str(text), "-o", str(made), "-lm")
    done = run_quietly(command)
    if done is None or done.returncode != 0:
        kept = cache_folder() / f"{function}-failed.c"
        keep(kept, source.encode())
        shown = " ".join((*toolchain.command, *toolchain.flags, str(kept)))
        said = "it could not be started" if done is None else done.stderr.strip()
        raise TargetError(
            "compiler-failed",
            f"the C compiler {toolchain.command[0]} failed",
            why=f"{said[:_LONGEST_MESSAGE].replace(str(text), str(kept))}\nfrom {shown}",
            fix='set $CC to another compiler, or use target="interpreter"; '
            "if the compiler is sound, please report the source",
        )
    return made
