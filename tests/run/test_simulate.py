import collections
import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise

import pytest

import roce_pkt
from roce_pkt.capture import open as open_capture
from roce_pkt.capture.writer import write_pcapng
from roce_pkt.errors import InputError, ScenarioError
from roce_pkt.events import KINDS
from roce_pkt.run.observe import observe
from roce_pkt.run.simulate import simulate
from roce_pkt.scenario.reader import read_text

LOSSY = """
name = "lossy"
duration = "3ms"
taps = ["host0", "switch0:0"]
[fabric]
hosts = 3
[switch]
buffer = "200KB"
ecn = { kmin = "5KB", kmax = "20KB", pmax = 0.5 }
pfc = { headroom = "2KB" }
[[traffic]]
receiver = 2
message = "100KB"
count = 20
"""


def run(words, **options):
    command = [sys.executable, "-m", "roce_pkt", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_json_has_the_promised_names(tmp_path):
    (tmp_path / "s.toml").write_text(LOSSY)
    done = run(["simulate", str(tmp_path / "s.toml"), "--format", "json"])
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert set(document) == {
        "scenario",
        "summary",
        "flows",
        "ports",
        "findings",
        "paths",
        "messages",
        "faults",
    }
    assert {
        "data_packets",
        "frames",
        "events",
        "sim_time_ns",
        "wall_s",
        "cpu_s",
        "packets_per_cpu_s",
        "jain",
    } <= set(document["summary"])
    assert {
        "src",
        "dst",
        "dqpn",
        "goodput_bps",
        "completion_ns",
        "ce",
        "cnps",
        "retransmissions",
        "paused_ns",
    } <= set(document["flows"][0])
    assert {
        "name", "queue_mean_bytes", "queue_p99_bytes", "queue_max_bytes", "marked",
        "xoff", "xon", "paused_ns", "drops",
    } <= set(document["ports"][0])  # fmt: skip
    assert {"rule", "severity", "time_ns", "text"} <= set(document["findings"][0])


def test_every_value_used_is_written_out():
    scenario = simulate("two-to-one", {"duration": "1ms", "measure_from": "0us"}).scenario
    assert scenario["host"]["cc"]["ai_rate"] == "40Mb/s"
    assert scenario["host"]["np"]["interval"] == "50us"
    assert scenario["switch"]["pfc"]["headroom"].endswith("B")
    assert scenario["switch"]["pfc"]["response"] == "1510400ps"
    assert scenario["fabric"]["delay"] == "1us"


def test_what_is_written_out_runs_again_to_the_same_result():
    first = simulate("incast", {"duration": "500us"})
    changes = {
        f"{table}.{key}": json.dumps(value)
        for table in ("host.cc", "host.np", "switch.pfc")
        for key, value in _at(first.scenario, table).items()
    }
    again = simulate("incast", {"duration": "500us"} | changes)
    assert again.flows == first.flows
    assert again.ports == first.ports


def _at(scenario, dotted):
    for key in dotted.split("."):
        scenario = scenario[key]
    return scenario


def test_events_are_in_order_and_agree_with_the_counters():
    events = []
    result = simulate(read_text(LOSSY), on_event=events.append)
    kinds = collections.Counter(e.kind for e in events)
    assert all(a.time_ns <= b.time_ns for a, b in pairwise(events))
    assert set(kinds) <= set(KINDS)
    assert kinds["np.cnp"] == sum(f.cnps for f in result.flows) > 0
    assert kinds["cp.mark"] == sum(p.marked for p in result.ports) > 0
    assert kinds["drop"] == sum(p.drops for p in result.ports)
    assert kinds["rc.retransmit"] == sum(f.retransmissions for f in result.flows)
    assert 0 <= kinds["np.cnp"] - kinds["rp.cut"] <= 2  # each cuts, but for those still on their way
    for event in events:
        if event.kind.startswith("rp."):
            assert {"rate_bps", "target_bps", "alpha", "stage"} <= set(event.state)
            assert event.flow is not None


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulate")
    (folder / "s.toml").write_text(LOSSY)
    done = run(
        ["simulate", "s.toml", "-o", "f.pcapng", "--events", "e.jsonl", "--format", "json"], cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_recorded_frames_pass_check_and_have_an_interface_a_tap(recorded):
    folder, _ = recorded
    done = run(["check", "f.pcapng", "--format", "json"], cwd=folder)
    document = json.loads(done.stdout)
    assert [f for f in document["findings"] if f["severity"] == "error"] == []
    assert [i.name for i in open_capture(folder / "f.pcapng").interfaces] in (
        ["host0", "switch0:0"], [])  # fmt: skip
    frames = open_capture(folder / "f.pcapng").frames()
    assert len(frames) > 3000


def test_recorded_frames_are_what_tshark_reads(recorded):
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    folder, result = recorded
    fields = ["frame.interface_name", "infiniband.bth.opcode", "infiniband.bth.psn", "ip.dsfield.ecn",
              "infiniband.aeth.syndrome.error_code", "infiniband.bth.destqp", "_ws.malformed", "ip.src",
              "macc.opcode"]  # fmt: skip
    words = ["tshark", "-r", "f.pcapng", "-T", "fields", *(w for f in fields for w in ("-e", f))]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert not any(row[6] for row in rows)
    assert {row[0] for row in rows} == {"host0", "switch0:0"}
    host = [row for row in rows if row[0] == "host0"]
    data = [row for row in host if row[1] in ("6", "7", "8") and row[7] == "10.0.0.1"]
    flow = result["flows"][0]
    # retransmissions: sent again, so the PSN is there more than once
    psns = [int(row[2]) for row in data]
    assert len(psns) - len(set(psns)) >= flow["retransmissions"] > 0
    naks = [row for row in host if row[1] == "17" and row[4] == "0"]
    assert len(naks) == flow["naks"] > 0
    # what a NAK names is what is sent next but for packets already on their way
    order = [("nak" if row in naks else "data", int(row[2])) for row in host if row in naks or row in data]
    for index, (kind, psn) in enumerate(order):
        if kind == "nak":
            later = [p for k, p in order[index + 1 : index + 40] if k == "data"]
            assert psn in later[:3]
    cnps = [row for row in host if row[1] == "129"]
    assert len(cnps) == flow["cnps"] > 0
    assert any(row[8] for row in rows)


def test_marks_reach_the_receivers_tap():
    frames = []
    scenario = read_text(LOSSY.replace('taps = ["host0", "switch0:0"]', 'taps = ["host2"]'))
    result = simulate(scenario, on_frame=lambda record, _: frames.append(record.octets))
    marked = sum(1 for f in frames if len(f) > 500 and f[15] & 3 == 3)
    assert marked == sum(f.ce for f in result.flows) > 0


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_series(tmp_path, suffix):
    path = tmp_path / f"s.{suffix}"
    done = run(["simulate", "--preset", "two-to-one", "--set", "duration=1ms", "--set", "measure_from=0us",
                "--series", str(path), "--every", "100us"])  # fmt: skip
    assert done.returncode == 0, done.stderr
    if suffix == "jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        import pyarrow.parquet as pq

        rows = pq.read_table(path).to_pylist()
    ports = [r for r in rows if r.get("port")]
    flows = [r for r in rows if r.get("flow")]
    assert len(ports) == 11 * 3
    assert len(flows) == 11 * 2
    assert max(r["queue_bytes"] for r in ports) > 5000
    assert all(0 < r["rate_bps"] <= 40e9 and 0 < r["alpha"] <= 1 for r in flows)


def test_picture(tmp_path):
    path = tmp_path / "p.png"
    done = run(["simulate", "--preset", "two-to-one", "--set", "duration=1ms", "--set", "measure_from=0us",
                "--png", str(path)])  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "name", ["two-to-one", "incast", "parking-lot", "victim-flow", "leaf-spine-alltoall"]
)
def test_presets_run_and_print_within_eighty_columns(name):
    done = run(["simulate", "--preset", name], env=os.environ | {"COLUMNS": "200"})
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert name in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "give a scenario file or --preset"),
        (["--preset", "incats"], "did you mean 'incast'"),
        (["none.toml"], "none.toml: cannot be read"),
        (["--preset", "incast", "--set", "switch.ecn.kmn=5KB"], "did you mean 'kmin'"),
        (["--preset", "incast", "--set", "host.cc.profile=papr"], "did you mean 'paper'"),
        (["--preset", "incast", "--tap", "host99", "-o", "x.pcapng"], "'host99' does not exist"),
        (["--preset", "incast", "-o", "x.pcapng"], "needs a place to record"),
        (["--preset", "incast", "--series", "x.csv"], "name it .parquet or .jsonl"),
        (["--preset", "incast", "--set", "traffic.verb=flush"], "is for generate"),
        (
            ["--preset", "incast", "--set", "switch.buffer=512KiB", "--set", "switch.ecn.enabled=false"],
            "headroom",
        ),
    ],
)
def test_wrong_use_is_one_line(words, text, tmp_path):
    done = run(["simulate", *words], cwd=tmp_path)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_gives_the_results_so_far():
    def stop(*_):
        raise KeyboardInterrupt

    result = simulate("two-to-one", progress=stop)
    assert result.summary["interrupted"]
    assert 0 < result.summary["sim_time_ns"] < 1_000_000
    assert result.flows[0].goodput_bps > 1e9


def test_python_interface():
    result = roce_pkt.simulate("incast", {"duration": "100us"})
    assert result.as_json()["summary"]["sim_time_ns"] == 100_000
    with pytest.raises(ScenarioError):
        roce_pkt.simulate("incast", {"duration": "0us"})
    with pytest.raises(InputError):
        roce_pkt.simulate("no/such/file.toml")


def test_a_notification_s_flow_is_the_data_flow_it_is_for(tmp_path):
    """The engine and a replay of its frames mean the same by `flow`: what the notified sender sends."""
    events, frames, interfaces = [], [], []

    def take(frame, known):
        frames.append(frame)
        interfaces[:] = known

    text = LOSSY.replace('taps = ["host0", "switch0:0"]', 'taps = ["host0", "host1"]')
    simulate(read_text(text), on_event=events.append, on_frame=take)
    write_pcapng(tmp_path / "f.pcapng", frames, interfaces)
    replayed = []
    observe(open_capture(tmp_path / "f.pcapng"), tap="sender", on_event=replayed.append)
    cuts = {event.flow for event in events if event.kind == "rp.cut"}
    told = collections.Counter(e.flow for e in events if e.kind == "np.cnp")
    assert told.keys() >= cuts
    assert all(flow.dst == "10.0.0.3" for flow in told)  # the receiver of all data
    seen = collections.Counter(e.flow for e in replayed if e.kind == "np.cnp")
    assert seen.keys() == told.keys()
    assert all(0 <= told[flow] - seen[flow] <= 1 for flow in told)  # but for those still on their way
