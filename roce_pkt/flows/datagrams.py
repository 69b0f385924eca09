"""The management datagrams among the frames of a batch, read from their octets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.columns import KIND_ROCEV1, KIND_ROCEV2
from roce_pkt.capture.frames import Frames
from roce_pkt.wire import ib, mad, management
from roce_pkt.wire.dissection import Management


def rows(frames: Frames) -> NDArray[np.intp]:
    """Rows of a batch that hold a datagram to QP 0 or 1, or one with the key of QP 1 and a MAD's size."""
    if not frames.has(ib.DETH).any():
        return np.empty(0, np.intp)
    roce = (frames.kind == KIND_ROCEV2) | (frames.kind == KIND_ROCEV1)
    sized = (frames.qkey == ib.GSI_QKEY) & (frames.payload_len == mad.MAD_BYTES)
    return np.flatnonzero(
        roce & frames.has(ib.DETH) & ~frames.has(ib.RDETH) & ((frames.dqpn <= ib.GSI_QPN) | sized)
    )


def read(frames: Frames, row: int) -> Management | None:
    """The management datagram in one of `rows`; None when it is none after all."""
    octets = frames.octets(row)
    start = int(frames.payload_offset[row])
    end = min(start + int(frames.payload_len[row]), len(octets))
    bth, deth = {"dqpn": int(frames.dqpn[row])}, {"qkey": int(frames.qkey[row])}
    return management.read(octets, start, end) if management.carries(bth, deth, octets[start:end]) else None
