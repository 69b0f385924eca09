"""Management datagrams: base and RMPP headers, names, every class readable, every cut survived."""

from __future__ import annotations

import pytest
from cases import IPV4, IPV6, V1
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.wire import cm, ib, mad, management
from roce_pkt.wire.build import roce_frame
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.opcode import BY_NAME
from roce_pkt.wire.present import frame_json, summary, tree

GSI = {"qkey": ib.GSI_QKEY, "sqpn": 1}
UD = BY_NAME["UD_SEND_ONLY"].value


def frame_of(octets, path=IPV4, dqpn=1, deth=GSI):
    return roce_frame(path, UD, {"bth": {"dqpn": dqpn}, "deth": deth}, octets)


def shown(frame, **how):
    """The frame as JSON, as a line and as a tree."""
    read = dissect(frame, **how)
    wire_len = how.get("wire_len") or len(frame)
    lines = [text for _, text in tree(read, wire_len, len(frame))]
    return read, frame_json(read, 1, 0, wire_len, len(frame)), summary(read), lines


def test_base_header_octet_by_octet():
    octets = bytes.fromhex("01 07 02 03 1234 5678 1122334455667788 0010 0000 a1a2a3a4")
    assert mad.MAD.unpack(octets) == {
        "baseversion": 1, "mgmtclass": 7, "classversion": 2, "method": 3, "status": 0x1234,
        "classspecific": 0x5678,
        "transactionid": 0x1122334455667788, "attributeid": 0x10, "resv16": 0,
        "attributemodifier": 0xA1A2A3A4,
    }  # fmt: skip
    assert mad.MAD.size_bytes + mad.DATA_BYTES == mad.MAD_BYTES == 256


def test_rmpp_header_octet_by_octet():
    octets = bytes.fromhex("01 02 fd 7f 00000009 000000dc")
    assert mad.RMPP.unpack(octets) == {
        "version": 1, "type": 2, "resptime": 31, "flags": 5, "status": 0x7F, "segment": 9, "length": 220,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mgmtclass", "method", "attribute", "words"),
    [
        (0x01, 0x01, 0x11, "Subn (LID routed) Get(NodeInfo)"),
        (0x81, 0x81, 0x15, "Subn (directed route) GetResp(PortInfo)"),
        (0x03, 0x12, 0x35, "SubnAdm GetTable(PathRecord)"),
        (0x03, 0x92, 0x38, "SubnAdm GetTableResp(MCMemberRecord)"),
        (0x04, 0x01, 0x12, "Perf Get(PortCounters)"),
        (0x04, 0x02, 0x01, "Perf Set(ClassPortInfo)"),
        (0x07, 0x01, 0x01, "CM Get(ClassPortInfo)"),
        (0x07, 0x03, 0x77, "CM Send(attribute 0x0077)"),
        (0x0A, 0x44, 0xFF, "vendor class 0x0a method 0x44(attribute 0x00ff)"),
        (0x33, 0x03, 0x02, "vendor class 0x33 Send(Notice)"),
        (0x2A, 0x05, 0x02, "application class 0x2a Trap(Notice)"),
        (0xE0, 0x07, 0x02, "class 0xe0 TrapRepress(Notice)"),
    ],
)
def test_every_class_is_readable(mgmtclass, method, attribute, words):
    data = bytes(range(232))
    base = {"mgmtclass": mgmtclass, "method": method, "attributeid": attribute, "transactionid": 2**64 - 1}
    _, document, line, lines = shown(frame_of(management.mad_octets(base, data)))
    assert words in line
    assert document["mad"]["mgmtclass"] == mgmtclass
    assert document["mad"]["transactionid"] == "0xffffffffffffffff"
    rest = data[12:] if mad.uses_rmpp(mgmtclass) else data
    assert document["mad"]["data"] == rest.hex()
    assert ("rmpp" in document) is mad.uses_rmpp(mgmtclass)
    assert "cm" not in document
    assert any(text.startswith("Data  octets") for text in lines)


def test_classes_with_rmpp_are_the_kernels():
    # SubnAdm, DevMgt, DevAdm, BIS and the second vendor range: ib_is_mad_class_rmpp
    assert [c for c in range(256) if mad.uses_rmpp(c)] == [0x03, 0x06, 0x10, 0x12, *range(0x30, 0x50)]


def test_status_in_words():
    assert mad.status_text(0) == ""
    assert mad.status_text(1) == "busy"
    assert mad.status_text(0x0C) == "method and attribute not supported together"
    assert mad.status_text(0x7F00) == ""
    assert mad.status_text(0x0014) == "status 0x0014"
    base = {"mgmtclass": mad.CLASS_PERF, "method": 0x81, "attributeid": 0x12, "status": 0x1C}
    assert "[invalid value in attribute or modifier]" in shown(frame_of(management.mad_octets(base)))[2]


def test_the_payload_of_the_transport_is_the_whole_datagram():
    for path in (IPV4, IPV6, V1):
        read, document, _, _ = shown(frame_of(management.cm_octets(cm.RTU, {}), path))
        assert (read.status, read.icrc.ok, read.payload_len) == ("ok", True, 256)
        assert document["payload"]["length"] == 256
        assert read.management.layers[0].offset == read.payload_offset


@pytest.mark.parametrize(
    ("dqpn", "deth", "is_mad"),
    [
        (0, {"qkey": 5}, True),
        (1, {"qkey": 5}, True),
        (2, {"qkey": 5}, False),
        (2, GSI, True),
        (0x123456, GSI, True),
        (0xFFFFFF, {"qkey": ib.GSI_QKEY - 1}, False),
    ],
)
def test_which_datagrams_are_mads(dqpn, deth, is_mad):
    octets = management.cm_octets(cm.REQ, {})
    assert (dissect(frame_of(octets, dqpn=dqpn, deth=deth)).management is not None) is is_mad
    if dqpn > 1:  # elsewhere the size and the base version must fit too
        for other in (octets[:-4], b"\x02" + octets[1:], b""):
            assert dissect(frame_of(other, dqpn=dqpn, deth=deth)).management is None


def test_a_reliable_packet_to_qp_1_is_no_mad():
    frame = roce_frame(
        IPV4, BY_NAME["RC_SEND_ONLY"].value, {"bth": {"dqpn": 1}}, management.cm_octets(cm.REQ, {})
    )
    assert dissect(frame).management is None


@pytest.mark.parametrize("attribute", [0x10, 0x13, 0x12, 0x18, 0x99])
@pytest.mark.parametrize("mgmtclass", [mad.CLASS_CM, mad.CLASS_SUBN_ADM, 0x77])
def test_every_cut_is_survived(attribute, mgmtclass):
    base = {"mgmtclass": mgmtclass, "attributeid": attribute, "classversion": 2, "method": 3}
    data = bytes.fromhex("0000000001061144").rjust(16, b"\1") + b"\x11" * 216
    whole = frame_of(management.mad_octets(base, data))
    for size in range(len(whole)):
        shown(whole[:size], wire_len=len(whole))  # cut by the capture
    for size in range(257):
        read, document, _, _ = shown(frame_of(management.mad_octets(base, data)[:size]))
        assert (read.status, read.icrc.ok, read.payload_len) == ("ok", True, size)
        assert ("mad" in document) is (size >= 24)


@given(st.binary(max_size=300), st.sampled_from([0, 1, 2]), st.booleans())
def test_any_octets_to_the_management_queue_pairs(octets, dqpn, with_base):
    if with_base:
        octets = bytes([1, 7, 2, 3]) + octets[:14] + bytes([0, 0x10 + len(octets) % 12]) + octets[16:]
    read, document, line, _ = shown(frame_of(octets, dqpn=dqpn))
    assert read.status == "ok"
    assert "\n" not in line
    if read.management and read.management.layers:
        packed = b"".join(layer.header.pack(layer.values) for layer in read.management.layers)
        assert packed == octets[: len(packed)]
    assert read.management is None or ("mad" in document) is (len(octets) >= 24)


def test_too_much_data_is_refused():
    with pytest.raises(ValueError, match="232 octets"):
        management.mad_octets({}, bytes(233))
    with pytest.raises(ValueError, match="92 octets of private data"):
        management.cm_octets(cm.REQ, {}, bytes(93))
    with pytest.raises(KeyError, match="no field"):
        management.cm_octets(cm.REQ, {"qnp": 1})
