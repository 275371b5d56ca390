"""The GPU's cases, one family a file; sizes and bars are those of the project's targets."""

from collections.abc import Callable

from benchmarks.case import Case, Place
from benchmarks.cases import (
    attention,
    backward,
    conv,
    cross_entropy,
    f8,
    launch,
    linear_act,
    matmul,
    model,
    operators,
    quant,
    reductions,
    rows,
    skinny,
)

FAMILIES: dict[str, Callable[[Place], list[Case]]] = {
    "matmul": matmul.cases,
    "linear": linear_act.cases,
    "rows": rows.cases,
    "skinny": skinny.cases,
    "launch": launch.cases,
    "attention": attention.cases,
    "decode": attention.decode_cases,
    "attention_scores": attention.score_cases,
    "attention_backward": attention.backward_cases,
    "cross_entropy": cross_entropy.cases,
    "norm_backward": backward.cases,
    "quant": quant.cases,
    "reductions": reductions.cases,
    "conv": conv.cases,
    "f8": f8.cases,
    "operators": operators.cases,
    "model": model.cases,
}


def cases_of(family: str, place: Place, *, quick: bool = False) -> list[Case]:
    """The cases of a family; `quick` takes those that say the most in the least time."""
    return [case for case in FAMILIES[family](place) if case.quick or not quick]
