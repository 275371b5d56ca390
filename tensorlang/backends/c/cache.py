"""Where compiled code is kept between processes."""

import os
from functools import cache
from pathlib import Path


@cache
def _made(path: Path) -> Path:
    """The folder, made for this user alone; a temporary one where it cannot be."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return _temporary()
    return path if os.access(path, os.W_OK) else _temporary()


def _temporary() -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="tensorlang-"))


def cache_folder() -> Path:
    """$TENSORLANG_CACHE, else tensorlang/ below $XDG_CACHE_HOME or ~/.cache."""
    chosen = os.environ.get("TENSORLANG_CACHE")
    if chosen:
        return _made(Path(chosen) / "c")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return _made(Path(base) / "tensorlang" / "c")


def keep(path: Path, content: bytes) -> None:
    """Write a file at once: another process sees all of it or nothing."""
    import tempfile

    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).replace(path)
