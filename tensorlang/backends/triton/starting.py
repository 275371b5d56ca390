"""The shortest way to start a compiled kernel: Triton's own C launcher, given addresses.

`CompiledKernel.run` takes hooks, finds out who allocates scratch memory, and asks the driver about
every pointer; none of it is needed.  What its C launcher takes differs between versions of
Triton; for one that is not known here, or a kernel that needs more, `run` itself is called.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.libraries import knobs, triton


@dataclass(frozen=True, slots=True)
class Start:
    """call(programs, 1, 1, stream, *before, scratch, *after, *arguments), or one tuple of these.

    Args:
        is_flat: whether arguments follow one by one.
        scratch: bytes of memory of its own that each program needs; None is passed for 0.
    """

    call: Any
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    is_flat: bool
    scratch: int


def start_of(compiled: Any) -> Start:
    """How to start a kernel whose handles are initialised."""
    run, version = compiled.run, _version()
    function, packed = compiled.function, compiled.packed_metadata
    if version not in _KNOWN or _needs_more(run):
        # The metadata of the launch and the hooks before and after it, of which one stands where
        # others have scratch memory: none.
        return Start(_run(run), (function, packed), (None, None), is_flat=True, scratch=0)
    flags = (function, run.launch_cooperative_grid, run.launch_pdl)
    scratch = run.global_scratch_size * run.num_ctas
    if version == (3, 6):
        # No scratch memory for a profiler; the metadata; nothing for hooks.
        return Start(run.launch, flags, (None, packed, None, None, None), True, scratch)
    after = (None, run.arg_annotations, run.kernel_signature)
    return Start(run.launch, (*flags, packed, None, None, None), after, False, scratch)


def _run(run: Any) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        with gpu.scratch():
            run(*arguments)

    return call


def is_watched() -> bool:
    """Whether a profiler wants to be called around each launch."""
    runtime = knobs.runtime
    try:
        return bool(runtime.launch_enter_hook.calls or runtime.launch_exit_hook.calls)
    except AttributeError:  # a hook that is no chain of hooks
        return True


_KNOWN = ((3, 6), (3, 9))


def _version() -> tuple[int, ...]:
    return tuple(map(int, triton.__version__.split(".")[:2]))


def _needs_more(run: Any) -> bool:
    """Whether a launch does more than one of a kernel of ours."""
    return bool(
        type(run).__name__ != "CudaLauncher"
        or run.profile_scratch_size
        or getattr(run, "gsan_enabled", False)
    )
