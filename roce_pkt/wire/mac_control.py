"""PAUSE and priority flow control frames, and how long a quantum lasts.

     +-------------------+-------------------+------+--------+-----------+----------------+-----
     | 01:80:c2:00:00:01 |   source MAC      | 8808 | opcode | enable    | quanta[0..7]   | pad
     +-------------------+-------------------+------+--------+-----------+----------------+-----

Sources: IEEE 802.3 annex 31B (PAUSE, opcode 0x0001), IEEE 802.1Qbb and 802.3 annex 31D (PFC,
opcode 0x0101). A quantum is 512 bit times at every speed.
"""

from __future__ import annotations

from collections.abc import Mapping

from roce_pkt.wire.header import Field, Header, mac_text

DESTINATION = 0x0180C2000001
OPCODE_PAUSE = 0x0001
OPCODE_PFC = 0x0101
QUANTUM_BITS = 512
MIN_FRAME_BYTES = 60  # without FCS
CLASSES = 8

MAC_CONTROL = Header("mac_control", "MAC control", Field("opcode", 16, "hex"))
PAUSE = Header("pause", "PAUSE", Field("quanta", 16, title="x 512 bit times"))
PFC = Header(
    "pfc",
    "Priority flow control",
    Field("resv8", 8),
    Field("enable", 8, "hex", title="bit n = class n"),
    *(Field(f"quanta{n}", 16) for n in range(CLASSES)),
)


def enabled_classes(enable: int) -> list[int]:
    """The classes whose bit is set in the enable vector."""
    return [n for n in range(CLASSES) if enable >> n & 1]


def quanta_of(values: Mapping[str, int]) -> list[int]:
    """The eight quanta of an unpacked PFC header, class 0 first."""
    return [values[f"quanta{n}"] for n in range(CLASSES)]


Given = Mapping[str, Mapping[str, int]]
"""Header values that stand as given, right or wrong, by header and field name."""


def pfc_octets(quanta: Mapping[int, int], enable: int | None = None, given: Given | None = None) -> bytes:
    """MAC control payload of a PFC frame, from the opcode on, unpadded.

    Args:
        quanta: Quanta by class 0..7; 0 resumes the class.
        enable: Enable vector; by default exactly the classes given.
        given: Fields of `mac_control` and `pfc` that stand whatever the rest says.
    """
    vector = sum(1 << n for n in quanta) if enable is None else enable
    values = {"enable": vector} | {f"quanta{n}": q for n, q in quanta.items()}
    return _octets(OPCODE_PFC, PFC, values, given or {})


def pause_octets(quanta: int, given: Given | None = None) -> bytes:
    """MAC control payload of an 802.3 PAUSE frame, from the opcode on, unpadded."""
    return _octets(OPCODE_PAUSE, PAUSE, {"quanta": quanta}, given or {})


def _octets(opcode: int, header: Header, values: dict[str, int], given: Given) -> bytes:
    front = MAC_CONTROL.pack({"opcode": opcode} | dict(given.get("mac_control", {})))
    return front + header.pack(values | dict(given.get(header.name, {})))


def pause_time_ps(quanta: int, speed_bps: float) -> int:
    """How long `quanta` stop a link of `speed_bps`, in picoseconds (rounded down)."""
    return int(quanta * QUANTUM_BITS * 10**12 // int(speed_bps))


def destination_text() -> str:
    """The one right destination, as text."""
    return mac_text(DESTINATION)
