"""Which updates a GPU does in one step."""

from tensorlang.errors import TargetError
from tensorlang.ir.types import DType, f16, f32, f64, i32, i64, u32, u64

_WORDS = (i32, u32, i64, u64)
# Floats have no atomic minimum that keeps NaN, and nothing narrower than 32 bits has one at all.
_BY_OPERATOR: dict[str, tuple[DType, ...]] = {
    "add": (*_WORDS, f16, f32, f64),
    **dict.fromkeys(("min", "max", "and", "or", "xor"), _WORDS),
}


def check_atomic(func: str, op: str, dtype: DType) -> None:
    """Check that Triton has an atomic operation for an update.

    Raises: TargetError: no-atomic.
    """
    supported = _BY_OPERATOR.get(op, ())
    if dtype.storage in supported:
        return
    listed = ", ".join(map(str, supported))
    raise TargetError(
        "no-atomic",
        f"the target triton has no atomic {op} of {dtype} for {func!r}",
        why=f"a GPU's atomic {op} takes {listed}" if supported else f"no GPU has an atomic {op}",
        fix="rfactor the loop, and run the loop of the new Func in parallel",
    )
