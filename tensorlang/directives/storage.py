"""store_in, fold_storage, align_storage: what the storage of a Func is like."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from tensorlang.directives.base import Directive, State, Storage

Memory = Literal["auto", "heap", "stack", "register", "shared"]


def _storage(directive: Directive, state: State, stage: tuple[str, int]) -> Storage:
    """The storage of the stage's Func so far; that of an output belongs to the caller."""
    func = stage[0]
    if func in {name for name, _ in state.algorithm.outputs}:
        raise directive.error(
            "output-storage",
            f"cannot {directive.keyword} of {func!r}",
            why="it is an output: the call gives its storage",
            fix="choose the storage of a Func in between",
        )
    return state.storage.get(func, Storage())


def _positive(directive: Directive, count: object, what: str) -> None:
    if type(count) is not int or count < 1:
        raise directive.error(
            "factor-not-positive",
            f"cannot {directive.keyword} by {count!r}",
            why=f"it is {what}",
            fix="a Python int of at least 1",
        )


@dataclass(frozen=True, slots=True, eq=False)
class StoreIn(Directive):
    """Keep the Func in the given memory: heap, stack, register or (a GPU's) shared.

    A hint: a backend that has no such memory chooses another and says so in `kernel.notes`.
    """

    keyword: ClassVar[str] = "store_in"
    memory: Memory

    def text(self) -> str:
        return f'store_in("{self.memory}")'

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        storage = _storage(self, state, stage)
        if self.memory not in get_args(Memory):
            raise self.error(
                "unknown-memory",
                f"cannot store {stage[0]!r} in {self.memory!r}",
                why="there is no such memory",
                fix=f"one of {', '.join(get_args(Memory))}",
            )
        state.storage[stage[0]] = replace(storage, memory=self.memory)


@dataclass(frozen=True, slots=True, eq=False)
class FoldStorage(Directive):
    """f[x]   ->   f[x % factor]     a ring: of dimension `dim` only `factor` elements are kept

    Legal when no iteration of the loop that computes the Func needs more than `factor` of them.
    See: Halide's Func::fold_storage.
    """

    keyword: ClassVar[str] = "fold_storage"
    dim: str
    factor: int

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        storage = _storage(self, state, stage)
        at = self.position(state, stage, self.dim)
        _positive(self, self.factor, "the number of elements that the ring keeps")
        folds = {**dict(storage.folds), at: self.factor}
        state.storage[stage[0]] = replace(storage, folds=tuple(folds.items()), span=self.span)


@dataclass(frozen=True, slots=True, eq=False)
class AlignStorage(Directive):
    """Space the rows along `dim` a multiple of `alignment` elements apart.

    So that vector loads are aligned, or so that a copy of an array with an odd stride has a stride
    that a GPU's bulk copies take.
    """

    keyword: ClassVar[str] = "align_storage"
    dim: str
    alignment: int

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        storage = _storage(self, state, stage)
        at = self.position(state, stage, self.dim)
        _positive(self, self.alignment, "the number of elements that the extent is a multiple of")
        aligned = {**dict(storage.aligned), at: self.alignment}
        state.storage[stage[0]] = replace(storage, aligned=tuple(aligned.items()))
