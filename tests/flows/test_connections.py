"""Connections learnt from CM messages: real ones against tshark's reading, made ones against their recipe."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest
import tshark
import tshark_mad
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_pkt.capture import open as open_capture
from roce_pkt.capture.model import Record
from roce_pkt.capture.writer import write_pcap
from roce_pkt.flows import connections as room
from roce_pkt.flows.connections import Connections
from roce_pkt.flows.table import FlowTable
from roce_pkt.run.observe import observe
from roce_pkt.wire import cm, connect, ib, rdma_cm
from roce_pkt.wire.build import Path
from roce_pkt.wire.exchange import Pair, cnp
from roce_pkt.wire.opcode import OPCODES

PCAPS = ROOT / "pcaps"


def learnt(path):
    found = Connections()
    for frames in open_capture(path):
        found.add(frames)
    return found


@pytest.fixture
def learn(tmp_path):
    """Connections in frames made here, a microsecond apart."""

    def run(frames):
        path = tmp_path / "made.pcap"
        records = (Record(i, i * 1000, 0, 1, len(f), len(f), f) for i, f in enumerate(frames, 1))
        write_pcap(path, records, force=True)
        return learnt(path)

    return run


def told_by_tshark(name):
    """Queue pairs and first PSNs of every REQ and REP, by the client's communication id."""
    rows = tshark.rows(gzip.decompress(tshark_mad.golden(PCAPS / f"{name}.pcap").read_bytes()).decode())
    out = {}
    for row in rows:
        if "infiniband.cm.req" in row:
            key = int(row["infiniband.cm.req"], 16)
            fields = ("req.localqpn", "req.startpsn", "req.serviceid.dport")
            out[key] = [int(row[f"infiniband.cm.{f}"], 16) for f in fields]
        elif "infiniband.cm.rep" in row:
            key = int(row["infiniband.cm.rep.remotecommid"], 16)
            out[key] += [int(row[f"infiniband.cm.rep.{f}"], 16) for f in ("localqpn", "startpsn")]
    return out


# what the logs beside the captures say: connections, their application, their outcome
REAL = [
    ("nvme_connect_io", 2, "NVMe-oF", "established"),
    ("rping_v4", 1, "rping", "established"),
    ("rping_v6", 1, "rping", "established"),
    ("rping_lat_persist", 2, "rping", "established"),
    ("ucmatose_5conn", 5, "rdmacm-utils", "established"),
    ("cmtime", 5, "rdmacm-utils", "established"),
    ("rdma_server_client", 1, "rdmacm-utils", "established"),
    ("riostream", 1, "rsockets", "established"),
    ("reject_no_listener", 2, "unknown", "rejected"),
    ("reject_v6_no_listener", 1, "unknown", "rejected"),
]


@pytest.mark.parametrize(("name", "count", "application", "outcome"), REAL)
def test_real_connections(name, count, application, outcome):
    found = learnt(PCAPS / f"{name}.pcap")
    theirs = told_by_tshark(name)
    assert len(found) == len(theirs) == count
    assert (found.orphans, found.left_out) == (0, 0)
    for one in found:
        mine = [one.client.qpn, one.client.start_psn, one.service_id & 0xFFFF]
        if outcome == "established":
            mine += [one.server.qpn, one.server.start_psn]
        assert mine == theirs[one.client.comm_id]
        assert (one.application, one.outcome, one.kind) == (application, outcome, "connection")
        assert (one.transport, one.mtu_bytes, one.requests) == ("RC", 4096, 1)
    assert len(found.halves()) == (2 * count if outcome == "established" else 0)


def test_a_rejection_has_its_reason():
    # the clients' own logs: RDMA_CM_EVENT_REJECTED, error 8
    for one in learnt(PCAPS / "reject_no_listener.pcap"):
        assert (one.reason, one.rejected_by) == (8, "server")
        assert one.why == "invalid service id: nobody listens"
    ports = [one.service_id & 0xFFFF for one in learnt(PCAPS / "reject_no_listener.pcap")]
    assert ports == [7999, 7998]


def test_queues_of_a_real_nvme_connection():
    admin, io = learnt(PCAPS / "nvme_connect_io.pcap")
    assert (admin.data["nvme_rdma"]["qid"], io.data["nvme_rdma"]["qid"]) == (0, 1)
    assert admin.data["nvme_rdma_rep"]["crqsize"] == 32
    assert admin.data["rdma_cm"]["src"] == "10.0.0.2"


def test_real_disconnections_of_connections_older_than_the_capture():
    first, second = learnt(PCAPS / "nvme_disconnect.pcap")
    for one in (first, second):
        assert (one.outcome, one.confirmed, one.closed_by) == ("disconnected", True, "client")
        assert one.client.qpn is None
    assert [first.server.qpn, second.server.qpn] == [0x13, 0x12]


@pytest.mark.parametrize(("name", "qpn"), [("udaddy_v4", 0x1A), ("udaddy_v6", 0x1B)])
def test_real_resolutions(name, qpn):
    (one,) = learnt(PCAPS / f"{name}.pcap")
    assert (one.kind, one.outcome, one.application) == ("resolution", "resolved", "udaddy")
    assert (one.server.qpn, one.qkey) == (qpn, 0x01234567)


def test_a_whole_run_of_many_tools():
    found = learnt(PCAPS / "perftest_all.pcap")
    assert [(one.kind, one.application) for one in found] == [
        ("connection", "rping"),
        ("resolution", "udaddy"),
        ("resolution", "udaddy"),
        ("connection", "rdmacm-utils"),
        ("connection", "rdmacm-utils"),
    ]
    assert all(one.outcome in ("established", "resolved") for one in found)


@pytest.mark.parametrize("name", ["nvme_connect_io", "rping_v6", "riostream"])
def test_flows_find_their_halves_and_their_application(name):
    found = learnt(PCAPS / f"{name}.pcap")
    table, first_psn, compared = FlowTable(), {}, 0
    for frames in open_capture(PCAPS / f"{name}.pcap"):
        data = frames[frames.has(ib.BTH) & (frames.dqpn > 1)]
        for number, opcode, psn in zip(table.number(data), data.opcode, data.psn, strict=True):
            if OPCODES[opcode].request:
                first_psn.setdefault(int(number), int(psn))
    halves, by_flow = found.halves(), found.by_flow()
    assert set(halves) == set(table.keys) == set(by_flow)
    for number, key in enumerate(table.keys):
        one = by_flow[key]
        assert halves[halves[key]] == key
        assert halves[key] in table.keys
        receiver = one.server if key[2:4] == one.server.address else one.client
        assert key[4] == receiver.qpn
        if number in first_psn:
            assert first_psn[number] == receiver.start_psn
            compared += 1
    assert compared >= len(table) // 2


# -- connections made here

CLIENT = connect.Side(Pair(dqpn=0x22, sqpn=0x33, psn=100, mtu_bytes=2048), peer_psn=200)
SERVER = CLIENT.peer()


def test_a_made_connection(learn):
    (one,) = learn(connect.connection(CLIENT, SERVER, b"hello"))
    assert one.outcome == "established"
    assert (one.client.qpn, one.client.start_psn, one.client.comm_id) == (0x33, 200, 1)
    assert (one.server.qpn, one.server.start_psn, one.server.comm_id) == (0x22, 100, 2)
    assert (one.mtu_bytes, one.closed_by, one.confirmed) == (2048, "client", True)
    assert (one.first_ns, one.established_ns, one.closed_ns, one.frame) == (1000, 3000, 6000, 1)
    document = json.loads(json.dumps(one.as_json()))
    assert document["client"] == {"address": "10.0.0.1", "comm_id": 1, "qpn": 0x33, "start_psn": 200}
    assert document["service_id"] == "0x0000000001061144"


def test_retries_are_counted_and_double_captures_are_not(learn):
    asks = [CLIENT.send(cm.REQ, psn=psn) for psn in (0, 0, 1, 2)]
    (one,) = learn(asks)
    assert (one.outcome, one.requests, one.replies) == ("no answer", 3, 0)
    (one,) = learn([*asks, SERVER.send(cm.REP, psn=5), SERVER.send(cm.REP, psn=6), CLIENT.send(cm.RTU)])
    assert (one.outcome, one.requests, one.replies) == ("established", 3, 2)


def test_a_used_id_taken_again_is_another_connection(learn):
    again = replace(CLIENT, pair=replace(CLIENT.pair, sqpn=0x44, psn=7))
    found = learn([*connect.handshake(CLIENT, SERVER), *connect.handshake(again, again.peer())])
    assert [one.client.qpn for one in found] == [0x33, 0x44]
    # the server's number is the same twice: no telling which connection its flow is of
    key = (0, 0xFFFF0A000001, 0, 0xFFFF0A000002, 0x22)
    assert key not in found.halves()
    assert found.by_flow()[key].client.qpn == 0x44


def test_a_reply_without_ready_to_use(learn):
    (one,) = learn([CLIENT.send(cm.REQ), SERVER.send(cm.REP)])
    assert one.outcome == "replied"
    (one,) = learn([CLIENT.send(cm.REQ), SERVER.send(cm.REP), SERVER.send(cm.DREQ)])
    assert (one.outcome, one.closed_by, one.confirmed) == ("established", "server", False)


def test_a_reply_to_a_request_before_the_capture(learn):
    (one,) = learn([SERVER.send(cm.REP), CLIENT.send(cm.RTU)])
    assert (one.outcome, one.client.qpn, one.server.qpn, one.service_id) == ("established", None, 0x22, None)


@pytest.mark.parametrize("reason", [3, 8, 10, 28, 77])
def test_made_rejections(learn, reason):
    (one,) = learn(connect.rejection(CLIENT, SERVER, reason))
    assert (one.outcome, one.reason, one.rejected_by) == ("rejected", reason, "server")
    assert one.why


def test_a_client_that_rejects_a_reply(learn):
    (one,) = learn([CLIENT.send(cm.REQ), SERVER.send(cm.REP), CLIENT.send(cm.REJ, {"reason": 4})])
    assert (one.outcome, one.rejected_by, one.why) == ("rejected", "client", "timeout")


def test_nvme_says_why_it_rejects(learn):
    server = replace(SERVER, private=rdma_cm.NVME_REJ.pack({"sts": 3}))
    (one,) = learn(connect.rejection(CLIENT, server, 28))
    assert one.why == "rejected by the application: invalid queue id"


def test_resolutions(learn):
    client = replace(CLIENT, service_id=rdma_cm.service_id(7174, "UDP"))
    (one,) = learn(connect.resolution(client, client.peer()))
    assert (one.outcome, one.server.qpn, one.qkey) == ("resolved", 0x22, 0x11111111)
    refused = client.peer().send(cm.SIDR_REP, {"sidr_status": 1})
    (one,) = learn([client.send(cm.SIDR_REQ), refused])
    assert (one.outcome, one.why, one.server.qpn) == ("rejected", "service id not supported", None)
    (one,) = learn([client.send(cm.SIDR_REQ, psn=1), client.send(cm.SIDR_REQ, psn=2)])
    assert (one.outcome, one.requests) == ("no answer", 2)


def test_messages_of_unknown_connections_are_counted(learn):
    found = learn([CLIENT.send(cm.RTU), SERVER.send(cm.REJ), CLIENT.send(cm.DREP), CLIENT.send(cm.MRA)])
    assert (len(found), found.orphans) == (0, 3)


def test_a_damaged_request_asks_nothing(learn):
    frame = bytearray(CLIENT.send(cm.REQ))
    frame[100] ^= 1
    assert len(learn([bytes(frame)])) == 0


def test_addresses_of_every_kind(learn):
    for path in (
        Path(src="fd00::1", dst="fd00::2"),
        Path(src="fe80::1", dst="fe80::2", v1=True),
        Path(vid=7),
    ):
        client = replace(CLIENT, pair=replace(CLIENT.pair, path=path))
        (one,) = learn(connect.handshake(client, client.peer()))
        ends = one.client.as_json()["address"], one.server.as_json()["address"]
        assert ends == (path.src, path.dst)


def test_hostile_captures_are_bounded(learn, monkeypatch):
    monkeypatch.setattr(room, "MAX_CONNECTIONS", 3)
    found = learn([replace(CLIENT, local_id=i).send(cm.REQ) for i in range(10)])
    assert (len(found), found.left_out) == (3, 7)


SENDERS = st.sampled_from(
    [CLIENT, SERVER, replace(CLIENT, local_id=2, remote_id=1), replace(SERVER, local_id=0)]
)


@settings(max_examples=60)
@given(st.lists(st.tuples(SENDERS, st.sampled_from(list(cm.BY_NAME)), st.integers(0, 2)), max_size=12))
def test_any_order_of_messages(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("any") / "any.pcap"
    frames = [side.send(cm.BY_NAME[name], psn=psn) for side, name, psn in steps]
    write_pcap(path, (Record(i, i, 0, 1, len(f), len(f), f) for i, f in enumerate(frames, 1)))
    found = learnt(path)
    asked = {(s.local_id, s.pair.path.src) for s, name, _ in steps if name == "REQ"}
    assert sum(one.requests > 0 and one.kind == "connection" for one in found) == len(asked)
    for one in found:
        json.dumps(one.as_json())
    halves = found.halves()
    assert all(halves[halves[key]] == key for key in halves)


def test_a_notification_finds_its_flow_by_cm_alone(tmp_path):
    """Two connections between the same hosts, no acknowledge captured: only CM can tell them apart."""
    second = connect.Side(Pair(dqpn=0x24, sqpn=0x35, psn=5), local_id=7, remote_id=8)
    births = [f for client in (CLIENT, second) for f in connect.handshake(client, client.peer())]
    data = [client.pair.request("RC_SEND_ONLY", 0, None, b"data") for client in (CLIENT, second)]

    def observed(frames):
        path = tmp_path / "two.pcap"
        records = (Record(i, i * 1000, 0, 1, len(f), len(f), f) for i, f in enumerate(frames, 1))
        write_pcap(path, records, force=True)
        return observe(open_capture(path))

    blind = observed([*data, cnp(second.pair)])
    assert [len(one.candidates) for one in blind.unmatched] == [2]
    told = observed([*births, *data, cnp(second.pair)])
    assert not told.unmatched
    assert {flow.key.dqpn: flow.cnps_seen for flow in told.flows if flow.key.dqpn > 1} == {0x22: 0, 0x24: 1}
