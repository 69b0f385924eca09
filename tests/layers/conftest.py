"""What the tests of the layers share: lower layers, a whole packet for any opcode, tshark."""

from __future__ import annotations

import ipaddress
import shutil

import pytest
from scapy.config import conf
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from roce_pkt import layers
from roce_pkt.layers.extended import LAYERS
from roce_pkt.wire import ib
from roce_pkt.wire.opcode import OPCODES

SRC_MAC, DST_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"

# values that differ in every octet, so that a swapped or shifted field shows
HEADER_VALUES = {
    "rdeth": {"eec": 0x010203},
    "xrceth": {"srqn": 0x040506},
    "deth": {"qkey": 0x11223344, "sqpn": 0x0708A9},
    "feth": {"sel": 1, "plt": 3},
    "reth": {"va": 0x1020304050607080, "rkey": 0x90A0B0C0, "dmalen": 8},
    "atomiceth": {
        "va": 0x1121314151617181,
        "rkey": 0x91A1B1C1,
        "swap": 0x0102030405060708,
        "compare": 0x1112131415161718,
    },
    "aeth": {"syndrome": 0x1F, "msn": 0x0A0B0C},
    "atomicacketh": {"orig": 0x2122232425262728},
    "immdt": {"data": 0x31323334},
    "ieth": {"rkey": 0x41424344},
    "cnp": {},
}


def _lower(kind):
    ether = Ether(src=SRC_MAC, dst=DST_MAC)
    match kind:
        case "ipv4":
            return ether / IP(src="10.0.0.1", dst="10.0.0.2", id=0x1234, flags="DF") / UDP()
        case "ipv6":
            return ether / IPv6(src="fd00::1", dst="fd00::2", fl=0x12345, tc=0x69) / UDP()
        case "grh":
            return ether / layers.GRH(sgid="fe80::1", dgid="fe80::2", tclass=2)
        case _:
            raise ValueError(kind)


def _stack(value, payload=b"", **bth):
    """BTH, every header the opcode asks for, and a payload where it may have one."""
    op = OPCODES.get(value)
    packet = layers.BTH(opcode=value, **{"dqpn": 0x000011, "psn": 0x0D0E0F} | bth)
    for header in op.headers if op else ():
        packet = packet / LAYERS[header.name](**HEADER_VALUES[header.name])
    return packet / payload if payload and (op is None or op.payload) else packet


@pytest.fixture(scope="session")
def lower():
    """lower(kind) gives Ethernet and `ipv4`, `ipv6` (with UDP) or `grh`."""
    return _lower


@pytest.fixture(scope="session")
def stack():
    """stack(opcode, payload, **bth) gives the packet from the BTH on."""
    return _stack


@pytest.fixture(scope="session")
def header_values():
    """Field values that `stack` puts in each extended header."""
    return HEADER_VALUES


@pytest.fixture
def strict_scapy():
    """Scapy swallows what a layer raises while dissecting; here it must come out."""
    before = conf.debug_dissector
    conf.debug_dissector = True
    yield
    conf.debug_dissector = before


@pytest.fixture(scope="session")
def tshark():
    """The path of tshark, or a skip."""
    path = shutil.which("tshark")
    if path is None:
        pytest.skip("tshark is not installed: its reading of our frames cannot be compared")
    return path


def _number(header, scapy_layer, name):
    """A Scapy field's value as the table's number."""
    value = scapy_layer.getfieldval(name)
    match header.field(name).show:
        case "octets":
            return int.from_bytes(value, "big")
        case "ipv4":
            return int(ipaddress.ip_address(value))
        case _:
            return value


def _same_fields(packet, frame):
    """Every RoCE header of a dissected Scapy packet has the values `wire.frame.dissect` read."""
    found = [layer for layer in frame.layers if layer.header in (ib.GRH, ib.BTH, *ib.EXTENDED)]
    found += frame.management.layers if frame.management else []
    ours = [p for p in packet.iterpayloads() if getattr(type(p), "header", None) is not None]
    assert [layer.header.name for layer in found] == [type(p).header.name for p in ours]
    for layer, scapy_layer in zip(found, ours, strict=True):
        for name, value in layer.values.items():
            if layer.header is ib.CNP:
                assert scapy_layer.reserved1 << 64 | scapy_layer.reserved2 == value
            else:
                assert _number(layer.header, scapy_layer, name) == value, (layer.header.name, name)


@pytest.fixture(scope="session")
def same_fields():
    """Compare a dissected packet with `wire.frame.dissect`'s reading of the same octets."""
    return _same_fields
