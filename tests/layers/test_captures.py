"""Every frame of real captures: Scapy gives its octets back, and says of the ICRC what `wire` says."""

import os
from pathlib import Path

import pytest
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

from roce_pkt.layers import BTH
from roce_pkt.wire import net
from roce_pkt.wire.frame import dissect

SHIPPED = sorted((Path(__file__).parents[2] / "pcaps").glob("*.pcap"))
FOLDER = os.environ.get("ROCE_PKT_CAPTURES", "")
EXTERNAL = sorted(Path(FOLDER).glob("*.pcap")) if FOLDER else []


def _check(path, same_fields):
    with RawPcapReader(str(path)) as reader:
        if reader.linktype != net.LINK_ETHERNET:
            pytest.skip(f"link type {reader.linktype}: these layers start at Ethernet")
        for octets, meta in reader:
            packet = Ether(octets)
            assert bytes(packet) == octets
            frame = dissect(octets, wire_len=meta.wirelen)
            if frame.status != "ok":
                continue
            assert (BTH in packet) is (frame.bth is not None)
            if BTH in packet:
                same_fields(packet, frame)
                assert packet[BTH].icrc_ok is frame.icrc.ok


@pytest.mark.parametrize("path", SHIPPED, ids=[p.stem for p in SHIPPED])
def test_shipped_captures(path, same_fields):
    _check(path, same_fields)


@pytest.mark.skipif(not EXTERNAL, reason="ROCE_PKT_CAPTURES names no folder with captures")
@pytest.mark.parametrize("path", EXTERNAL, ids=[p.stem for p in EXTERNAL])
def test_external_captures(path, same_fields):
    _check(path, same_fields)
