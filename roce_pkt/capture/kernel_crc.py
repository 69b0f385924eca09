"""ICRCs at the speed of memory: folded where the processor can, else ISA-L's CRC-32, else by tables.

Folding ORs the masks of `roce_pkt.wire.icrc` to the octets on their way; the others OR them into a copy
of the headers and go on over the capture's own octets.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from roce_pkt import jit
from roce_pkt.capture import kernel_fold
from roce_pkt.kernel_cache import CHECKED
from roce_pkt.wire import icrc
from roce_pkt.wire.icrc import Coverage, Network

Law = Callable[..., Any]
SEED = np.uint32(zlib.crc32(icrc.LRH_ONES))
SCRATCH_BYTES = 128
_U = np.uint64
_SLICES = 16
_POLYNOMIAL = 0xEDB8_8320
TABLES, FOLDED = _U(0), _U(1)
"""Ways to compute a CRC; any other number is the address of ISA-L's."""
_ONES = len(icrc.LRH_ONES)
_ALL_ONES = np.uint32(0xFFFF_FFFF)
_CAN_FOLD = kernel_fold.available()


@cache
def slicing_table() -> np.ndarray[Any, np.dtype[np.uint32]]:
    """CRC of every octet value followed by 0 to 15 zero octets; row k is k octets."""
    table = np.zeros((_SLICES, 256), np.uint32)
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, crc >> np.uint32(1) ^ np.uint32(_POLYNOMIAL), crc >> np.uint32(1))
    table[0] = crc
    for k in range(1, _SLICES):
        table[k] = table[k - 1] >> np.uint32(8) ^ table[0][table[k - 1] & np.uint32(255)]
    return table


def crc_way() -> int:
    """The fastest way there is: `FOLDED`, the address of ISA-L's CRC-32, or `TABLES`."""
    return int(FOLDED) if _CAN_FOLD else isal_address()


@cache
def isal_address() -> int:
    """Address of ISA-L's CRC-32 in the isal wheel, or 0 when it is not there or not what it should be."""
    try:
        from isal import isal_zlib

        function = ctypes.CDLL(isal_zlib.__file__).crc32_gzip_refl
    except (ImportError, OSError, AttributeError):
        return 0
    # The symbol is no promised interface of the wheel: believe it only after it has shown what it does.
    function.restype, function.argtypes = ctypes.c_uint32, (ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64)
    for size in (0, 1, 7, 63, 300):
        octets = bytes(i * 37 & 255 for i in range(size))
        if any(function(seed, octets, size) != zlib.crc32(octets, seed) for seed in (0, 0xDEBB_20E3)):
            return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@jit.fast_law
def _four(tab: Any, k: Any, word: Any) -> Any:
    """CRC of the four octets of `word`, followed by `k` octets."""
    word = _U(word)
    row = k << _U(10)
    return np.uint32(
        jit.le32(tab, row + _U(0xC00) + ((word & _U(255)) << _U(2)))
        ^ jit.le32(tab, row + _U(0x800) + ((word >> _U(8) & _U(255)) << _U(2)))
        ^ jit.le32(tab, row + _U(0x400) + ((word >> _U(16) & _U(255)) << _U(2)))
        ^ jit.le32(tab, row + ((word >> _U(24)) << _U(2)))
    )


@jit.fast_law
def _sliced(tab: Any, mem: Any, at: Any, size: Any, seed: Any) -> Any:
    """CRC-32 of `size` octets, 16 at a step, by tables."""
    crc = np.uint32(~seed)
    while size >= _U(16):
        crc = np.uint32(
            _four(tab, _U(12), np.uint32(crc ^ jit.le32(mem, at)))
            ^ _four(tab, _U(8), jit.le32(mem, at + _U(4)))
            ^ _four(tab, _U(4), jit.le32(mem, at + _U(8)))
            ^ _four(tab, _U(0), jit.le32(mem, at + _U(12)))
        )
        at += _U(16)
        size -= _U(16)
    while size > _U(0):
        last = (_U(crc) ^ _U(jit.octet(mem, at))) & _U(255)
        crc = np.uint32((crc >> np.uint32(8)) ^ jit.le32(tab, last << _U(2)))
        at += _U(1)
        size -= _U(1)
    return np.uint32(~crc)


def _folder(mask: bytes = b"") -> Law:
    return kernel_fold.folder(mask) if _CAN_FOLD else _no_fold


@jit.fast_law
def _no_fold(address: Any, size: Any, state: Any) -> Any:  # noqa: ARG001
    """Never called: no way is `FOLDED` where nothing can fold."""
    return np.uint32(state)


_fold = _folder()
_FOLD_BYTES = _U(kernel_fold.least_bytes(b""))


@jit.fast_law
def crc32(way: Any, tab: Any, mem: Any, at: Any, size: Any, seed: Any) -> Any:
    """CRC-32 as zlib's, going on from `seed`.

    Args:
        way: As `crc_way` says.
        tab: Memory of `slicing_table`.
        mem: Memory with the octets.
        at: First octet.
        size: Octets.
        seed: CRC of what came before.
    """
    if CHECKED:
        jit.guard(mem, at, size)
    if way > FOLDED:
        return jit.call_crc32(way, np.uint32(seed), mem[0] + at, size)
    if way == FOLDED and size >= _FOLD_BYTES:
        return np.uint32(~_fold(mem[0] + at, size, np.uint32(~seed)))
    return _sliced(tab, mem, at, size, np.uint32(seed))


def masker(mask: bytes) -> Law:
    """A law (octets, place, scratch) that copies octets into scratch with the mask's bits set."""
    size = len(mask)

    @jit.intrinsic
    def copy(typingctx: Any, mem: Any, at: Any, scratch: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            octets, place, target = args
            for start in range(0, size, 8):
                width = min(8, size - start)
                word, where = ir.IntType(8 * width), ir.IntType(64)(start)
                offset = builder.add(place, where)
                value = jit.load_word(builder, jit.place_of(builder, octets, offset, word), swap=False)
                bits = word(int.from_bytes(mask[start : start + width], "little"))
                builder.store(builder.or_(value, bits), jit.place_of(builder, target, where, word)).align = 1
            return context.get_dummy_value()

        return types.void(mem, types.uint64, scratch), codegen

    def checked(mem: Any, at: Any, scratch: Any) -> Any:
        jit.guard(mem, at, size)
        jit.guard(scratch, np.uint64(0), size)
        copy(mem, at, scratch)

    return jit.fast_law(checked) if CHECKED else copy


NETWORKS: dict[Network, np.uint64] = {"ipv4": _U(1), "ipv6": _U(2), "grh": _U(3)}
"""Number of each network header whose ICRC coverage is defined; 0 is none."""
NET_IPV4, NET_IPV6, NET_GRH = NETWORKS["ipv4"], NETWORKS["ipv6"], NETWORKS["grh"]


def _parts(network: Network) -> tuple[Law, Law, np.uint64, np.uint64]:
    """Of a network header: copy with the mask, fold with it, octets of the mask, least octets to fold."""
    mask = Coverage(network, 0, 0, 0).mask
    ones = icrc.LRH_ONES + mask
    return masker(mask), _folder(ones), _U(len(mask)), _U(kernel_fold.least_bytes(ones))


_mask_ipv4, _fold_ipv4, _size_ipv4, _least_ipv4 = _parts("ipv4")
_mask_ipv6, _fold_ipv6, _size_ipv6, _least_ipv6 = _parts("ipv6")
_mask_grh, _fold_grh, _size_grh, _least_grh = _parts("grh")
_BEFORE = _U(_ONES)


@jit.fast_law
def any_icrc(network: Any, way: Any, table_at: Any, scratch_at: Any, mem: Any, at: Any, end: Any) -> Any:
    """The ICRC of a frame as a number.

    As many octets as stand for an LRH lie before the network header; what they are does not matter.

    Args:
        network: Number of its network header.
        way: As `crc_way` says.
        table_at: Address of `slicing_table`.
        scratch_at: Address of `SCRATCH_BYTES` octets.
        mem: Memory with the frame.
        at: Place of the network header.
        end: Place of the ICRC.
    """
    whole = end - at + _BEFORE
    if way == FOLDED and at >= _BEFORE:
        if CHECKED:
            jit.guard(mem, at - _BEFORE, whole)
        start = mem[0] + at - _BEFORE
        if network == NET_IPV4 and whole >= _least_ipv4:
            return np.uint32(~_fold_ipv4(start, whole, _ALL_ONES))
        if network == NET_IPV6 and whole >= _least_ipv6:
            return np.uint32(~_fold_ipv6(start, whole, _ALL_ONES))
        if network == NET_GRH and whole >= _least_grh:
            return np.uint32(~_fold_grh(start, whole, _ALL_ONES))
    tab, scratch, size = (table_at, _U(_SLICES * 256 * 4)), (scratch_at, _U(SCRATCH_BYTES)), _size_grh
    if network == NET_IPV4:
        _mask_ipv4(mem, at, scratch)
        size = _size_ipv4
    elif network == NET_IPV6:
        _mask_ipv6(mem, at, scratch)
        size = _size_ipv6
    else:
        _mask_grh(mem, at, scratch)
    crc = crc32(way, tab, scratch, _U(0), size, SEED)
    return crc32(way, tab, mem, at + size, end - (at + size), crc)
