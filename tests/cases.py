"""One list of frames for both directions: building, dissecting, Scapy, columns, tshark.

Each case is an opcode with values for every header that follows its BTH.
"""

from __future__ import annotations

from dataclasses import dataclass

from roce_pkt.wire import ib
from roce_pkt.wire.build import Path, Stack, roce_frame
from roce_pkt.wire.opcode import OPCODES

IPV4 = Path(ip_id=0x1234, dscp=0, ecn=0, sport=49152)
IPV6 = Path(src="fd00::1", dst="fd00::2", dscp=26, ecn=1, flow_label=0x12345, sport=49152)
V1 = Path(src="fe80::1", dst="fe80::2", v1=True)
TAGGED = Path(vid=100, pcp=5)
PATHS = {"ipv4": IPV4, "ipv6": IPV6, "v1": V1, "vlan": TAGGED}

VALUES: dict[str, dict[str, int]] = {
    "rdeth": {"eec": 0xABCDEF},
    "xrceth": {"srqn": 0x123456},
    "deth": {"qkey": 0x11223344, "sqpn": 0x987654},
    "feth": {"sel": 1, "plt": 3},
    "reth": {"va": 0x1122334455667788, "rkey": 0xA1A2A3A4, "dmalen": 8},
    "atomiceth": {"va": 0xFFFFFFFFFFFFFFF8, "rkey": 1, "swap": 2**64 - 1, "compare": 1 << 63},
    "aeth": {"syndrome": 0x1F, "msn": 0xFFFFFF},
    "atomicacketh": {"orig": 0xA5A5A5A5A5A5A5A5},
    "immdt": {"data": 0xDEADBEEF},
    "ieth": {"rkey": 0xCAFEBABE},
    "cnp": {},
}


@dataclass(frozen=True)
class Case:
    """One frame: where it goes, its opcode, its header values, its payload."""

    name: str
    path: Path
    opcode: int
    stack: Stack
    payload: bytes

    @property
    def octets(self) -> bytes:
        return roce_frame(self.path, self.opcode, self.stack, self.payload)


def stack_for(opcode: int) -> Stack:
    bth = {"dqpn": 0x123456, "psn": 0xFEDCBA, "migreq": 1, "ackreq": 1}
    if opcode == 0x81:
        bth = {"dqpn": 0x123456, "becn": 1}
    return {"bth": bth} | {h.name: VALUES[h.name] for h in OPCODES[opcode].headers}


def cases() -> list[Case]:
    """Every opcode over every kind of path, payloads of every length modulo four."""
    out = []
    for value, op in OPCODES.items():
        payload = b""
        if op.payload:
            payload = b"\xa5" * 8 if op.operation == "atomic_write" else b"\xa5" * (16 + value % 4)
        if op.position in ("first", "middle"):
            payload = b"\xa5" * ib.PATH_MTUS_BYTES[0]
        for where, path in PATHS.items():
            out.append(Case(f"{op.name}-{where}", path, value, stack_for(value), payload))
    return out


CASES = cases()
