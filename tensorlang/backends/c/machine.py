"""What the generated code may count on: vector registers, fused multiply-add, threads."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts that the compiler told, or that a test chose.

    Args:
        vector_bytes: of one vector register.
        vector_registers: how many of them there are.
        has_fma: whether a fused multiply-add is one instruction.
        has_openmp: whether `#pragma omp` is understood.
        has_shuffles: whether vectors of different lengths can be shuffled.
    """

    vector_bytes: int = 16
    vector_registers: int = 16
    has_fma: bool = False
    has_openmp: bool = False
    has_shuffles: bool = False

    def lanes(self, bits: int) -> int:
        """How many elements of `bits` one register holds."""
        return self.vector_bytes * 8 // bits
