"""A file of algorithms and named schedules: parse, load, and Module, which prints such a file."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tensorlang.algorithm import Algorithm
from tensorlang.errors import ParseError
from tensorlang.ir.expr_text import print_name
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule
from tensorlang.span import Span, reading
from tensorlang.target import Target
from tensorlang.text.algorithms import read_algorithm
from tensorlang.text.calls import VERSION
from tensorlang.text.expressions import Node, subtrees, unknown_name, unquoted, words
from tensorlang.text.schedules import check_version, read_directives
from tensorlang.text.source import Source


class Module(Mapping[str, Pipeline | Schedule]):
    """The Pipelines and Schedules of a file, by name; `print` gives the text that parses back.

    module = tensorlang.load("linear.tl")
    kernel = module.pipelines["linear_relu"].compile(module.schedules["tiled"])

    Args:
        pipelines: by the names of their algorithms.
        schedules: by name, each of one of these Pipelines.
        targets: the target that a schedule is for, where it names one.
    """

    def __init__(
        self,
        pipelines: Mapping[str, Pipeline],
        schedules: Mapping[str, Schedule],
        targets: Mapping[str, Target] | None = None,
    ) -> None:
        self.pipelines, self.schedules = dict(pipelines), dict(schedules)
        self.targets = dict(targets or {})

    def __getitem__(self, name: str) -> Pipeline | Schedule:
        return self.pipelines[name] if name in self.pipelines else self.schedules[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self.pipelines, *self.schedules))

    def __len__(self) -> int:
        return len(self.pipelines) + len(self.schedules)

    def __str__(self) -> str:
        head = f"# tensorlang module {VERSION}"
        schedules = map(self._schedule, self.schedules)
        return "\n\n".join([head, *map(str, self.pipelines.values()), *schedules])

    def _schedule(self, name: str) -> str:
        schedule, target = self.schedules[name], self.targets.get(name)
        on = "" if target is None else f" on {target.name}"
        arch = f' "{target.arch}"' if target is not None and target.arch else ""
        head = f"schedule {print_name(name)} for {print_name(schedule.algorithm.name)}{on}{arch} {{"
        return "\n".join([head, *(f"  {line}" for line in str(schedule).splitlines()), "}"])


def load(path: str | Path) -> Module:
    """The algorithms and schedules of a `.tl` file.

    Raises: those of `parse`; ParseError (not-utf8); OSError for a file that cannot be read.
    """
    written = Path(path).read_bytes()
    try:
        text = written.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(written, error.start, str(path)) from None
    return parse(text, str(path))


def _not_utf8(written: bytes, at: int, path: str) -> ParseError:
    before = written[:at].decode("utf-8")
    begun = before.rpartition("\n")[2]
    line = written.splitlines()[before.count("\n")].decode("utf-8", "replace")
    return ParseError(
        "not-utf8",
        f"the byte 0x{written[at]:02x} is not part of a text",
        why="a text of algorithms and schedules is in UTF-8",
        fix="save the file as UTF-8, or check that it is a text at all",
        span=Span(path, before.count("\n") + 1, len(begun), len(begun) + 1, line),
    )


def parse(text: str, path: str = "<text>") -> Module:
    """The algorithms and schedules of a text.

    Raises: ParseError, DefinitionError, ScheduleError; each points into the text.
    """
    source = Source(text, path)
    check_version(text, source)
    reader = _Reader(source)
    for tree in subtrees(source.tree("module")):
        reader.item(tree)
    return Module(reader.pipelines, reader.schedules, reader.targets)


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.pipelines: dict[str, Pipeline] = {}
        self.schedules: dict[str, Schedule] = {}
        self.targets: dict[str, Target] = {}

    def item(self, tree: Node) -> None:
        """Take an algorithm or a schedule."""
        word = words(tree)[0]
        name = unquoted(word)
        if name in self.pipelines or name in self.schedules:
            raise self.source.error(
                "name-twice",
                f"there is a `{name}` already",
                word,
                why="a module finds algorithms and schedules by name",
                fix="rename one of them",
            )
        if tree.data == "algorithm":
            algorithm = read_algorithm(tree, self.source)
            with reading(self.source.span(word)):
                self.pipelines[name] = Pipeline.of(algorithm)
        else:
            self.schedules[name] = self._schedule(tree)
            for target in (t for t in subtrees(tree) if t.data == "target"):
                self.targets[name] = self._target(target)

    def _schedule(self, tree: Node) -> Schedule:
        chains = [t for t in subtrees(tree) if t.data == "chain"]
        calls = read_directives(chains, self.source)
        return Schedule.of_calls(self._algorithm(tree), calls)

    def _algorithm(self, tree: Node) -> Algorithm:
        word = words(tree)[1]
        pipeline = self.pipelines.get(unquoted(word))
        if pipeline is None:
            raise unknown_name("algorithm", word, self.pipelines, self.source)
        return pipeline.algorithm

    def _target(self, tree: Node) -> Target:
        name, *arch = words(tree)
        with reading(self.source.span(tree)):
            return Target(unquoted(name), arch[0][1:-1] if arch else None)
