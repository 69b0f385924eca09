"""PAUSE and priority flow control (PFC), with contrib's field names.

The destination is 01:80:c2:00:00:01 unless given; on build the frame is padded to 60 octets; on
dissection what follows the header is Padding.
"""

# ruff: noqa: RUF012  Scapy wants its class attributes plain

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scapy.config import conf
from scapy.fields import BitField, ShortField, XShortField
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

from roce_pkt import units
from roce_pkt.layers.fields import fields_of
from roce_pkt.wire import mac_control as wire
from roce_pkt.wire import net

MAC_CONTROL_ETHER_TYPE = net.ETHERTYPE_MAC_CONTROL
ETHER_SPEED_MBIT_10 = 10_000_000
ETHER_SPEED_MBIT_100 = 100_000_000
ETHER_SPEED_MBIT_1000 = 1_000_000_000


def quanta_seconds(quanta: int, speed: float | str) -> float:
    """How long `quanta` stop a link, in seconds.

    Args:
        quanta: Pause quanta of 512 bit times.
        speed: Bits per second, or text such as "400Gbps".
    """
    speed_bps = units.parse_rate_bps(speed, "speed") if isinstance(speed, str) else speed
    return wire.pause_time_ps(quanta, speed_bps) / units.PS_PER_S


class MACControl(Packet):
    """A MAC control frame of any opcode; PAUSE and PFC have their own classes."""

    name = "MAC control"
    header = wire.MAC_CONTROL
    DEFAULT_DST_MAC = wire.destination_text()
    fields_desc = fields_of(wire.MAC_CONTROL)
    # Scapy's mechanism for old names, used without its warning: contrib's names stay good names
    deprecated_fields = {"_op_code": ("opcode", "")}

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *_args: Any, **_kargs: Any) -> Any:
        """The class of the opcode, if its header fits."""
        if not _pkt:
            return cls
        start = wire.MAC_CONTROL.size_bytes
        if len(_pkt) < start:
            return conf.raw_layer
        kind = {wire.OPCODE_PAUSE: PAUSE, wire.OPCODE_PFC: PFC}.get(int.from_bytes(_pkt[:start], "big"))
        return kind if kind is not None and len(_pkt) >= start + kind.header.size_bytes else cls

    def _resolve_alias(self, attr: str) -> str:
        return self.deprecated_fields[attr][0]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Pad the frame to the least Ethernet size, unless something was put after the header."""
        below, lower = 0, self.underlayer
        while isinstance(lower, Dot1Q):
            below, lower = below + net.VLAN.size_bytes, lower.underlayer
        if pay or not isinstance(lower, Ether):
            return pkt + pay
        there = net.ETH.size_bytes + below + len(pkt) + len(self.payload.build_padding())
        return pkt + bytes(max(0, wire.MIN_FRAME_BYTES - there))


class PAUSE(MACControl):
    """An IEEE 802.3 PAUSE frame; `pause_time` counts quanta of 512 bit times, 0 resumes."""

    name = "PAUSE"
    header = wire.PAUSE
    fields_desc = [
        *fields_of(wire.MAC_CONTROL, {"opcode": [XShortField("opcode", wire.OPCODE_PAUSE)]}),
        *fields_of(wire.PAUSE, {"quanta": [ShortField("pause_time", 0)]}),
    ]
    deprecated_fields = {"_op_code": ("opcode", ""), "quanta": ("pause_time", "")}

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Everything after the header is padding."""
        return b"", s

    def get_pause_time(self, speed: float | str = ETHER_SPEED_MBIT_1000) -> float:
        """Seconds that a link of `speed` (bits per second, or "400Gbps") is stopped."""
        return quanta_seconds(self.pause_time, speed)

    def mysummary(self) -> str:
        """Quanta, or resume."""
        return f"PAUSE {self.pause_time} quanta" if self.pause_time else "PAUSE resume"


class PFC(MACControl):
    """An IEEE 802.1Qbb priority flow control frame.

    A class is enabled when its `cN_pause_time` is given (0 resumes it), unless `cN_enabled` says
    otherwise.
    """

    name = "PFC"
    header = wire.PFC
    fields_desc = [
        *fields_of(wire.MAC_CONTROL, {"opcode": [XShortField("opcode", wire.OPCODE_PFC)]}),
        *fields_of(
            wire.PFC,
            {"enable": [BitField(f"c{n}_enabled", None, 1) for n in reversed(range(wire.CLASSES))]}
            | {f"quanta{n}": [ShortField(f"c{n}_pause_time", 0)] for n in range(wire.CLASSES)},
        ),
    ]
    deprecated_fields = {"_op_code": ("opcode", ""), "_reserved": ("resv8", "")} | {
        f"quanta{n}": (f"c{n}_pause_time", "") for n in range(wire.CLASSES)
    }

    def getfieldval(self, attr: str) -> Any:
        """A field's value; an enable bit nobody has given follows its pause time."""
        return self._enabled(attr, super().getfieldval(attr))

    def getfield_and_val(self, attr: str) -> Any:
        """A field and its value; an enable bit nobody has given follows its pause time."""
        field, value = super().getfield_and_val(attr)
        return field, self._enabled(attr, value)

    def _enabled(self, attr: str, value: Any) -> Any:
        if value is None and attr.endswith("_enabled"):
            return int(attr.replace("_enabled", "_pause_time") in self.fields)
        return value

    @property
    def classes(self) -> list[int]:
        """The enabled classes."""
        return [n for n in range(wire.CLASSES) if self.getfieldval(f"c{n}_enabled")]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Everything after the header is padding."""
        return b"", s

    def get_pause_time(self, priority: int, speed: float | str = ETHER_SPEED_MBIT_1000) -> float:
        """Seconds that class `priority` of a link of `speed` is stopped."""
        return quanta_seconds(self.getfieldval(f"c{priority}_pause_time"), speed)

    def mysummary(self) -> str:
        """What happens to each enabled class."""
        quanta = {n: self.getfieldval(f"c{n}_pause_time") for n in self.classes}
        words = [f"{n}: {f'pause {q} quanta' if q else 'resume'}" for n, q in quanta.items()]
        return "PFC " + ("; ".join(words) or "no class enabled")


def pfc(quanta: Mapping[int, int]) -> PFC:
    """A PFC frame's layer from quanta by class, e.g. `Ether()/pfc({3: 0xffff, 4: 0})`."""
    return PFC(**{f"c{n}_pause_time": q for n, q in quanta.items()})


MACControlPause = PAUSE
MACControlClassBasedFlowControl = PFC


def _destination(_lower: Packet, _upper: Packet) -> str:
    return wire.destination_text()


for _kind in (MACControl, PAUSE, PFC):
    conf.neighbor.register_l3(Ether, _kind, _destination)
