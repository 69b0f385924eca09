"""The opcode table, made by rule, against a literal one typed from the standard's table."""

from __future__ import annotations

from collections import Counter

import pytest

from roce_pkt.errors import InputError
from roce_pkt.wire.opcode import BY_NAME, OPCODES, name_of, parse_opcode, segment_opcode, segments

# operation code: headers of RC and UC, of RD, of XRC (IBTA table 38; annex A19 for 1c and 1d)
HEADERS = {
    0x00: ("", "rdeth deth", "xrceth"),
    0x01: ("", "rdeth deth", "xrceth"),
    0x02: ("", "rdeth deth", "xrceth"),
    0x03: ("immdt", "rdeth deth immdt", "xrceth immdt"),
    0x04: ("", "rdeth deth", "xrceth"),
    0x05: ("immdt", "rdeth deth immdt", "xrceth immdt"),
    0x06: ("reth", "rdeth deth reth", "xrceth reth"),
    0x07: ("", "rdeth deth", "xrceth"),
    0x08: ("", "rdeth deth", "xrceth"),
    0x09: ("immdt", "rdeth deth immdt", "xrceth immdt"),
    0x0A: ("reth", "rdeth deth reth", "xrceth reth"),
    0x0B: ("reth immdt", "rdeth deth reth immdt", "xrceth reth immdt"),
    0x0C: ("reth", "rdeth deth reth", "xrceth reth"),
    0x0D: ("aeth", "rdeth aeth", "aeth"),
    0x0E: ("", "rdeth", ""),
    0x0F: ("aeth", "rdeth aeth", "aeth"),
    0x10: ("aeth", "rdeth aeth", "aeth"),
    0x11: ("aeth", "rdeth aeth", "aeth"),
    0x12: ("aeth atomicacketh", "rdeth aeth atomicacketh", "aeth atomicacketh"),
    0x13: ("atomiceth", "rdeth deth atomiceth", "xrceth atomiceth"),
    0x14: ("atomiceth", "rdeth deth atomiceth", "xrceth atomiceth"),
    0x15: (None, "rdeth deth", None),
    0x16: ("ieth", None, "xrceth ieth"),
    0x17: ("ieth", None, "xrceth ieth"),
    0x1C: ("feth reth", "rdeth feth reth", "xrceth feth reth"),
    0x1D: ("reth", None, "xrceth reth"),
}
NO_PAYLOAD = {0x0C, 0x11, 0x12, 0x13, 0x14, 0x15, 0x1C}

# The kernel's and Scapy's names, typed once more.
NAMES = [
    "00",
    "RC_SEND_FIRST",
    "01",
    "RC_SEND_MIDDLE",
    "02",
    "RC_SEND_LAST",
    "03",
    "RC_SEND_LAST_WITH_IMMEDIATE",
    "04",
    "RC_SEND_ONLY",
    "05",
    "RC_SEND_ONLY_WITH_IMMEDIATE",
    "06",
    "RC_RDMA_WRITE_FIRST",
    "07",
    "RC_RDMA_WRITE_MIDDLE",
    "08",
    "RC_RDMA_WRITE_LAST",
    "09",
    "RC_RDMA_WRITE_LAST_WITH_IMMEDIATE",
    "0a",
    "RC_RDMA_WRITE_ONLY",
    "0b",
    "RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE",
    "0c",
    "RC_RDMA_READ_REQUEST",
    "0d",
    "RC_RDMA_READ_RESPONSE_FIRST",
    "0e",
    "RC_RDMA_READ_RESPONSE_MIDDLE",
    "0f",
    "RC_RDMA_READ_RESPONSE_LAST",
    "10",
    "RC_RDMA_READ_RESPONSE_ONLY",
    "11",
    "RC_ACKNOWLEDGE",
    "12",
    "RC_ATOMIC_ACKNOWLEDGE",
    "13",
    "RC_COMPARE_SWAP",
    "14",
    "RC_FETCH_ADD",
    "16",
    "RC_SEND_LAST_WITH_INVALIDATE",
    "17",
    "RC_SEND_ONLY_WITH_INVALIDATE",
    "1c",
    "RC_FLUSH",
    "1d",
    "RC_ATOMIC_WRITE",
    "20",
    "UC_SEND_FIRST",
    "24",
    "UC_SEND_ONLY",
    "2b",
    "UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE",
    "40",
    "RD_SEND_FIRST",
    "51",
    "RD_ACKNOWLEDGE",
    "55",
    "RD_RESYNC",
    "5c",
    "RD_FLUSH",
    "64",
    "UD_SEND_ONLY",
    "65",
    "UD_SEND_ONLY_WITH_IMMEDIATE",
    "81",
    "CNP",
    "a0",
    "XRC_SEND_FIRST",
    "b1",
    "XRC_ACKNOWLEDGE",
    "bd",
    "XRC_ATOMIC_WRITE",
]


def literal_rows():
    for code, (plain, rd, xrc) in HEADERS.items():
        payload = code not in NO_PAYLOAD
        if plain is not None:
            yield code, plain, payload
            if code < 0x0C:
                yield 0x20 | code, plain, payload
        if rd is not None:
            yield 0x40 | code, rd, payload
        if xrc is not None:
            yield 0xA0 | code, xrc, payload
    yield 0x64, "deth", True
    yield 0x65, "deth immdt", True
    yield 0x81, "cnp", False


def test_the_table_equals_the_literal_one():
    literal = {value: (headers.split(), payload) for value, headers, payload in literal_rows()}
    made = {v: ([h.name for h in op.headers], op.payload) for v, op in OPCODES.items()}
    assert made == literal


def test_counts():
    counts = Counter(op.transport for op in OPCODES.values())
    assert counts == {"RC": 25, "UC": 12, "RD": 22 + 1, "UD": 2, "XRC": 25, "CNP": 1}


def test_names():
    for code, name in zip(NAMES[::2], NAMES[1::2], strict=True):
        assert name_of(int(code, 16)) == name


def test_names_are_unique_and_read_back():
    assert len(BY_NAME) == len(OPCODES)
    for name, op in BY_NAME.items():
        assert parse_opcode(name) == parse_opcode(name.lower()) == op.value
        assert (
            parse_opcode(name.replace("_WITH_IMMEDIATE", "_IMM").replace("_WITH_INVALIDATE", "_INV"))
            == op.value
        )


@pytest.mark.parametrize(
    ("text", "value"), [("0xe0", 0xE0), ("17", 17), ("RC_WRITE_ONLY_IMM", 0x0B), ("RC_READ_REQUEST", 12)]
)
def test_other_spellings(text, value):
    assert parse_opcode(text) == value


@pytest.mark.parametrize("text", ["RC_SEND_ONYL", "0x100", "-1", "", "9z"])
def test_wrong_opcodes_are_refused(text):
    with pytest.raises(InputError):
        parse_opcode(text)


def test_unknown_is_a_value():
    assert name_of(0xE0) == "0xe0"
    assert name_of(0x80) == "0x80"  # the class, not the packet


def test_segments_cover_a_message():
    for length in (0, 1, 255, 256, 257, 512, 5000):
        cut = segments(length, 256)
        assert sum(size for _, _, size in cut) == length
        assert [start for _, start, _ in cut] == list(range(0, max(length, 1), 256))
        positions = [p for p, _, _ in cut]
        assert positions == (
            ["only"] if len(cut) == 1 else ["first"] + ["middle"] * (len(cut) - 2) + ["last"]
        )


def test_segment_opcodes():
    assert segment_opcode("RC", "SEND", "last", "WITH_INVALIDATE") == 0x16
    assert segment_opcode("UC", "RDMA_WRITE", "first", "WITH_IMMEDIATE") == 0x26
    with pytest.raises(InputError, match="UC has no SEND only packet WITH_INVALIDATE"):
        segment_opcode("UC", "SEND", "only", "WITH_INVALIDATE")
