"""One `[[fault]]` table: what is done to a frame, and to which frames.

The same table serves a scenario (frames that are generated or simulated) and `roce-pkt impair`
(frames of a capture).
"""

from __future__ import annotations

from dataclasses import dataclass

from roce_pkt.scenario import field as f

KINDS = ("drop", "ce", "corrupt", "duplicate", "reorder", "delay", "truncate", "replay")
ANY = -1
ALL = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault by name. Every chooser that is given must agree; none given means every RoCE frame."""

    do: str = f.choice("drop", "what is done", *KINDS)
    # which frames
    src: str = f.text("", "source address (empty = any)")
    dst: str = f.text("", "destination address (empty = any)")
    qp: int = f.integer(ANY, "destination queue pair of the frame (-1 = any)", ANY, (1 << 24) - 1)
    opcode: str = f.text("", "opcode by name or number (empty = any)")
    psn: int = f.integer(ANY, "packet sequence number (-1 = any)", ANY, (1 << 24) - 1)
    message: int = f.integer(ALL, "nth message of its flow, from 1 (0 = any)", 0, 1 << 40)
    occurrence: int = f.integer(
        ALL, "1 = first time this packet is sent, 2 = its first retransmission, ... (0 = any)", 0, 1 << 20
    )
    nth: int = f.integer(ALL, "only the nth frame that all choosers above fit, from 1 (0 = each)", 0, 1 << 40)
    count: int = f.integer(ALL, "most frames it is done to (0 = no limit)", 0, 1 << 40)
    probability: float = f.fraction(1.0, "chance of each frame that fits")
    burst: int = f.integer(
        1, "fitting frames in a row it is done to once chance or nth chose one", 1, 1 << 20
    )
    # how
    what: str = f.choice("payload", "corrupt: what is damaged", "bit", "field", "payload")
    bit: int = f.integer(ANY, "corrupt bit: which, from the frame's first (-1 = by chance)", ANY, 8 * 65535)
    field: str = f.text("", "corrupt field: HEADER.FIELD, e.g. bth.psn")
    value: int = f.integer(ANY, "corrupt field: its new value (-1 = one bit flipped by chance)", ANY)
    distance: int = f.integer(3, "reorder, replay: frames of its flow that pass before it comes", 1, 1 << 20)
    time_ps: int = f.time("0us", "delay: time added; duplicate: time until the copy")
    seen: bool = f.flag(False, "drop: the frame is recorded before it is lost")
    bytes: int = f.integer(64, "truncate: octets kept", 0, 65535)
