"""CM from the shell: crafted messages, their errors, and what dissect and check say of them."""

from __future__ import annotations

import json

import pytest
from conftest import ROOT, said

from roce_pkt.cli.craft_cm import KINDS
from roce_pkt.wire.frame import dissect

NVME = str(ROOT / "pcaps" / "nvme_connect_io.pcap")


def frames(capsys, *words):
    code, out, err = said(capsys, "craft", *words, "--hex")
    assert (code, err) == (0, "")
    return [dissect(bytes.fromhex(line)) for line in out.split()]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(capsys, kind):
    read = frames(capsys, kind)
    assert all(frame.icrc.ok and frame.status == "ok" for frame in read)
    message = read[0].management.find("mad").values["attributeid"]
    assert message == 0x10 if kind == "connection" else read[0].management.find("cm")


@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        ("cm-req", ["CM REQ", "CM REP", "CM RTU"]),
        ("cm-dreq", ["CM DREQ", "CM DREP"]),
        ("cm-sidr-req", ["CM SIDR_REQ", "CM SIDR_REP"]),
        ("cm-lap", ["CM LAP", "CM APR"]),
        ("cm-rtu", ["CM RTU"]),
    ],
)
def test_exchanges(capsys, kind, messages):
    code, out, _ = said(capsys, "craft", kind, "--exchange")
    lines = out.splitlines()
    assert (code, len(lines)) == (0, len(messages))
    assert all(words in line for words, line in zip(messages, lines, strict=True))


def test_values(capsys):
    (frame,) = frames(
        capsys, "cm-req", "--service", "nfs/rdma", "--reply-qp", "0x99", "--psn", 7, "--mtu", 4096, "--set",
        "cm.retry_count=3", "--set", "mad.transactionid=0xabc", "--set", "rdma_cm.sport=5",
        "--payload", "0102",
    )  # fmt: skip
    datagram = frame.management
    message = datagram.find("cm").values
    assert (message["qpn"], message["start_psn"], message["mtu"], message["retry_count"]) == (0x99, 7, 5, 3)
    assert message["service_id"] == 0x1064E51
    assert datagram.find("mad").values["transactionid"] == 0xABC
    assert datagram.find("rdma_cm").values["sport"] == 5
    assert datagram.data[36:39] == b"\1\2\0"


def test_service_forms(capsys):
    for text, service in (("4420", 0x1061144), ("udp:7174", 0x1111C06), ("NVMe-oF", 0x1061144), ("0x7", 7)):
        (frame,) = frames(capsys, "cm-req", "--service", text)
        assert frame.management.find("cm").values["service_id"] == service


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("cm-req", "--service", "nvmeof"), "did you mean 'nvme-of'"),
        (("cm-req", "--service", "tcp:70000"), "is no service"),
        (("cm-req", "--service", "0x10000000000000000"), "is no 64-bit service id"),
        (("cm-req", "--set", "cm.qnp=1"), "did you mean 'cm.qpn'"),
        (("cm-req", "--set", "cm.mtu=16"), "does not fit 4 bits"),
        (("cm-rtu", "--set", "cm.qpn=1"), "no frame made here has that field"),
        (("send", "--set", "cm.qpn=1"), "no frame made here has that header"),
        (("cm-req", "--service", "iser", "--set", "nvme_rdma.qid=1"), "no frame made here has that header"),
        (("cm-req", "--payload", "00" * 57), "92 octets of private data"),
        (("cm-reqq",), "did you mean 'cm-req'"),
    ],
)
def test_mistakes(capsys, words, complaint):
    code, out, err = said(capsys, "craft", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint in err


def test_crafted_files_are_checked(capsys, tmp_path):
    path = tmp_path / "born.pcap"
    assert said(capsys, "craft", "connection", "-o", path)[0] == 0
    assert said(capsys, "check", path)[0] == 0
    said(capsys, "craft", "cm-req", "--set", "mad.classversion=1", "--set", "cm.mtu=9", "-o", path, "--force")
    code, out, _ = said(capsys, "check", path, "--format", "json")
    assert code == 1
    assert {f["rule"] for f in json.loads(out)["findings"]} == {"mad.class_version", "cm.mtu"}


def test_fields(capsys):
    names = "cm.message,cm.qpn,service_id,application,rdma_cm.src,nvme_rdma.qid,mad.transactionid,qkey"
    code, out, _ = said(capsys, "dissect", NVME, "--count", 2, "--fields", names)
    lines = [line.split("\t") for line in out.splitlines()]
    assert code == 0
    assert lines[0] == names.split(",")
    assert lines[1] == [
        "REQ", "18", "0x0000000001061144", "NVMe-oF", "10.0.0.2", "0", "0x00000002b7496262", "0x80010000",
    ]  # fmt: skip
    assert lines[2][:4] == ["REP", "18", "", ""]


def test_json_objects(capsys):
    code, out, _ = said(capsys, "dissect", NVME, "--frame", 1, "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert document["mad"]["mgmtclass"] == 7
    assert document["cm"]["message"] == "REQ"
    assert document["payload"]["length"] == 256


def test_the_tree(capsys):
    code, out, _ = said(capsys, "dissect", NVME, "--frame", 1)
    assert code == 0
    assert "    136  mtu = 5  (4096 octets)" in out
    assert "NVMe-oF RDMA connect request  octets 262-293" in out
    assert "Private data  octets 294-317" in out
