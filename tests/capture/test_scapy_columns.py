"""Columns against Scapy's own reading of the same octets: a second witness for every field."""

from __future__ import annotations

import ipaddress

import pytest
from cases import CASES
from conftest import PCAPS
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_pkt import layers as scapy_layers
from roce_pkt.capture import open as open_capture
from roce_pkt.capture.frames import address_text
from roce_pkt.capture.model import Record
from roce_pkt.capture.writer import write_pcap

# column -> (layer, field) where the names differ from the layer's own
RENAMED = {
    "BTH": {"version": "bth_version"},
    "ImmDt": {"data": "imm"},
    "IETH": {"rkey": "inv_rkey"},
}
TRANSPORT = (
    "BTH",
    "RDETH",
    "XRCETH",
    "DETH",
    "FETH",
    "RETH",
    "AtomicETH",
    "AETH",
    "AtomicAckETH",
    "ImmDt",
    "IETH",
)


def expected(octets: bytes) -> dict[str, object]:
    """What Scapy reads, under the names of columns."""
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Dot1Q, Ether

    packet = Ether(octets)
    out: dict[str, object] = {}
    if scapy_layers.BTH not in packet:
        return out
    for name in TRANSPORT:
        layer = packet.getlayer(getattr(scapy_layers, name))
        if layer is None:
            continue
        for field in layer.fields_desc:
            column = RENAMED.get(name, {}).get(field.name, field.name)
            if not field.name.startswith("resv") or name == "BTH":
                out[column] = layer.getfieldval(field.name)
    for internet in (IP, IPv6):
        if internet in packet:
            word = packet[internet].tos if internet is IP else packet[internet].tc
            out |= {
                "dscp": word >> 2,
                "ecn": word & 3,
                "src": packet[internet].src,
                "dst": packet[internet].dst,
            }
    if UDP in packet:
        out |= {"sport": packet[UDP].sport, "dport": packet[UDP].dport, "udp_len": packet[UDP].len}
    if Dot1Q in packet:
        out |= {"pcp": packet[Dot1Q].prio, "vid": packet[Dot1Q].vlan}
    verdict = packet[scapy_layers.BTH].icrc_ok
    return out | {"icrc_ok": -1 if verdict is None else int(verdict)}


def compare(path) -> int:
    compared = 0
    for frames in open_capture(path):
        for row in range(len(frames)):
            values = frames.row(row)
            for column, theirs in expected(bytes(frames.octets(row))).items():
                if column in ("src", "dst"):
                    ours = address_text(values[f"{column}_hi"], values[f"{column}_lo"])
                    assert ipaddress.ip_address(ours) == ipaddress.ip_address(theirs), (
                        values["number"],
                        column,
                    )
                elif column in values:
                    assert values[column] == theirs, (path, values["number"], column)
                    compared += 1
    return compared


SMALL = [p for p in PCAPS if p.stat().st_size < 60_000]


@pytest.mark.parametrize("path", SMALL, ids=lambda p: p.stem)
def test_every_field_of_real_captures(path):
    assert compare(path) > 0


def test_every_field_of_the_larger_set(captures):
    for path in sorted(captures.glob("*.pcap")):
        if path.stat().st_size < 1_000_000 and "corrupt" not in path.name:
            compare(path)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(CASES), min_size=1, max_size=12))
def test_made_frames(tmp_path_factory, chosen):
    path = tmp_path_factory.mktemp("made") / "x.pcap"
    octets = [case.octets for case in chosen]
    write_pcap(path, (Record(i, i, 0, 1, len(o), len(o), o) for i, o in enumerate(octets, 1)))
    assert compare(path) > 0
