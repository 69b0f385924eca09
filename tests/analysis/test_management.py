"""Rules for management datagrams: each rule broken once, lies and cuts found, real captures clean."""

from __future__ import annotations

import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_pkt.analysis.check import check
from roce_pkt.capture import open as open_capture
from roce_pkt.capture.model import Record
from roce_pkt.capture.writer import write_pcap
from roce_pkt.wire import cm, connect, ib, mad, management, rdma_cm
from roce_pkt.wire.build import Path, roce_frame
from roce_pkt.wire.exchange import Pair
from roce_pkt.wire.opcode import BY_NAME

UD = BY_NAME["UD_SEND_ONLY"].value
GSI = {"qkey": ib.GSI_QKEY, "sqpn": 1}


@pytest.fixture
def found(tmp_path):
    """Findings about frames made here, as {rule: [text]}."""

    def run(*frames):
        path = tmp_path / "made.pcap"
        records = (Record(i, i, 0, 1, len(f), len(f), f) for i, f in enumerate(frames, 1))
        write_pcap(path, records, force=True)
        out = {}
        for finding in check(open_capture(path)).findings:
            assert 1 <= finding.frame <= len(frames)
            out.setdefault(finding.rule, []).append(finding.text)
        return out

    return run


def sent(octets, dqpn=1, deth=GSI, path=None):
    return roce_frame(path or Path(), UD, {"bth": {"dqpn": dqpn}, "deth": deth}, octets)


def message(header, values=None, private=b"", **base):
    usual = {"qpn": 5} if "qpn" in header.places else {}
    return sent(management.cm_octets(header, usual | (values or {}), private, base))


GOOD_PRIVATE = rdma_cm.RDMA_CM_V4.pack({"src": 1, "dst": 2})
NVME = {"service_id": rdma_cm.service_id(4420)}

BROKEN = [
    ("mad.length", sent(bytes([1, 7, 2, 3]) + bytes(100)), "this one has 104"),
    ("mad.length", sent(b""), "this one has 0"),
    ("mad.base_version", message(cm.RTU, baseversion=2), "base version 2 is not 1"),
    ("mad.class_version", message(cm.RTU, classversion=1), "CM class version 1 is not 2"),
    ("mad.class_version", sent(management.mad_octets({"mgmtclass": 3})), "SubnAdm class version 1 is not 2"),
    ("mad.queue_pair", sent(management.mad_octets({"mgmtclass": 1})), "Subn (LID routed) on QP 1"),
    ("mad.queue_pair", sent(management.cm_octets(cm.RTU, {}), dqpn=0), "CM on QP 0"),
    ("mad.queue_pair", sent(management.cm_octets(cm.RTU, {}), dqpn=0x77), "goes to QP 0x77"),
    ("mad.queue_pair", sent(management.cm_octets(cm.RTU, {}), 0x77, {"qkey": 5}), "with Q_Key 0x00000005"),
    ("cm.method", message(cm.RTU, method=1), "CM RTU with method Get"),
    ("cm.attribute", message(cm.RTU, attributeid=0x99), "0x0099 is no message"),
    ("cm.info_length", message(cm.REJ, {"rejected_info_length": 73, "reason": 1}), "REJ claims 73 octets"),
    ("cm.info_length", message(cm.APR, {"info_length": 255}), "APR claims 255 octets"),
    ("cm.reason", message(cm.REJ, {"reason": 34}), "reason 34"),
    ("cm.mtu", message(cm.REQ, {"mtu": 6}), "MTU code 6"),
    ("cm.transport", message(cm.REQ, {"transport_service_type": 3}), "extended transport 0"),
    ("cm.queue_pair", message(cm.REQ, {"qpn": 1}), "REQ offers QP 0x1"),
    ("cm.queue_pair", message(cm.REP, {"qpn": 0xFFFFFF}), "REP offers QP 0xffffff"),
    ("cm.queue_pair", message(cm.SIDR_REP, {"qpn": 0}), "SIDR_REP offers QP 0x0"),
    ("cm.private_data", message(cm.REQ, NVME), "IP version 0"),
    ("cm.private_data", message(cm.SIDR_REQ, {"service_id": 0x1110001}, b"\0\x50"), "IP version 5"),
    ("cm.private_data", message(cm.REQ, NVME, b"\x10" + GOOD_PRIVATE[1:]), "major version 1"),
    (
        "cm.private_data",
        message(cm.REQ, NVME, GOOD_PRIVATE[:4] + b"\1" + GOOD_PRIVATE[5:]),
        "more than four octets",
    ),
]


@pytest.mark.parametrize(("rule", "frame", "words"), BROKEN)
def test_each_rule(found, rule, frame, words):
    assert any(words in text for text in found(frame)[rule])


def test_nvme_rules(found):
    for values, words in (({"recfmt": 1}, "record format 1"), ({"hrqsize": 0}, "leave no queue")):
        one = connect.Side(private=rdma_cm.NVME_REQ.pack(values))
        assert words in found(one.send(cm.REQ))["nvme.private_data"][0]


@pytest.mark.parametrize("path", [Path(), Path(src="fd00::1", dst="fd00::2")], ids=["ipv4", "ipv6"])
def test_private_data_that_lies_about_the_addresses(found, path):
    honest = connect.Side(Pair(path), private=rdma_cm.NVME_REQ.pack({}))
    assert not found(honest.send(cm.REQ))
    told = found(
        honest.send(cm.REQ, {"primary_local_gid": 0xFFFF_0A00_0009 if not path.src.count(":") else 9})
    )
    assert [text.startswith("RDMA-CM source") for text in told["cm.private_data"]] == [True]
    assert "is not the path's GID" in told["cm.private_data"][0]


def test_a_whole_connection_is_clean(found):
    for path in (Path(), Path(src="fd00::1", dst="fd00::2"), Path(src="fe80::1", dst="fe80::2", v1=True)):
        client = connect.Side(Pair(path), private=rdma_cm.NVME_REQ.pack({}))
        assert not found(*connect.connection(client, client.peer(), b"hello"))
        assert not found(
            *connect.rejection(client, client.peer()), *connect.resolution(client, client.peer())
        )


def test_what_is_no_mad_is_left_alone(found):
    assert not found(sent(b"\1" * 256, 0x77, {"qkey": 5}), sent(b"\1" * 100, 0x77))


def test_unknown_classes_are_no_fault(found):
    for kind in (0x0A, 0x33, 0x2A, 0xE0):
        assert not found(sent(management.mad_octets({"mgmtclass": kind, "classversion": 9})))


def test_damaged_frames_have_one_finding(found):
    frame = bytearray(message(cm.RTU, classversion=1))
    frame[-1] ^= 1
    assert list(found(bytes(frame))) == ["icrc.wrong"]


def test_a_mad_in_a_reliable_packet(found):
    frame = roce_frame(
        Path(), BY_NAME["RC_SEND_ONLY"].value, {"bth": {"dqpn": 1}}, management.cm_octets(cm.REQ, {})
    )
    assert list(found(frame)) == ["gsi.transport"]


@pytest.mark.parametrize(
    "name", ["nvme_connect_io", "rping_v6", "udaddy_v6", "cmtime", "riostream", "perftest_all"]
)
def test_real_captures_are_clean(name):
    assert not check(open_capture(ROOT / "pcaps" / f"{name}.pcap")).findings


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.binary(max_size=260), st.integers(0, 11)), max_size=6)
)
def test_any_datagrams_are_judged(tmp_path_factory, parts):
    frames = []
    for dqpn, octets, attribute in parts:
        start = bytes([1, mad.CLASS_CM, 2, 3]) + bytes(12) + bytes([0, 0x10 + attribute])
        frames.append(sent(start + octets, dqpn))
    path = tmp_path_factory.mktemp("any") / "any.pcap"
    write_pcap(path, (Record(i, i, 0, 1, len(f), len(f), f) for i, f in enumerate(frames, 1)))
    verdict = check(open_capture(path))
    short = {i for i, (dqpn, octets, _) in enumerate(parts, 1) if len(octets) + 18 != 256 and dqpn < 2}
    assert {f.frame for f in verdict.findings if f.rule == "mad.length"} == short


def test_frames_cut_by_the_capture_raise_nothing(tmp_path):
    whole = connect.Side(private=b"\xff" * 56).send(cm.REQ)
    for size in range(0, len(whole), 3):
        path = tmp_path / f"{size}.pcap"
        write_pcap(path, [Record(1, 1, 0, 1, size, len(whole), whole[:size])])
        rules = {finding.rule for finding in check(open_capture(path)).findings}
        assert not {rule for rule in rules if rule.startswith("mad.")}
