"""Names of Triton: its dtypes, and identifiers for the names of the IR."""

import keyword
from collections.abc import Mapping

from tensorlang.ir.types import DType

TRITON_DTYPES = {
    "bool": "int1",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f8e4m3": "float8e4nv", "f8e5m2": "float8e5", "f16": "float16", "bf16": "bfloat16",
    "tf32": "float32", "f32": "float32", "f64": "float64", "index": "int64",
}  # fmt: skip

# As a signature of a compiled kernel spells them.
SIGNATURE_DTYPES = {
    "bool": "i1",
    "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64",
    "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64",
    "f8e4m3": "fp8e4nv", "f8e5m2": "fp8e5", "f16": "fp16", "bf16": "bf16",
    "tf32": "fp32", "f32": "fp32", "f64": "fp64", "index": "i64",
}  # fmt: skip

_RESERVED = frozenset(keyword.kwlist) | {"tl", "triton", "rt", "float", "INDEX", "range"}


def triton_dtype(dtype: DType) -> str:
    """tl.float32"""
    return f"tl.{TRITON_DTYPES[dtype.name]}"


class Identifiers:
    """One Python identifier for each name: D.io is D_io, A.ptr is A_ptr."""

    def __init__(self, fixed: Mapping[str, str]) -> None:
        self._of = dict(fixed)
        self._taken = set(fixed.values()) | _RESERVED

    def __getitem__(self, name: str) -> str:
        found = self._of.get(name)
        if found is None:
            wanted = name.replace(".", "_")
            found, count = wanted, 0
            while found in self._taken:
                count += 1
                found = f"{wanted}_{count}"
            self._taken.add(found)
            self._of[name] = found
        return found

    def same(self, name: str, as_name: str) -> None:
        """Let two names be one identifier."""
        self._of[name] = self[as_name]
