"""The command line: `gpu` and `cpu` measure, `report` reads a file of results again."""

import argparse
import time
from pathlib import Path

from benchmarks.results import Results

RESULTS = Path(__file__).parent / "results"


def main(argv: list[str] | None = None) -> None:
    """Parse, run, and write JSON, Markdown and a plot beside each other."""
    options = _parser().parse_args(argv)
    if options.kind == "report":
        _report(Results.read(options.file), options.file)
        return
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    out: Path = options.out or RESULTS / f"{options.kind}-{stamp}.json"
    names = [name for name in options.ops.split(",") if name]
    shared = {"families": names, "quick": options.quick, "dry": options.dry}
    shared |= {"impls": options.impls.split(","), "only": options.only.split(";")}
    if options.kind == "gpu":
        from benchmarks.gpu import run_gpu

        results = run_gpu(out, tune=options.tune, seconds=options.seconds, **shared)
    else:
        from benchmarks.cpu import run_cpu, threads_of

        results = run_cpu(out, threads=threads_of(options.threads), **shared)
    _report(results, out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("gpu", "cpu"):
        one = kinds.add_parser(kind)
        one.add_argument("--ops", default="", help="families, separated by commas; all if left out")
        one.add_argument("--impls", default="*", help="patterns of implementations, by commas")
        one.add_argument("--only", default="*", help="patterns of cases, separated by semicolons")
        one.add_argument("--quick", action="store_true", help="fewer cases, shorter measurements")
        one.add_argument("--dry", action="store_true", help="tiny sizes, no real times")
        one.add_argument("--out", type=Path, help="the JSON file; .md and .png go beside it")
    gpu, cpu = kinds.choices["gpu"], kinds.choices["cpu"]
    gpu.add_argument("--tune", action="store_true", help="also other schedules of ours")
    gpu.add_argument("--seconds", type=float, default=570, help="for the whole run")
    cpu.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas")
    kinds.add_parser("report").add_argument("file", type=Path)
    return parser


def _report(results: Results, out: Path) -> None:
    from benchmarks.plot import plot
    from benchmarks.report import markdown

    text = markdown(results)
    out.with_suffix(".md").write_text(text, encoding="utf-8")
    plot(results, out.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
