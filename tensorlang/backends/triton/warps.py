"""How many warps a program gets when its schedule does not say.

A tile of 2048 elements keeps one warp busy with wide loads, and rows of 16,384 and more spill in
fewer than eight; a dot wants a warp group, or two for an accumulator of 128 x 128.
"""

from collections.abc import Mapping
from math import prod

from tensorlang.backends.triton.share import roots_of, walk_tiles
from tensorlang.backends.triton.storage import next_power_of_two
from tensorlang.backends.triton.tiles import Dot, Kernel, Lane
from tensorlang.ir.walk import postorder

_ELEMENTS_A_WARP = 2048
_MOST = 16
_LARGE_ACCUMULATOR = 128 * 128


def usual_warps(kernel: Kernel, extents: Mapping[str, int]) -> int:
    """Warps of a program whose symbolic lanes have these extents."""
    largest, accumulator = 1, 0
    for tile in walk_tiles(kernel.body):
        for e in postorder(*roots_of(tile)):
            size = prod(_size(lane, extents) for lane in kernel.lanes.of(e))
            largest = max(largest, size)
            if isinstance(e, Dot):
                accumulator = max(accumulator, size)
    if accumulator:
        return 8 if accumulator >= _LARGE_ACCUMULATOR else 4
    return min(next_power_of_two(-(-largest // _ELEMENTS_A_WARP)), _MOST)


def _size(lane: Lane, extents: Mapping[str, int]) -> int:
    return lane.extent if isinstance(lane.extent, int) else extents[lane.extent]
