"""The engine's arrays, and how their addresses get into the one record `w`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.engine.records import blocks_of


@dataclass(slots=True)
class Arrays:
    """The arrays themselves; they must live as long as `w` is used."""

    node: NDArray[Any]
    port: NDArray[Any]
    line: NDArray[Any]
    group: NDArray[Any]
    half: NDArray[Any]
    rp: NDArray[Any]
    watch: NDArray[Any]
    packet: NDArray[Any]
    tree: NDArray[np.int64]
    turns: NDArray[np.int64]
    top: NDArray[np.int64]
    route: NDArray[Any]
    path: NDArray[np.uint32]
    histogram: NDArray[np.uint32]
    row: NDArray[Any]
    frame: NDArray[Any]
    queues: NDArray[np.int64]
    rates: NDArray[Any]
    cc: NDArray[Any]
    np: NDArray[Any]
    ack: NDArray[Any]
    before: NDArray[Any]
    flowlet: NDArray[Any]
    selective: NDArray[Any]
    telemetry: NDArray[Any]  # 64-bit words; `np` is the field above here
    work: NDArray[Any]
    message: NDArray[Any]
    wait: NDArray[Any]
    next: NDArray[Any]
    manner: NDArray[Any]
    rule: NDArray[Any]
    hit: NDArray[Any]
    seen: NDArray[Any]
    opcode: NDArray[Any]
    headers: NDArray[Any]
    unchecked: NDArray[Any]

    def connect(self, w: Any) -> None:
        """Write every array's address and length into `w`."""
        for field in fields(self):
            w[f"{field.name}_array"] = getattr(self, field.name).ctypes.data
        w["rp_bytes"] = self.rp.strides[0]
        for name, array in (
            ("nodes", self.node),
            ("ports", self.port),
            ("halves", self.half),
            ("packets", self.packet),
            ("routes", self.route),
            ("paths", self.path),
            ("row_limit", self.row),
            ("frame_limit", self.frame),
            ("sample_limit", self.queues),
            ("rules", self.rule),
            ("hit_limit", self.hit),
            ("seen_slots", self.seen),
        ):
            w[name] = len(array)
        w["blocks"] = blocks_of(len(self.node))
