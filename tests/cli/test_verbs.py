"""The command as its users meet it: output, exit codes, and one clear line for what cannot be read."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT, said

from roce_pkt.capture import open as open_capture
from roce_pkt.cli.app import VERBS
from roce_pkt.wire.frame import dissect

PCAP = str(ROOT / "pcaps" / "rc_atomic.pcap")
CORRUPT = str(ROOT / "pcaps" / "corrupt_req_5pct.pcap")


def command(*words, stdin=None):
    return subprocess.run(
        [sys.executable, "-m", "roce_pkt", *map(str, words)],
        capture_output=True, text=True, check=False, input=stdin, cwd="/",
    )  # fmt: skip


@pytest.mark.parametrize("words", ["", "--help", *(f"{verb} --help" for verb in VERBS)])
def test_every_verb_explains_itself(capsys, words):
    code, out, err = said(capsys, *words.split())
    assert (code, err) == (0, "")
    assert "Usage: roce-pkt" in out
    assert max(map(len, out.splitlines())) <= 80


def test_lines(capsys):
    code, out, err = said(capsys, "dissect", PCAP)
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 16)
    assert lines[0].split()[2:] == [
        "10.0.0.2",
        ">",
        "10.0.0.1",
        "RC_COMPARE_SWAP",
        "qp",
        "0x1a",
        "psn",
        "5023785",
        "va",
        "0x1b26a000",
        "AckReq",
    ]
    assert said(capsys, "dissect", PCAP, "--count", 3)[1].splitlines() == lines[:3]


def test_one_json_object_a_frame(capsys):
    _, out, _ = said(capsys, "dissect", PCAP, "--format", "jsonl")
    documents = [json.loads(line) for line in out.splitlines()]
    assert [d["number"] for d in documents] == list(range(1, 17))
    first = documents[0]
    assert first["kind"] == "rocev2"
    assert first["bth"]["name"] == "RC_COMPARE_SWAP"
    assert first["atomiceth"]["compare"] == "0x1122334455667788"
    assert first["payload"] == {"offset": 82, "length": 0}
    assert first["icrc"] == {"value": "46e9e8a9", "ok": True}
    _, whole, _ = said(capsys, "dissect", PCAP, "--format", "json")
    assert json.loads(whole) == documents


def test_the_tree_shows_offsets(capsys):
    _, out, _ = said(capsys, "dissect", PCAP, "--frame", 2)
    assert "ACK ETH  octets 54-57" in out
    assert "51  psn = 5023785" in out
    assert "ICRC  6c60993a  right" in out


def test_fields(capsys):
    code, out, _ = said(
        capsys, "dissect", PCAP, "--fields", "psn,ip.src,name,icrc.ok,atomiceth.rkey", "--count", 2
    )
    assert code == 0
    assert out == (
        "psn\tip.src\tname\ticrc.ok\tatomiceth.rkey\n"
        "5023785\t10.0.0.2\tRC_COMPARE_SWAP\ttrue\t0x00000b79\n"
        "5023785\t10.0.0.1\tRC_ATOMIC_ACKNOWLEDGE\ttrue\t\n"
    )


def test_fields_from_columns_and_from_json_agree(capsys):
    names = "number,opcode,psn,dqpn,rkey,va,syndrome,orig,sport,dscp,padcount,icrc_ok"
    _, columns, _ = said(capsys, "dissect", PCAP, "--fields", names)
    dotted = "number,bth.opcode,bth.psn,bth.dqpn,atomiceth.rkey,atomiceth.va,aeth.syndrome,atomicacketh.orig"
    _, json_rows, _ = said(
        capsys, "dissect", PCAP, "--fields", f"{dotted},udp.sport,ip.dscp,bth.padcount,icrc.ok"
    )
    for one, two in zip(columns.splitlines()[1:], json_rows.splitlines()[1:], strict=True):
        ok = {"1": "true", "0": "false", "-1": ""}[one.split("\t")[-1]]
        assert one.split("\t")[:-1] == two.split("\t")[:-1]
        assert ok == two.split("\t")[-1]


def test_where_selects(capsys):
    expression = "opcode == RC_FETCH_ADD and psn >= 5023790 and src == 10.0.0.2"
    _, out, _ = said(capsys, "dissect", PCAP, "--where", expression)
    assert [line.split()[0] for line in out.splitlines()] == ["13"]
    whole = said(capsys, "dissect", PCAP)[1].splitlines()
    assert out.splitlines() == [
        whole[12]
    ]  # the time counts from the start of the capture, not of the selection
    _, out, _ = said(capsys, "dissect", PCAP, "--where", expression, "--fields", "number,psn")
    assert out == "number\tpsn\n13\t5023790\n"
    _, out, _ = said(capsys, "dissect", PCAP, "--where", expression, "--format", "jsonl")
    assert json.loads(out)["number"] == 13
    assert said(capsys, "dissect", PCAP, "--where", "psn == 1") == (0, "", "note: no frame fits 'psn == 1'\n")
    code, _, err = said(capsys, "dissect", PCAP, "--where", "opcde == 1")
    assert (code, err.count("\n")) == (2, 1)
    assert "opcode" in err


def test_check_tells_errors_by_its_exit_code(capsys):
    assert said(capsys, "check", PCAP)[0] == 0
    code, out, _ = said(capsys, "check", CORRUPT, "--format", "json")
    assert code == 1
    document = json.loads(out)
    assert document["icrc"] == {"right": 607, "wrong": 20, "unchecked": 0}
    wrong = [f for f in document["findings"] if f["rule"] == "icrc.wrong"]
    assert len(wrong) == document["counts"]["icrc.wrong"] == 20
    assert wrong[0] == {"rule": "icrc.wrong", "severity": "error", "text": wrong[0]["text"], "frame": 6}


def test_icrc_explain(capsys):
    code, out, _ = said(capsys, "icrc", "explain", CORRUPT, "--frame", 6, "--format", "json")
    document = json.loads(out)
    assert code == 1
    assert document["ok"] is False
    assert document["value"] == "e7fadf0b"
    assert document["expected"] != document["value"]
    assert "bth.fecn" in {row["field"] for row in document["masked"]}
    code, out, _ = said(capsys, "icrc", "explain", PCAP, "--frame", 1)
    assert code == 0
    assert out.splitlines()[-1] == "right"


@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
def test_icrc_fix_changes_nothing_else(capsys, tmp_path, suffix):
    source = CORRUPT
    if suffix == "pcapng":
        from roce_pkt.capture.writer import write_pcapng

        source = tmp_path / "in.pcapng"
        capture = open_capture(CORRUPT)
        write_pcapng(source, capture.records(), capture.interfaces)
    target = tmp_path / f"out.{suffix}"
    code, out, _ = said(capsys, "icrc", "fix", source, "-o", target, "--format", "json")
    assert code == 0
    assert json.loads(out) == {"frames": 628, "repaired": 20, "right": 607, "not_checked": 1}
    for before, after in zip(open_capture(source).records(), open_capture(target).records(), strict=True):
        read = dissect(before.octets)
        assert after.time_ns == before.time_ns
        if read.icrc is None or read.icrc.ok:
            assert bytes(before.octets) == bytes(after.octets)
        else:
            end = read.cover.end
            assert bytes(after.octets) == bytes(before.octets[:end]) + read.icrc.expected + bytes(
                before.octets[end + 4 :]
            )


def test_nothing_is_overwritten_unasked(capsys, tmp_path):
    target = tmp_path / "x.pcap"
    target.write_text("precious")
    code, _, err = said(capsys, "craft", "send", "-o", target)
    assert (code, err) == (2, f"roce-pkt: {target}: exists already; give --force to replace it\n")
    assert target.read_text() == "precious"
    assert said(capsys, "craft", "send", "-o", target, "--force")[0] == 0
    assert len(list(open_capture(target).records())) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["x.pcap"]


WRONG_USE = [
    ("dissekt x", "you mean 'dissect'"),
    ("dissect", "CAPTURE"),
    ("dissect --fields psnn {pcap}", "did you mean"),
    ("dissect --frame 999 {pcap}", "has no frame 999"),
    ("dissect --frame 0 {pcap}", "0"),
    ("dissect --nonsense {pcap}", "--nonsense"),
    ("craft sendd", "did you mean 'send'"),
    ("craft send --src 10.0.0.300", "no IPv4 or IPv6 address"),
    ("craft send --src fd00::1", "different IP versions"),
    ("craft send --mtu 1000", "256, 512, 1024, 2048, 4096"),
    ("craft send --qp 0x1000000", "24 bits"),
    ("craft send --set bth.psm=1", "did you mean 'bth.psn'?); it has opcode"),
    ("craft send --set bht.psn=1", "did you mean 'bth'"),
    ("craft send --set psn=1", "did you mean bth.psn?"),
    ("craft send --set bth.psn", "give it a value, --set bth.psn=VALUE"),
    ("craft send --set eth.dst=02:00", "no MAC address"),
    ("craft send --set ip.src=10.0.0.300", "no IP address"),
    ("craft send --set ip.src=fd00::1", "holds 32 bits"),
    ("craft send --set pfc.enable=1", "no frame made here has that header"),
    ("craft send --set reth.va=1", "no frame made here has that header"),
    ("craft send --set bth.psn=0x1000000", "does not fit 24 bits"),
    ("craft send --payload xyz", "hex"),
    ("craft send --gap 5", "no unit"),
    ("craft read --transport uc", "UC_RDMA_READ_REQUEST"),
    ("craft pfc --quanta 9=1", "CLASS=QUANTA"),
    ("craft opcode", "--opcode"),
    ("craft send --imm 1 --inv 2", "exclude"),
    ("icrc explain --frame 3 {pcap}", "has no ICRC"),
    ("icrc fix {pcap} -o /nonexistent/x.pcap", "cannot be written"),
    ("check /nonexistent.pcap", "no such file"),
    ("check /", "directory"),
]


@pytest.mark.parametrize(("words", "says"), WRONG_USE, ids=[w for w, _ in WRONG_USE])
def test_wrong_use_is_one_line(capsys, words, says):
    code, out, err = said(capsys, *words.format(pcap=PCAP).split())
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("roce-pkt: ")
    assert says in err


BAD_FILES = {
    "empty": b"",
    "text": b"This is a letter, not a capture.\n",
    "half a header": bytes.fromhex("d4c3b2a1020004000000"),
    "noise": bytes(range(256)) * 4,
    "cut gzip": gzip.compress(b"x" * 1000)[:20],
    "nul": bytes(1000),
}


@pytest.mark.parametrize("verb", ["dissect", "check"])
@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_are_no_captures(capsys, tmp_path, verb, name):
    path = tmp_path / "bad.pcap"
    path.write_bytes(BAD_FILES[name])
    code, out, err = said(capsys, verb, path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert str(path) in err


def test_a_half_file_is_read_as_far_as_it_goes(capsys, tmp_path):
    path = tmp_path / "half.pcap"
    path.write_bytes((ROOT / "pcaps" / "rc_atomic.pcap").read_bytes()[:1000])
    code, out, err = said(capsys, "dissect", path)
    assert code == 0
    assert len(out.splitlines()) > 5
    assert "unfinished record" in err
    code, out, _ = said(capsys, "check", path, "--format", "json")
    assert "capture.cut" in json.loads(out)["counts"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(capsys, tmp_path):
    path = tmp_path / "secret.pcap"
    path.write_bytes(b"")
    path.chmod(0)
    code, _, err = said(capsys, "dissect", path)
    assert (code, err.count("\n")) == (2, 1)


def test_a_capture_without_roce_says_what_is_in_it(capsys, tmp_path):
    from roce_pkt.capture.model import Record
    from roce_pkt.capture.writer import write_pcap
    from roce_pkt.wire import net

    ip = net.IPV4.pack({"len": 40, "proto": 6, "src": 1, "dst": 2})
    frame = net.ETH.pack({"type": 0x0800}) + ip + bytes(20)
    path = tmp_path / "tcp.pcap"
    write_pcap(path, [Record(1, 0, 0, 1, len(frame), len(frame), frame)])
    _, _, err = said(capsys, "dissect", path)
    assert "no RoCE frame among 1 (tcp 1)" in err
    assert "mirror port" in err
    _, out, _ = said(capsys, "check", path)
    assert "mirror port" in out


def test_a_pipe_that_closes_is_no_fault():
    dissect_it = f"{sys.executable} -m roce_pkt dissect {ROOT}/pcaps/loss_reads.pcap"
    script = f"{dissect_it} | head -1; echo ${{PIPESTATUS[0]}}"
    out = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert out.stderr == ""
    assert out.stdout.splitlines()[-1] == "0"


def test_standard_input_and_compression():
    octets = gzip.compress((ROOT / "pcaps" / "rc_atomic.pcap").read_bytes())
    out = subprocess.run(
        [sys.executable, "-m", "roce_pkt", "dissect", "-"], input=octets, capture_output=True, check=True
    )
    assert len(out.stdout.splitlines()) == 16


def test_text_from_a_capture_cannot_drive_a_terminal(capsys, tmp_path):
    from roce_pkt.capture.model import Record
    from roce_pkt.capture.writer import write_pcapng

    frame = bytes.fromhex("020000000002020000000001") + b"\x88\xcc" + bytes(46)
    path = tmp_path / "esc.pcapng"
    write_pcapng(path, [Record(1, 0, 0, 1, 60, 60, frame, ("\x1b[31mred [bold]x[/bold]",))])
    _, out, _ = said(capsys, "dissect", path, "--frame", 1)
    assert "\x1b" not in out
    assert "\\x1b[31mred [bold]x[/bold]" in out
    code, _, err = said(capsys, "dissect", "no/such/\x1b[2Jx")
    assert code == 2
    assert "\x1b" not in err


def test_the_module_runs_as_the_command_does():
    out = command("--version")
    assert (out.returncode, out.stderr) == (0, "")
    assert out.stdout.startswith("roce-pkt ")


# -- faults that a stranger found, each kept as the right answer


def test_damage_in_a_packed_capture_costs_no_more_than_it_must(capsys, tmp_path):
    octets = (ROOT / "pcaps" / "clean.pcap").read_bytes()
    packed = bytearray(gzip.compress(octets, mtime=0))
    packed[-6] ^= 0xFF  # the checksum at the end
    path = tmp_path / "x.pcap.gz"
    path.write_bytes(packed)
    code, out, _ = said(capsys, "check", path, "--format", "json")
    document = json.loads(out)
    assert (code, set(document["counts"])) == (1, {"capture.damaged"})
    assert document["capture"]["frames"] >= 220  # of 226


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ("ip.len=19", "length.disagrees"),
        ("ip.len=0", "length.disagrees"),
        ("ip.version=5", "frame.cut"),
        ("ip.ihl=4", "frame.cut"),
        ("bth.padcount=1", "pad.count"),
    ],
)
def test_lies_are_errors(capsys, tmp_path, setting, rule):
    path = tmp_path / "l.pcap"
    kind = "ack" if setting.startswith("bth") else "send"
    assert said(capsys, "craft", kind, "--set", setting, "-o", path)[0] == 0
    code, out, _ = said(capsys, "check", path, "--format", "json")
    assert (code, json.loads(out)["counts"][rule]) == (1, 1)
    assert "" not in json.loads(out)["capture"]["kinds"]


def test_devices_and_pipes_are_written_not_replaced(capsys, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert said(capsys, "craft", "send", "-o", pipe)[0] == 0
        assert pipe.is_fifo()
        assert os.read(reader, 4) == bytes.fromhex("4d3cb2a1")
    finally:
        os.close(reader)


def test_a_replaced_file_keeps_its_mode_and_its_links(capsys, tmp_path):
    target, link = tmp_path / "real.pcap", tmp_path / "link.pcap"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert said(capsys, "craft", "send", "-o", link, "--force")[0] == 0
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert len(list(open_capture(target).records())) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("craft send -o {tmp}/y.pcap.gz", "written plain"),
        ("craft send -o -", "no file name"),
        ("dissect {pcap} --frame 3 --where psn==1", "without --fields and --where"),
        ("dissect {pcap} --fields psn --format json", "without --format"),
        ("dissect {pcap} --count 99999999999999999999999", "not in the range"),
        ("replay {pcap} --line-rate 1e999Gbps", "more than 1000 Tb/s"),
        ("replay {pcap} --path-delay 1e30s", "more than the clock can count"),
        ("export {pcap} -o {pcap} --force", "is the input itself"),
    ],
)
def test_what_cannot_be_meant_is_refused(capsys, tmp_path, words, says):
    code, _, err = said(capsys, *words.format(pcap=PCAP, tmp=tmp_path).split())
    assert (code, err.count("\n")) == (2, 1)
    assert says in err


def test_streams_that_are_full_or_closed():
    tool = f"{sys.executable} -m roce_pkt"
    for words, code, says in (
        (f"dissect {PCAP} > /dev/full", 2, "No space left"),
        (f"dissect {PCAP} >&-", 0, ""),
        ("check - <&-", 2, "standard input"),
    ):
        out = subprocess.run(["bash", "-c", f"{tool} {words}"], capture_output=True, text=True, check=False)
        assert (out.returncode, says in out.stderr) == (code, True), words
        assert "a fault in roce-pkt" not in out.stderr
