"""Every opcode we build, read by tshark with its payload heuristics off.

tshark reads most of them as we do. Where it does not, `EXPECTED` says so, row by row, and why.
"""

import re
import subprocess

import pytest
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap
from tshark import HEURISTICS

from roce_pkt.layers import PAUSE, pfc
from roce_pkt.wire.opcode import OPCODES

BTH_FIELDS = {
    "opcode": "opcode",
    "se": "solicited",
    "m": "migreq",
    "padcnt": "padcount",
    "tver": "version",
    "p_key": "pkey",
    "destqp": "dqpn",
    "a": "ackreq",
    "psn": "psn",
}
# tshark's field, by header and our field; it shows an AtomicETH's address and key as those of a RETH
HEADER_FIELDS = {
    "reth": {"va": "reth.va", "rkey": "reth.r_key", "dmalen": "reth.dmalen"},
    "atomiceth": {
        "va": "reth.va",
        "rkey": "reth.r_key",
        "swap": "atomiceth.swapdt",
        "compare": "atomiceth.cmpdt",
    },
    "aeth": {"syndrome": "aeth.syndrome", "msn": "aeth.msn"},
    "atomicacketh": {"orig": "atomicacketh.origremdt"},
    "immdt": {"data": "immdt"},
    "ieth": {"rkey": "ieth"},
    "deth": {"qkey": "deth.q_key", "sqpn": "deth.srcqp"},
    "rdeth": {"eec": "rdeth.eecnxt"},
}
COLUMNS = [
    *(f"infiniband.bth.{name}" for name in BTH_FIELDS),
    *dict.fromkeys(f"infiniband.{f}" for fields in HEADER_FIELDS.values() for f in fields.values()),
    "infiniband.invariant.crc",
    "data.len",
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
    "_ws.col.Info",
]
EXPERT_ERROR = 0x00800000

BLOB = "tshark does not know this opcode: the octets after the BTH are one vendor blob"
DC = "tshark takes RD for Mellanox DC, whose BTH is 8 octets longer: everything after it is misread"
ZERO_CHECKSUM = "RFC 8200 wants a UDP checksum over IPv6; Soft-RoCE sends 0 there, and so do we unless asked"
TESTED = "4.0"


def _rows():
    """(opcode, aspect, tshark version, reason); a newer tshark may know more, never less."""
    for value, op in OPCODES.items():
        headers = [h.name for h in op.headers if h.name in HEADER_FIELDS]
        data = ["data"] if op.payload else []
        if op.transport in ("XRC", "CNP") or value in (0x1C, 0x1D):
            yield from ((value, aspect, TESTED, BLOB) for aspect in [*headers, *data, "icrc"])
        elif op.transport == "RD":
            yield from ((value, aspect, TESTED, DC) for aspect in [*headers, *(data or ["icrc"])])
    yield from ((value, "malformed", TESTED, DC) for value in (0x4C, 0x52, 0x53, 0x54, 0x55))


EXPECTED = list(_rows())
ILLEGAL_CHECKSUM = "expert: Illegal checksum value (0)"


def _version(path):
    out = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"(\d+\.\d+)\.\d+", out).group(1)


def _read(path, capture):
    off = [word for name in HEURISTICS for word in ("--disable-heuristic", name)]
    fields = [word for name in COLUMNS for word in ("-e", name)]
    out = subprocess.run(
        [path, "-r", str(capture), "-T", "fields", "-E", "occurrence=f", *off, *fields],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in out.splitlines()]


def _number(text):
    if not text:
        return None
    if text in ("True", "False"):
        return int(text == "True")
    return int(text, 0)


def _octets(text):
    return int(text.replace(":", ""), 16) if text else None


def differences(op, packet, row, header_values):
    """The aspects in which tshark's reading is not ours, apart from expert marks."""
    found = set()
    bth = packet.getlayer("BTH")
    for theirs, ours in BTH_FIELDS.items():
        if _number(row[f"infiniband.bth.{theirs}"]) != bth.getfieldval(ours):
            found.add("bth")
    for header in op.headers:
        for ours, theirs in HEADER_FIELDS.get(header.name, {}).items():
            read = _octets if header.name in ("immdt", "ieth") else _number
            if read(row[f"infiniband.{theirs}"]) != header_values[header.name][ours]:
                found.add(header.name)
    if _number(row["infiniband.invariant.crc"]) != bth.icrc:
        found.add("icrc")
    if op.payload and row["data.len"] != "8":
        found.add("data")
    if row["_ws.malformed"] or "Malformed" in row["_ws.col.Info"]:
        found.add("malformed")
    elif row["_ws.expert.severity"] and int(row["_ws.expert.severity"]) >= EXPERT_ERROR:
        found.add(f"expert: {row['_ws.expert.message']}")
    return found


def test_size_of_the_table():
    assert len(EXPECTED) == len(set(EXPECTED)) == 154
    assert {value for value, *_ in EXPECTED} == {0x1C, 0x1D, 0x81} | {v for v in OPCODES if v >> 5 in (2, 5)}


@pytest.mark.parametrize("kind", ["ipv4", "grh", "ipv6", "ipv6 with checksum"])
def test_every_opcode_opens_as_expected(kind, tshark, lower, stack, header_values, tmp_path):
    packets = []
    for value in OPCODES:
        packet = lower(kind.split()[0]) / stack(value, b"abcdefgh")
        if "checksum" in kind:
            packet["UDP"].chksum = None
        packets.append(Ether(bytes(packet)))
    wrpcap(str(tmp_path / "all.pcap"), packets)
    rows = _read(tshark, tmp_path / "all.pcap")
    version = _version(tshark)
    for (value, op), packet, row in zip(OPCODES.items(), packets, rows, strict=True):
        found = differences(op, packet, row, header_values)
        expected = {aspect for opcode, aspect, _, _ in EXPECTED if opcode == value}
        if kind == "ipv6" and "malformed" not in found:
            assert ILLEGAL_CHECKSUM in found, ZERO_CHECKSUM
            found.remove(ILLEGAL_CHECKSUM)
        if version == TESTED:
            assert found == expected, op.name
        else:
            assert found <= expected, op.name


def test_pause_and_pfc(tshark, tmp_path):
    frames = [
        Ether(src="02:00:00:00:00:01") / PAUSE(pause_time=0x1234),
        Ether(src="02:00:00:00:00:01") / pfc({3: 0xFFFF, 4: 0}),
    ]
    wrpcap(str(tmp_path / "pause.pcap"), frames)
    names = [
        "macc.opcode",
        "macc.pause_time",
        "macc.cbfc.enbv",
        "macc.cbfc.pause_time.c3",
        "_ws.expert.message",
    ]
    fields = [word for name in names for word in ("-e", name)]
    out = subprocess.run(
        [tshark, "-r", str(tmp_path / "pause.pcap"), "-T", "fields", *fields],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    pause, pfc_row = (line.split("\t") for line in out.splitlines())
    assert [_number(pause[0]), _number(pause[1]), pause[4]] == [1, 0x1234, ""]
    assert [_number(pfc_row[0]), _number(pfc_row[2]), _number(pfc_row[3])] == [0x0101, 0x18, 0xFFFF]
    assert pfc_row[4] == ""
