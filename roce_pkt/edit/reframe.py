"""Carry a frame's transport in another network header: IPv4, IPv6, or RoCEv1's GRH.

What one header has and another has not is kept where it can be: an IPv4 identification (and a
cleared DF) in an IPv6 flow label, a UDP source port in a GRH's flow label by the kernel's formula.
So a frame comes back as it was when it had nothing else to lose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from roce_pkt.edit.mapping import V4_MAPPED
from roce_pkt.errors import InputError
from roce_pkt.wire import entropy, ib, net
from roce_pkt.wire.header import Header, ipv6_text

Family = Literal["ipv4", "ipv6", "rocev1"]
FAMILIES: tuple[Family, ...] = ("ipv4", "ipv6", "rocev1")
Part = tuple[Header, dict[str, int]]
"""A header and its values."""

NOT_DF_BIT = 16


@dataclass(frozen=True, slots=True)
class Common:
    """What every network header says in its own way: numbers, or arrays of them.

    An address is whatever is packed for the new header.
    """

    src: Any
    dst: Any
    tclass: Any
    ttl: Any
    body_bytes: Any
    sport: Any


def family_of(parts: list[Part]) -> Family | None:
    """The network header among some headers."""
    for header, _ in parts:
        if header is net.IPV4:
            return "ipv4"
        if header is net.IPV6:
            return "ipv6"
        if header is ib.GRH:
            return "rocev1"
    return None


def reframe(parts: list[Part], family: Family, dport: int) -> list[Part]:
    """Headers before the BTH with another network header.

    Args:
        parts: Ethernet, VLAN tags, network header, UDP.
        family: The network header wanted.
        dport: UDP destination port for frames that had none.

    Raises:
        InputError: An IPv6 address that IPv4 cannot hold.
    """
    link = [part for part in parts if part[0] in (net.ETH, net.VLAN)]
    rest = [part for part in parts if part[0] not in (net.ETH, net.VLAN)]
    network, values = rest[0]
    udp = rest[1][1] if len(rest) > 1 else {"dport": dport}
    if family_of(parts) == family:
        return parts
    common = _common(network, values, udp)
    if family == "ipv4":
        common = replace(common, src=_v4(common.src), dst=_v4(common.dst))
    made, ethertype = headers(family, common, _label(network, values), udp["dport"])
    if family == "ipv4":
        ip = made[0][1]
        ip["chksum"] = net.internet_checksum(net.IPV4.pack(ip))
    outer, (header, inner) = link[:-1], link[-1]
    return [*outer, (header, inner | {"type": ethertype}), *made]


def _common(network: Header, values: dict[str, int], udp: dict[str, int]) -> Common:
    if network is ib.GRH:
        return Common(
            values["sgid"], values["dgid"], values["tclass"], values["hoplmt"], values["paylen"],
            entropy.sport_from_flow_label(values["flowlabel"]),
        )  # fmt: skip
    mapped = V4_MAPPED if network is net.IPV4 else 0
    head = net.UDP.size_bytes + (net.IPV4.size_bytes if network is net.IPV4 else 0)
    return Common(
        mapped | values["src"], mapped | values["dst"], values["dscp"] << 2 | values["ecn"], values["ttl"],
        max(0, values["len"] - head), udp["sport"],
    )  # fmt: skip


def _label(network: Header, values: dict[str, int]) -> int:
    """Flow label that keeps what would be lost."""
    if network is net.IPV4:
        return kept_identification(values["id"], values["df"])
    return values["flowlabel"]


def kept_identification(identification: Any, df: Any) -> Any:
    """Flow label that keeps an IPv4 identification and a cleared DF."""
    return identification | (1 - df) << NOT_DF_BIT


def headers(
    family: Family, c: Common, label: Any, dport: Any
) -> tuple[list[tuple[Header, dict[str, Any]]], int]:
    """The network header of a family, what follows it before the BTH, and the EtherType.

    Numbers or arrays, an IPv4 checksum left at 0.

    Args:
        family: Which.
        c: What it says.
        label: Flow label, or what is kept of another header as one.
        dport: UDP destination port.
    """
    if family == "rocev1":
        same = entropy.sport_from_flow_label(label) == c.sport
        other = (c.sport & 0x3FFF) * (c.sport >= entropy.SPORT_BASE)
        grh = {
            "ipver": 6, "tclass": c.tclass, "flowlabel": label * same + other * (1 - same),
            "paylen": c.body_bytes, "nexthdr": ib.GRH_NEXT_BTH, "hoplmt": c.ttl, "sgid": c.src, "dgid": c.dst,
        }  # fmt: skip
        return [(ib.GRH, grh)], net.ETHERTYPE_ROCEV1
    size = net.UDP.size_bytes + c.body_bytes
    port = {"sport": c.sport, "dport": dport, "len": size, "chksum": 0}
    ip = {"dscp": c.tclass >> 2, "ecn": c.tclass & 3, "ttl": c.ttl, "src": c.src, "dst": c.dst}
    if family == "ipv6":
        ip |= {"version": 6, "nexthdr": net.PROTO_UDP, "flowlabel": label, "len": size}
        return [(net.IPV6, ip), (net.UDP, port)], net.ETHERTYPE_IPV6
    ip |= {
        "version": 4, "ihl": 5, "len": net.IPV4.size_bytes + size, "id": label & 0xFFFF, "resv1": 0,
        "df": 1 - (label >> NOT_DF_BIT & 1), "mf": 0, "frag": 0, "proto": net.PROTO_UDP, "chksum": 0,
    }  # fmt: skip
    return [(net.IPV4, ip), (net.UDP, port)], net.ETHERTYPE_IPV4


def _v4(address: int) -> int:
    if address >> 32 != 0xFFFF:
        raise InputError(
            f"{ipv6_text(address)} has no IPv4 form; map it first: --map ip:{ipv6_text(address)}=10.0.0.1"
        )
    return address & 0xFFFF_FFFF
