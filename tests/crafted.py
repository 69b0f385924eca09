"""Captures made octet by octet with struct and zlib alone, for tests of what is read from them."""

from __future__ import annotations

import ipaddress
import struct
import zlib

START_NS = 1_700_000_000_000_000_000
SEND_ONLY, WRITE_ONLY, ACK, UD_SEND_ONLY, CNP = 0x04, 0x0A, 0x11, 0x64, 0x81
READ_REQUEST, READ_RESPONSE_ONLY = 0x0C, 0x10
SENDER, RECEIVER = "10.0.0.1", "10.0.0.2"


def _mac(address: str) -> bytes:
    return b"\x02\x00\x00\x00\x00" + bytes([int(ipaddress.ip_address(address)) & 0xFF])


def frame(src, dst, opcode, dqpn, psn, body=b"", *, ecn=2, dscp=26, becn=0, wrong_icrc=False):
    """An Ethernet frame with IPv4 or IPv6, UDP 4791, BTH, `body` and ICRC."""
    bth = struct.pack("!BBHII", opcode, 0, 0xFFFF, becn << 30 | dqpn, psn)
    length = 8 + len(bth) + len(body) + 4
    udp = struct.pack("!HHHH", 49152, 4791, length, 0)
    source, destination = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    tos = dscp << 2 | ecn
    if source.version == 4:
        ip = struct.pack(
            "!BBHHHBBH4s4s", 0x45, tos, 20 + length, 1, 0x4000, 64, 17, 0, source.packed, destination.packed
        )
        masked = ip[:1] + b"\xff" + ip[2:8] + b"\xff" + ip[9:10] + b"\xff\xff" + ip[12:]
        ethertype = 0x0800
    else:
        ip = struct.pack(
            "!IHBB16s16s", 6 << 28 | tos << 20, length, 17, 64, source.packed, destination.packed
        )
        masked = bytes([ip[0] | 0x0F]) + b"\xff\xff\xff" + ip[4:7] + b"\xff" + ip[8:]
        ethertype = 0x86DD
    covered = b"\xff" * 8 + masked + udp[:6] + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:] + body
    icrc = struct.pack("<I", zlib.crc32(covered) ^ (0xFF if wrong_icrc else 0))
    return _mac(dst) + _mac(src) + struct.pack("!H", ethertype) + ip + udp + bth + body + icrc


def data(psn=0, *, src=SENDER, dst=RECEIVER, dqpn=0x22, ce=False, size=1024, **how):
    """A SEND of one packet."""
    return frame(src, dst, SEND_ONLY, dqpn, psn, bytes(size), ecn=3 if ce else 2, **how)


def datagram(psn=0, *, src=SENDER, dst=RECEIVER, dqpn=0x22, sqpn=0x11, ce=False):
    """A UD SEND."""
    return frame(
        src, dst, UD_SEND_ONLY, dqpn, psn, struct.pack("!II", 0x1234, sqpn) + bytes(256), ecn=3 if ce else 2
    )


def ack(psn=0, *, src=RECEIVER, dst=SENDER, dqpn=0x11):
    """An acknowledgement, from the receiver of data."""
    return frame(src, dst, ACK, dqpn, psn, struct.pack("!BBH", 0x1F, 0, 0))


def cnp(*, src=RECEIVER, dst=SENDER, dqpn=0x11):
    """A congestion notification, from the receiver of data; `dqpn` is the data sender's."""
    return frame(src, dst, CNP, dqpn, 0, bytes(16), ecn=0, dscp=48, becn=1)


def pfc(quanta, *, src="10.0.0.9", enable=None):
    """A PFC frame: quanta by class."""
    vector = sum(1 << n for n in quanta) if enable is None else enable
    times = b"".join(struct.pack("!H", quanta.get(n, 0)) for n in range(8))
    control = struct.pack("!HHH", 0x8808, 0x0101, vector) + times
    return bytes.fromhex("0180c2000001") + _mac(src) + control.ljust(48, b"\0")


def pause(quanta, *, src="10.0.0.9"):
    """An 802.3x PAUSE."""
    control = struct.pack("!HHH", 0x8808, 0x0001, quanta)
    return bytes.fromhex("0180c2000001") + _mac(src) + control.ljust(48, b"\0")


def tcp():
    """Something that is no RoCE."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 1, 0, 64, 6, 0, bytes(4), bytes(4))
    return bytes(12) + b"\x08\x00" + ip + bytes(20)


def pcap(path, frames):
    """Write a pcap with nanosecond stamps.

    Args:
        path: The file.
        frames: (microseconds after the start, octets) pairs, in file order.
    """
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)]
    for time_us, octets in frames:
        seconds, nanoseconds = divmod(START_NS + round(time_us * 1000), 10**9)
        out.append(struct.pack("<IIII", seconds, nanoseconds, len(octets), len(octets)) + octets)
    path.write_bytes(b"".join(out))
    return path


def pcapng(path, frames, *, speed_bps):
    """Write a pcapng whose one interface states a speed."""

    def block(kind, body):
        size = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + size + body + size

    options = struct.pack("<HHBxxxHHQHH", 9, 1, 9, 8, 8, speed_bps, 0, 0)
    out = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    out.append(block(1, struct.pack("<HHI", 1, 0, 0) + options))
    for time_us, octets in frames:
        stamp = START_NS + round(time_us * 1000)
        head = struct.pack("<IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(octets), len(octets))
        out.append(block(6, head + octets + bytes(-len(octets) % 4)))
    path.write_bytes(b"".join(out))
    return path
