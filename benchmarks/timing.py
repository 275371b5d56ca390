"""GPU time, with all contenders interleaved and in a new order every round.

Three times, which answer different questions:
    device  of one call with a cold L2 cache, host time excluded: memory is written over before each
            call, and then the GPU spins until the call is queued
    graph   of one call among many in a CUDA graph: no launch cost, warm cache
    host    of one call from Python, back to back: what a small operation really costs
"""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.case import Call, Mode

FLUSH_BYTES = 256 << 20
"""Several times the L2 cache."""
LONG = 20.0
"""Seconds after which calls that take seconds each, as compiling a model, are not repeated."""
CYCLES_A_MICROSECOND = 2000
"""Of `torch.cuda._sleep`, at the highest clock: the spin may last longer, never shorter."""


@dataclass(frozen=True)
class Sample:
    """Microseconds a call: the median, and what a fifth of the calls stayed below and above."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(times: list[float]) -> "Sample":
        ordered = sorted(times)
        at = [min(int(len(ordered) * q), len(ordered) - 1) for q in (0.5, 0.2, 0.8)]
        return Sample(*(ordered[k] for k in at))


class Clock(Protocol):
    """Measures the calls of several contenders, by name; who cannot be measured is left out."""

    def measure(self, mode: Mode, calls: Mapping[str, Call]) -> dict[str, Sample]: ...


class GpuClock:
    """Args: seconds: about how long each contender is measured, in each mode."""

    def __init__(self, seconds: float = 0.25) -> None:
        import torch

        self.torch: Any = torch
        self.seconds = seconds
        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
        self._random = random.Random(0)

    def measure(self, mode: Mode, calls: Mapping[str, Call]) -> dict[str, Sample]:
        if mode == "device":
            times = self._device(calls)
        elif mode == "graph":
            times = self._graph(calls)
        elif mode == "host":
            times = self._host(calls)
        else:
            times = wall_times(calls, self.seconds, self._random)
        return {name: Sample.of(values) for name, values in times.items()}

    def _shuffled(self, calls: Mapping[str, Any]) -> list[tuple[str, Any]]:
        order = list(calls.items())
        self._random.shuffle(order)
        return order

    def _device(self, calls: Mapping[str, Call]) -> dict[str, list[float]]:
        spins = {name: self._spin_of(call) for name, call in calls.items()}
        slowest = max(self._timed_once(call, spins[name]) for name, call in calls.items())
        rounds = int(min(max(self.seconds * 1e6 / (slowest + 150), 10), 100))
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(rounds):
            events = {n: self._queue(call, spins[n]) for n, call in self._shuffled(calls)}
            self.torch.cuda.synchronize()
            for name, (start, end) in events.items():
                times[name].append(start.elapsed_time(end) * 1e3)
        return times

    def _spin_of(self, call: Call) -> int:
        """Cycles that outlast the host's part of a call."""
        for _ in range(3):
            call()
        self.torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        host = (time.perf_counter() - start) * 1e6
        self.torch.cuda.synchronize()
        return int((2 * host + 30) * CYCLES_A_MICROSECOND)

    def _queue(self, call: Call, spin: int) -> tuple[Any, Any]:
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._flush.zero_()
        self.torch.cuda._sleep(spin)
        start.record()
        call()
        end.record()
        return start, end

    def _timed_once(self, call: Call, spin: int) -> float:
        start, end = self._queue(call, spin)
        self.torch.cuda.synchronize()
        return float(start.elapsed_time(end) * 1e3)

    def _graph(self, calls: Mapping[str, Call], copies: int = 20) -> dict[str, list[float]]:
        graphs: dict[str, Any] = {}
        for name, call in calls.items():
            try:
                graphs[name] = self._captured(call, copies)
            except Exception as error:  # noqa: BLE001 (what cannot be captured is a result)
                print(f"{name} cannot be captured in a graph: {error}", flush=True)
        times: dict[str, list[float]] = {name: [] for name in graphs}
        for _ in range(25):
            for name, graph in self._shuffled(graphs):
                start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
                graph.replay()  # the caches and clocks are those of this contender
                start.record()
                graph.replay()
                end.record()
                self.torch.cuda.synchronize()
                times[name].append(start.elapsed_time(end) * 1e3 / copies)
        return times

    def _captured(self, call: Call, copies: int) -> Any:
        stream = self.torch.cuda.Stream()
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream):
            for _ in range(3):
                call()
        self.torch.cuda.current_stream().wait_stream(stream)
        self.torch.cuda.synchronize()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            for _ in range(copies):
                call()
        return graph

    def _host(self, calls: Mapping[str, Call], repeats: int = 200) -> dict[str, list[float]]:
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(9):
            for name, call in self._shuffled(calls):
                call()
                self.torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(repeats):
                    call()
                self.torch.cuda.synchronize()
                times[name].append((time.perf_counter() - start) * 1e6 / repeats)
        return times


class FakeClock:
    """Runs every call once; the times are made up, and equal."""

    def measure(self, mode: Mode, calls: Mapping[str, Call]) -> dict[str, Sample]:
        for call in calls.values():
            call()
        return {name: Sample(1.0, 1.0, 1.0) for name in calls}


def wall_times(
    calls: Mapping[str, Call], seconds: float, shuffler: random.Random, rounds: int = 5
) -> dict[str, list[float]]:
    """Microseconds of single calls on the CPU, `rounds` a contender or more; fewer after LONG."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    started = time.perf_counter()
    while True:
        order = list(calls.items())
        shuffler.shuffle(order)
        for name, call in order:
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1e6)
        enough = len(next(iter(times.values()))) >= rounds
        spent = time.perf_counter() - started
        if spent > LONG or (enough and spent > seconds * len(calls)):
            return times


def ceilings(clock: GpuClock) -> dict[str, float]:
    """What this card reaches in this run: copy bandwidth in GB/s by size, matmul in TFLOP/s."""
    torch = clock.torch
    reached: dict[str, float] = {}
    for size in (8 << 20, 32 << 20, 128 << 20, 4 << 30):
        source = torch.empty(size // 2, dtype=torch.int8, device="cuda").random_()
        target = torch.empty_like(source)
        sample = clock.measure("device", {"copy": lambda a=source, b=target: b.copy_(a)})["copy"]
        reached[f"copy {size >> 20} MB, GB/s"] = round(size / sample.median / 1e3, 1)
        del source, target
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    sample = clock.measure("device", {"mm": lambda: torch.mm(a, b)})["mm"]
    reached["matmul 4096 bf16, TFLOP/s"] = round(2 * 4096**3 / sample.median / 1e6, 1)
    return reached
