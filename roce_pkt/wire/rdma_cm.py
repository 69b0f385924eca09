"""What applications put on top of communication management: service ids, private data, names.

RDMA-CM (the socket-like interface of Linux and Windows) makes a service id of a port space and a
port, and begins the private data of a REQ and of a SIDR_REQ with the two IP addresses:

     0000000001 PP DDDD     PP = 06 TCP, 11 UDP, 3f IB; DDDD = destination port

      0                   1                   2                   3
      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
     +-------+-------+-------+-------+-------------------------------+
     | major | minor |  IP v | resv  |          source port          |
     +-------+-------+-------+-------+-------------------------------+
     |   source address, 16 octets; IPv4 in the last four            |
     |   destination address, 16 octets                              |
     +---------------------------------------------------------------+

Sources: IBTA annex A11 as in the Linux kernel (cma.c, ib_cm.h, rdma_cm.h); NVMe over Fabrics RDMA
transport (private data in little-endian octet order; nvme-rdma.h has the same); rdma-core's
rsocket.c for rsockets.
"""

from __future__ import annotations

from roce_pkt.errors import InputError, nearest
from roce_pkt.wire.header import Field, Header

_FRONT = (
    Field("major", 4, title="major version, 0"),
    Field("minor", 4, title="minor version"),
    Field("ip_version", 4, default=4),
    Field("resv4", 4),
    Field("sport", 16, title="source port"),
)
RDMA_CM_V4 = Header(
    "rdma_cm",
    "RDMA-CM private data header, IPv4",
    *_FRONT,
    Field("resv96_src", 96),
    Field("src", 32, "ipv4"),
    Field("resv96_dst", 96),
    Field("dst", 32, "ipv4"),
)
RDMA_CM_V6 = Header(
    "rdma_cm",
    "RDMA-CM private data header, IPv6",
    *(Field("ip_version", 4, default=6) if field.name == "ip_version" else field for field in _FRONT),
    Field("src", 128, "ipv6"),
    Field("dst", 128, "ipv6"),
)

NVME_REQ = Header(
    "nvme_rdma",
    "NVMe-oF RDMA connect request",
    Field("recfmt", 16, title="record format, 0"),
    Field("qid", 16, title="queue id, 0 for the admin queue"),
    Field("hrqsize", 16, default=32, title="host receive queue size"),
    Field("hsqsize", 16, default=31, title="host send queue size, counted from 0"),
    Field("cntlid", 16, title="controller id"),
    Field("resv176", 176, "octets"),
    order="little",
)
NVME_REP = Header(
    "nvme_rdma",
    "NVMe-oF RDMA connect reply",
    Field("recfmt", 16, title="record format, 0"),
    Field("crqsize", 16, title="controller receive queue size"),
    Field("resv224", 224, "octets"),
    order="little",
)
NVME_REJ = Header(
    "nvme_rdma",
    "NVMe-oF RDMA connect reject",
    Field("recfmt", 16, title="record format, 0"),
    Field("sts", 16, title="status"),
    order="little",
)
NVME_STATUSES = {
    1: "invalid private data length",
    2: "invalid record format",
    3: "invalid queue id",
    4: "invalid host send queue size",
    5: "invalid host receive queue size",
    6: "resource not found",
    7: "invalid inbound READ queue depth",
    8: "invalid outbound READ queue depth",
}

RSOCKET = Header(
    "rsocket",
    "rsockets connection data",
    Field("version", 8, default=1),
    Field("flags", 8, "hex", title="1 big-endian host, 2 iomap supported"),
    Field("credits", 16, title="receive credits"),
    Field("resv24", 24),
    Field("iomap_size", 8, title="entries for mapped memory"),
    Field("target_addr", 64, "key", title="address of the scatter list"),
    Field("target_rkey", 32, "key"),
    Field("target_length", 32),
    Field("buffer_addr", 64, "key", title="address of the receive buffer"),
    Field("buffer_rkey", 32, "key"),
    Field("buffer_length", 32),
)

PREFIX = 0x0000000001
PORT_SPACES = {0x06: "TCP", 0x11: "UDP", 0x3F: "IB"}
IP_SPACES = ("TCP", "UDP")
"""Port spaces whose private data begins with the RDMA-CM header."""
_IPOIB_PREFIX, _SDP_PREFIX = 0x02, 0x01
_LOCAL_OS_OCTET = 0x02

NVME, RSOCKETS, UNKNOWN = "NVMe-oF", "rsockets", "unknown"
APPLICATIONS: dict[tuple[str, int], str] = {
    ("TCP", 445): "SMB Direct",  # MS-SMBD 2.1: 445 over InfiniBand and RoCE, 5445 over iWARP
    ("TCP", 5445): "SMB Direct",
    ("TCP", 987): "Lustre LNet",  # o2iblnd's service
    ("TCP", 3260): "iSER",  # IANA iscsi-target, RFC 7145
    ("TCP", 4420): NVME,  # IANA nvme
    ("TCP", 7174): "rping",  # rdma-core librdmacm/examples
    ("UDP", 7174): "udaddy",
    ("TCP", 7471): "rdmacm-utils",  # ucmatose, cmtime, rdma_server and others share a default port
    ("TCP", 18515): "perftest",
    ("TCP", 20049): "NFS/RDMA",  # RFC 5666 and IANA nfsrdma
}


def service_id(port: int, space: str = "TCP") -> int:
    """The RDMA-CM service id of a port.

    Args:
        port: 0 to 65535.
        space: `TCP`, `UDP` or `IB`.
    """
    number = next(code for code, name in PORT_SPACES.items() if name == space)
    return PREFIX << 24 | number << 16 | port


def parse_service(text: str) -> int:
    """A service id in words: `tcp:4420`, a bare TCP port, an application's name, or `0x...`.

    Raises:
        InputError: None of these.
    """
    names = {name.lower(): key for key, name in APPLICATIONS.items()}
    if text.lower() in names:
        space, port = names[text.lower()]
        return service_id(port, space)
    if text.lower().startswith("0x"):
        try:
            service = int(text, 16)
        except ValueError:
            service = 1 << 64
        if service < 1 << 64:
            return service
        raise InputError(f"{text!r} is no 64-bit service id")
    space, _, port_text = text.rpartition(":")
    known = (space or "tcp").upper() in PORT_SPACES.values() and port_text.isascii() and port_text.isdigit()
    if known and int(port_text) <= 0xFFFF:
        return service_id(int(port_text), (space or "tcp").upper())
    raise InputError(
        f"{text!r} is no service{nearest(text.lower(), names)}; write a TCP port (4420), tcp:4420, udp:7174,"
        f" ib:1, a service id (0x...) or an application ({', '.join(names)})"
    )


def space_and_port(service: int) -> tuple[str, int] | None:
    """Port space and port of an RDMA-CM service id; None for any other service id."""
    space = PORT_SPACES.get(service >> 16 & 0xFF)
    return (space, service & 0xFFFF) if service >> 24 == PREFIX and space else None


def service_text(service: int) -> str:
    """A service id in words."""
    found = space_and_port(service)
    if found:
        name = APPLICATIONS.get(found)
        return f"RDMA-CM {found[0]} port {found[1]}" + (f", {name}" if name else "")
    if service >> 16 == _IPOIB_PREFIX:
        return f"RDMA-CM IPoIB port {service & 0xFFFF}"
    if service >> 16 == _SDP_PREFIX:
        return f"Sockets Direct port {service & 0xFFFF}"
    if service >> 56 == _LOCAL_OS_OCTET:
        return "assigned by the local operating system"
    return "not of RDMA-CM"


def has_addresses(service: int) -> bool:
    """True when private data of a request for this service begins with the RDMA-CM header."""
    found = space_and_port(service)
    return found is not None and found[0] in IP_SPACES


def address_header(private: bytes) -> Header | None:
    """The table of the RDMA-CM header at the start of private data; None when it is not one of the two."""
    if len(private) < RDMA_CM_V4.size_bytes:
        return None
    return {4: RDMA_CM_V4, 6: RDMA_CM_V6}.get(private[1] >> 4)


def is_rsocket(consumer: bytes) -> bool:
    """True when an application's private data has every mark of an rsockets connection."""
    if len(consumer) < RSOCKET.size_bytes:
        return False
    v = RSOCKET.unpack(consumer)
    filled = all(v[name] for name in ("credits", "target_addr", "target_length", "buffer_addr"))
    return v["version"] == 1 and v["flags"] < 4 and not v["resv24"] and filled


def application(service: int, consumer: bytes = b"") -> str:
    """The application that a connection is for.

    Args:
        service: The service id of the REQ or SIDR_REQ.
        consumer: Private data after the RDMA-CM header.
    """
    if is_rsocket(consumer):
        return RSOCKETS
    found = space_and_port(service)
    return APPLICATIONS.get(found, UNKNOWN) if found else UNKNOWN


def request_data_header(service: int, consumer: bytes) -> Header | None:
    """The table of what the application put into its request, where it is known."""
    if is_rsocket(consumer):
        return RSOCKET
    nvme = application(service) == NVME and len(consumer) >= NVME_REQ.size_bytes
    return NVME_REQ if nvme else None


def reply_data_header(name: str, reply: Header | None, private: bytes) -> Header | None:
    """The table of what an application put into its reply or rejection, where it is known.

    Args:
        name: The application, as `application` says from the request; empty when it is not known.
        reply: `NVME_REP` or `NVME_REJ` for an NVMe connection.
        private: Private data of the reply.
    """
    if is_rsocket(private):
        return RSOCKET
    return reply if name == NVME and reply and len(private) >= reply.size_bytes else None
