"""A replay's page and picture: what is on them, how large they are, and that a browser draws them."""

from __future__ import annotations

import base64
import re

import numpy as np
from browser import data_of, needs_chromium, opened
from crafted import ack, cnp, data, pcap, pfc

from roce_pkt.cli.app import run
from roce_pkt.report.html import plotly_js
from roce_pkt.report.replay_page import MOST_BANDS, joined

MOST_DATA_BYTES = 5_000_000


def report(tmp_path, path, capsys, *words):
    out = tmp_path / "r.html"
    code = run(["replay", str(path), "--report", str(out), "--force", *words])
    capsys.readouterr()
    assert code in (0, 1)
    return out


def values(packed):
    return np.frombuffer(base64.b64decode(packed["bdata"]), f"<{packed['dtype']}")


def incast(tmp_path, flows=3, frames=1500):
    out = []
    for n in range(frames):
        flow = n % flows
        src = f"10.0.{flow >> 8}.{flow & 255}"
        out.append(
            (n * 0.1, data(n, src=src, dst="10.1.0.1", dqpn=0x100 + flow, ce=n % 50 < 3 and n > 300, size=64))
        )
        if n % 500 == 302:
            out.append((n * 0.1 + 1, cnp(src="10.1.0.1", dst=src)))
        if n % 10 == 0:
            out.append((n * 0.1 + 0.5, ack(n, src="10.1.0.1", dst=src)))
    out += [(60.0, pfc({3: 0xFFFF}, src="10.1.0.1")), (70.0, pfc({3: 0}, src="10.1.0.1"))]
    return pcap(tmp_path / "c.pcap", sorted(out, key=lambda f: f[0]))


def test_what_is_on_the_page(tmp_path, capsys):
    page = data_of(report(tmp_path, incast(tmp_path), capsys, "--line-rate", "100Gbps").read_text())
    panels = {panel["title"]: panel for panel in page["panels"]}
    assert set(panels) == {"Rate", "Alpha", "CE marks", "Notifications", "Pauses"}
    rates = [c for c in panels["Rate"]["curves"] if c["name"] == "rate"]
    assert min(values(c["v"]).min() for c in rates) == 50
    (bands,) = panels["Pauses"]["bands"]
    assert (values(bands["from"]).tolist(), values(bands["to"]).tolist()) == ([60.0], [70.0])
    flows = next(table for table in page["tables"] if table["title"] == "Flows")
    assert len(flows["rows"]) == 6
    assert len(page["groups"]) == 3
    assert {finding["rule"] for finding in page["findings"]} >= {"pfc.violation"}
    assert ["ai_rate", "40 Mb/s"] in [parameter[:2] for parameter in page["parameters"]]


def test_a_parameter_says_where_it_comes_from(tmp_path, capsys):
    words = ("--set", "ai_rate=10Mbps", "--set", "np.interval=9us", "--line-rate", "100Gbps")
    page = data_of(report(tmp_path, incast(tmp_path), capsys, *words).read_text())
    sources = {name: source for name, _, source, _ in page["parameters"]}
    assert sources["ai_rate"] == sources["np.interval"] == "as asked for"
    assert sources["hai_rate"] != "as asked for"


def test_thousands_of_flows_are_a_few_and_the_rest(tmp_path, capsys):
    path = incast(tmp_path, flows=2500, frames=7500)
    text = report(tmp_path, path, capsys).read_text()
    assert len(text) - len(plotly_js()) < MOST_DATA_BYTES / 4
    page = data_of(text)
    assert [group["key"] for group in page["groups"]][-1] == "rest"
    assert len(page["groups"]) == 11
    assert page["groups"][-1]["name"] == "the other 2,490 flows"
    wire = next(panel for panel in page["panels"] if panel["title"] == "Rate on the wire")
    whole = sum(values(curve["v"]).mean() for curve in wire["curves"] if curve["group"] == "rest")
    assert whole > 0


def test_too_many_pauses_are_joined_where_a_screen_cannot_tell_them_apart():
    starts = np.arange(0, 10**7, 100, dtype=np.int64)
    first, last = joined(starts, starts + 60, 10**7 // MOST_BANDS)
    assert (first.tolist(), last.tolist()) == ([0], [10**7 - 40])
    far = np.append(starts, 2 * 10**7)
    assert joined(far, far + 60, 10**7 // MOST_BANDS)[0].tolist() == [0, 2 * 10**7]
    few = starts[:5]
    assert joined(few, few + 60, 10**7)[0].tolist() == few.tolist()


def test_a_picture(tmp_path, capsys):
    out = tmp_path / "r.png"
    run(["replay", str(incast(tmp_path)), "--png", str(out)])
    capsys.readouterr()
    assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(out.read_bytes()) > 10_000


@needs_chromium()
def test_a_browser_draws_a_replay(tmp_path, capsys):
    path = report(tmp_path, incast(tmp_path), capsys, "--line-rate", "100Gbps")
    drawn, console, asked = opened(path, tmp_path)
    assert (console, asked) == ([], [])
    assert re.search(r'<html[^>]*data-ready="yes"', drawn)
    assert drawn.count("js-line") > 5
    assert "pfc.violation" in drawn


def test_a_capture_without_roce_and_an_empty_one(tmp_path, capsys):
    for name, frames in (("none", [(0.0, b"\0" * 60)]), ("empty", [])):
        page = data_of(report(tmp_path, pcap(tmp_path / f"{name}.pcap", frames), capsys).read_text())
        assert page["panels"] == []
        assert page["findings"][0]["rule"] == "capture.no-roce"
