"""What must be reached, as data: ratios of a peer's time to ours, in one run."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import geometric_mean

from benchmarks.results import Results, Row

OURS = "tensorlang"
TORCH = ("eager", "compile", "max-autotune")


@dataclass(frozen=True)
class Bar:
    """time(best of `against`) / time(ours) over the cases that match.

    Args:
        title: what it says, for the reader.
        cases: patterns of the cases' names, as in a shell.
        against: implementations whose best counts, by pattern; none is a limit in microseconds.
        each: the least ratio of any case.
        geomean: the least geometric mean.
        limit_us: the most microseconds, where nothing is compared.
        ours: which of our implementations it is about.
    """

    title: str
    cases: tuple[str, ...]
    against: tuple[str, ...] = ()
    each: float = 0
    geomean: float = 0
    limit_us: float = 0
    ours: str = OURS

    def ratios(self, results: Results) -> dict[str, float]:
        """Of the cases that were measured: their names and ratios."""
        found: dict[str, float] = {}
        for case in dict.fromkeys(row.case for row in results.rows):
            if not any(fnmatchcase(case, pattern) for pattern in self.cases):
                continue
            rows = results.of(case)
            ratio = self._ratio(rows) if self.ours in rows else None
            if ratio is not None:
                found[case] = ratio
        return found

    def _ratio(self, rows: dict[str, Row]) -> float | None:
        if self.limit_us:
            return self.limit_us / rows[self.ours].median_us
        peer = best(rows, self.against)
        return peer.median_us / rows[self.ours].median_us if peer else None

    def is_met(self, ratios: dict[str, float]) -> bool:
        """Whether every case and their mean reach it."""
        least = max(self.each, 1.0 if self.limit_us else 0.0)
        values = list(ratios.values())
        return min(values) >= least and geometric_mean(values) >= self.geomean


def best(rows: dict[str, Row], impls: Sequence[str]) -> Row | None:
    """The fastest row whose implementation matches one of the patterns."""
    found = [r for name, r in rows.items() if any(fnmatchcase(name, i) for i in impls)]
    return min(found, key=lambda row: row.median_us, default=None)


_COMPILED = ("compile", "max-autotune")
_SQUARES = ("matmul [0-9]*",)
_RMS = ("rms_norm 4096x*", "rms_norm+residual 4096x*")
_SOFTMAX = tuple(f"softmax 4096x{n} *" for n in (1024, 4096, 16384))
_ROWS = (*_SOFTMAX, "layer_norm 4096x*", *_RMS)
GPU = (
    Bar("matmul, bf16 and f16, 128 to 8192", _SQUARES, ("eager",), each=0.93, geomean=1.0),
    Bar("matmul, LLaMA prefill", ("matmul prefill *",), ("eager",), geomean=0.98),
    Bar("matmul 4095x4097x1023", ("matmul odd *",), ("eager",), each=2.3),
    Bar("one row of tokens", ("skinny 1x*",), ("eager",), each=1.05, geomean=1.15),
    Bar("16 rows", ("skinny 16x*",), ("eager",), each=1.0),
    Bar("32 rows", ("skinny 32x*",), ("eager",), each=0.97),
    Bar("64 rows", ("skinny 64x*",), ("eager",), each=0.92),
    Bar("linear 128^3 relu", ("linear 128x128x128 relu bf16, graph",), TORCH, each=1.7),
    Bar("linear 1024^3 relu", ("linear 1024x1024x1024 relu bf16, graph",), TORCH, each=1.15),
    Bar("linear 4096^3 relu", ("linear 4096x4096x4096 relu bf16",), TORCH, each=1.08),
    Bar("linear 4096^3 gelu tanh", ("linear 4096x4096x4096 gelu_tanh *",), TORCH, each=1.08),
    Bar("linear 4096^3 gelu erf", ("linear 4096x4096x4096 gelu_erf *",), TORCH, each=1.01),
    Bar("linear 2048x14336x4096 gelu tanh", ("linear 2048x14336x4096 *",), TORCH, each=1.05),
    Bar(
        "linear 128^3 relu from Python",
        ("linear 128x128x128 relu bf16, host",),
        ("addmm_activation",),
        each=1.2,
    ),
    Bar(
        "softmax and rms_norm of the copy",
        (*_SOFTMAX, *_RMS),
        ("copy",),
        each=0.93,
    ),
    Bar("layer_norm of the copy", ("layer_norm 4096x*",), ("copy",), each=0.88),
    Bar(
        "rows, best peer",
        (*_SOFTMAX, *_RMS, "layer_norm 4096x4096 *", "layer_norm 4096x16384 *"),
        (*TORCH, "triton*"),
        each=0.97,
    ),
    Bar("layer_norm 1024, best peer", ("layer_norm 4096x1024*",), (*TORCH, "triton*"), each=0.94),
    Bar("rows, eager and compile", _ROWS, TORCH, geomean=1.15),
    Bar("softmax 65536", ("softmax 4096x65536*",), TORCH, each=1.4),
    Bar("softmax 65536 of the copy", ("softmax 4096x65536*",), ("copy",), each=0.73),
    Bar("cross-entropy forward", ("cross_entropy 8192x128256 *",), ("compile",), each=2.6),
    Bar("cross-entropy, two kernels", ("*gradient, two kernels*",), ("liger",), each=1.3),
    Bar("cross-entropy, one kernel", ("*gradient, one kernel*",), ("liger",), each=1.6),
    Bar("rope", ("rope *",), TORCH, each=1.07),
    Bar("dropout + add + layer_norm", ("dropout*",), TORCH, each=2.8),
    Bar("attention, cuDNN", ("attention [cf]*",), ("cudnn",), each=0.76, geomean=0.84),
    Bar("attention, FlexAttention", ("attention [cf]*",), ("flex",), geomean=1.15),
    Bar("attention, SDPA flash", ("attention [cf]*",), ("flash",), geomean=1.45),
    Bar("attention backward", ("attention backward [cf]* S4096 D128 *",), ("flex",), each=1.0),
    Bar(
        "attention backward (a goal)",
        ("attention backward [cf]* S4096 D128 *",),
        ("cudnn",),
        each=0.85,
    ),
    Bar(
        "attention backward, documents",
        ("attention backward documents *",),
        ("flex", "compile"),
        each=1.0,
    ),
    Bar(
        "attention, a score of its own",
        ("attention score of rank *", "attention documents *"),
        ("flex", "compile"),
        each=1.3,
    ),
    Bar("decode B1", ("decode B1 *",), ("cudnn",), each=1.1),
    Bar("decode B8", ("decode B8 *",), ("cudnn",), each=1.0),
    Bar("decode B32", ("decode B32 *",), ("cudnn",), each=0.95),
    Bar("backward of norms", ("*_norm backward *",), TORCH, geomean=1.6),
    Bar("backward of softmax", ("softmax backward *",), TORCH, geomean=1.2),
    Bar("rms_norm + f8", ("rms_norm+quantize *",), ("compile",), geomean=1.6),
    Bar("silu_mul + f8 a token", ("silu_mul+quantize *per token*",), ("compile",), geomean=1.6),
    Bar("f8 a token", ("quantize *per token*",), TORCH, geomean=1.22),
    Bar("rms_norm + f8 a token", ("rms_norm+quantize *per token*",), TORCH, geomean=1.35),
    Bar("rms_norm + f8 a block", ("rms_norm+quantize *per block*",), TORCH, geomean=3.3),
    Bar("f8 decode", ("scaled_mm 16x*, graph",), ("eager",), geomean=1.15),
    Bar("cumsum, argmax, sum", ("sum of *", "argmax of *", "cumsum of *"), TORCH, geomean=1.1),
    Bar("conv + norm + relu", ("conv 3x3 *",), TORCH, geomean=1.1),
    Bar("softmax, many shapes", ("operator softmax *",), TORCH, geomean=1.5),
    Bar("layer_norm, many shapes", ("operator layer_norm *",), TORCH, geomean=1.3),
    Bar("rms_norm, many shapes", ("operator rms_norm *",), TORCH, geomean=1.2),
    Bar("cross-entropy, many shapes", ("operator cross_entropy *",), TORCH, geomean=1.8),
    Bar("rope, many shapes", ("operator rope *",), TORCH, geomean=1.45),
    Bar("silu_mul + f8, many shapes", ("operator silu_mul+quantize *",), TORCH, geomean=1.15),
    Bar("f8 a token, many shapes", ("operator quantize *",), TORCH, geomean=1.22),
    Bar(
        "rms_norm + f8 a token, many shapes",
        ("operator rms_norm+quantize *per token*",),
        TORCH,
        geomean=1.35,
    ),
    Bar(
        "rms_norm + f8 a block, many shapes",
        ("operator rms_norm+quantize *per block*",),
        TORCH,
        geomean=3.3,
    ),
    Bar("a call from Python", ("launch add *, host",), ("triton launch",), each=1.25),
    Bar("layer, decode B1", ("llama decode B1*, graph",), _COMPILED, each=1.15),
    Bar("layer, decode B32", ("llama decode B32*, graph",), _COMPILED, each=1.05),
    Bar("layer, prefill (a goal)", ("llama prefill",), _COMPILED, each=1.03),
    Bar("layer, train step (a goal)", ("llama train",), _COMPILED, each=1.03),
    Bar("layer, prefill, eager", ("llama prefill",), ("eager",), each=1.1),
    Bar("layer, decode B1, eager", ("llama decode B1*, host",), ("eager",), each=2.6),
    Bar("compile time of 32 layers", ("compile * layers*",), ("compile",), each=1.0),
    Bar("a region from Python", ("region call*",), ("compile",), each=1.0),
    Bar("lowering and Triton source", ("lowering *",), limit_us=50_000),
)
_HALIDE = ("halide*",)
_IMAGES = ("harris*", "unsharp*", "conv*", "bilateral*", "local_laplacian*")
_NETS = ("softmax*", "layer_norm*", "gelu*", "attention*")
_FORMULA = "tensorlang auto"
CPU = (
    Bar("blur of the copy", ("blur*2 threads*",), ("copy",), each=0.95),
    Bar("blur, Halide", ("blur*",), _HALIDE, each=1.0),
    Bar("matmul, OpenBLAS", ("matmul*",), ("numpy",), each=0.95),
    Bar("matmul, Halide", ("matmul*",), _HALIDE, each=1.05),
    Bar("same schedule as Halide", _IMAGES, ("halide",), each=0.87, geomean=1.0),
    Bar("networks, best peer", _NETS, ("numpy", "eager", "compile"), geomean=1.1),
    Bar("autoschedule, our hand schedule", ("*",), (OURS,), geomean=0.85, ours=_FORMULA),
    Bar("autoschedule, Halide's best", ("*",), ("halide *",), geomean=1.5, ours=_FORMULA),
)
BARS: dict[str, tuple[Bar, ...]] = {"gpu": GPU, "cpu": CPU}
