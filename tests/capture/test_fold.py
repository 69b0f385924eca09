"""The folded CRC against zlib's, for every length around its steps, with and without a mask."""

import random
import zlib

import numpy as np
import pytest
from numba import njit

from roce_pkt.capture import kernel_fold
from roce_pkt.wire import icrc

ONES = 0xFFFF_FFFF
MASKS = {
    "none": b"",
    **{name: icrc.LRH_ONES + icrc.Coverage(name, 0, 0, 0).mask for name in ("ipv4", "ipv6", "grh")},
}

pytestmark = pytest.mark.skipif(not kernel_fold.available(), reason="this processor does not fold")


@pytest.mark.parametrize("name", MASKS)
def test_it_says_what_zlib_says(name):
    mask = MASKS[name]
    fold = kernel_fold.folder(mask)

    @njit
    def run(address, size, state):
        return fold(address, size, state)

    dice = random.Random(len(mask))
    octets = np.frombuffer(dice.randbytes(5000), np.uint8)
    least = kernel_fold.least_bytes(mask)
    assert 16 <= least < max(len(mask), 1) + 16
    for size in [*range(max(least, len(mask)), 700), 1024, 1060, 1500, 4096]:
        at, seed = dice.randrange(100), dice.randrange(1 << 32)
        message = bytearray(octets[at : at + size].tobytes())
        for n, bits in enumerate(mask):
            message[n] |= bits
        address = np.uint64(octets.ctypes.data + at)
        got = int(run(address, np.uint64(size), np.uint32(seed ^ ONES))) ^ ONES
        assert got == zlib.crc32(message, seed), (size, at)
