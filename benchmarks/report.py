"""The results as Markdown: each case with its ratios, then each bar and whether it is met."""

from statistics import geometric_mean

from benchmarks.bars import BARS, OURS
from benchmarks.results import Results, Row


def markdown(results: Results) -> str:
    """The whole report."""
    return "\n".join([*_heading(results), *_cases(results), *_bars(results), *_failures(results)])


def _heading(results: Results) -> list[str]:
    facts = {**results.hardware, **results.versions}
    lines = [
        f"# Benchmarks: {results.kind}{', a dry run' if results.dry else ''}",
        "",
        f"{results.date}, `{results.command}`  ",
        ", ".join(f"{name} {value}" for name, value in facts.items()),
        "",
    ]
    if results.ceilings:
        reached = ", ".join(f"{name}: {value}" for name, value in results.ceilings.items())
        lines += [f"What this machine reaches in this run: {reached}", ""]
    return lines


def _cases(results: Results) -> list[str]:
    lines = [
        "Microseconds; ratio: the time of that row over ours, above 1 where we are faster.",
        "",
        "| case | implementation | median | low-high | ratio | rate | error |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for case in dict.fromkeys(row.case for row in results.rows):
        rows = results.of(case)
        ours = rows.get(OURS)
        ordered = sorted(rows.values(), key=lambda row: row.median_us)
        lines += [_line(row, ours, results.cases[case]) for row in ordered]
    return [*lines, ""]


def _line(row: Row, ours: Row | None, case: dict[str, float]) -> str:
    ratio = f"{row.median_us / ours.median_us:.2f}" if ours else ""
    error = "" if row.error is None else f"{row.error:.1e}"
    name = f"**{row.impl}**" if row.impl == OURS else row.impl
    return (
        f"| {row.case} | {name} | {row.median_us:.2f} | {row.low_us:.2f}-{row.high_us:.2f} "
        f"| {ratio} | {_rate(row, case)} | {error} |"
    )


def _rate(row: Row, case: dict[str, float]) -> str:
    """Bytes where they are what counts, else operations."""
    if case["bytes"]:
        return f"{case['bytes'] / row.median_us / 1e3:.0f} GB/s"
    if case["flops"]:
        rate = case["flops"] / row.median_us / 1e3
        return f"{rate / 1e3:.1f} TFLOP/s" if rate >= 1e3 else f"{rate:.1f} GFLOP/s"
    return ""


def _bars(results: Results) -> list[str]:
    lines = ["| bar | needed | reached | met |", "| --- | --- | --- | --- |"]
    for bar in BARS[results.kind]:
        ratios = bar.ratios(results)
        needed = [f"each >= {bar.each:g}"] if bar.each else []
        needed += [f"geomean >= {bar.geomean:g}"] if bar.geomean else []
        needed += [f"under {bar.limit_us / 1e3:g} ms"] if bar.limit_us else []
        if not ratios:
            lines.append(f"| {bar.title} | {', '.join(needed)} | not measured | |")
            continue
        worst = min(ratios, key=lambda case: ratios[case])
        reached = f"geomean {geometric_mean(ratios.values()):.2f} of {len(ratios)}, "
        reached += f"least {ratios[worst]:.2f} ({worst})"
        met = "yes" if bar.is_met(ratios) else "**no**"
        lines.append(f"| {bar.title} | {', '.join(needed)} | {reached} | {met} |")
    return [*lines, ""]


def _failures(results: Results) -> list[str]:
    if not results.failures:
        return []
    rows = [
        f"- {f['case']}, {f['impl']}: {' '.join(f['why'].split())[:300]}" for f in results.failures
    ]
    return ["Not run, or wrong:", "", *rows, ""]
