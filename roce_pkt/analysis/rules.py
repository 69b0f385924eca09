"""Rules a single frame must obey, each as a mask over columns and a sentence.

A rule is one row: its name, its severity, the frames that break it, and what to say about one of
them. Nothing is looked at frame by frame until it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.analysis.octets import ipv4_checksum_wrong, nonzero_cnp_body, nonzero_pads, pfc_reserved
from roce_pkt.capture.columns import KIND_PAUSE, KIND_PFC, KIND_ROCEV1, KIND_ROCEV2, STATUS_CODES
from roce_pkt.capture.frames import Frames
from roce_pkt.errors import Severity
from roce_pkt.wire import aeth, ib, mac_control, net
from roce_pkt.wire.header import mac_text
from roce_pkt.wire.opcode import CNP, OPCODES, name_of

Mask = NDArray[np.bool_]


def by_opcode(of: Callable[[int], int]) -> NDArray[np.uint8]:
    """A table of 256 numbers, indexed by an opcode column."""
    return np.array([of(value) for value in range(256)], np.uint8)


KNOWN = by_opcode(lambda v: v in OPCODES)
PAYLOAD = by_opcode(lambda v: v in OPCODES and OPCODES[v].payload)
FIRST_OR_MIDDLE = by_opcode(lambda v: v in OPCODES and OPCODES[v].position in ("first", "middle"))
LAST = by_opcode(lambda v: v in OPCODES and OPCODES[v].position == "last")
UD = by_opcode(lambda v: v in OPCODES and OPCODES[v].transport == "UD")


def _operation(*names: str) -> NDArray[np.uint8]:
    return by_opcode(lambda v: v in OPCODES and OPCODES[v].operation in names)


ATOMIC_WRITE = _operation("atomic_write")
READ_REQUEST = _operation("read_request")
WRITE_ONLY = by_opcode(
    lambda v: v in OPCODES and OPCODES[v].operation == "write" and OPCODES[v].position == "only"
)
WRITE_FIRST = by_opcode(
    lambda v: v in OPCODES and OPCODES[v].operation == "write" and OPCODES[v].position == "first"
)

MAX_MESSAGE_BYTES = 1 << 31  # IBTA Vol 1 9.7.4: a message is at most 2^31 octets


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Args:
        name: Stable dotted name.
        severity: `error` when a receiver would drop or refuse it, `warning` when the standard is
            broken without that, `note` for what is only worth knowing.
        broken: Frames that break it.
        say: One sentence about row `i`.
    """

    name: str
    severity: Severity
    broken: Callable[[Frames], Mask]
    say: Callable[[Frames, int], str]


def roce(f: Frames) -> Mask:
    """Frames that are RoCE of either version."""
    return (f.kind == KIND_ROCEV2) | (f.kind == KIND_ROCEV1)


def whole(f: Frames) -> Mask:
    """RoCE frames whose headers were all read and whose lengths agree."""
    return roce(f) & (f.status == STATUS_CODES["ok"]) & f.has(ib.BTH)


def _status(*names: str) -> Callable[[Frames], Mask]:
    """Frames of any kind that stopped so: what cannot be read might have been RoCE."""
    codes = [STATUS_CODES[name] for name in names]
    return lambda f: np.isin(f.status, codes)


def _flag(table: NDArray[np.uint8], f: Frames) -> Mask:
    return whole(f) & (table[f.opcode] != 0)


def _name(f: Frames, i: int) -> str:
    return name_of(int(f.opcode[i]))


def _value(name: str) -> Callable[[Frames, int], Any]:
    return lambda f, i: int(f.column(name)[i])


def _lengths(f: Frames, i: int) -> str:
    if f.has(ib.GRH)[i]:
        return f"GRH payload length {int(f.paylen[i])}"
    udp = f", UDP length {int(f.udp_len[i])}" if f.has(net.UDP)[i] else ""
    return f"IP length {int(f.ip_len[i])}{udp}"


def _bad_mtu(f: Frames) -> Mask:
    return _flag(FIRST_OR_MIDDLE, f) & ~np.isin(f.payload_len, ib.PATH_MTUS_BYTES)


def _pads(f: Frames) -> Mask:
    total = f.payload_len.astype(np.int64) + f.padcount
    wrong = (total % 4 != 0) | ((table_at(FIRST_OR_MIDDLE, f)) & (f.padcount > 0))
    without = (KNOWN[f.opcode] != 0) & (PAYLOAD[f.opcode] == 0) & (f.padcount > 0)
    return (_flag(PAYLOAD, f) & wrong) | (whole(f) & without)


def table_at(table: NDArray[np.uint8], f: Frames) -> Mask:
    """The table's entry for each frame's opcode, as a truth value."""
    return table[f.opcode] != 0


def _cnp_fields(f: Frames) -> Mask:
    return (
        whole(f) & (f.opcode == CNP) & ((f.becn == 0) | (f.psn != 0) | (f.solicited != 0) | (f.ackreq != 0))
    )


def _aeth_reserved(f: Frames) -> Mask:
    syndrome = f.syndrome
    kind, code = syndrome >> 5 & 3, syndrome & 31
    reserved = (kind == aeth.TYPES.index("reserved")) | (syndrome >= 0x80)
    unknown = (kind == aeth.TYPES.index("nak")) & (code > max(aeth.NAK_REASONS))
    return whole(f) & f.has(ib.AETH) & (reserved | unknown)


def _quanta_ignored(f: Frames) -> Mask:
    bits = f.pfc_enabled[:, None] >> np.arange(mac_control.CLASSES, dtype=np.uint8) & 1
    return (f.kind == KIND_PFC) & ((f.pfc_quanta != 0) & (bits == 0)).any(axis=1)


RULES: tuple[Rule, ...] = (
    Rule(
        "icrc.wrong",
        "error",
        lambda f: roce(f) & (f.icrc_ok == 0),
        lambda f, i: (
            f"{_name(f, i)}: ICRC {int(f.icrc[i]):08x} is wrong; a receiver drops the frame silently"
        ),
    ),
    Rule(
        "frame.cut",
        "error",
        lambda f: _status("cut", "ip-version", "too-deep")(f) & (f.cap_len >= f.wire_len),
        lambda _f, _i: "the frame ends inside a header, or its length fields say so",
    ),
    Rule(
        "frame.cut_by_capture",
        "note",
        lambda f: _status("cut")(f) & (f.cap_len < f.wire_len),
        lambda f, i: (
            f"only {int(f.cap_len[i])} of {int(f.wire_len[i])} octets were captured, not all headers"
        ),
    ),
    Rule(
        "length.disagrees",
        "error",
        _status("ip-length-short", "ip-length-long", "udp-length"),
        lambda f, i: f"{_lengths(f, i)} and {int(f.wire_len[i])} octets on the wire do not agree",
    ),
    Rule(
        "ip.fragment",
        "warning",
        _status("fragment"),
        lambda _f, _i: "RoCE in an IP fragment: RoCE packets are never fragmented (IBTA annex A17.3.1)",
    ),
    Rule(
        "ip.checksum",
        "warning",
        ipv4_checksum_wrong,
        lambda f, i: f"IPv4 header checksum 0x{int(f.ip_chksum[i]):04x} is wrong",
    ),
    Rule(
        "grh.nexthdr",
        "error",
        _status("grh-nexthdr"),
        lambda f, i: f"GRH next header 0x{int(f.nexthdr[i]):02x} is not 0x1b (BTH)",
    ),
    Rule(
        "bth.version",
        "error",
        lambda f: roce(f) & f.has(ib.BTH) & (f.bth_version != 0),
        lambda f, i: f"BTH transport version {int(f.bth_version[i])} is not 0; is this RoCE at all?",
    ),
    Rule(
        "bth.opcode",
        "warning",
        lambda f: roce(f) & f.has(ib.BTH) & (KNOWN[f.opcode] == 0),
        lambda f, i: f"opcode {_name(f, i)} is not in the standard's table",
    ),
    Rule(
        "bth.reserved",
        "note",
        lambda f: roce(f) & f.has(ib.BTH) & ((f.resv6 != 0) | (f.resv7 != 0)),
        lambda f, i: (
            f"{_name(f, i)}: reserved bits are set (resv6 {int(f.resv6[i])}, resv7 {int(f.resv7[i])})"
        ),
    ),
    Rule(
        "pad.count",
        "error",
        _pads,
        lambda f, i: (
            f"{_name(f, i)}: {int(f.payload_len[i])} octets with {int(f.padcount[i])} pads; pads make a"
            " multiple of 4 and only the last packet of a message has any"
        ),
    ),
    Rule(
        "pad.not_zero",
        "warning",
        lambda f: _flag(PAYLOAD, f) & nonzero_pads(f),
        lambda f, i: f"{_name(f, i)}: pad octets are not zero",
    ),
    Rule(
        "payload.unexpected",
        "error",
        lambda f: whole(f) & (KNOWN[f.opcode] != 0) & (PAYLOAD[f.opcode] == 0) & (f.payload_len > 0),
        lambda f, i: f"{_name(f, i)} carries {int(f.payload_len[i])} octets of payload and must carry none",
    ),
    Rule(
        "payload.mtu",
        "error",
        lambda f: _bad_mtu(f) | (_flag(PAYLOAD, f) & (f.payload_len > ib.PATH_MTUS_BYTES[-1])),
        lambda f, i: (
            f"{_name(f, i)} carries {int(f.payload_len[i])} octets; a first or middle packet carries the path"
            f" MTU ({', '.join(map(str, ib.PATH_MTUS_BYTES))}), no packet more"
        ),
    ),
    Rule(
        "payload.empty_last",
        "error",
        lambda f: _flag(LAST, f) & (f.payload_len == 0),
        lambda f, i: f"{_name(f, i)} is empty; the last packet of a message carries at least one octet",
    ),
    Rule(
        "atomic_write.length",
        "error",
        lambda f: _flag(ATOMIC_WRITE, f) & (f.payload_len != 8),
        lambda f, i: f"ATOMIC WRITE carries {int(f.payload_len[i])} octets, must be 8",
    ),
    Rule(
        "reth.length",
        "error",
        lambda f: (
            (_flag(WRITE_ONLY, f) & (f.payload_len != f.dmalen))
            | (_flag(WRITE_FIRST, f) & (f.payload_len >= f.dmalen))
            | ((_flag(READ_REQUEST, f) | _flag(WRITE_FIRST, f)) & (f.dmalen > MAX_MESSAGE_BYTES))
        ),
        lambda f, i: (
            f"{_name(f, i)}: DMA length {int(f.dmalen[i])} does not fit a payload of {int(f.payload_len[i])}"
        ),
    ),
    Rule(
        "aeth.reserved",
        "warning",
        _aeth_reserved,
        lambda f, i: (
            f"AETH syndrome 0x{int(f.syndrome[i]):02x} is reserved ({aeth.describe(int(f.syndrome[i]))})"
        ),
    ),
    Rule(
        "cnp.fields",
        "error",
        _cnp_fields,
        lambda f, i: (
            f"CNP with BECN {int(f.becn[i])}, PSN {int(f.psn[i])}, SE {int(f.solicited[i])}, AckReq"
            f" {int(f.ackreq[i])}; must be 1, 0, 0, 0"
        ),
    ),
    Rule(
        "cnp.body",
        "warning",
        lambda f: whole(f) & (f.opcode == CNP) & nonzero_cnp_body(f),
        lambda _f, _i: "the 16 reserved octets of a CNP are not zero",
    ),
    Rule(
        "gsi.qkey",
        "error",
        lambda f: _flag(UD, f) & (f.dqpn == ib.GSI_QPN) & (f.qkey != ib.GSI_QKEY),
        lambda f, i: f"datagram to QP 1 with Q_Key 0x{int(f.qkey[i]):08x}, must be 0x{ib.GSI_QKEY:08x}",
    ),
    Rule(
        "gsi.transport",
        "warning",
        lambda f: (
            whole(f)
            & (f.dqpn <= ib.GSI_QPN)
            & (KNOWN[f.opcode] != 0)
            & (UD[f.opcode] == 0)
            & (f.opcode != CNP)
        ),
        lambda f, i: f"{_name(f, i)} to QP {int(f.dqpn[i])}, which takes unreliable datagrams only",
    ),
    Rule(
        "pfc.destination",
        "error",
        lambda f: ((f.kind == KIND_PFC) | (f.kind == KIND_PAUSE)) & (f.eth_dst != mac_control.DESTINATION),
        lambda f, i: (
            f"pause frame to {mac_text(int(f.eth_dst[i]))}, must go to {mac_control.destination_text()}"
        ),
    ),
    Rule(
        "pfc.enable_reserved",
        "error",
        pfc_reserved,
        lambda _f, _i: "the upper octet of the class enable vector is not zero",
    ),
    Rule(
        "pfc.quanta_ignored",
        "note",
        _quanta_ignored,
        lambda _f, _i: "quanta for a class whose enable bit is not set: they have no effect",
    ),
    Rule(
        "pfc.tagged",
        "warning",
        lambda f: ((f.kind == KIND_PFC) | (f.kind == KIND_PAUSE)) & (f.vlan_count > 0),
        lambda _f, _i: "a pause frame carries a VLAN tag; it is never tagged (IEEE 802.3 annex 31B)",
    ),
    Rule(
        "cnp.ecn_marked",
        "note",
        lambda f: whole(f) & (f.opcode == CNP) & (f.ecn == net.CE),
        lambda _f, _i: "a CNP carries a CE mark itself: it shares a congested class",
    ),
)
