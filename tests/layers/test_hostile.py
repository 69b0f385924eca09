"""Hostile octets: nothing raises, every octet comes back, and `wire` reads the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.config import conf
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import raw

from roce_pkt.layers import BTH, GRH, PFC
from roce_pkt.layers.extended import LAYERS
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.header import Header
from roce_pkt.wire.opcode import OPCODES

TO_BTH = 42


def _relength(octets):
    """IPv4 and UDP lengths that agree with the octets that are left."""
    out = bytearray(octets)
    out[16:18] = (len(octets) - 14).to_bytes(2, "big")
    out[38:40] = (len(octets) - 34).to_bytes(2, "big")
    return bytes(out)


@pytest.mark.usefixtures("strict_scapy")
def test_all_opcodes_at_all_lengths(lower, stack, same_fields):
    longest = 0
    for value in range(256):
        octets = bytes(lower("ipv4") / stack(value, b"abc"))
        longest = max(longest, len(octets))
        for length in range(TO_BTH, len(octets)):
            cut = octets[:length]  # by its capture: the length fields speak of more
            packet = Ether(cut)
            assert bytes(packet) == cut
            same_fields(packet, dissect(cut, wire_len=len(octets)))
            short = _relength(cut)  # really this short
            packet = Ether(short)
            assert bytes(packet) == short
            same_fields(packet, dissect(short))
    assert longest == TO_BTH + 12 + 4 + 8 + 28 + 4  # RDETH, DETH, AtomicETH


@pytest.mark.parametrize("kind", ["ipv4", "ipv6", "grh"])
def test_every_length_from_the_ethernet_header_on(lower, stack, kind):
    # not strict here: cut IP and UDP headers are Scapy's own, which reads them as Raw
    octets = bytes(lower(kind) / stack(0x0B, b"abcdefg"))
    for length in range(len(Ether()), len(octets)):
        assert raw(Ether(octets[:length])) == octets[:length]


def _values(header: Header):
    return st.fixed_dictionaries({f.name: st.integers(0, (1 << f.bits) - 1) for f in header.fields})


def _scapy_values(header, values):
    if header.name == "cnp":
        return {"reserved1": values["resv128"] >> 64, "reserved2": values["resv128"] & (1 << 64) - 1}
    return values


BTH_VALUES = _values(BTH.header).map(
    lambda v: {k: x for k, x in v.items() if k not in ("opcode", "padcount")}
)


@st.composite
def packets(draw):
    """Any opcode, any values in every field of every header, any payload, over any network."""
    value = draw(st.sampled_from([*OPCODES, 0x15, 0xE0]))
    op = OPCODES.get(value)
    packet = BTH(opcode=value, **draw(BTH_VALUES))
    for header in op.headers if op else ():
        packet = packet / LAYERS[header.name](**_scapy_values(header, draw(_values(header))))
    payload = draw(st.binary(max_size=40))
    if payload and (op is None or op.payload):
        packet = packet / payload
    return packet, payload if op is None or op.payload else b""


@given(packets(), st.sampled_from(["ipv4", "ipv6", "grh"]), st.binary(max_size=9))
@settings(max_examples=250, deadline=None)
def test_round_trip_of_every_stack(lower, same_fields, drawn, kind, trailer):
    packet, payload = drawn
    octets = bytes(lower(kind) / packet) + trailer
    back = Ether(octets)
    assert bytes(back) == octets
    assert back[BTH].icrc_ok is True
    frame = dissect(octets)
    same_fields(back, frame)
    assert frame.icrc.ok is True
    assert octets[frame.payload_offset : frame.payload_offset + frame.payload_len] == payload
    assert back[BTH].padcount == frame.padcount
    # built again from its values alone, the packet has the same octets
    for layer in back.iterpayloads():
        layer.raw_packet_cache = None
    assert bytes(back) == octets


@given(st.binary(max_size=120), st.sampled_from(["udp", "grh", "mac"]))
@settings(max_examples=300, deadline=None)
def test_noise_comes_back_as_it_was(noise, where):
    before, conf.debug_dissector = conf.debug_dissector, True
    try:
        head = bytes(12)
        if where == "udp":
            head = bytes(Ether(src="02:00:00:00:00:01") / IP(src="1.1.1.1", len=20 + 8 + len(noise)))[:34]
            head += raw(UDP(sport=9, dport=4791, len=8 + len(noise), chksum=0))
        elif where == "grh":
            head += b"\x89\x15"
        else:
            head += b"\x88\x08"
        octets = head[:23] + b"\x11" + head[24:] + noise if where == "udp" else head + noise
        packet = Ether(octets)
        assert bytes(packet) == octets
        packet.show(dump=True)
        packet.summary()
    finally:
        conf.debug_dissector = before


def test_noise_reaches_the_layers():
    # the property above would hold for nothing if the head did not lead to our layers
    noise = bytes([0x11]) + bytes(40)
    head = bytes(Ether(src="02:00:00:00:00:01") / IP(src="1.1.1.1", len=28 + 41, proto=17))[:34]
    assert BTH in Ether(head + raw(UDP(dport=4791, len=8 + 41, chksum=0)) + noise)
    assert GRH in Ether(bytes(12) + b"\x89\x15" + bytes(60))
    assert PFC in Ether(bytes(12) + b"\x88\x08\x01\x01" + bytes(60))
