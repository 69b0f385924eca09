"""CM messages: the layout of every field, round trips, tshark's reading of real ones, words and units."""

from __future__ import annotations

import gzip
import shutil

import pytest
import tshark
import tshark_mad
from cases import IPV4
from conftest import PCAPS
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.capture import open as open_capture
from roce_pkt.wire import cm, cm_words, ib, mad, management
from roce_pkt.wire.build import roce_frame
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.opcode import BY_NAME
from roce_pkt.wire.present import frame_json, summary, tree

UD = BY_NAME["UD_SEND_ONLY"].value

# field: (octet, first bit in it, width), octets counted after the MAD header; IBTA Vol 1 tables 106 to 120
# as the Linux kernel numbers them in ibta_vol1_c12.h
IDS = {"local_comm_id": (0, 0, 32), "remote_comm_id": (4, 0, 32)}


def path_at(which, start):
    return {
        f"{which}_local_lid": (start, 0, 16),
        f"{which}_remote_lid": (start + 2, 0, 16),
        f"{which}_local_gid": (start + 4, 0, 128),
        f"{which}_remote_gid": (start + 20, 0, 128),
        f"{which}_flow_label": (start + 36, 0, 20),
    }


def request_path_at(which, start):
    return path_at(which, start) | {
        f"{which}_packet_rate": (start + 39, 2, 6),
        f"{which}_traffic_class": (start + 40, 0, 8),
        f"{which}_hop_limit": (start + 41, 0, 8),
        f"{which}_sl": (start + 42, 0, 4),
        f"{which}_subnet_local": (start + 42, 4, 1),
        f"{which}_local_ack_timeout": (start + 43, 0, 5),
    }


LAYOUTS = {
    "REQ": {
        "local_comm_id": (0, 0, 32), "vendor_id": (5, 0, 24), "service_id": (8, 0, 64),
        "local_ca_guid": (16, 0, 64),
        "qkey": (28, 0, 32), "qpn": (32, 0, 24), "responder_resources": (35, 0, 8), "local_eecn": (36, 0, 24),
        "initiator_depth": (39, 0, 8), "remote_eecn": (40, 0, 24), "remote_cm_response_timeout": (43, 0, 5),
        "transport_service_type": (43, 5, 2), "end_to_end_flow_control": (43, 7, 1), "start_psn": (44, 0, 24),
        "local_cm_response_timeout": (47, 0, 5), "retry_count": (47, 5, 3), "pkey": (48, 0, 16),
        "mtu": (50, 0, 4),
        "rdc_exists": (50, 4, 1), "rnr_retry_count": (50, 5, 3), "max_cm_retries": (51, 0, 4), "srq": (51,
        4, 1),
        "extended_transport_type": (51, 5, 3), "sap_supported": (139, 5, 1),
    } | request_path_at("primary", 52) | request_path_at("alternate", 96),
    "MRA": IDS | {"message_mraed": (8, 0, 2), "service_timeout": (9, 0, 5)},
    "REJ": IDS | {
        "message_rejected": (8, 0, 2), "rejected_info_length": (9, 0, 7), "reason": (10, 0, 16),
        "ari": (12, 0, 576),
    },
    "REP": IDS | {
        "qkey": (8, 0, 32), "qpn": (12, 0, 24), "vendor_id_high": (15, 0, 8), "local_eecn": (16, 0, 24),
        "vendor_id_mid": (19, 0, 8), "start_psn": (20, 0, 24), "vendor_id_low": (23, 0, 8),
        "responder_resources": (24, 0, 8), "initiator_depth": (25, 0, 8), "target_ack_delay": (26, 0, 5),
        "failover_accepted": (26, 5, 2), "end_to_end_flow_control": (26, 7, 1), "rnr_retry_count": (27, 0, 3),
        "srq": (27, 3, 1), "local_ca_guid": (28, 0, 64),
    },
    "RTU": IDS,
    "DREQ": IDS | {"remote_qpn": (8, 0, 24)},
    "DREP": IDS,
    "SIDR_REQ": {"request_id": (0, 0, 32), "pkey": (4, 0, 16), "service_id": (8, 0, 64)},
    "SIDR_REP": {
        "request_id": (0, 0, 32), "sidr_status": (4, 0, 8), "info_length": (5, 0, 8),
        "vendor_id_upper": (6, 0, 16),
        "qpn": (8, 0, 24), "vendor_id_low": (11, 0, 8), "service_id": (12, 0, 64), "qkey": (20, 0, 32),
        "info": (24, 0, 576),
    },
    "LAP": IDS | {
        "remote_qpn": (12, 0, 24), "remote_cm_response_timeout": (15, 0, 5),
        "alternate_traffic_class": (59, 0, 8),
        "alternate_hop_limit": (60, 0, 8), "alternate_packet_rate": (61, 2, 6), "alternate_sl": (62, 0, 4),
        "alternate_subnet_local": (62, 4, 1), "alternate_local_ack_timeout": (63, 0, 5),
    } | path_at("alternate", 20),
    "APR": IDS | {"info_length": (8, 0, 8), "ap_status": (9, 0, 8), "info": (12, 0, 576)},
}  # fmt: skip
PRIVATE = {
    "REQ": 92, "MRA": 222, "REJ": 148, "REP": 196, "RTU": 224, "DREQ": 220, "DREP": 224, "SIDR_REQ": 216,
    "SIDR_REP": 136, "LAP": 168, "APR": 148,
}  # fmt: skip
ATTRIBUTES = ["REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"]
MESSAGES = st.sampled_from(ATTRIBUTES)


def frame_of(octets):
    return roce_frame(IPV4, UD, {"bth": {"dqpn": 1}, "deth": {"qkey": ib.GSI_QKEY, "sqpn": 1}}, octets)


def document_of(octets):
    return frame_json(dissect(frame_of(octets)), 1, 0, 0, 0)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_field_lies_where_the_kernel_has_it(name):
    header = cm.BY_NAME[name]
    whole = {f.name for f in header.fields if not f.reserved}
    assert whole == LAYOUTS[name].keys()
    for field, (octet, bit, width) in LAYOUTS[name].items():
        assert header.field(field).bits == width
        place = header.places[field]
        first_bit = place.offset * 8 + place.size * 8 - place.shift - width
        assert first_bit == octet * 8 + bit, field


def test_eleven_messages():
    assert list(cm.BY_NAME) == ATTRIBUTES
    assert list(cm.MESSAGES) == list(range(0x10, 0x1B))
    assert {name: cm.private_bytes(cm.BY_NAME[name]) for name in ATTRIBUTES} == PRIVATE


def test_a_name_means_one_width():
    for header in cm.MESSAGES.values():
        for field in header.fields:
            assert cm.fields()[field.name].bits == field.bits, field.name


@given(MESSAGES, st.data())
def test_values_come_back(name, data):
    header = cm.BY_NAME[name]
    values = {f.name: data.draw(st.integers(0, (1 << f.bits) - 1), f.name) for f in header.fields}
    private = data.draw(st.binary(max_size=PRIVATE[name]))
    octets = management.cm_octets(header, values, private, {"transactionid": 7})
    assert len(octets) == 256
    read = dissect(frame_of(octets))
    message = read.management.find("cm")
    assert message.header is header
    assert message.values == values
    assert read.management.data == private.ljust(PRIVATE[name], b"\0")
    assert header.pack(message.values) + read.management.data == octets[24:]
    assert read.management.find("mad").values == {f.name: f.default for f in mad.MAD.fields} | {
        "mgmtclass": 7,
        "classversion": 2,
        "method": 3,
        "attributeid": 0x10 + ATTRIBUTES.index(name),
        "transactionid": 7,
    }


@given(MESSAGES, st.binary(min_size=232, max_size=232))
def test_octets_come_back(name, data):
    attribute = 0x10 + ATTRIBUTES.index(name)
    octets = management.mad_octets(management.CM_BASE | {"attributeid": attribute}, data)
    read = dissect(frame_of(octets))
    document = frame_json(read, 1, 0, 0, 0)
    assert document["cm"]["message"] == name
    assert bytes.fromhex(document["cm"]["private_data"]) == data[-PRIVATE[name] :]
    message = read.management.find("cm")
    assert message.header.pack(message.values) == data[: -PRIVATE[name]]
    assert "\n" not in summary(read)
    list(tree(read, 0, 0))


# -- tshark

MISREAD = {
    # ours: (tshark versions, reason, what tshark then shows for our values)
    "primary_flow_label": (
        "4.0",
        "the 32-bit mask is laid over the first 24 bits",
        lambda v: v["primary_flow_label"] >> 8,
    ),
    "primary_packet_rate": (
        "4.0",
        "read from the first octet of the flow label",
        lambda v: v["primary_flow_label"] >> 12 & 0x3F,
    ),
}
WITH_MADS = [p for p in PCAPS if tshark_mad.golden(p).exists()]
UNREAD = ("MRA", "SIDR_REQ", "SIDR_REP", "LAP", "APR")


def ours(record):
    """Our reading in tshark's terms: values by `object.field`."""
    read = dissect(record.octets, record.wire_len, record.link_type)
    datagram = read.management
    if datagram is None:
        return None
    out = {"number": record.number}
    for layer in datagram.layers:
        out |= {f"{layer.header.name}.{name}": value for name, value in layer.values.items()}
    base = datagram.find("mad")
    out["mad.all_data"] = bytes(record.octets[base.end : base.end + 232]).hex()
    message = datagram.find("cm")
    out["message"] = cm.message_name(message.header)
    service = out.get("cm.service_id")
    if service is not None:
        out |= {"cm.prefix": service >> 24, "cm.space": service >> 16 & 0xFF, "cm.port": service & 0xFFFF}
    if datagram.find("rdma_cm"):
        out["cm.consumer_data"] = datagram.data[36:].hex()
    else:
        out["cm.private_data"] = datagram.data.hex()
    if message.header is cm.REJ:
        out["cm.whole_ari"] = f"{message.values['ari']:0144x}"
    return out


def address(text):
    """An address as a number, IPv4 as the last 32 bits of its mapped form."""
    import ipaddress

    return int(ipaddress.ip_address(text))


def differences(mine, row):
    """Every difference between tshark's row and our values, with the known ones checked and named."""
    told = set()
    for field, (name, how) in tshark_mad.FIELDS.items():
        if field not in row:
            continue
        told.add(name)
        value = mine.get(name)
        if how == "address":
            theirs = address(row[field])
            value = value & 0xFFFFFFFF if "." in row[field] else value
        elif how == "gid":
            theirs = int(row[field].replace(":", ""), 16)
        else:
            theirs = tshark.value(row[field], how)
        bare = name.partition(".")[2]
        if bare in MISREAD and theirs == MISREAD[bare][2]({k.partition(".")[2]: v for k, v in mine.items()}):
            yield bare
        elif theirs != value:
            yield f"frame {mine['number']} {field}: tshark {theirs!r}, ours {value!r}"
    if mine["message"] in UNREAD:
        assert not any(name.startswith("cm.") for name in told)
        yield mine["message"]
        return
    known = {name for name, _ in tshark_mad.FIELDS.values()}
    for name in (mine.keys() & known) - told:
        yield f"frame {mine['number']} {name}: tshark says nothing, ours {mine[name]!r}"


def compare(path, text):
    rows = tshark.rows(text)
    records = [mine for record in open_capture(path).records() if (mine := ours(record))]
    assert len(records) == len(rows) > 0
    return [d for mine, row in zip(records, rows, strict=True) for d in differences(mine, row)]


def test_real_messages_equal_tsharks_recorded_reading():
    assert len(WITH_MADS) == 14
    found, messages = set(), 0
    for path in WITH_MADS:
        text = gzip.decompress(tshark_mad.golden(path).read_bytes()).decode()
        found.update(compare(path, text))
        messages += len(tshark.rows(text))
    assert found == {*MISREAD, "SIDR_REQ", "SIDR_REP"}
    assert messages == 119


@pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed; its recorded reading is compared"
)
@pytest.mark.parametrize("path", WITH_MADS[:3], ids=lambda p: p.stem)
def test_the_installed_tshark_reads_the_same(path):
    assert not set(compare(path, tshark_mad.read(path))) - MISREAD.keys() - {*UNREAD}


def test_every_capture_with_mads_is_recorded():
    for path in PCAPS:
        has = (
            any(dissect(r.octets, r.wire_len, r.link_type).management for r in open_capture(path).records())
            if path.stat().st_size < 300_000
            else path in WITH_MADS
        )
        assert has is (path in WITH_MADS), path.stem


# -- words and units


@pytest.mark.parametrize(
    ("name", "values", "field", "words"),
    [
        ("REQ", {"mtu": 1}, "mtu", "256 octets"),
        ("REQ", {"mtu": 5}, "mtu", "4096 octets"),
        ("REQ", {"mtu": 6}, "mtu", "no path MTU"),
        ("REQ", {"remote_cm_response_timeout": 0}, "remote_cm_response_timeout", "4.096 us x 2^0 = 4.096 us"),
        ("REQ", {"local_cm_response_timeout": 20}, "local_cm_response_timeout", "4.096 us x 2^20 = 4.295 s"),
        ("REQ", {"primary_local_ack_timeout": 14}, "primary_local_ack_timeout", "4.096 us x 2^14 = 67.11 ms"),
        ("REQ", {"primary_local_ack_timeout": 0}, "primary_local_ack_timeout", "never runs out"),
        ("REP", {"target_ack_delay": 15}, "target_ack_delay", "4.096 us x 2^15 = 134.2 ms"),
        ("MRA", {"service_timeout": 31}, "service_timeout", "4.096 us x 2^31 = 8796 s"),
        ("REQ", {"primary_packet_rate": 2}, "primary_packet_rate", "2.5 Gb/s"),
        ("REQ", {"primary_packet_rate": 16}, "primary_packet_rate", "100 Gb/s"),
        ("REQ", {"rnr_retry_count": 7}, "rnr_retry_count", "without limit"),
        ("REQ", {"transport_service_type": 1}, "transport_service_type", "UC"),
        ("REQ", {"transport_service_type": 3, "extended_transport_type": 1}, "transport_service_type", "XRC"),
        ("REQ", {"service_id": 0x1061144}, "service_id", "RDMA-CM TCP port 4420, NVMe-oF"),
        ("REJ", {"reason": 8}, "reason", "invalid service id: nobody listens"),
        ("REJ", {"reason": 28}, "reason", "rejected by the application"),
        ("REJ", {"reason": 34}, "reason", "reason 34"),
        ("REJ", {"message_rejected": 1}, "message_rejected", "REP"),
        ("REJ", {"reason": 26, "rejected_info_length": 1, "ari": 3 << 568}, "ari", "acceptable: 03"),
        ("REJ", {"reason": 4, "rejected_info_length": 8, "ari": 0xAB << 512}, "ari",
         "CA GUID 00000000000000ab"),
        ("REJ", {"reason": 28, "rejected_info_length": 2, "ari": 0xABCD << 560}, "ari", "abcd"),
        ("MRA", {"message_mraed": 2}, "message_mraed", "LAP"),
        ("SIDR_REP", {"sidr_status": 1}, "sidr_status", "service id not supported"),
        ("APR", {"ap_status": 5}, "ap_status", "is the primary path already"),
        ("REP", {"failover_accepted": 1}, "failover_accepted", "not supported"),
    ],
)  # fmt: skip
def test_words(name, values, field, words):
    read = dissect(frame_of(management.cm_octets(cm.BY_NAME[name], values)))
    line = next(text for _, text in tree(read, 0, 0) if f"  {field} = " in text)
    assert line.endswith(f"({words})")


def test_reasons_are_the_kernels():
    assert sorted(cm_words.REASONS) == [*range(1, 34), 35]


def test_json_names_and_units():
    values = {
        "local_comm_id": 0xFFFFFFFF, "service_id": 0xFFFFFFFFFFFFFFFF, "qpn": 0x123456,
        "start_psn": 0xFEDCBA, "mtu": 3,
        "qkey": 0x80010000, "local_cm_response_timeout": 1, "transport_service_type": 1,
    }  # fmt: skip
    document = document_of(management.cm_octets(cm.REQ, values))["cm"]
    assert document["message"] == "REQ"
    assert (document["local_comm_id"], document["qpn"], document["start_psn"]) == (
        0xFFFFFFFF,
        0x123456,
        0xFEDCBA,
    )
    assert (document["service_id"], document["qkey"]) == ("0xffffffffffffffff", "0x80010000")
    assert (document["mtu_bytes"], document["transport"], document["application"]) == (1024, "UC", "unknown")
    assert document["local_cm_response_timeout_ns"] == 8192
    assert document["primary_local_ack_timeout_ns"] is None
    reject = {"remote_comm_id": 1, "reason": 10, "rejected_info_length": 3, "ari": 0x010203 << 552}
    document = document_of(management.cm_octets(cm.REJ, reject))["cm"]
    assert (document["reason_text"], document["ari"]) == ("stale connection", "010203")
    assert document_of(management.cm_octets(cm.REJ, {"rejected_info_length": 127}))["cm"]["ari"] == "00" * 72


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("REQ", {"local_comm_id": 5, "qpn": 0x11, "start_psn": 9, "service_id": 0x1060CBC},
         "CM REQ id 0x5 qp 0x11 start psn 9 RC mtu 1024 tcp port 3260 iSER"),
        ("REP", {"local_comm_id": 6, "remote_comm_id": 5, "qpn": 0x12, "start_psn": 8},
         "CM REP id 0x6 > 0x5 qp 0x12 start psn 8"),
        ("RTU", {"local_comm_id": 5, "remote_comm_id": 6}, "CM RTU id 0x5 > 0x6"),
        ("REJ", {"remote_comm_id": 5, "reason": 3}, "CM REJ id 0x0 > 0x5 [no resources available]"),
        ("MRA", {"service_timeout": 10}, "CM MRA id 0x0 > 0x0 wait 4.194 ms"),
        ("DREQ", {"remote_qpn": 0x12}, "CM DREQ id 0x0 > 0x0 of qp 0x12"),
        ("SIDR_REQ", {"request_id": 7, "service_id": 0x1110001}, "CM SIDR_REQ id 0x7 udp port 1"),
        ("SIDR_REP", {"request_id": 7, "sidr_status": 2, "qpn": 3},
         "CM SIDR_REP id 0x7 qp 0x3 [rejected by the service provider]"),
        ("LAP", {"remote_qpn": 3}, "CM LAP id 0x0 > 0x0 of qp 0x3"),
        ("APR", {"ap_status": 7}, "CM APR id 0x0 > 0x0 [LID rejected]"),
    ],
)  # fmt: skip
def test_one_line(name, values, words):
    assert words in summary(dissect(frame_of(management.cm_octets(cm.BY_NAME[name], values))))
