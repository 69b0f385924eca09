"""Frames made from columns or rewritten in place, held to captured octets and to full computation."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roce_pkt import capture
from roce_pkt.capture.build import FrameBuilder, write_frames
from roce_pkt.capture.model import Interface, Record
from roce_pkt.capture.rewrite import Rewriter
from roce_pkt.capture.writer import write_pcap
from roce_pkt.errors import InputError
from roce_pkt.wire import mac_control, net
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.opcode import OPCODES

PCAPS = Path(__file__).parents[2] / "pcaps"
CLEAN = [path for path in sorted(PCAPS.glob("*.pcap")) if "corrupt" not in path.name]


def roce_with_payload(path):
    """Untunnelled RoCE frames of a capture, their payloads, and where each starts."""
    frames = capture.open(path).frames()
    keep = (frames.kind == 1) & (frames.icrc_ok == 1) & (frames.tunnel_count == 0) & (frames.trailer_len == 0)
    frames = frames[keep]
    parts, starts = [], []
    for i in range(len(frames)):
        at, size = int(frames.payload_offset[i]), int(frames.payload_len[i])
        starts.append(sum(map(len, parts[-1:])) + (starts[-1] if starts else 0))
        parts.append(bytes(frames.octets(i)[at : at + size]))
    return frames, b"".join(parts), np.array(starts, np.uint64)


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_captured_frames_are_made_again_octet_for_octet(tmp_path, form):
    checked = 0
    for path in CLEAN:
        frames, payload, starts = roce_with_payload(path)
        if not len(frames):
            continue
        out = tmp_path / f"{path.stem}.{form}"
        wire = Interface("eth0", 1, 100_000_000_000)
        assert write_frames(out, frames, payload, starts, interfaces=[wire]) == len(frames)
        again = capture.open(out)
        made = again.frames()
        same = [made.octets(i) == frames.octets(i) for i in range(len(frames))]
        assert all(same), (path.name, same.index(False))
        assert (made.time_ns == frames.time_ns).all()
        assert not again.losses
        if form == "pcapng":
            assert again.interfaces == [wire]
        checked += len(frames)
    assert checked > 1000


def test_pauses_and_tags_are_made_right(tmp_path):
    quanta = np.array([[0, 1, 2, 3, 4, 5, 6, 0xFFFF], [0] * 8], np.uint16)
    columns = {
        "kind": np.array([3, 4], np.uint8),
        "eth_dst": mac_control.DESTINATION,
        "eth_src": 0x020000000001,
        "pfc_enabled": np.array([0x88, 0], np.uint8),
        "pfc_quanta": quanta,
        "pause_quanta": np.array([0, 77], np.uint16),
    }
    write_frames(tmp_path / "p.pcap", columns)
    made = capture.open(tmp_path / "p.pcap").frames()
    head = mac_control.DESTINATION.to_bytes(6, "big") + bytes.fromhex("020000000001") + b"\x88\x08"
    assert bytes(made.octets(0)) == (
        head + mac_control.pfc_octets(dict(enumerate(quanta[0].tolist())), 0x88)
    ).ljust(60, b"\0")
    assert bytes(made.octets(1)) == (head + mac_control.pause_octets(77)).ljust(60, b"\0")


columns_for_frames = st.fixed_dictionaries(
    {
        "opcode": st.sampled_from(sorted(OPCODES)),
        "kind": st.sampled_from([1, 1, 2]),
        "ip_version": st.sampled_from([4, 6]),
        "vlan_count": st.integers(0, 2),
        "payload_len": st.integers(0, 64),
        "psn": st.integers(0, 0xFFFFFF),
        "dqpn": st.integers(0, 0xFFFFFF),
        "src_hi": st.just(0),
        "src_lo": st.integers(0xFFFF00000000, 0xFFFFFFFFFFFF),
        "va": st.integers(0, (1 << 64) - 1),
        "msn": st.integers(0, 0xFFFFFF),
        "becn": st.integers(0, 1),
        "vid": st.integers(1, 4095),
        "flowlabel": st.integers(0, 0xFFFFF),
    }
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(columns_for_frames, min_size=1, max_size=8))
def test_made_frames_read_back_with_their_values_and_a_right_icrc(tmp_path_factory, rows):
    for row in rows:
        if not OPCODES[row["opcode"]].payload:
            row["payload_len"] = 0
        if row["kind"] == 2:
            row["ip_version"] = 0
    columns = {name: np.array([row[name] for row in rows], np.uint64) for name in rows[0]}
    path = tmp_path_factory.getbasetemp() / "made.pcap"
    write_frames(path, columns, bytes(range(64)), force=True)
    for row, record in zip(rows, capture.open(path).records(), strict=True):
        found = dissect(record.octets)
        assert found.status == "ok"
        assert found.icrc.ok
        assert (found.bth["psn"], found.bth["dqpn"], found.bth["becn"]) == (
            row["psn"],
            row["dqpn"],
            row["becn"],
        )
        assert found.payload_len == row["payload_len"]
        assert sum(layer.header is net.VLAN for layer in found.layers) == row["vlan_count"]
        at = found.payload_offset
        assert bytes(record.octets[at : at + found.payload_len]) == bytes(range(row["payload_len"]))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"psnn": 1}, "did you mean 'psn'"),
        ({"psn": np.arange(3), "dqpn": np.arange(2)}, "differ in length"),
        ({"payload_len": 10}, "payloads reach to octet 10"),
        ({"kind": 0}, "kind `other`"),
    ],
)
def test_what_cannot_be_made_is_said(columns, says):
    with pytest.raises(InputError, match=says):
        FrameBuilder(columns)


def udp_checksum(octets, network):
    """The checksum of the UDP datagram of an untagged frame, computed in full."""
    at = 14 + (20 if network == 4 else 40)
    addresses = octets[26:34] if network == 4 else octets[22:54]
    datagram = octets[at : at + int.from_bytes(octets[at + 4 : at + 6], "big")]
    cleared = datagram[:6] + b"\0\0" + datagram[8:]
    return net.internet_checksum(addresses + (17).to_bytes(2, "big") + datagram[4:6] + cleared) or 0xFFFF


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rewritten_frames_keep_every_checksum_and_wrong_icrcs_stay_wrong(tmp_path_factory, data):
    rows = data.draw(st.lists(columns_for_frames, min_size=1, max_size=6))
    for row in rows:
        row["kind"], row["vlan_count"] = 1, 0
        if not OPCODES[row["opcode"]].payload:
            row["payload_len"] = 0
    base = tmp_path_factory.getbasetemp()
    columns = {name: np.array([row[name] for row in rows], np.uint64) for name in rows[0]}
    write_frames(base / "a.pcap", columns, bytes(range(64)), force=True)
    records = []
    broken = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    for row, record, bad in zip(rows, capture.open(base / "a.pcap").records(), broken, strict=True):
        octets = bytearray(record.octets)
        if bad:
            octets[-1] ^= 0x10
        at = 14 + (20 if row["ip_version"] == 4 else 40)
        octets[at + 6 : at + 8] = udp_checksum(bytes(octets), row["ip_version"]).to_bytes(2, "big")
        records.append(record._replace(octets=bytes(octets)))
    write_pcap(base / "b.pcap", records, force=True)
    frames = capture.open(base / "b.pcap").frames()
    assert frames.icrc_ok.tolist() == [int(not bad) for bad in broken]
    new = data.draw(columns_for_frames)
    names = data.draw(
        st.sets(st.sampled_from(["psn", "dqpn", "src_lo", "va", "becn", "flowlabel", "msn"]), min_size=1)
    )
    octets = np.frombuffer((base / "b.pcap").read_bytes(), np.uint8).copy()
    done = Rewriter().rewrite(octets, 0, frames, {name: new[name] for name in names})
    assert (done.repaired, done.left_wrong, done.not_repaired) == (broken.count(False), broken.count(True), 0)
    (base / "c.pcap").write_bytes(octets.tobytes())
    for row, record, bad in zip(rows, capture.open(base / "c.pcap").records(), broken, strict=True):
        found, raw = dissect(record.octets), bytes(record.octets)
        assert found.icrc.ok is not bad
        if row["ip_version"] == 4:
            assert net.ipv4_checksum_ok(raw[14:34])
        assert found.find(net.UDP).values["chksum"] == udp_checksum(raw, row["ip_version"])
        for name in names & {"psn", "dqpn", "becn"}:
            assert found.bth[name] == new[name]
        at = found.payload_offset
        assert raw[at : at + found.payload_len] == bytes(range(row["payload_len"]))


def test_rewriting_refuses_what_lays_frames_out():
    frames = capture.open(PCAPS / "clean.pcap").frames()
    octets = np.zeros(10, np.uint8)
    with pytest.raises(InputError, match="lays the frame out"):
        Rewriter().rewrite(octets, 0, frames, {"opcode": 4})
    with pytest.raises(InputError, match="did you mean 'dqpn'"):
        Rewriter().rewrite(octets, 0, frames, {"dqp": 4})
    with pytest.raises(InputError, match="psn holds 24 bits"):
        Rewriter().rewrite(octets, 0, frames, {"psn": 1 << 24})
    assert Rewriter().rewrite(octets, 0, frames, {"psn": 1}).not_repaired > 0


def test_records_made_by_hand_keep_lengths(tmp_path):
    record = Record(1, 5, 0, 1, 3, 100, b"abc")
    write_pcap(tmp_path / "x.pcap", [record])
    assert next(capture.open(tmp_path / "x.pcap").records())[:6] == record[:6]
