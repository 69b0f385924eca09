"""The `[frames]` table: how generated frames look, beyond what the traffic decides."""

from __future__ import annotations

from dataclasses import dataclass

from roce_pkt.scenario import field as f

CHANCE = -1


@dataclass(frozen=True, slots=True)
class Look:
    """Header fields of generated frames."""

    version: str = f.choice("v2", "RoCEv2 over UDP, or RoCEv1 in a GRH", "v2", "v1")
    ecn: str = f.choice("ect0", "ECN of data; acknowledgements are Not-ECT", "ect0", "ect1", "not-ect", "ce")
    ttl: int = f.integer(64, "TTL or hop limit", 1, 255)
    sport: str = f.choice(
        "qpn",
        "UDP source port by the kernel's formula: from both QPNs, or from flow_label",
        "qpn",
        "flow-label",
    )
    flow_label: int = f.integer(0, "IPv6 or GRH flow label", 0, (1 << 20) - 1)
    ip_id: str = f.choice("count", "IPv4 identification: counted by each sender, or zero", "count", "zero")
    pkey: int = f.integer(0xFFFF, "partition key", 0, 0xFFFF)
    migreq: int = f.integer(1, "path migration bit; hardware sends 1, Soft-RoCE 0", 0, 1)
    solicited: int = f.integer(0, "solicited event bit of the packet that ends a SEND or an immediate", 0, 1)
    psn: int = f.integer(CHANCE, "first PSN of every queue pair (-1 = by chance)", CHANCE, (1 << 24) - 1)
    credits: int = f.integer(31, "credit code of acknowledgements, 31 = no limit given", 0, 31)
    payload: str = f.choice(
        "offset", "octets that show their place in the message, zeros, or chance", "offset", "zero", "random"
    )
    setup: bool = f.flag(False, "connection management frames before and after")
