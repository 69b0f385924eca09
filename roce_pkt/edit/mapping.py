"""How one field's values become others: `ip:10.0.0.1=192.0.2.1`, `dscp:*=46`, `psn:+100`.

A mapping is a function on numbers with, where it has one, an inverse.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field

from roce_pkt.errors import InputError, nearest
from roce_pkt.wire import ib, net
from roce_pkt.wire.header import Header

Targets = tuple[tuple[Header, str], ...]
V4_MAPPED = 0xFFFF << 32
UNTAGGED = -1
"""The VLAN of a frame without a tag."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A field that can be mapped, wherever frames carry it.

    Args:
        bits: Width of its numbers.
        targets: Header fields that hold it.
        doc: For the list of fields.
    """

    bits: int
    targets: Targets
    doc: str


_IP = (net.IPV4, net.IPV6)
SUBJECTS: dict[str, Subject] = {
    "ip": Subject(
        128,
        (
            (net.IPV4, "src"),
            (net.IPV4, "dst"),
            (net.IPV6, "src"),
            (net.IPV6, "dst"),
            (ib.GRH, "sgid"),
            (ib.GRH, "dgid"),
        ),
        "IPv4, IPv6 addresses and GIDs, or networks of one size",
    ),
    "mac": Subject(48, ((net.ETH, "dst"), (net.ETH, "src")), "MAC addresses"),
    "vlan": Subject(12, ((net.VLAN, "vid"),), "VLAN of the outer tag; none stands for no tag"),
    "pcp": Subject(3, ((net.VLAN, "pcp"),), "priority code point"),
    "dscp": Subject(6, tuple((h, "dscp") for h in _IP), "code point, also in a GRH's traffic class"),
    "ecn": Subject(2, tuple((h, "ecn") for h in _IP), "ECN field"),
    "ttl": Subject(8, (*((h, "ttl") for h in _IP), (ib.GRH, "hoplmt")), "TTL or hop limit"),
    "flowlabel": Subject(20, ((net.IPV6, "flowlabel"), (ib.GRH, "flowlabel")), "flow label"),
    "sport": Subject(16, ((net.UDP, "sport"),), "UDP source port"),
    "dport": Subject(16, ((net.UDP, "dport"),), "UDP destination port"),
    "pkey": Subject(16, ((ib.BTH, "pkey"),), "partition key"),
    "qpn": Subject(24, ((ib.BTH, "dqpn"), (ib.DETH, "sqpn")), "queue pair numbers"),
    "psn": Subject(24, ((ib.BTH, "psn"),), "packet sequence numbers; CNPs keep theirs"),
    "qkey": Subject(32, ((ib.DETH, "qkey"),), "queue keys"),
    "rkey": Subject(32, ((ib.RETH, "rkey"), (ib.ATOMICETH, "rkey"), (ib.IETH, "rkey")), "remote keys"),
    "va": Subject(64, ((ib.RETH, "va"), (ib.ATOMICETH, "va")), "virtual addresses"),
}
"""Every field that `--map` knows."""

Network = tuple[int, int, int]
"""Old base, new base, host bits."""


@dataclass(slots=True)
class Mapping:
    """What becomes of one field's values.

    Args:
        exact: Old value to new value.
        networks: Address prefixes, the longest first.
        other: New value of everything else, or None.
        shift: Added, modulo the field's width.
        keyed: A bijection and its inverse, used last.
    """

    bits: int
    exact: dict[int, int] = field(default_factory=dict)
    networks: list[Network] = field(default_factory=list)
    other: int | None = None
    shift: int = 0
    keyed: tuple[Callable[[int], int], Callable[[int], int]] | None = None

    def __call__(self, value: int) -> int:
        """The new value."""
        if value in self.exact:
            return self.exact[value]
        for old, new, host_bits in self.networks:
            if value >> host_bits == old >> host_bits:
                return new | value & ((1 << host_bits) - 1)
        if self.other is not None:
            return self.other
        if self.keyed is not None:
            return self.keyed[0](value)
        return (value + self.shift) % (1 << self.bits) if self.shift else value

    def inverse(self, name: str) -> Mapping:
        """The mapping that leads back.

        Raises:
            InputError: There is none.
        """
        back = {new: old for old, new in self.exact.items()}
        if self.other is not None or len(back) < len(self.exact):
            raise InputError(f"--map {name}: several values become one, so there is no way back")
        networks = [(new, old, bits) for old, new, bits in self.networks]
        keyed = (self.keyed[1], self.keyed[0]) if self.keyed else None
        return Mapping(self.bits, back, networks, None, -self.shift, keyed)


def parse_map(text: str, maps: dict[str, Mapping]) -> None:
    """Read one `FIELD:OLD=NEW`, `FIELD:*=NEW` or `FIELD:+N` into `maps`.

    Raises:
        InputError: What is wrong, and what is allowed.
    """
    name, colon, rule = text.partition(":")
    name = {"gid": "ip"}.get(name, name)
    if not colon or name not in SUBJECTS:
        raise InputError(
            f"--map {text}: write FIELD:OLD=NEW, FIELD:*=NEW or FIELD:+N; "
            f"fields are {', '.join(SUBJECTS)}{nearest(name, SUBJECTS)}"
        )
    mapping = maps.setdefault(name, Mapping(SUBJECTS[name].bits))
    old, equals, new = rule.partition("=")
    if not equals:
        mapping.shift += _shift(name, rule, text)
    elif "/" in old and name == "ip":
        mapping.networks.append(_network(old, new, text))
        mapping.networks.sort(key=lambda item: item[2])
    elif old == "*":
        mapping.other = _value(name, new, text)
    else:
        mapping.exact[_value(name, old, text)] = _value(name, new, text)


def _shift(name: str, rule: str, text: str) -> int:
    if name in ("ip", "mac", "vlan") or rule[:1] not in ("+", "-"):
        raise InputError(f"--map {text}: write {name}:OLD=NEW" + (f" or {name}:+N" if name == "psn" else ""))
    try:
        return int(rule.replace("_", ""), 0)
    except ValueError:
        raise InputError(f"--map {text}: {rule!r} is no number with a sign") from None


def _value(name: str, word: str, text: str) -> int:
    if name == "vlan" and word == "none":
        return UNTAGGED
    try:
        if name == "ip":
            address = ipaddress.ip_address(word)
            return int(address) if address.version == 6 else V4_MAPPED | int(address)
        if name == "mac":
            digits = word.replace(":", "").replace("-", "")
            if len(digits) != 12:
                raise ValueError(word)
            return int(digits, 16)
        value = int(word.replace("_", ""), 0)
    except ValueError:
        raise InputError(f"--map {text}: {word!r} is no {SUBJECTS[name].doc.split(',')[0]}") from None
    if not 0 <= value < 1 << SUBJECTS[name].bits:
        raise InputError(f"--map {text}: {word} does not fit {SUBJECTS[name].bits} bits")
    return value


def _network(old: str, new: str, text: str) -> Network:
    try:
        before, after = ipaddress.ip_network(old), ipaddress.ip_network(new)
    except ValueError as error:
        raise InputError(f"--map {text}: {error}") from None
    if before.version != after.version or before.prefixlen != after.prefixlen:
        raise InputError(f"--map {text}: both networks must be of one size, e.g. 10.0.0.0/24=192.0.2.0/24")
    mapped = V4_MAPPED if before.version == 4 else 0
    host_bits = before.max_prefixlen - before.prefixlen
    return mapped | int(before.network_address), mapped | int(after.network_address), host_bits
