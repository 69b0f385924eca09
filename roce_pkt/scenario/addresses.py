"""Addresses of a scenario's hosts, by their number."""

from __future__ import annotations

import ipaddress

FIRST_IPV4 = int(ipaddress.IPv4Address("10.0.0.1"))
FIRST_IPV6 = int(ipaddress.IPv6Address("fd00::1"))
FIRST_MAC = 0x0200_0000_0001


def host_ip(host: int, family: str) -> str:
    """Address of a host.

    Args:
        host: Its number.
        family: `ipv4` or `ipv6`.
    """
    if family == "ipv4":
        return str(ipaddress.IPv4Address(FIRST_IPV4 + host))
    return str(ipaddress.IPv6Address(FIRST_IPV6 + host))


def host_mac(host: int) -> int:
    """MAC of a host's port: locally administered."""
    return FIRST_MAC + host
