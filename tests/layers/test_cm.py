"""Scapy's MAD and CM layers: what `wire` builds they read, what they build `wire` and tshark read."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw, fuzz
from scapy.utils import wrpcap
from tshark import HEURISTICS

from roce_pkt import layers
from roce_pkt.errors import InputError
from roce_pkt.layers import (
    AETH,
    BTH,
    MAD,
    RDMACM,
    RDMACM6,
    RMPP,
    CMDrep,
    CMDreq,
    CMRej,
    CMRep,
    CMReq,
    CMRtu,
    CMSidrReq,
    NVMeRDMARep,
    NVMeRDMAReq,
    RSocketData,
    gsi,
)
from roce_pkt.layers.mad import MESSAGES
from roce_pkt.wire import cm, connect, mad, management, rdma_cm
from roce_pkt.wire.frame import dissect

NAMES = list(cm.BY_NAME)


def connection():
    """The example of `roce_pkt.layers.cm`: a whole connection."""
    a = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2") / UDP()
    b = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01") / IP(src="10.0.0.2", dst="10.0.0.1") / UDP()
    addresses = RDMACM(src="10.0.0.1", dst="10.0.0.2")
    asks = CMReq(local_comm_id=1, service_id="tcp:4420", qpn=0x33, start_psn=200)
    return [
        a / gsi() / asks / addresses / NVMeRDMAReq(qid=0),
        b / gsi() / CMRep(local_comm_id=2, remote_comm_id=1, qpn=0x22, start_psn=100),
        a / gsi(psn=1) / CMRtu(local_comm_id=1, remote_comm_id=2),
        a / BTH(dqpn=0x22, psn=100, ackreq=1) / b"hello",
        b / BTH(dqpn=0x33, psn=100) / AETH(syndrome=0x1F, msn=1),
        a / gsi(psn=2) / CMDreq(local_comm_id=1, remote_comm_id=2, remote_qpn=0x22),
        b / gsi(psn=1) / CMDrep(local_comm_id=2, remote_comm_id=1),
    ]


def test_a_connection_composed_by_hand(same_fields):
    messages = []
    for packet in connection():
        octets = bytes(packet)
        frame = dissect(octets)
        assert (frame.status, frame.icrc.ok) == ("ok", True)
        again = Ether(octets)
        assert bytes(again) == octets
        same_fields(again, frame)
        if frame.management:
            assert len(octets) == 14 + 20 + 8 + 12 + 8 + 256 + 4
            messages.append(cm.message_name(frame.management.find("cm").header))
    assert messages == ["REQ", "REP", "RTU", "DREQ", "DREP"]


def test_tshark_reads_the_composed_connection(tmp_path, tshark):
    path = str(tmp_path / "composed.pcap")
    wrpcap(path, connection())
    words = [tshark, "-r", path, "-T", "fields", "-n"]
    for name in HEURISTICS:
        words += ["--disable-heuristic", name]
    words += ["-e", "infiniband.mad.attributeid", "-e", "_ws.expert.message"]
    fields = ("req.localqpn", "req.serviceid.dport", "req.ip_cm.sip4", "rep.localqpn", "rep.startpsn")
    for name in fields:
        words += ["-e", f"infiniband.cm.{name}"]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    assert [row[0] for row in rows] == ["0x0010", "0x0013", "0x0014", "", "", "0x0015", "0x0016"]
    assert not any(row[1] for row in rows)
    assert rows[0][2:5] == ["0x000033", "0x1144", "10.0.0.1"]
    assert rows[1][5:] == ["0x000022", "0x000064"]


def test_every_message_has_a_class():
    assert [MESSAGES[attribute].header for attribute in cm.MESSAGES] == list(cm.MESSAGES.values())
    for attribute, kind in MESSAGES.items():
        built = bytes(MAD() / kind())
        assert built == management.cm_octets(kind.header, {})
        assert len(built) == 256
        assert built[16:18] == attribute.to_bytes(2, "big")


@given(st.sampled_from(NAMES), st.data())
def test_both_ways_build_the_same_octets(name, data):
    header = cm.BY_NAME[name]
    kind = MESSAGES[0x10 + NAMES.index(name)]
    values = {f.name: data.draw(st.integers(0, (1 << f.bits) - 1), f.name) for f in header.fields}
    private = data.draw(st.binary(max_size=cm.private_bytes(header)))
    wanted = management.cm_octets(header, values, private)
    fields = {n: v.to_bytes(72, "big") if header.field(n).show == "octets" else v for n, v in values.items()}
    assert bytes(MAD() / kind(**fields) / private) == wanted
    read = BTH(bytes(gsi(transactionid=0) / kind(**fields) / private))
    message = read[kind]
    for field, value in fields.items():
        assert message.getfieldval(field) == value


@given(st.sampled_from(NAMES), st.binary(min_size=232, max_size=232))
def test_any_octets_come_back(name, data):
    octets = management.mad_octets(management.CM_BASE | {"attributeid": 0x10 + NAMES.index(name)}, data)
    side = connect.Side()
    frame = side.send(cm.RTU)
    frame = frame[:62] + octets + frame[-4:]
    packet = Ether(frame)
    assert bytes(packet) == frame
    packet.summary()
    packet.show(dump=True)


def test_private_data_become_layers():
    request = Ether(bytes(connection()[0]))
    assert request[RDMACM].src == "10.0.0.1"
    assert request[NVMeRDMAReq].hrqsize == 32
    other = gsi() / CMReq(service_id="iser") / RDMACM6(src="fd00::1", dst="fd00::2") / b"abc"
    read = BTH(bytes(other))
    assert read[RDMACM6].dst == "fd00::2"
    assert NVMeRDMAReq not in read
    assert bytes(read[RDMACM6].payload).startswith(b"abc\0")
    sockets = RSocketData(credits=1, target_addr=1, target_length=1, buffer_addr=1)
    assert BTH(bytes(gsi() / CMRep() / sockets))[RSocketData].credits == 1
    assert RDMACM not in BTH(bytes(gsi() / CMReq(service_id="ib:5") / b"\0\x40"))
    assert BTH(bytes(gsi() / CMSidrReq(service_id="udp:7174") / RDMACM(sport=5)))[RDMACM].sport == 5
    assert NVMeRDMARep(bytes(NVMeRDMARep(crqsize=0x1234))).crqsize == 0x1234


def test_service_ids_in_words():
    assert CMReq(service_id="tcp:4420").service_id == CMReq(service_id="nvme-of").service_id == 0x1061144
    assert CMReq(service_id="0x0200000000000001").service_id == 0x0200000000000001
    with pytest.raises(InputError, match="did you mean 'nvme-of'"):
        CMReq(service_id="nvmeof")


def test_values_are_shown_with_their_meaning():
    text = (gsi() / CMReq(service_id="rping", mtu=5)).show(dump=True)
    assert "0x1061c06 (RDMA-CM TCP port 7174, rping)" in text
    assert "5 (4096 octets)" in text
    assert "20 (4.096 us x 2^20 = 4.295 s)" in text
    assert "8 (invalid service id: nobody listens)" in CMRej(reason=8).show(dump=True)
    assert "0x7 (CM)" in (MAD() / CMReq()).show(dump=True)


def test_summaries():
    lower = IP(src="10.0.0.1", dst="10.0.0.2") / UDP()
    reject = lower / gsi() / CMRej(remote_comm_id=5, reason=10)
    assert "CM REJ id 0x0 > 0x5 [stale connection]" in reject.summary()
    assert "MAD Perf Get(PortCounters)" in (lower / gsi(mgmtclass=4, method=1, attributeid=0x12)).summary()


def test_other_classes_and_cuts_stay_raw():
    read = BTH(bytes(gsi(mgmtclass=mad.CLASS_SUBN_ADM, attributeid=0x35) / RMPP(type=1, segment=3) / b"x"))
    assert (read[RMPP].segment, bytes(read[RMPP].payload)[:1]) == (3, b"x")
    assert Raw in BTH(bytes(gsi(mgmtclass=0x77) / b"x"))
    whole = connect.Side(private=rdma_cm.NVME_REQ.pack({})).send(cm.REQ)
    for size in range(42, len(whole)):  # from the BTH on
        packet = Ether(whole[:size])
        assert bytes(packet) == whole[:size]
        packet.show(dump=True)
    short = BTH(bytes(BTH(dqpn=1) / layers.DETH() / b"\1\7\2\3"))
    assert MAD not in short


def test_where_a_mad_is_seen():
    for dqpn, qkey, there in ((0, 0, True), (1, 0, True), (2, 0x80010000, True), (2, 0, False)):
        packet = BTH(bytes(BTH(dqpn=dqpn) / layers.DETH(qkey=qkey) / MAD() / CMRtu()))
        assert (MAD in packet) is there


def test_fuzzed_messages_build(strict_scapy):
    for kind in MESSAGES.values():
        for _ in range(5):
            octets = bytes(gsi() / fuzz(kind()))
            assert bytes(BTH(octets)) == octets
