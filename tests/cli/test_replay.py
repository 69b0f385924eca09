"""`roce-pkt replay` as its users meet it."""

import json
import subprocess
import sys

import pytest
from conftest import PCAPS, ROOT
from crafted import START_NS, cnp, data, pcap, tcp

from roce_pkt.cli.app import run
from roce_pkt.events import KINDS


def said(capsys, *words):
    code = run(["replay", *(str(w) for w in words)])
    out, err = capsys.readouterr()
    return code, out, err


def document(capsys, *words):
    code, out, err = said(capsys, *words, "--format", "json")
    assert err == ""
    return code, json.loads(out)


@pytest.fixture
def three_cnps(tmp_path):
    """Notifications at 0, 50 and 100 us, and data until 700 us."""
    frames = [(t, cnp()) for t in (0, 50, 100)] + [(t, data(t)) for t in range(0, 701, 10)]
    return pcap(tmp_path / "three.pcap", sorted(frames, key=lambda f: f[0]))


def test_u2_through_the_whole_command(capsys, three_cnps, tmp_path):
    events_file = tmp_path / "events.jsonl"
    code, seen = document(capsys, three_cnps, "--line-rate", "40Gbps", "--events", events_file)
    assert code == 0
    assert seen["capture"] == {"frames": 74, "roce": 74, "duration_ns": 700_000}
    (flow,) = seen["flows"]
    assert (flow["src"], flow["dst"], flow["dqpn"]) == ("10.0.0.1", "10.0.0.2", 0x22)
    assert (flow["frames"], flow["ce"]) == (71, 0)
    assert (flow["cnps_seen"], flow["cnps_expected"], flow["cnps_missing"]) == (3, 0, 0)
    assert flow["rate_min_bps"] == 5e9
    assert flow["rate_last_bps"] == pytest.approx(10.1563671875e9, rel=1e-12)
    assert flow["alpha_last"] == pytest.approx((255 / 256) ** 10, rel=1e-12)
    assert flow["wire_rate_mean_bps"] == pytest.approx(70 * (1082 + 24) * 8 / 700e-6)
    events = [json.loads(line) for line in events_file.read_text().splitlines()]
    assert {e["kind"] for e in events} <= KINDS.keys()
    assert [e["time_ns"] for e in events] == sorted(e["time_ns"] for e in events)
    trace = [
        ((e["time_ns"] - START_NS) // 1000, e["rate_bps"] / 1e9, e["target_bps"] / 1e9, e["stage"])
        for e in events
        if e["kind"] in ("rp.cut", "rp.increase")
    ]
    assert trace[:3] == [(0, 20, 40, 0), (50, 10, 20, 0), (100, 5, 10, 0)]
    assert trace[3:9] == [
        (155, 7.5, 10, 1),
        (210, 8.75, 10, 2),
        (265, 9.375, 10, 3),
        (320, 9.6875, 10, 4),
        (375, 9.84375, 10, 5),
        (430, 9.941875, 10.04, 6),
    ]
    assert trace[-1] == (650, pytest.approx(10.1563671875), 10.2, 10)
    alphas = [e["alpha"] for e in events if e["kind"] == "rp.alpha"]
    assert alphas[:3] == pytest.approx([0.99609375, 0.9922027587890625, 0.9883269667625427], rel=1e-12)
    assert events[0]["flow"] == {"src": "10.0.0.1", "dst": "10.0.0.2", "dqpn": 0x22}


@pytest.mark.parametrize(
    ("name", "interval", "expected"),
    [
        ("ecn_ce_write", "50us", 16),
        ("ecn_ce_write", "4us", 24),
        ("ecn_ce_ud", "50us", 4),
        ("ecn_ce_ud", "4us", 6),
        ("ecn_ce_v6_write", "50us", 11),
        ("ecn_ce_v6_write", "4us", 12),
    ],
)
def test_marks_that_nobody_answered(capsys, pcaps, name, interval, expected):
    code, seen = document(capsys, pcaps / f"{name}.pcap", "--set", f"np.interval={interval}")
    assert code == 0
    assert sum(flow["cnps_expected"] for flow in seen["flows"]) == expected
    assert sum(flow["cnps_missing"] for flow in seen["flows"]) == expected
    assert sum(flow["cnps_seen"] for flow in seen["flows"]) == 0


FLOW_KEYS = {
    "src", "dst", "dqpn", "frames", "bytes", "ce", "cnps_seen", "cnps_expected", "cnps_missing",
    "rate_min_bps", "rate_last_bps", "alpha_last", "wire_rate_mean_bps",
}  # fmt: skip


@pytest.mark.parametrize("path", PCAPS, ids=lambda path: path.stem)
def test_every_shipped_capture_replays(capsys, path):
    code, seen = document(capsys, path)
    wrong = any(finding["severity"] == "error" for finding in seen["findings"])
    assert code == wrong
    assert wrong == ("corrupt" in path.name)
    assert {"capture", "flows", "pauses", "findings"} <= seen.keys()
    assert all(flow.keys() >= FLOW_KEYS for flow in seen["flows"])
    # a CNP is of the flow it answers, not of the one it travels in
    frames = sum(flow["frames"] + flow["cnps_seen"] for flow in seen["flows"])
    assert frames + sum(row.get("frames", 1) for row in seen["unmatched_cnps"]) == seen["capture"]["roce"]


def test_text_fits_eighty_columns(capsys, pcaps, three_cnps):
    for path in (pcaps / "ecn_ce_v6_write.pcap", pcaps / "write_4qp.pcap", three_cnps):
        code, out, err = said(capsys, path, "--line-rate", "400Gbps")
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert max(len(line.rstrip()) for line in lines[1:]) <= 80
        assert "\x1b" not in out
    assert "0/3/0" in out
    assert "QP 0x22" in out
    assert any(line.startswith("▅") and "▂" in line for line in lines)  # half, then an eighth of the rate


def test_a_table_of_many_flows_says_what_it_leaves_out(capsys, tmp_path):
    frames = [(i, data(i, dqpn=i)) for i in range(2, 60)]
    _, out, _ = said(capsys, pcap(tmp_path / "many.pcap", frames), "--line-rate", "1Gbps")
    assert "not shown: 38 more flows; --format json has every flow" in out


def test_no_roce_is_explained(capsys, tmp_path):
    code, out, err = said(capsys, pcap(tmp_path / "tcp.pcap", [(0, tcp())]))
    assert (code, err) == (0, "")
    assert "no RoCE frame among 1 (tcp 1)" in " ".join(out.split())
    assert "kernel" in out


def test_a_file_is_not_overwritten_unasked(capsys, three_cnps, tmp_path):
    target = tmp_path / "e.jsonl"
    target.write_text("precious")
    code, out, err = said(capsys, three_cnps, "--events", target)
    assert (code, out) == (2, "")
    assert "--force" in err
    assert target.read_text() == "precious"
    assert said(capsys, three_cnps, "--events", target, "--force")[0] == 0
    assert target.read_text().startswith('{"time_ns"')


def test_a_failed_run_leaves_no_file(capsys, tmp_path):
    bad = tmp_path / "bad.pcap"
    bad.write_text("not a capture at all, only text")
    target = tmp_path / "e.jsonl"
    assert said(capsys, bad, "--events", target)[0] == 2
    assert list(tmp_path.iterdir()) == [bad]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "ai_rte=1Mbps"], "did you mean 'ai_rate'"),
        (["--set", "ai_rate"], "is not KEY=VALUE"),
        (["--set", "np.interval=fast"], "is no time"),
        (["--profile", "papper"], "did you mean 'paper'"),
        (["--line-rate", "100"], "has no unit"),
        (["--line-rate", "0Gbps"], "is no speed"),
        (["--path-delay", "4"], "has no unit"),
        (["--tap", "moon"], "moon"),
    ],
)
def test_wrong_use_is_one_line(capsys, three_cnps, words, message):
    code, out, err = said(capsys, three_cnps, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_pipe_is_read_once_and_replays(three_cnps):
    out = subprocess.run(
        [sys.executable, "-m", "roce_pkt", "replay", "-", "--line-rate", "40Gbps", "--format", "json"],
        input=three_cnps.read_bytes(), capture_output=True, check=False,
    )  # fmt: skip
    assert (out.returncode, out.stderr) == (0, b"")
    assert json.loads(out.stdout)["flows"][0]["rate_min_bps"] == 5e9


def test_a_terminal_without_unicode_gets_plain_bars(three_cnps):
    out = subprocess.run(
        [sys.executable, "-m", "roce_pkt", "replay", str(three_cnps), "--line-rate", "40Gbps"],
        capture_output=True, text=True, check=False, env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"},
    )  # fmt: skip
    assert (out.returncode, out.stderr) == (0, "")
    assert any(line.startswith("=") and line.endswith("QP 0x22") for line in out.stdout.splitlines())


def test_a_small_replay_loads_no_compiler(three_cnps):
    code = (
        "import sys; from roce_pkt.cli.app import run; "
        f"run(['replay', {str(three_cnps)!r}]); sys.exit(any(m in sys.modules for m in ('numba', 'scapy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("option", ["-o", "--events", "--report", "--png"])
@pytest.mark.parametrize("by", ["name", "symlink", "hard link"])
@pytest.mark.parametrize("read", ["capture", "scenario"])
def test_what_is_read_is_not_written_over(capsys, three_cnps, tmp_path, option, by, read):
    scenario = tmp_path / "fabric.toml"
    scenario.write_text("name = 'f'\n[fabric]\nhosts = 3\n[[traffic]]\nreceiver = 2\n")
    victim = three_cnps if read == "capture" else scenario
    before, target = victim.read_bytes(), victim
    if by == "symlink":
        target = tmp_path / "link"
        target.symlink_to(victim)
    elif by == "hard link":
        target = tmp_path / "link"
        target.hardlink_to(victim)
    more = ["--fabric", scenario] if read == "scenario" else []
    code, out, err = said(capsys, three_cnps, option, target, "--force", *more)
    assert (code, out) == (2, "")
    assert err.endswith(f"{target}: is the input itself; name another file\n")
    assert victim.read_bytes() == before
    assert three_cnps.exists()


def test_two_outputs_are_two_files(capsys, three_cnps, tmp_path):
    code, _, err = said(capsys, three_cnps, "--events", tmp_path / "a", "--report", f"{tmp_path}/./a")
    assert (code, list(tmp_path.iterdir())) == (2, [three_cnps])
    assert "is named for two outputs" in err


def test_connections_are_listed(capsys, pcaps, three_cnps):
    code, seen = document(capsys, pcaps / "reject_no_listener.pcap")
    assert (code, [one["outcome"] for one in seen["connections"]]) == (0, ["rejected", "rejected"])
    first = seen["connections"][0]
    assert (first["client"]["address"], first["client"]["qpn"]) == ("10.0.0.2", 0x15)
    assert (first["frame"], first["rejected_by"], first["transport"]) == (1, "server", "RC")
    _, text, _ = said(capsys, pcaps / "reject_no_listener.pcap")
    assert "10.0.0.2 QP 0x15 >" in text
    assert "rejected: invalid" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert document(capsys, three_cnps)[1]["connections"] == []
    assert "outcome" not in said(capsys, three_cnps)[1]


def test_many_connections_are_told_in_short(capsys, pcaps, tmp_path, monkeypatch):
    monkeypatch.setattr("roce_pkt.report.connections_text.MOST_CONNECTIONS", 2)
    _, seen = document(capsys, pcaps / "cmtime.pcap")
    _, text, _ = said(capsys, pcaps / "cmtime.pcap")
    more = len(seen["connections"]) - 2
    assert f"not shown: {more} more connections; --format json has every one" in text
    assert text.count("rdmacm-utils") == 2


def test_the_readme_shows_what_its_first_line_prints(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)
    text = (ROOT / "README.md").read_text()
    command = text.split(".venv/bin/roce-pkt replay ", 1)[1].splitlines()[0]
    shown = text.split("## What the first line prints", 1)[1].split("```")[1].strip("\n").splitlines()
    code, out, err = said(capsys, *command.split())
    assert (code, err) == (0, "")
    assert [line.rstrip() for line in out.splitlines()] == shown
