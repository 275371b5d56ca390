"""What a run found, as data (results.json) and as a page (results.md)."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.mutation.operators import Mutant
from tests.mutation.running import Verdict

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE / "results.md"
# Survivors that no test can catch, by key: why the program is the same.
EQUIVALENT = HERE / "equivalent.json"


@dataclass(frozen=True, slots=True)
class Record:
    """A mutant and the test that caught it; "" where none did."""

    mutant: Mutant
    by: str


def equivalent() -> Mapping[str, str]:
    """Why each survivor is no mistake."""
    return json.loads(EQUIVALENT.read_text(encoding="utf-8"))


def read() -> list[Record]:
    """The records of the last run."""
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return [
        Record(Mutant(**{**row["mutant"], "lines": tuple(row["mutant"]["lines"])}), row["by"])
        for row in rows
    ]


def write(verdicts: Iterable[Verdict]) -> None:
    """Write the data and the page."""
    records = sorted(
        (Record(v.mutant, v.by) for v in verdicts), key=lambda r: (r.mutant.module, r.mutant.key)
    )
    rows = ",\n".join(json.dumps(asdict(r)) for r in records)
    RESULTS.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
    PAGE.write_text(page(records), encoding="utf-8")


def page(records: Iterable[Record]) -> str:
    """Counts by kind of mistake and by module, and every survivor with the reason."""
    records = list(records)
    why = equivalent()
    survivors = [r for r in records if not r.by]
    caught, explained = len(records) - len(survivors), sum(r.mutant.key in why for r in survivors)
    lines = [
        "# Mutation check",
        "",
        "Made by `python -m tests.mutation`: small mistakes in the passes, the directives, the",
        "analyses that they stand on, and what the backends mask; each alone, and the tests run.",
        "",
        f"{len(records)} mutants: {caught} caught; of the others {explained} are the same program.",
        "",
        *_table("mistake", records, lambda m: m.operator),
        *_table("module", records, lambda m: m.module),
        "## Survivors",
        "",
    ]
    for r in survivors:
        m = r.mutant
        lines += [
            f"- `{m.module}`, `{m.function}`: {m.operator}",
            f"    - `{m.before}` -> `{m.after}`",
            f"    - {why.get(m.key, 'NOT EXPLAINED')}",
        ]
    return "\n".join(lines) + "\n"


def _table(title: str, records: list[Record], group: Any) -> list[str]:
    total = Counter(group(r.mutant) for r in records)
    caught = Counter(group(r.mutant) for r in records if r.by)
    rows = [f"| {name} | {caught[name]} | {count} |" for name, count in sorted(total.items())]
    return [f"| {title} | caught | of |", "| --- | ---: | ---: |", *rows, ""]
