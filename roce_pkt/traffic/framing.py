"""Rows to frames: templates of every sender made by the plain builder, and the compiled writer over them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt import jit
from roce_pkt.capture.kernel_crc import NETWORKS, SCRATCH_BYTES, crc_way, slicing_table
from roce_pkt.capture.kernel_put import PCAP
from roce_pkt.scenario.addresses import host_ip, host_mac
from roce_pkt.scenario.plan import Half, Plan
from roce_pkt.scenario.schema import Scenario
from roce_pkt.traffic import frame_kernel as k
from roce_pkt.wire import ib, net
from roce_pkt.wire.build import Path, roce_frame
from roce_pkt.wire.entropy import sport_from_flow_label, sport_from_qpns

BUFFER_BYTES = 1 << 20
QKEY = 0x11111111
FIRST_RKEY = 0x1000
ECN = {"ect0": net.ECT_0, "ect1": net.ECT_1, "not-ect": net.NOT_ECT, "ce": net.CE}
_PATTERN_TAIL = 16_384
_ANY_OPCODE = 0xE0  # of the manufacturer's range: no header follows its BTH


def path_of(scenario: Scenario, src: int, dst: int, qpns: tuple[int, int], *, data: bool) -> Path:
    """Everything below the BTH from one host to another.

    Args:
        scenario: Says how frames look.
        src: Sending host.
        dst: Receiving host.
        qpns: Queue pairs of the connection, for the source port.
        data: False for acknowledgements, which have a code point of their own and are Not-ECT.
    """
    host, look = scenario.host, scenario.frames
    dscp = host.dscp if data else host.ack.dscp
    sport = sport_from_qpns(*qpns) if look.sport == "qpn" else sport_from_flow_label(look.flow_label)
    return Path(
        src=host_ip(src, host.ip), dst=host_ip(dst, host.ip), src_mac=host_mac(src), dst_mac=host_mac(dst),
        sport=sport, dscp=dscp, ecn=ECN[look.ecn] if data else net.NOT_ECT, ttl=look.ttl,
        flow_label=look.flow_label, vid=host.vlan or None,
        pcp=scenario.switch.qos.dscp_to_priority.get(dscp, 0), v1=look.version == "v1",
    )  # fmt: skip


class Framer:
    """Turns the rows of a plan into frames.

    Args:
        plan: Whose rows.
        file_format: `PCAP` or `PCAPNG`: what stands in front of each frame.
    """

    def __init__(self, plan: Plan, file_format: np.uint64 = PCAP) -> None:
        self._plan, self._format = plan, file_format
        count = len(plan.halves) * k.TEMPLATES
        self._senders = np.zeros(count, k.TEMPLATE)
        self._octets = np.zeros((count, k.TEMPLATE_BYTES), np.uint8)
        for number, half in enumerate(plan.halves):
            self._templates(number, half)
        self._ids = np.zeros(plan.scenario.fabric.hosts, np.uint32)
        self._pattern = _pattern(plan.scenario)
        self._table = slicing_table()
        self._scratch = np.zeros(SCRATCH_BYTES, np.uint8)
        addresses = (crc_way(), self._table.ctypes.data, self._scratch.ctypes.data)
        self._crc = tuple(np.uint64(value) for value in addresses)
        self._out = np.empty(BUFFER_BYTES, np.uint8)

    def _templates(self, number: int, half: Half) -> None:
        src, dst, own, peer, _ = self._plan.ends(half)
        for kind in range(k.TEMPLATES):
            here, there, dqpn = (src, dst, peer) if kind == 0 else (dst, src, own)
            path = path_of(self._plan.scenario, here, there, (own, peer), data=kind < 2)
            bth = {"dqpn": dqpn, "pkey": self._plan.scenario.frames.pkey}
            frame = roce_frame(path, _ANY_OPCODE, {"bth": bth})
            octets = frame[: -ib.ICRC_BYTES]
            which = number * k.TEMPLATES + kind
            self._octets[which, : len(octets)] = np.frombuffer(octets, np.uint8)
            self._senders[which] = self._sender(half, here, octets, number, own, path)

    def _sender(self, half: Half, here: int, octets: bytes, number: int, own: int, path: Path) -> Any:
        scenario = self._plan.scenario
        t = np.zeros((), k.TEMPLATE)
        t["l3"] = net.ETH.size_bytes + (net.VLAN.size_bytes if path.vid is not None else 0)
        t["bth"] = len(octets) - ib.BTH.size_bytes
        t["network"] = NETWORKS["grh" if path.v1 else "ipv4" if scenario.host.ip == "ipv4" else "ipv6"]
        t["rkey"], t["qkey"], t["sqpn"] = FIRST_RKEY + number, QKEY, own
        t["srqn"] = self._plan.connections[half.connection].qpns[not half.backwards]
        t["sender"], t["migreq"] = here, scenario.frames.migreq
        t["chance"] = scenario.frames.payload == "random"
        t["count_id"] = scenario.frames.ip_id == "count"
        if t["network"] == NETWORKS["ipv4"]:
            l3 = int(t["l3"])
            words = np.frombuffer(octets[l3 : l3 + net.IPV4.size_bytes], ">u2").astype(np.int64)
            t["ip_sum"] = int(words.sum() - words[1] - words[2] - words[5])
        return t

    def write(self, rows: NDArray[Any]) -> Iterator[tuple[int, memoryview]]:
        """Frames of some rows, behind their record headers, a buffer at a time.

        Yields:
            How many frames, and their octets; these are overwritten by the next ones.
        """
        write: Any = k.write
        done = 0
        while done < len(rows):
            end, size = write(
                self._crc, rows, done, len(rows), self._senders, jit.memory(self._octets),
                jit.memory(self._pattern), self._ids, self._format, jit.memory(self._out),
            )  # fmt: skip
            yield end - done, self._out[: int(size)].data
            done = end


def _pattern(scenario: Scenario) -> NDArray[np.uint8]:
    size = k.PATTERN_BYTES + _PATTERN_TAIL
    match scenario.frames.payload:
        case "zero":
            return np.zeros(size, np.uint8)
        case "random":
            dice = random.Random(f"{scenario.seed}/payload")
            return np.frombuffer(dice.randbytes(size), np.uint8).copy()
        case _:
            return (np.arange(size) & 0xFF).astype(np.uint8)
