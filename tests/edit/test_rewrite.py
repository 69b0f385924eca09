"""Rewritten captures have right ICRCs, say what was asked, and come back octet for octet."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cases import CASES
from conftest import PCAPS
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.capture import Record
from roce_pkt.capture import open as open_capture
from roce_pkt.capture.writer import write_pcap
from roce_pkt.edit import bulk
from roce_pkt.edit.anonymise import anonymous
from roce_pkt.edit.mapping import SUBJECTS, Mapping, parse_map
from roce_pkt.edit.rewrite import Orders, Rewriter, rewrite
from roce_pkt.errors import InputError
from roce_pkt.wire import net
from roce_pkt.wire.build import Path as Way
from roce_pkt.wire.build import roce_frame
from roce_pkt.wire.frame import dissect

MAPS = (
    "ip:10.0.0.0/24=192.0.2.0/24", "ip:fd00::/64=2001:db8::/64", "ip:10.0.0.1=10.9.8.7",
    "mac:52:54:00:00:00:0a=02:00:00:00:aa:bb", "vlan:100=200", "pcp:+1", "dscp:+5", "ttl:+3",
    "sport:+77", "pkey:0xffff=0x8001", "qpn:+0x1000", "psn:+0x123456", "qkey:+9", "rkey:+0x99",
    "va:+0x10000000",
)  # fmt: skip


def orders(*texts: str, **others: object) -> Orders:
    maps: dict[str, Mapping] = {}
    for text in texts:
        parse_map(text, maps)
    return Orders(maps, **others)


def one(frame: bytes, what: Orders) -> bytes:
    out = Rewriter(what, net.PORT_ROCEV2)(Record(1, 0, 0, 1, len(frame), len(frame), frame))
    assert out is not None
    return out


def verdicts(path: Path) -> list[bool | None]:
    found = (dissect(r.octets, r.wire_len, r.link_type).icrc for r in open_capture(path).records())
    return [i.ok if i else None for i in found]


@pytest.mark.parametrize("path", [p for p in PCAPS if p.stat().st_size < 100_000], ids=lambda p: p.stem)
def test_every_shipped_capture_comes_back_as_it_was(path: Path, tmp_path: Path):
    there, back = tmp_path / "there", tmp_path / "back"
    what = orders(*MAPS)
    done = rewrite(open_capture(path), there, what)
    assert done.changed > 0
    assert verdicts(there) == verdicts(path)
    rewrite(open_capture(there), back, what.inverse())
    assert [bytes(r.octets) for r in open_capture(back).records()] == [
        bytes(r.octets) for r in open_capture(path).records()
    ]


@pytest.mark.parametrize(
    "path", [p for p in PCAPS if p.stem in ("clean", "corrupt_req_5pct", "cmtime")], ids=str
)
def test_an_anonymised_capture_is_valid_and_the_key_leads_back(path: Path, tmp_path: Path):
    there, back = tmp_path / "there", tmp_path / "back"
    what = Orders(anonymous("secret"))
    rewrite(open_capture(path), there, what)
    assert verdicts(there) == verdicts(path)
    before = [dissect(r.octets) for r in open_capture(path).records()]
    after = [dissect(r.octets) for r in open_capture(there).records()]
    flows = [{(d.find(net.IPV4).values["src"], d.bth["dqpn"]) for d in ds if d.bth} for ds in (before, after)]
    assert len(flows[0]) == len(flows[1])
    assert not flows[0] & flows[1]
    rewrite(open_capture(there), back, what.inverse())
    assert back.read_bytes()[24:] == path.read_bytes()[24:]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_kind_of_frame_says_what_was_asked(case):
    frame = case.octets
    what = orders(*MAPS)
    new = dissect(one(frame, what))
    old = dissect(frame)
    assert new.icrc.ok
    assert new.bth["dqpn"] == (old.bth["dqpn"] + 0x1000) & 0xFFFFFF
    assert new.bth["psn"] == (
        old.bth["psn"] if old.opcode and old.opcode.name == "CNP" else old.bth["psn"] + 0x123456 & 0xFFFFFF
    )
    assert one(one(frame, what), what.inverse()) == frame


FRAMES = {
    "ipv4": roce_frame(Way(ip_id=0x7777, sport=0xC123, vid=7), 4, {"bth": {"psn": 5}}, b"hello"),
    "ipv6": roce_frame(Way(src="fd00::1", dst="fd00::2", flow_label=0x123, sport=0xC123), 4, {}, b"hello"),
    "rocev1": roce_frame(Way(src="fe80::1", dst="fe80::2", v1=True, flow_label=0x77), 4, {}, b"hello"),
    "mapped": roce_frame(Way(src="10.0.0.1", dst="10.0.0.2", v1=True), 4, {}, b"hello"),
}


@pytest.mark.parametrize(
    ("name", "there", "back"),
    [
        ("ipv4", "ipv6", "ipv4"), ("ipv6", "rocev1", "ipv6"), ("rocev1", "ipv6", "rocev1"),
        ("mapped", "ipv4", "rocev1"), ("mapped", "ipv6", "rocev1"),
    ],
)  # fmt: skip
def test_another_network_header_and_back(name: str, there: str, back: str):
    frame = FRAMES[name]
    new = one(frame, Orders(family=there))
    read = dissect(new)
    assert read.status == "ok"
    assert read.icrc.ok
    assert read.kind == ("rocev1" if there == "rocev1" else "rocev2")
    assert one(new, Orders(family=back)) == frame


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_exchanged_headers_without_complaint(tmp_path: Path):
    import tshark

    frames = [one(FRAMES["ipv4"], Orders(family=f)) for f in ("ipv4", "ipv6", "rocev1")]
    path = tmp_path / "a.pcap"
    write_pcap(path, (Record(i + 1, i, 0, 1, len(f), len(f), f) for i, f in enumerate(frames)))
    rows = tshark.rows(tshark.read(path))
    assert [r.get("infiniband.bth.psn") for r in rows] == ["5"] * 3
    # that zero checksum is what Linux sends over IPv6
    assert [r.get("_ws.expert.message", "") for r in rows] == ["", "Illegal checksum value (0)", ""]


def test_wrong_checksums_stay_as_wrong_unless_told_otherwise():
    frame = roce_frame(Way(), 4, {"ip": {"chksum": 0x1234}, "icrc": {"value": 0xDEADBEEF}}, b"payload")
    move = orders("ip:10.0.0.1=10.0.0.9", "psn:+5")
    new = dissect(one(frame, move))
    assert new.icrc.ok is False
    assert not net.ipv4_checksum_ok(one(frame, move)[14:34])
    assert one(one(frame, move), move.inverse()) == frame
    assert dissect(one(frame, Orders(move.maps, icrc="fix"))).icrc.ok
    assert one(frame, Orders(move.maps, icrc="keep"))[-4:] == bytes.fromhex("deadbeef")
    good = roce_frame(Way(), 4, {}, b"payload")
    assert dissect(one(good, Orders(icrc="bad"))).icrc.ok is False


def test_a_udp_checksum_follows():
    frame = roce_frame(Way(), 4, {}, b"payload!")
    plain = bytearray(frame)
    pseudo = frame[26:34] + (len(frame) - 34).to_bytes(4, "big") + (17).to_bytes(4, "big")
    plain[40:42] = (net.internet_checksum(pseudo + frame[34:]) or 0xFFFF).to_bytes(2, "big")
    new = one(bytes(plain), orders("ip:10.0.0.1=10.7.7.7", "sport:+1"))
    pseudo = new[26:34] + (len(new) - 34).to_bytes(4, "big") + (17).to_bytes(4, "big")
    assert net.internet_checksum(pseudo + new[34:]) in (0, 0xFFFF)
    assert dissect(new).icrc.ok


def test_scrubbed_payload_and_pads():
    frame = roce_frame(Way(), 4, {}, b"secret!")
    zero, chance = one(frame, Orders(payload="zero")), one(frame, Orders(payload="random"))
    assert b"secret" not in zero + chance
    assert zero[54:61] == bytes(7)
    assert all(dissect(f).icrc.ok and dissect(f).padcount == 1 for f in (zero, chance))


def test_a_tag_is_pushed_and_popped():
    frame = roce_frame(Way(), 4, {}, b"x")
    tagged = one(frame, orders("vlan:none=100", "pcp:*=4"))
    assert dissect(tagged).find(net.VLAN).values["vid"] == 100
    assert dissect(tagged).find(net.VLAN).values["pcp"] == 4
    assert dissect(tagged).icrc.ok
    assert one(tagged, orders("vlan:100=none")) == frame


@given(st.sampled_from(sorted(SUBJECTS)), st.data())
def test_keyed_mappings_are_bijections(name: str, data):
    keyed = anonymous("k").get(name)
    if keyed is None:
        return
    value = data.draw(st.integers(0, (1 << keyed.bits) - 1))
    if name == "ip":
        value = data.draw(
            st.one_of(st.integers(0, (1 << 32) - 1).map(lambda v: v | 0xFFFF << 32), st.just(value))
        )
    assert keyed.inverse(name)(keyed(value)) == value
    assert 0 <= keyed(value) < 1 << keyed.bits


@given(st.integers(0, (1 << 28) - 1), st.integers(0, (1 << 28) - 1))
def test_anonymised_addresses_share_as_long_a_prefix(a: int, b: int):
    ip = anonymous("k")["ip"]
    one_, two = ip(0xFFFF << 32 | a), ip(0xFFFF << 32 | b)
    assert (one_ ^ two).bit_length() == (a ^ b).bit_length()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dcsp:1=2", "did you mean 'dscp'"),
        ("dscp:1=64", "does not fit 6 bits"),
        ("ip:10.0.0=1.1.1.1", "is no IPv4"),
        ("ip:10.0.0.0/24=10.0.0.0/16", "of one size"),
        ("mac:1=2", "is no MAC"),
        ("psn:7", "write psn:OLD=NEW"),
    ],
)
def test_a_mapping_that_cannot_be_read_is_refused_in_words(text: str, says: str):
    with pytest.raises(InputError, match=says):
        parse_map(text, {})


def test_no_way_back_is_said():
    with pytest.raises(InputError, match="no way back"):
        orders("dscp:*=46").inverse()


def test_an_ipv6_address_does_not_go_into_ipv4():
    with pytest.raises(InputError, match=r"fe80::1 has no IPv4 form; map it first"):
        one(FRAMES["rocev1"], Orders(family="ipv4"))


@pytest.mark.parametrize("name", ["clean", "corrupt_req_5pct", "ecn_ce_v6_write", "cmtime"])
def test_in_bulk_it_is_what_the_plain_way_makes(name: str, pcaps: Path, tmp_path: Path, monkeypatch):
    path = pcaps / f"{name}.pcap"
    frames = [
        next(f for n, f in FRAMES.items() if n == kind) for kind in ("ipv4", "ipv6", "rocev1", "mapped")
    ]
    records = [*open_capture(path).records()]
    extra = [Record(0, 10**9 + i, 0, 1, len(f), len(f), f) for i, f in enumerate(frames)]
    cut = [r._replace(octets=bytes(r.octets)[:60], cap_len=60, wire_len=r.wire_len) for r in records[:3]]
    source, plain, fast = (tmp_path / n for n in ("source.pcap", "plain", "fast"))
    write_pcap(source, [*records, *extra, *cut])
    what = orders(*(text for text in MAPS if not text.startswith("vlan")), "vlan:7=9")
    told = rewrite(open_capture(source), plain, what)
    monkeypatch.setattr(bulk, "LEAST_BYTES", 0)
    assert bulk.large(open_capture(source))
    assert bulk.in_place(open_capture(source), what)
    assert rewrite(open_capture(source), fast, what) == told
    assert fast.read_bytes() == plain.read_bytes()
