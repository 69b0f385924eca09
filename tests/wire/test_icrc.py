"""The invariant CRC against captured hardware frames and against its own definition."""

from __future__ import annotations

import struct
import zlib

import pytest
from cases import CASES, IPV4, IPV6, V1
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.wire import net
from roce_pkt.wire.build import Path, cnp_frame, roce_frame
from roce_pkt.wire.frame import dissect

HARDWARE_CNP = cnp_frame(Path(src="10.0.17.1", dst="10.0.18.1", ip_id=0x718C, dscp=48, ecn=2, sport=0), 0x118)
GID = "::ffff:15.0.0.2"
HARDWARE_V1 = Path(src=GID, dst=GID, v1=True, dscp=0, ecn=2)

# name, frame, ICRC in wire order; the first three were captured from NICs
VECTORS = [
    ("CNP of a ConnectX-4 Lx", HARDWARE_CNP, "82fd002a"),
    (
        "RoCEv1 WRITE of a NIC",
        roce_frame(
            HARDWARE_V1,
            0x0A,
            {
                "bth": {"migreq": 1, "dqpn": 0x10A, "ackreq": 1, "psn": 0xA788BC},
                "reth": {"va": 0x55D4C0726000, "rkey": 0x47B3, "dmalen": 5},
            },
            bytes([0, 0, 0, 0, 1]),
        ),
        "e3d856bb",
    ),
    (
        "RoCEv1 ACK of a NIC",
        roce_frame(
            HARDWARE_V1,
            0x11,
            {"bth": {"migreq": 1, "dqpn": 0x109, "psn": 0xA788C0}, "aeth": {"syndrome": 0, "msn": 5}},
        ),
        "25f0c038",
    ),
    ("SEND ONLY", roce_frame(IPV4, 0x04, {"bth": {"dqpn": 1, "psn": 2}}, b"abcdefgh"), "78df3e91"),
    ("ACK", roce_frame(IPV4, 0x11, {"bth": {"dqpn": 5}, "aeth": {"syndrome": 0x1F, "msn": 1}}), "04e7e305"),
    (
        "WRITE over IPv6",
        roce_frame(
            IPV6,
            0x0A,
            {"bth": {"migreq": 1, "dqpn": 5, "psn": 1}, "reth": {"va": 1, "rkey": 2, "dmalen": 8}},
            b"\xa5" * 8,
        ),
        "92054f11",
    ),
    (
        "WRITE over RoCEv1",
        roce_frame(
            V1,
            0x0A,
            {"bth": {"migreq": 1, "dqpn": 5, "psn": 1}, "reth": {"va": 1, "rkey": 2, "dmalen": 8}},
            b"\xa5" * 8,
        ),
        "41932c8e",
    ),
    ("CNP", cnp_frame(Path(ip_id=0x1234, dscp=48, ecn=0, sport=49152), 5), "821c3c26"),
]


@pytest.mark.parametrize(("frame", "value"), [v[1:] for v in VECTORS], ids=[v[0] for v in VECTORS])
def test_vectors(frame, value):
    read = dissect(frame)
    assert frame[-4:].hex() == value
    assert read.icrc.ok is True
    assert read.status == "ok"


def test_the_state_after_the_masked_lrh_is_the_kernels_constant():
    assert zlib.crc32(b"\xff" * 8) ^ 0xFFFFFFFF == 0xDEBB20E3


MASKED = {
    "ip": ("dscp", "ecn", "ttl", "chksum", "flowlabel"),
    "grh": ("tclass", "flowlabel", "hoplmt"),
    "udp": ("chksum",),
    "bth": ("fecn", "becn", "resv6"),
    "eth": ("dst", "src"),
    "vlan": ("pcp", "dei", "vid"),
}
# changing these makes the frame something else, or moves its end
STRUCTURE = {
    "eth": ("type",),
    "vlan": ("type",),
    "ip": ("version", "ihl", "len", "proto", "nexthdr", "mf", "frag", "resv1"),
    "udp": ("dport", "len"),
    "grh": ("paylen", "nexthdr", "ipver"),
    "bth": ("opcode",),
}


def _fields(frame):
    read = dissect(frame)
    for layer in read.layers:
        for field in layer.header.fields:
            if field.name not in STRUCTURE.get(layer.header.name, ()):
                yield layer, field.name


def _flip(frame, layer, name, bit):
    place = layer.header.places[name]
    start = layer.offset + place.offset
    whole = int.from_bytes(frame[start : start + place.size], "big") ^ 1 << place.shift + bit
    return frame[:start] + whole.to_bytes(place.size, "big") + frame[start + place.size :]


@given(st.sampled_from(CASES), st.data())
def test_masked_fields_leave_it_alone_and_covered_fields_change_it(case, data):
    frame = case.octets
    layer, name = data.draw(st.sampled_from(list(_fields(frame))))
    bit = data.draw(st.integers(0, layer.header.field(name).bits - 1))
    read = dissect(_flip(frame, layer, name, bit))
    masked = name in MASKED.get(layer.header.name, ())
    assert read.icrc.ok is masked, (case.name, layer.header.name, name, bit)


@given(st.sampled_from(CASES), st.data())
def test_every_payload_and_pad_octet_is_covered(case, data):
    frame = case.octets
    read = dissect(frame)
    first, last = read.payload_offset, len(frame) - 5
    if first > last:
        return
    at = data.draw(st.integers(first, last))
    assert dissect(frame[:at] + bytes([frame[at] ^ 0x40]) + frame[at + 1 :]).icrc.ok is False


def _ipv4_with(frame, *, options=b"", frag=0, mf=0):
    """The same packet with options or as a fragment, header checksum right."""
    ip = net.IPV4.unpack(frame, 14)
    ip |= {"ihl": 5 + len(options) // 4, "len": ip["len"] + len(options), "frag": frag, "mf": mf, "chksum": 0}
    ip["chksum"] = net.internet_checksum(net.IPV4.pack(ip) + options)
    return frame[:14] + net.IPV4.pack(ip) + options + frame[34:]


def test_what_cannot_be_checked_is_never_called_wrong():
    frame = roce_frame(IPV4, 0x04, {}, b"abcdefgh")
    assert dissect(_ipv4_with(frame)).icrc.ok is True
    options = dissect(_ipv4_with(frame, options=b"\x94\x04\x00\x00"))
    assert (options.icrc.ok, options.icrc.why) == (None, "IPv4 options")
    first = dissect(_ipv4_with(frame, mf=1))
    assert (first.icrc.ok, first.icrc.value, first.icrc.why) == (None, None, "IP fragment")
    later = dissect(_ipv4_with(frame, frag=3))
    assert (later.kind, later.hint, later.icrc) == ("other", "fragment", None)


def test_a_header_that_does_not_fit_leaves_the_icrc_unchecked():
    frame = roce_frame(IPV4, 0x0E, {}, b"abcd")
    as_write = frame[:42] + b"\x0a" + frame[43:]  # a WRITE whose RETH is not there
    read = dissect(_ipv4_with(as_write, options=b"\x94\x04\x00\x00"))
    assert "reth" in read.status
    assert (read.icrc.ok, read.icrc.why) == (None, "IPv4 options")


def test_a_damaged_header_is_not_believed_to_be_a_fragment():
    frame = roce_frame(IPV4, 0x04, {}, b"abcdefgh")
    damaged = frame[:20] + bytes([frame[20] | 1]) + frame[21:]  # fragment offset 256, checksum now wrong
    read = dissect(damaged)
    assert read.icrc.ok is False
    assert "fragment bits not believed" in read.status


@pytest.mark.parametrize("extension", [0, 43, 60])
def test_ipv6_extension_headers(extension):
    frame = roce_frame(IPV6, 0x04, {}, b"abcdefgh")
    ip = net.IPV6.unpack(frame, 14)
    ip |= {"nexthdr": extension, "len": ip["len"] + 8}
    read = dissect(frame[:14] + net.IPV6.pack(ip) + struct.pack(">BB6x", 17, 0) + frame[54:])
    assert (read.kind, read.icrc.ok, read.icrc.why) == ("rocev2", None, "IPv6 extension header")
    assert read.bth["opcode"] == 4
    assert read.payload_len == 8


def test_ipv6_fragments():
    frame = roce_frame(IPV6, 0x04, {}, b"abcdefgh")
    ip = net.IPV6.unpack(frame, 14)
    ip |= {"nexthdr": 44, "len": ip["len"] + 8}
    for offset, kind in ((1, "rocev2"), (0x101, "other")):  # more-fragments bit, then a later one
        fragment = struct.pack(">BBHI", 17, 0, offset, 7)
        read = dissect(frame[:14] + net.IPV6.pack(ip) + fragment + frame[54:])
        assert read.kind == kind
        assert read.icrc is None or read.icrc.ok is None
