"""Gradients that are one and the same, as those of the terms of a sum are: computed once."""

from collections.abc import Hashable

from tensorlang.algorithm import FuncRecord, reads_of
from tensorlang.closing import close_records
from tensorlang.pipeline import Pipeline


def without_twins(pipeline: Pipeline) -> tuple[Pipeline, tuple[int, ...]]:
    """Only the outputs that differ, and for each output of before which of these it is."""
    algorithm = pipeline.algorithm
    funcs = {f.name: f for f in algorithm.funcs}
    read = {name for f in algorithm.funcs for name in reads_of(f)}
    found, places = dict[Hashable, int](), list[int]()
    for name, shape in algorithm.outputs:
        meaning = name if name in read else _meaning(funcs[name])
        places.append(found.setdefault((meaning, shape), len(found)))
    if len(found) == len(places):
        return pipeline, tuple(places)
    outputs = tuple(
        output for k, output in enumerate(algorithm.outputs) if places[k] not in places[:k]
    )
    gone = {name for name, _ in algorithm.outputs} - {name for name, _ in outputs}
    kept = tuple(f for f in algorithm.funcs if f.name not in gone)
    closed = close_records(algorithm.name, algorithm.inputs, kept, outputs)
    return Pipeline.of(closed), tuple(places)


def _meaning(func: FuncRecord) -> Hashable:
    """What two pure Funcs share that have the same values everywhere; of others the name."""
    if not func.is_pure:
        return func.name
    return func.dims, func.dtypes, func.definitions[0].values
