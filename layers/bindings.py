"""Which frames these layers read, and who wins where Scapy's contrib wants the same ones.

Scapy asks its bindings in order and the first that fits wins. `bind` puts ours in front, whatever
was imported before or is imported later, so UDP port 4791 is read as RoCE even from source ports
that other protocols claim (53, 123, 4789, ...). `unbind` takes them away: then `scapy.contrib.roce`
and `scapy.contrib.mac_control` read those frames if they are loaded. Building is not concerned: a
class one has at hand always builds its own octets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scapy.data import ETHER_TYPES
from scapy.layers.inet import UDP
from scapy.layers.l2 import CookedLinux, CookedLinuxV2, Dot1Q, Ether
from scapy.packet import Packet, bind_top_down, split_bottom_up

from roce_pkt.layers.bth import BTH, DEFAULT_SPORT
from roce_pkt.layers.grh import GRH
from roce_pkt.layers.mac_control import PAUSE, PFC, MACControl
from roce_pkt.wire import net

Binding = tuple[type[Packet], type[Packet], dict[str, Any]]


def _bindings(port: int) -> Iterator[Binding]:
    yield UDP, BTH, {"dport": port}
    for link in (Ether, Dot1Q):
        yield link, GRH, {"type": net.ETHERTYPE_ROCEV1}
        yield link, MACControl, {"type": net.ETHERTYPE_MAC_CONTROL}
    for link in (CookedLinux, CookedLinuxV2):
        yield link, GRH, {"proto": net.ETHERTYPE_ROCEV1}


def bind(port: int = net.PORT_ROCEV2) -> None:
    """Read RoCEv2 on UDP `port`, RoCEv1, PAUSE and PFC with these layers, before any other.

    Args:
        port: UDP destination port; call again for further ports (old Windows drivers used 1021).
    """
    unbind(port)
    for lower, upper, fields in _bindings(port):
        lower.payload_guess = [(fields, upper), *lower.payload_guess]


def unbind(port: int = net.PORT_ROCEV2) -> None:
    """Leave those frames to whoever else is bound, such as Scapy's contrib."""
    for lower, upper, fields in _bindings(port):
        split_bottom_up(lower, upper, **fields)


def fill_lower_fields() -> None:
    """What the layers write into the header below them when the user has not."""
    ETHER_TYPES[net.ETHERTYPE_MAC_CONTROL] = "MAC_CONTROL"  # the name contrib gives it
    # 53, Scapy's default source port, would make every analyser read DNS
    bind_top_down(UDP, BTH, dport=net.PORT_ROCEV2, sport=DEFAULT_SPORT, chksum=0)
    for link in (Ether, Dot1Q):
        bind_top_down(link, GRH, type=net.ETHERTYPE_ROCEV1)
        for kind in (MACControl, PAUSE, PFC):
            bind_top_down(link, kind, type=net.ETHERTYPE_MAC_CONTROL)
    for link in (CookedLinux, CookedLinuxV2):
        bind_top_down(link, GRH, proto=net.ETHERTYPE_ROCEV1)
