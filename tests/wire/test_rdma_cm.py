"""Service ids, the RDMA-CM private data header, application names, NVMe-oF and rsockets data."""

from __future__ import annotations

import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.capture import open as open_capture
from roce_pkt.wire import cm, connect, ib, management, rdma_cm
from roce_pkt.wire.build import Path, roce_frame
from roce_pkt.wire.exchange import Pair
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.opcode import BY_NAME
from roce_pkt.wire.present import frame_json, tree


def json_of(octets, wire_len=0):
    return frame_json(dissect(octets), 1, 0, wire_len, 0)


def real(name, number):
    """One frame of a capture as JSON."""
    for record in open_capture(ROOT / "pcaps" / f"{name}.pcap").records():
        if record.number == number:
            return json_of(record.octets)
    raise AssertionError(number)


def request(service, private, message=cm.REQ):
    octets = management.cm_octets(message, {"service_id": service}, private)
    stack = {"bth": {"dqpn": 1}, "deth": {"qkey": ib.GSI_QKEY}}
    return roce_frame(Path(), BY_NAME["UD_SEND_ONLY"].value, stack, octets)


@pytest.mark.parametrize(
    ("service", "text", "application"),
    [
        (0x0000000001061144, "RDMA-CM TCP port 4420, NVMe-oF", "NVMe-oF"),
        (0x0000000001060CBC, "RDMA-CM TCP port 3260, iSER", "iSER"),
        (0x0000000001064E51, "RDMA-CM TCP port 20049, NFS/RDMA", "NFS/RDMA"),
        (0x00000000010601BD, "RDMA-CM TCP port 445, SMB Direct", "SMB Direct"),
        (0x0000000001061545, "RDMA-CM TCP port 5445, SMB Direct", "SMB Direct"),
        (0x0000000001061C06, "RDMA-CM TCP port 7174, rping", "rping"),
        (0x0000000001111C06, "RDMA-CM UDP port 7174, udaddy", "udaddy"),
        (0x0000000001060001, "RDMA-CM TCP port 1", "unknown"),
        (0x00000000013F1144, "RDMA-CM IB port 4420", "unknown"),
        (0x0000000001051144, "not of RDMA-CM", "unknown"),
        (0x0100000001061144, "not of RDMA-CM", "unknown"),
        (0x0000000000020007, "RDMA-CM IPoIB port 7", "unknown"),
        (0x0000000000011389, "Sockets Direct port 5001", "unknown"),
        (0x0200000000000005, "assigned by the local operating system", "unknown"),
        (0xFFFFFFFFFFFFFFFF, "not of RDMA-CM", "unknown"),
    ],
)
def test_services(service, text, application):
    assert rdma_cm.service_text(service) == text
    assert rdma_cm.application(service) == application
    assert json_of(request(service, bytes(36)))["cm"]["application"] == application


@given(st.integers(0, 0xFFFF), st.sampled_from(["TCP", "UDP", "IB"]))
def test_service_ids_of_ports(port, space):
    assert rdma_cm.space_and_port(rdma_cm.service_id(port, space)) == (space, port)


def test_nvme_over_a_real_connection():
    document = real("nvme_connect_io", 1)
    assert document["rdma_cm"] == {
        "major": 0, "minor": 0, "ip_version": 4, "sport": 37597, "src": "10.0.0.2", "dst": "10.0.0.1",
    }  # fmt: skip
    nvme = document["nvme_rdma"]
    assert (nvme["recfmt"], nvme["qid"], nvme["hrqsize"], nvme["hsqsize"]) == (0, 0, 32, 31)
    assert real("nvme_connect_io", 68)["nvme_rdma"]["qid"] == 1


def test_addresses_of_ipv6():
    document = real("rping_v6", 4)
    assert document["cm"]["message"] == "REQ"
    assert document["rdma_cm"]["ip_version"] == 6
    assert (document["rdma_cm"]["src"], document["rdma_cm"]["dst"]) == ("fd00::2", "fd00::1")
    assert real("udaddy_v6", 1)["rdma_cm"]["src"] == "fd00::2"


def test_rsockets_are_known_by_their_data():
    asked, replied = real("riostream", 1), real("riostream", 2)
    assert asked["cm"]["application"] == "rsockets"
    assert asked["rsocket"]["credits"] == replied["rsocket"]["credits"] == 384
    assert asked["rsocket"]["target_rkey"].startswith("0x")
    # the same port without their data is another of the tools that share it
    assert real("ucmatose_5conn", 1)["cm"]["application"] == "rdmacm-utils"


def test_nvme_octets_are_little_endian():
    octets = rdma_cm.NVME_REQ.pack(
        {"recfmt": 1, "qid": 0x1234, "hrqsize": 128, "hsqsize": 127, "cntlid": 0xFFFF}
    )
    assert octets == bytes.fromhex("0100 3412 8000 7f00 ffff") + bytes(22)
    assert rdma_cm.NVME_REQ.unpack(octets)["qid"] == 0x1234
    assert [h.size_bytes for h in (rdma_cm.NVME_REQ, rdma_cm.NVME_REP, rdma_cm.NVME_REJ)] == [32, 32, 4]


@given(
    st.sampled_from([rdma_cm.RDMA_CM_V4, rdma_cm.RDMA_CM_V6, rdma_cm.RSOCKET, rdma_cm.NVME_REQ]), st.data()
)
def test_private_data_headers_come_back(header, data):
    octets = data.draw(st.binary(min_size=header.size_bytes, max_size=header.size_bytes))
    values = header.unpack(octets)
    assert header.pack(values) == octets
    assert header.unpack(b"\xa5" + octets + b"\xa5", 1) == values


@pytest.mark.parametrize("message", [cm.REQ, cm.SIDR_REQ])
@given(st.data())
def test_lying_private_data_is_readable(message, data):
    service = data.draw(st.sampled_from([0x1061144, 0x1111C06, 0x13F0001, 7]))
    private = data.draw(st.binary(max_size=cm.private_bytes(message)))
    octets = request(service, private, message)
    document = json_of(octets)
    assert bytes.fromhex(document["cm"]["private_data"]).rstrip(b"\0") == private.rstrip(b"\0")
    version = (private + bytes(2))[1] >> 4
    assert ("rdma_cm" in document) is (service >> 16 in (0x106, 0x111) and version in (4, 6))
    list(tree(dissect(octets), 0, 0))


def test_private_data_cut_by_the_capture():
    whole = request(0x1061144, rdma_cm.RDMA_CM_V4.pack({"sport": 5}) + rdma_cm.NVME_REQ.pack({"qid": 3}))
    start = len(whole) - 4 - 92
    for size, there in (
        (0, ()),
        (35, ()),
        (36, ("rdma_cm",)),
        (67, ("rdma_cm",)),
        (68, ("rdma_cm", "nvme_rdma")),
    ):
        read = dissect(whole[: start + size], wire_len=len(whole))
        document = frame_json(read, 1, 0, len(whole), start + size)
        assert tuple(n for n in ("rdma_cm", "nvme_rdma") if n in document) == there
        assert document["cm"]["application"] == "NVMe-oF"


# -- frames made here

PATHS = [Path(), Path(src="fd00::1", dst="fd00::2"), Path(src="fe80::1", dst="fe80::2", v1=True), Path(vid=5)]


@pytest.mark.parametrize("path", PATHS, ids=["ipv4", "ipv6", "v1", "vlan"])
def test_a_whole_connection(path):
    pair = Pair(path, dqpn=0x22, sqpn=0x33, psn=100, mtu_bytes=2048)
    client = connect.Side(pair, private=b"\1" * 8, peer_psn=200)
    frames = [json_of(f) for f in connect.connection(client, client.peer(), b"hello")]
    assert [d.get("cm", {}).get("message") or d["bth"]["name"] for d in frames] == [
        "REQ", "REP", "RTU", "RC_SEND_ONLY", "RC_ACKNOWLEDGE", "DREQ", "DREP",
    ]  # fmt: skip
    assert all(d["icrc"]["ok"] for d in frames)
    req, rep, rtu, send, ack, dreq, drep = frames
    assert (req["cm"]["qpn"], req["cm"]["start_psn"], req["cm"]["mtu_bytes"]) == (0x33, 200, 2048)
    assert (rep["cm"]["qpn"], rep["cm"]["start_psn"]) == (0x22, 100)
    assert (send["bth"]["dqpn"], send["bth"]["psn"]) == (0x22, 100)
    assert ack["bth"]["dqpn"] == 0x33
    assert dreq["cm"]["remote_qpn"] == 0x22
    ids = [(d["cm"]["local_comm_id"], d["cm"].get("remote_comm_id")) for d in (req, rep, rtu, dreq, drep)]
    assert ids == [(1, None), (2, 1), (1, 2), (1, 2), (2, 1)]
    assert (req["rdma_cm"]["src"], req["rdma_cm"]["dst"]) == (path.src, path.dst)
    network = "grh" if path.v1 else "ip"
    ends = ("sgid", "dgid") if path.v1 else ("src", "dst")
    assert tuple(rep[network][e] for e in ends) == tuple(req[network][e] for e in reversed(ends))


def test_values_given_stand_even_when_wrong():
    pair = Pair(extra={"cm": {"qpn": 0}, "mad": {"classversion": 9}, "rdma_cm": {"ip_version": 0}})
    document = json_of(connect.Side(pair).send(cm.REQ))
    assert (document["cm"]["qpn"], document["mad"]["classversion"]) == (0, 9)
    assert "rdma_cm" not in document
