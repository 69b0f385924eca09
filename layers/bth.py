"""The Base Transport Header, with the pads and the ICRC that close its packet."""

# ruff: noqa: RUF012  Scapy wants its class attributes plain

from __future__ import annotations

import struct
from types import MethodType
from typing import Any

from scapy.config import conf
from scapy.error import warning
from scapy.fields import BitField
from scapy.layers.inet import IP, UDP
from scapy.packet import Packet

from roce_pkt.layers import beneath
from roce_pkt.layers.extended import SPEAKING, CNPPadding, header_of, next_header
from roce_pkt.layers.fields import IcrcField, OpcodeField, PadField, fields_of
from roce_pkt.layers.infer import opcode_of_stack
from roce_pkt.layers.match import is_answer
from roce_pkt.wire import entropy, ib, net
from roce_pkt.wire import opcode as opcodes
from roce_pkt.wire.opcode import OPCODES

CNP_OPCODE = opcodes.CNP
TRANSPORT_MASK = 0xE0
DEFAULT_SPORT = entropy.sport_from_flow_label(0)
PADCOUNT = ib.BTH.places["padcount"]


class BTH(Packet):
    """The Base Transport Header.

    Left to the layer when not given: `opcode` (from the stacked headers, see `infer`), `padcount`,
    `pad` (zeros that fill the payload up to four octets, whatever `padcount` says) and `icrc`. Each
    takes a wrong value as well; `pad=b""` and `icrc=b""` leave them out.

    `pad` and `icrc` lie after the payload; `icrc` is the four wire octets read as one number. In a
    frame that its capture cut short, `icrc` holds the octets that are there.
    """

    name = "BTH"
    header = ib.BTH
    fields_desc = [
        *fields_of(ib.BTH, {"opcode": [OpcodeField()], "padcount": [BitField("padcount", None, 2)]}),
        PadField("pad"),
        IcrcField("icrc"),
    ]

    # -- reading

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *_args: Any, **kargs: Any) -> Any:
        """Raw when there is no room for a BTH and its ICRC."""
        if not _pkt:
            return cls
        lower = kargs.get("_underlayer")
        room = min(beneath.octets_on_wire(lower, len(_pkt)) - _tail(lower), len(_pkt))
        return cls if room >= ib.BTH.size_bytes else conf.raw_layer

    def do_dissect(self, s: bytes) -> bytes:
        """Read the header, cut pads and ICRC off the end, leave the rest to the next layers."""
        rest = super().do_dissect(s)
        # without this cache Scapy calls post_build, which puts the trailing octets back
        self.raw_packet_cache = None
        tail = _tail(self.underlayer)
        end = beneath.octets_on_wire(self.underlayer, len(s)) - ib.BTH.size_bytes - tail
        pads = self._pads_in(min(end, len(rest)), end) if tail else 0
        self.fields["pad"] = rest[end - pads : end]
        self.fields["icrc"] = self.get_field("icrc").any2i(self, rest[end:])
        return rest[: end - pads]

    def _pads_in(self, captured: int, end: int) -> int:
        """Pad octets among `end` octets after the BTH, of which `captured` are there."""
        op = OPCODES.get(self.opcode)
        if op is None or not op.payload:
            return 0
        at = 0
        for header in op.headers:
            if at + header.size_bytes > captured:
                break
            at += header.size_bytes
        return min(self.fields["padcount"], end - at)

    def guess_payload_class(self, payload: bytes) -> Any:
        """The first header of the opcode, else what the user bound to BTH, else Raw."""
        return next_header(self.opcode, 0, len(payload)) or Packet.guess_payload_class(self, payload)

    # -- building

    def getfieldval(self, attr: str) -> Any:
        """A field's value; the opcode is inferred while nobody has given it."""
        value = super().getfieldval(attr)
        return opcode_of_stack(self) if attr == "opcode" and value is None else value

    def getfield_and_val(self, attr: str) -> Any:
        """A field and its value; the opcode is inferred while nobody has given it."""
        field, value = super().getfield_and_val(attr)
        return field, opcode_of_stack(self) if attr == "opcode" and value is None else value

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill padcount and put pads and ICRC after the payload."""
        op = OPCODES.get(self.opcode)
        pad = self.pad
        if pad is None:
            # spec: IBTA 9.2.4: pad octets bring the payload to a multiple of four
            pad = bytes(-len(pay) % 4 if op and op.payload else 0)
        if self.padcount is None:
            at = PADCOUNT.offset
            pkt = pkt[:at] + bytes([pkt[at] | (len(pad) & PADCOUNT.mask) << PADCOUNT.shift]) + pkt[at + 1 :]
        whole = pkt + pay + pad
        given = self.icrc
        if given is None:
            return whole + self.compute_icrc(whole + bytes(ib.ICRC_BYTES))
        return whole + (given if isinstance(given, bytes) else struct.pack("!I", given & 0xFFFFFFFF))

    def add_underlayer(self, underlayer: Packet) -> None:
        """Take place above `underlayer`; a UDP header below learns what RoCE wants of it."""
        super().add_underlayer(underlayer)
        if not isinstance(underlayer, UDP):
            return
        fill = dict(self._overload_fields.get(UDP, {}))
        if "len" in underlayer.fields:
            # the user writes this UDP header by hand: its checksum is Scapy's business
            fill.pop("chksum", None)
        self.overload_fields = self._overload_fields | {UDP: fill}
        object.__setattr__(underlayer, "answers", MethodType(_udp_answers, underlayer))

    def remove_underlayer(self, other: Packet) -> None:
        """Leave the UDP header below as it was found."""
        super().remove_underlayer(other)
        if isinstance(other, UDP):
            other.__dict__.pop("answers", None)

    # -- the ICRC

    @staticmethod
    def pack_icrc(icrc: int) -> bytes:
        """A CRC-32 as its four octets in wire order."""
        return (icrc & 0xFFFFFFFF).to_bytes(ib.ICRC_BYTES, "little")

    def compute_icrc(self, p: bytes) -> bytes:
        """The ICRC in wire order that belongs to this packet, whatever it carries now.

        Args:
            p: Octets from the BTH to the end of the ICRC, whose own four are ignored.

        Returns:
            Four octets; zeros, with Scapy's warning, where the ICRC is not defined.
        """
        why = beneath.why_uncheckable(self.underlayer)
        if why or self.underlayer is None:
            warning("The ICRC cannot be computed (%s): zeros are sent. Give icrc= to choose.", why)
            return self.pack_icrc(0)
        return beneath.compute_icrc(self.underlayer, p[: -ib.ICRC_BYTES])

    @property
    def icrc_expected(self) -> int | None:
        """The right `icrc` of the packet as it stands, or None where it cannot be checked."""
        given = self.icrc
        if not isinstance(given, int) or beneath.why_uncheckable(self.underlayer):
            return None
        octets = self.do_build()
        return int.from_bytes(self.compute_icrc(octets), "big")

    @property
    def icrc_ok(self) -> bool | None:
        """True or False, or None where the ICRC cannot be checked."""
        expected = self.icrc_expected
        return None if expected is None else expected == self.icrc

    def icrc_verdict(self) -> str:
        """`right`, `WRONG, should be 0x...`, or why it cannot be checked."""
        try:
            expected = self.icrc_expected
        except (TypeError, ValueError, OSError, struct.error):
            return "cannot be checked: a field below holds no single value"
        if expected is None:
            return f"cannot be checked: {beneath.why_uncheckable(self.underlayer)}"
        return "right" if expected == self.icrc else f"WRONG, should be 0x{expected:08x}"

    # -- pairing and words

    def hashret(self) -> bytes:
        """The transport: addresses come from below, PSNs are compared by `answers`."""
        return bytes([self.opcode & TRANSPORT_MASK])

    def answers(self, other: Packet) -> int:
        """1 when this packet answers `other`."""
        return int(header_of(other) is ib.BTH and is_answer(self, other))

    def mysummary(self) -> Any:
        """Opcode, queue pair, PSN, marks, and a wrong ICRC."""
        words = [f"BTH {opcodes.name_of(self.opcode)} qp 0x{self.dqpn:x} psn {self.psn}"]
        marks = (("ackreq", "AckReq"), ("solicited", "SE"), ("fecn", "FECN"), ("becn", "BECN"))
        words += [mark for name, mark in marks if getattr(self, name)]
        if self._ip_ecn() == net.CE:
            words.append("CE")
        verdict = self.icrc_verdict() if isinstance(self.icrc, int) else ""
        if verdict.startswith("WRONG"):
            words.append(f"ICRC {verdict}")
        return " ".join(words), LOWER_SPEAKING

    def _ip_ecn(self) -> int:
        ip = beneath.ip_below(self.underlayer)[0] if isinstance(self.underlayer, UDP) else None
        if ip is None:
            return net.NOT_ECT
        octet = ip.tos if isinstance(ip, IP) else ip.tc
        return octet & net.CE if isinstance(octet, int) else net.NOT_ECT


def _tail(lower: Packet | None) -> int:
    """Octets of ICRC at the end of what lies over `lower`; a first fragment has none."""
    fragment = isinstance(lower, UDP) and beneath.ip_below(lower)[2] == beneath.FRAGMENT
    return 0 if fragment else ib.ICRC_BYTES


def _udp_answers(self: UDP, other: Packet) -> int:
    # RoCE answers go to port 4791 and not to the request's source port, which only spreads paths
    return self.payload.answers(other.payload) if isinstance(other, UDP) else 0


def cnp(dqpn: int) -> BTH:
    """A congestion notification packet for the sender's queue pair `dqpn`."""
    return BTH(opcode=CNP_OPCODE, becn=1, dqpn=dqpn) / CNPPadding()


def opcode(transport: str, op: str) -> tuple[int, str]:
    """An opcode's number and full name, as contrib's function of this name.

    Raises:
        InputError: No such opcode, with the nearest right name.
    """
    value = opcodes.parse_opcode(f"{transport}_{op}")
    return value, opcodes.name_of(value)


LOWER_SPEAKING: list[type[Packet]] = [UDP]
SPEAKING.append(BTH)
