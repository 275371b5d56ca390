"""The results as a picture: for each case, how long everyone takes against ours."""

from pathlib import Path
from typing import Any

from benchmarks.bars import OURS
from benchmarks.results import Results


def plot(results: Results, path: Path) -> None:
    """One row a case, one point an implementation at (its time / ours), ours at 1."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    cases = [c for c in dict.fromkeys(row.case for row in results.rows) if OURS in results.of(c)]
    impls = list(dict.fromkeys(row.impl for row in results.rows if row.impl != OURS))
    figure, axes = plt.subplots(figsize=(9, 1.5 + 0.24 * len(cases)))
    _points(axes, results, cases, impls)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set_yticks(range(len(cases)), cases, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("time / time of tensorlang (to the right of 1 we are faster)")
    axes.grid(axis="x", alpha=0.3)
    if impls and cases:
        axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.4, -0.05), ncols=5)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


def _points(axes: Any, results: Results, cases: list[str], impls: list[str]) -> None:
    markers = "osD^v<>Phx*"
    for k, impl in enumerate(impls):
        at = [
            (results.of(case)[impl].median_us / results.of(case)[OURS].median_us, row)
            for row, case in enumerate(cases)
            if impl in results.of(case)
        ]
        if at:
            xs, ys = zip(*at, strict=True)
            axes.plot(xs, ys, markers[k % len(markers)], label=impl, markersize=5, alpha=0.8)
