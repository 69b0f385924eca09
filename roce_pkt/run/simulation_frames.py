"""Frame rows of the engine as the very octets: headers, PSN, ECN, AETH, ICRC, pause frames.

A run sends few kinds of frames and many of each, so a kind is built once from the tables and then
only PSN, MSN and ICRC are written anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from roce_pkt.capture.model import Interface, Record
from roce_pkt.engine import records
from roce_pkt.engine.opcodes import opcode_of
from roce_pkt.engine.queue_pairs import class_of, dscp_of
from roce_pkt.run.simulation_faults import DoneFaults
from roce_pkt.run.simulation_names import Names
from roce_pkt.scenario.schema import VERBS
from roce_pkt.units import PS_PER_NS
from roce_pkt.wire import aeth, build, ib, icrc, mac_control, net, telemetry

RKEY, VA, QKEY = 0x1234, 0x10_0000_0000, 0x11111111
REQUESTS = (records.DATA, records.READ_REQUEST, records.ATOMIC_REQUEST)
SHOWN = records.FIRST | records.LAST | records.ACK_REQUEST | records.ECHO
"""Flags that a frame shows."""
MOST_TEMPLATES = 1 << 14
_PSN = ib.BTH.places["psn"].offset
_MSN = ib.AETH.places["msn"].offset


@dataclass(slots=True)
class _Template:
    """A frame whose PSN and MSN are still zero.

    Args:
        octets: The frame without ICRC.
        masked: What the ICRC sees of it up to the end of the BTH.
        bth: Offset of the BTH.
        psn: Offset of the PSN in `masked`.
        msn: Offset of the MSN in the frame, 0 when it has no AETH.
        wire_len: Octets on the wire without FCS.
    """

    octets: bytearray
    masked: bytearray
    bth: int
    psn: int
    msn: int
    wire_len: int


@dataclass(slots=True)
class FrameMaker:
    """Turns frame rows into records of a capture.

    Args:
        names: Names of the run.
        faults: What was done to frames.
    """

    names: Names
    faults: DoneFaults
    _templates: dict[tuple[int, ...], _Template] = field(init=False, default_factory=dict)
    _control: dict[tuple[int, int, int], bytes] = field(init=False, default_factory=dict)
    _interface_of: dict[int, int] = field(init=False)
    _answered: dict[tuple[int, int], int] = field(init=False, default_factory=dict)
    _count: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        ports = self.names.ports
        taps = self.names.scenario.taps
        self._interface_of = {ports.index(tap): number for number, tap in enumerate(taps)}

    def interfaces(self) -> list[Interface]:
        """One for each tap, in the scenario's order."""
        ends = self.names.built.topology.ports
        return [
            Interface(
                name=tap,
                speed_bps=int(ends[port].rate_bps),
                description=f"{tap} of {self.names.scenario.name}",
            )
            for port, tap in ((self.names.ports.index(t), t) for t in self.names.scenario.taps)
        ]

    def records(self, found: NDArray[Any]) -> Iterator[Record]:
        """The frames of some rows, in their order."""
        for row in found:
            self._count += 1
            octets = self._pause(row) if row["kind"] == records.PAUSE else self._sent(row)
            yield Record(
                number=self._count,
                time_ns=int(row["at_ps"]) // PS_PER_NS,
                cap_len=len(octets),
                wire_len=len(octets),
                octets=octets,
                link_type=1,
                interface_id=self._interface_of[int(row["port"])],
            )

    def _pause(self, row: Any) -> bytes:
        port = int(row["port"])
        sender = port if row["sent"] else self.names.built.topology.ports[port].peer
        key = (sender, int(row["class_"]), int(row["count"]))
        if key not in self._control:
            _, class_, quanta = key
            pfc = self.names.scenario.switch.pfc.mode == "pfc"
            body = mac_control.pfc_octets({class_: quanta}) if pfc else mac_control.pause_octets(quanta)
            self._control[key] = build.mac_control_frame(self.names.mac(sender), body)
        return self._control[key]

    def _sent(self, row: Any) -> bytes:
        """A frame as it is on the wire, faults included."""
        hit = int(row["hit"])
        if not hit:
            return self._roce(row)
        if row["kind"] == records.DAMAGED:
            row = row.copy()
            row["kind"] = self.faults.first_kind(hit)
        return self.faults.apply(hit, self._roce(row), self._count)

    def _roce(self, row: Any) -> bytes:
        half, kind, flags = int(row["half"]), int(row["kind"]), int(row["flags"]) & SHOWN
        verb, length, done = (
            self.names.request(half, int(row["psn"])) if kind in REQUESTS else (VERBS[0], 0, 0)
        )
        if kind != records.READ_REQUEST and not flags & records.FIRST:
            length = done = 0  # said nowhere in the frame
        # a refusal under selective repeat tells what arrived in a place of its own, not in the frame
        payload = 0 if kind == records.NAK else int(row["payload"])
        key = (half, kind, flags, int(row["ecn"]), payload, VERBS.index(verb), length, done)
        template = self._templates.get(key)
        if template is None:
            if len(self._templates) >= MOST_TEMPLATES:
                self._templates.clear()
            template = self._templates[key] = self._template(*key)
        sender = int(self.names.built.pairs.half["peer"][half])
        start = int(self.names.built.pairs.start_psn[sender])
        psn = 0 if kind == records.CNP else (start + int(row["psn"])) & 0xFFFFFF
        three = psn.to_bytes(3, "big")
        octets, masked, at = template.octets, template.masked, template.bth + _PSN
        octets[at : at + 3] = masked[template.psn : template.psn + 3] = three
        if template.msn:
            octets[template.msn : template.msn + 3] = (self._msn(row) & 0xFFFFFF).to_bytes(3, "big")
        crc = zlib.crc32(masked, zlib.crc32(icrc.LRH_ONES))
        crc = zlib.crc32(memoryview(octets)[template.bth + ib.BTH.size_bytes :], crc)
        return bytes(octets) + crc.to_bytes(4, "little") + self._telemetry(row)

    def _msn(self, row: Any) -> int:
        """The MSN of an answer."""
        if row["kind"] != records.READ_RESPONSE:
            return int(row["count"])
        # spec: IBTA 9.7.7.1: messages completed; a response sent again tells how many are by now
        half = int(row["half"])
        key, number = (int(row["port"]), half), self.names.number(half, int(row["psn"])) + 1
        self._answered[key] = max(self._answered.get(key, 0), number)
        return self._answered[key]

    def _telemetry(self, row: Any) -> bytes:
        """Records of hops, behind the frames of a law that has them."""
        built = self.names.built
        if not built.law.header_bytes:
            return b""
        hops, *words = row["telemetry"].tolist()
        return telemetry.octets_of(int(built.w["int_scale"]), hops, words[:hops])

    def _template(
        self, half: int, kind: int, flags: int, ecn: int, payload: int, verb: int, length: int, done: int
    ) -> _Template:
        pairs, scenario = self.names.built.pairs, self.names.scenario
        sender = int(pairs.half["peer"][half])
        path = self._path(sender, half, kind, ecn)
        traffic = pairs.flows[int(pairs.flow_of_half[half])].traffic
        opcode = opcode_of(kind, flags, VERBS[verb], traffic.transport)
        bth = {"dqpn": int(pairs.qpn[half]), "ackreq": _asks(kind, flags, traffic.transport),
               "becn": int(bool(flags & records.ECHO))}  # fmt: skip
        stack: dict[str, dict[str, int]] = {"bth": bth}
        stack["reth"] = {"va": VA + done, "rkey": RKEY, "dmalen": length - done}
        stack["atomiceth"] = {"va": VA, "rkey": RKEY, "swap": 1, "compare": 0}
        stack["deth"] = {"qkey": QKEY, "sqpn": int(pairs.qpn[sender])}
        stack["aeth"] = {"syndrome": syndrome_of(kind, scenario.host.transport.min_rnr_timer), "msn": 0}
        if kind == records.CNP:
            frame = build.cnp_frame(path, bth["dqpn"])
        else:
            frame = build.roce_frame(path, opcode, _only(stack, opcode), bytes(payload))
        link = net.ETH.size_bytes + (net.VLAN.size_bytes if path.vid is not None else 0)
        ip: icrc.Network = "ipv6" if scenario.host.ip == "ipv6" else "ipv4"
        bth_at = link + icrc.NETWORK_HEADERS[ip].size_bytes + net.UDP.size_bytes
        cover = icrc.Coverage(ip, link, bth_at, len(frame) - 4)
        masked = bytearray(icrc.masked_headers(frame, cover))
        has_aeth = any(h is ib.AETH for h in _headers(opcode))
        msn = bth_at + ib.BTH.size_bytes + _MSN if has_aeth else 0
        return _Template(bytearray(frame[:-4]), masked, bth_at, bth_at - link + _PSN, msn, len(frame))

    def _path(self, sender: int, half: int, kind: int, ecn: int) -> build.Path:
        pairs, scenario, names = self.names.built.pairs, self.names.scenario, self.names
        resolved = names.built.resolved
        dscp = dscp_of(scenario, pairs.flows[int(pairs.flow_of_half[half])].traffic)
        if kind in (records.ACK, records.NAK, records.RNR_NAK, records.ATOMIC_RESPONSE):
            dscp = scenario.host.ack.dscp
        elif kind == records.CNP:
            dscp = int(resolved["host.np.dscp"])
        tag = scenario.host.vlan or None
        here, there = int(pairs.host_of_half[sender]), int(pairs.host_of_half[half])
        return build.Path(
            src=names.address(here),
            dst=names.address(there),
            src_mac=names.mac(int(pairs.half["port"][sender])),
            dst_mac=names.mac(int(pairs.half["port"][half])),
            sport=int(pairs.sport[sender]),
            dscp=dscp,
            ecn=ecn,
            vid=tag,
            pcp=class_of(scenario, dscp),
        )


def _asks(kind: int, flags: int, transport: str) -> int:
    """Whether a packet asks to be answered: READs and ATOMICs always do, answers and datagrams never."""
    if kind in (records.READ_REQUEST, records.ATOMIC_REQUEST):
        return 1
    reliable = transport not in ("uc", "ud")
    return int(kind == records.DATA and reliable and bool(flags & records.ACK_REQUEST))


def _headers(opcode: int) -> tuple[Any, ...]:
    from roce_pkt.wire.opcode import OPCODES

    return OPCODES[opcode].headers


def _only(stack: dict[str, dict[str, int]], opcode: int) -> dict[str, dict[str, int]]:
    """The headers this opcode has."""
    return {name: values for name, values in stack.items() if name == "bth" or any(
        h.name == name for h in _headers(opcode))}  # fmt: skip


def syndrome_of(kind: int, rnr_code: int) -> int:
    """AETH syndrome of an answer: ACK without credits, sequence error, or not ready."""
    if kind == records.NAK:
        return 3 << 5
    if kind == records.RNR_NAK:
        return 1 << 5 | rnr_code
    return aeth.CREDITS_INVALID
