"""What reading a frame gives: its headers in order, its payload, its ICRC, and where reading stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from roce_pkt.wire import ib
from roce_pkt.wire.header import Header
from roce_pkt.wire.icrc import Coverage
from roce_pkt.wire.opcode import OPCODES, Opcode

Kind = Literal["rocev2", "rocev1", "pfc", "pause", "other"]


@dataclass(slots=True)
class Layer:
    """One header found in a frame: its table, where it starts, and its values."""

    header: Header
    offset: int
    values: dict[str, int]

    @property
    def end(self) -> int:
        """First octet after the header."""
        return self.offset + self.header.size_bytes


@dataclass(slots=True)
class Tunnel:
    """An encapsulation around the frame of interest.

    Args:
        kind: `vxlan`, `gre`, `erspan1`, `erspan2` or `erspan3`.
        ident: VNI, GRE key or ERSPAN session; 0 where there is none.
        layers: The outer headers, the tunnel's own last.
    """

    kind: str
    ident: int
    layers: list[Layer]


@dataclass(slots=True)
class Icrc:
    """The ICRC of a frame.

    Args:
        value: Its four octets in wire order, or None when they were not captured.
        expected: What they should be, or None when it cannot be told.
        why: Why it cannot be told; empty otherwise.
    """

    value: bytes | None = None
    expected: bytes | None = None
    why: str = ""

    @property
    def ok(self) -> bool | None:
        """True, False, or None when it cannot be checked."""
        return None if self.value is None or self.expected is None else self.value == self.expected


@dataclass(slots=True)
class Management:
    """A management datagram: the payload of its frame, read on.

    Args:
        layers: Its headers: `mad`, then `rmpp` or `cm`, then those of private data.
        data_offset: First octet in the frame after the headers that the class asks for.
        data: The octets from there on, as far as they were captured: private data, or data that has
            no table.
    """

    layers: list[Layer]
    data_offset: int
    data: bytes

    def find(self, name: str) -> Layer | None:
        """The first header of that name, or None."""
        return next((layer for layer in self.layers if layer.header.name == name), None)


@dataclass(slots=True)
class Dissection:
    """What one frame holds.

    Args:
        kind: `rocev2`, `rocev1`, `pfc`, `pause` or `other`.
        hint: For `other`, what it looks like: `tcp`, `arp`, `uet`, `infiniband`, ...
        status: `ok`, or why decoding stopped.
        layers: Headers in order, without the outer ones of a tunnel.
        tunnels: Encapsulations, outermost first.
        payload_offset: First payload octet in the frame.
        payload_len: Payload octets on the wire, pads excluded.
        padcount: Pad octets after the payload.
        icrc: The ICRC, None for frames that have none.
        cover: Where the octets lie that the ICRC covers; None when it cannot be computed.
        trailer_len: Captured octets after the last octet that the length fields speak for.
        telemetry: Records of hops in those octets, or None.
        management: For datagrams to QP 0 and QP 1, what they say.
    """

    kind: Kind = "other"
    hint: str = ""
    status: str = "ok"
    layers: list[Layer] = field(default_factory=list)
    tunnels: list[Tunnel] = field(default_factory=list)
    payload_offset: int = 0
    payload_len: int = 0
    padcount: int = 0
    icrc: Icrc | None = None
    cover: Coverage | None = None
    trailer_len: int = 0
    telemetry: dict[str, Any] | None = None
    management: Management | None = None

    def find(self, header: Header) -> Layer | None:
        """The first layer of that header, or None."""
        for layer in self.layers:
            if layer.header is header:
                return layer
        return None

    @property
    def bth(self) -> dict[str, int] | None:
        """The BTH's values, or None."""
        layer = self.find(ib.BTH)
        return layer.values if layer else None

    @property
    def opcode(self) -> Opcode | None:
        """The opcode's row, or None when there is no BTH or its opcode is unknown."""
        bth = self.bth
        return OPCODES.get(bth["opcode"]) if bth else None

    def all_layers(self) -> Iterator[Layer]:
        """Every header from the first octet on, tunnels included."""
        for tunnel in self.tunnels:
            yield from tunnel.layers
        yield from self.layers
