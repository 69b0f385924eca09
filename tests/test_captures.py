"""Real captures: the truth beside them, and tshark's own reading of every field."""

from __future__ import annotations

import gzip
import re
import shutil
import tomllib
from collections import Counter

import pytest
import tshark
from conftest import PCAPS

from roce_pkt.capture import open as open_capture
from roce_pkt.cli.dissect import _flat
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.header import Header
from roce_pkt.wire.opcode import name_of
from roce_pkt.wire.present import frame_json


def about(path):
    return path.with_name(path.name.split(".")[0] + ".toml")


REAL = [p for p in PCAPS if about(p).exists()]


def read(path):
    for record in open_capture(path).records():
        yield record, dissect(record.octets, record.wire_len, record.link_type)


def test_every_capture_says_what_it_is():
    assert len(PCAPS) > 50
    for path in PCAPS:
        said = tomllib.loads(about(path).read_text())
        assert said["licence"] == "CC0-1.0"
        assert said["shows"].endswith(".")
        assert said["made_by"]
    assert sum(p.stat().st_size for p in PCAPS) <= 6_000_000


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.stem)
def test_counts(path):
    expected = tomllib.loads(about(path).read_text())["expected"]
    icrc, opcodes, kinds = Counter(), Counter(), Counter()
    for _, frame in read(path):
        kinds[frame.kind] += 1
        if frame.icrc is not None:
            icrc[frame.icrc.ok] += 1
        if frame.bth is not None:
            opcodes[name_of(frame.bth["opcode"])] += 1
    assert sum(kinds.values()) == expected["frames"]
    assert (icrc[True], icrc[False], icrc[None]) == (expected["icrc_ok"], expected["icrc_wrong"], 0)
    assert kinds["other"] == expected["not_roce"]
    assert opcodes == expected["opcodes"]


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.stem)
def test_octets_come_back_from_the_tables(path):
    """Headers, payload, pads, ICRC and trailer are all of the frame, and each gives its octets back."""
    for record, frame in read(path):
        if frame.kind == "other" or frame.status != "ok":
            continue
        octets = bytes(record.octets)
        built = b"".join(layer.header.pack(layer.values) for layer in frame.all_layers())
        assert built == octets[: frame.payload_offset]
        size = frame.payload_offset + frame.payload_len + frame.padcount
        rest = octets[size:]
        assert rest[:4] == frame.icrc.value
        assert len(rest) == 4 + frame.trailer_len


# -- tshark

EXPECTED_DIFFERENCES = {
    # what differs: (tshark version that shows it, reason)
    "pads": ("4.0, 4.6", "tshark counts pad octets as data: data.len is payload and pads together"),
    "atomiceth.va": ("4.0, 4.6", "tshark has no atomiceth.va; it shows the address as reth.va"),
    "atomiceth.rkey": ("4.0, 4.6", "tshark has no atomiceth.r_key; it shows the key as reth.r_key"),
    "cnp": ("4.0, 4.6", "opcode 0x81 is unknown to tshark: no ICRC, no body"),
    "mad payload": ("4.0, 4.6", "a MAD is dissected, so there is no data.len"),
    "udp checksum 0": (
        "4.0, 4.6",
        "expert error on a zero UDP checksum over IPv6, which Linux and hardware send",
    ),
    "udp length": ("4.0, 4.6", "expert error on the frames whose damaged UDP length we report as status"),
}
EXPERTS = {"Illegal checksum value (0)": "udp checksum 0", "Bad length value": "udp length"}


def ours(record, frame):
    flat = _flat(frame_json(frame, record.number, record.time_ns, record.wire_len, record.cap_len))
    if frame.bth is not None:
        flat["bth.resv8a"] = flat["bth.fecn"] << 7 | flat["bth.becn"] << 6 | flat["bth.resv6"]
        flat["data"] = frame.payload_len
        if frame.bth["dqpn"] > 1 or frame.opcode is None or frame.opcode.transport != "UD":
            flat["payload.length"] = frame.payload_len or None
        else:
            del flat["payload.length"]
    return flat


def differences(record, frame, row):
    """Yield the name of every difference between tshark's row and ours."""
    flat = ours(record, frame)
    told = set()
    for field, (name, how) in tshark.FIELDS.items():
        if field not in row:
            continue
        if field == "_ws.expert.message":
            yield next((d for text, d in EXPERTS.items() if row[field].startswith(text)), row[field])
            continue
        told.add(name)
        theirs, mine = tshark.value(row[field], how), flat.get(name)
        if isinstance(theirs, int) and isinstance(mine, str):
            mine = int(mine, 16)
        if theirs == mine:
            continue
        if name == "payload.length" and frame.padcount and theirs == mine + frame.padcount:
            yield "pads"
        elif name in ("reth.va", "reth.rkey") and f"atomiceth.{name[5:]}" in flat:
            assert theirs == int(flat[f"atomiceth.{name[5:]}"], 16)
            yield f"atomiceth.{name[5:]}"
        else:
            yield f"frame {record.number} {field}: tshark {theirs!r}, ours {mine!r}"
    known = {name for name, _ in tshark.FIELDS.values()}
    for name in (flat.keys() & known) - told:
        if name == "icrc.value" and flat["bth.name"] == "CNP":
            yield "cnp"
        elif flat[name] is not None:
            yield f"frame {record.number} {name}: tshark says nothing, ours {flat[name]!r}"
    if frame.bth is not None and "payload.length" not in flat:
        yield "mad payload"


def compare(path, rows) -> Counter:
    found = Counter()
    for (record, frame), row in zip(read(path), rows, strict=True):
        if frame.kind != "other":
            found.update(differences(record, frame, row))
    return found


def recorded(path):
    return tshark.rows(gzip.decompress(tshark.golden(path).read_bytes()).decode())


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.stem)
def test_every_field_equals_tsharks_recorded_reading(path):
    assert not compare(path, recorded(path)).keys() - EXPECTED_DIFFERENCES.keys()


def test_every_expected_difference_is_really_there():
    showing = {"rc_send_pad", "rc_atomic", "rping_v6", "corrupt_req_5pct", "dcqcn_two_to_one.pcapng"}
    seen = Counter()
    for path in REAL:
        if path.stem in showing:
            seen.update(compare(path, recorded(path)))
    assert len(EXPECTED_DIFFERENCES) == 7
    assert seen.keys() == EXPECTED_DIFFERENCES.keys()


@pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed; its recorded reading is compared"
)
@pytest.mark.parametrize("path", REAL[::6], ids=lambda p: p.stem)
def test_the_installed_tshark_reads_the_same(path):
    assert not compare(path, tshark.rows(tshark.read(path))).keys() - EXPECTED_DIFFERENCES.keys()


# -- the larger set, for those who have it


def test_larger_set(captures):
    rows = 0
    for line in (captures / "README.md").read_text().splitlines():
        match = re.match(r"\| (s\d\w+\.pcap) \| (\d+) \| \d+ \| (\d+)/(\d+) \| (\d+) \|", line)
        if not match:
            continue
        rows += 1
        name, *numbers = match.groups()
        icrc, frames, other = Counter(), 0, 0
        tsv = captures / f"{name[:-5]}.tsv"
        packed = tsv.with_suffix(".tsv.gz")
        text = tsv.read_text() if tsv.exists() else gzip.decompress(packed.read_bytes()).decode()
        for (record, frame), row in zip(read(captures / name), tshark.rows(text), strict=True):
            frames += 1
            other += frame.kind == "other"
            icrc[frame.icrc.ok if frame.icrc else None] += 1
            if frame.kind != "other":
                for difference in differences(record, frame, row):
                    missing = "tshark says nothing" in difference  # that recording has fewer fields
                    assert missing or difference in EXPECTED_DIFFERENCES, f"{name}: {difference}"
        assert [frames, icrc[True], icrc[False], other] == [int(n) for n in numbers], name
    assert rows == 84


def test_the_simulated_capture_replays_as_its_file_says(pcaps):
    from roce_pkt.run.observe import observe

    path = pcaps / "dcqcn_two_to_one.pcapng.gz"
    expected = tomllib.loads(about(path).read_text())["expected"]["cnps_per_flow"]
    document = observe(open_capture(path), "mlx", tap="receiver").as_json()
    data = [flow for flow in document["flows"] if flow["ce"]]
    assert document["line_rate_bps"] == 25e9
    assert [(f["cnps_expected"], f["cnps_seen"], f["cnps_missing"]) for f in data] == [
        (expected, expected, 0)
    ] * 2


def test_header_tables_are_compared_at_all():
    """Guards the comparison itself: a broken table must be noticed."""
    path = next(p for p in REAL if p.stem == "rc_atomic")
    rows = recorded(path)
    rows[0]["infiniband.bth.psn"] = "1"
    assert any("infiniband.bth.psn" in d for d in compare(path, rows))
    assert isinstance(next(read(path))[1].layers[0].header, Header)
