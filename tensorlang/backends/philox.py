"""Philox-4x32: four 32-bit words from a 128-bit counter and a 64-bit key.

One round maps (c0, c1, c2, c3) under (k0, k1) to
    (hi(M1*c2) ^ c1 ^ k0, lo(M1*c2), hi(M0*c0) ^ c3 ^ k1, lo(M0*c0))
and the key grows by (W0, W1) between rounds.
See: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from typing import Any

import numpy as np

M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
W0, W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 7
_LOW, _WORD = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(counter: tuple[Any, ...], key: tuple[Any, Any], rounds: int = ROUNDS) -> tuple[Any, ...]:
    """The four words (each below 2^32, held in uint64) of a counter under a key."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        a, b = M0 * c0, M1 * c2
        c0, c1, c2, c3 = (b >> _WORD) ^ c1 ^ k0, b & _LOW, (a >> _WORD) ^ c3 ^ k1, a & _LOW
        k0, k1 = (k0 + W0) & _LOW, (k1 + W1) & _LOW
    return c0, c1, c2, c3


def random_uniform(seed: Any, index: Any) -> Any:
    """(word index % 4 of counter index // 4 under the key seed, >> 8) * 2^-24, as f32; i64s in."""
    seed, index = np.asarray(seed, np.int64), np.asarray(index, np.int64)
    counter, key = (index >> np.int64(2)).astype(np.uint64), seed.astype(np.uint64)
    zero = np.zeros_like(counter)
    words = philox((counter & _LOW, counter >> _WORD, zero, zero), (key & _LOW, key >> _WORD))
    which = np.broadcast_to(index & np.int64(3), words[0].shape)
    word = np.choose(which, words)
    return ((word >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24))[()]
