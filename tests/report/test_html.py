"""The report as a file: one of its own, safe against names, and drawn by a browser without a word."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np
import pytest
from browser import data_of, needs_chromium, opened

from roce_pkt.errors import Finding, InputError
from roce_pkt.report.html import document, plotly_js, write_html
from roce_pkt.report.page import REST, Bands, Curve, Group, Marks, Page, Panel, Parameter, Table

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


def page(name="a.pcap", flows=3):
    time = np.linspace(0, 0.02, 500)
    groups = [Group(f"f{i}", f"{name} {i}", shown=i < 2) for i in range(flows)] + [Group(REST, "the rest")]
    rate = Panel("Rate", "Gb/s", "how to read it")
    lanes = Panel("Notifications and pauses")
    for group in groups:
        rate.curves.append(Curve("rate", group.key, time, 50 + 40 * np.sin(300 * time), "step"))
        lanes.marks.append(Marks("CNP", group.key, time[::50], group.name, "dot", [name] * 10))
    lanes.bands.append(Bands(name, f"{name} class 3", np.array([0.001]), np.array([0.002]), shade=True))
    rows = [[group.name, 1000 - i, 1e9 * i, None] for i, group in enumerate(groups)]
    table = Table("Flows", [("flow", "text"), ("frames", "number"), ("rate", "rate"), ("alpha", "number")],
                  rows, [group.key for group in groups], note=name)  # fmt: skip
    findings = [Finding("a.rule", "error", name, 7), Finding("b.rule", "note", "nothing much")]
    return Page(name, [("frames", "500"), ("from", name)], 0.02, groups, [rate, lanes, Panel("empty")],
                [table], findings, [Parameter("g", "1/256", name, "gain")])  # fmt: skip


def test_one_file_without_a_way_out():
    text = document(page())
    own = text.replace(plotly_js(), "")
    assert "http://" not in own
    assert "https://" not in own
    assert not re.search(r"<(link|iframe|img|base|object)\b", own)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none'")
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    for code in scripts:
        assert base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() in policy
    assert len(scripts) == 2
    assert "unsafe-eval" not in policy


def test_names_stay_data():
    text = document(page(EVIL)).replace(plotly_js(), "")
    assert EVIL not in text
    assert "<img" not in text
    assert text.count("<script") == 3
    assert data_of(text)["title"] == EVIL


def test_what_is_shown_comes_back_out_of_the_file():
    data = data_of(document(page()))
    assert [panel["title"] for panel in data["panels"]] == ["Rate", "Notifications and pauses"]
    curve = data["panels"][0]["curves"][0]
    time = np.frombuffer(base64.b64decode(curve["t"]["bdata"]), "<f8")
    assert data["time_unit"] == "ms"
    assert time == pytest.approx(np.linspace(0, 20, 500))
    assert data["findings"][0] == {"rule": "a.rule", "severity": "error", "text": "a.pcap", "frame": 7}


def test_a_file_that_is_there_is_kept(tmp_path):
    path = tmp_path / "r.html"
    path.write_text("mine")
    with pytest.raises(InputError, match="--force"):
        write_html(path, page())
    assert path.read_text() == "mine"
    write_html(path, page(), force=True)
    assert path.read_text() == document(page())


@needs_chromium()
@pytest.mark.parametrize("name", ["a.pcap", EVIL])
def test_a_browser_draws_it_and_says_nothing(tmp_path, name):
    path = tmp_path / "r.html"
    write_html(path, page(name))
    drawn, console, asked = opened(path, tmp_path)
    assert (console, asked) == ([], [])
    assert re.search(r'<html[^>]*data-ready="yes"', drawn)
    assert drawn.count('class="js-line"') + drawn.count("js-line") > 0
    assert "<title>owned" not in drawn
    assert re.search(r"<title>[^<]*roce-pkt</title>", drawn)
    body = re.sub(r"<script.*?</script>", "", drawn, flags=re.DOTALL)
    assert "<img" not in body
    rows = re.findall(r"<tbody>(.*?)</tbody>", body, re.DOTALL)
    assert [len(re.findall("<tr", part)) for part in rows] == [2, 4, 1]


@needs_chromium()
def test_a_page_with_nothing_to_draw(tmp_path):
    path = tmp_path / "r.html"
    write_html(path, Page("empty", [], 0.0))
    drawn, console, asked = opened(path, tmp_path)
    assert (console, asked) == ([], [])
    assert "Nothing to report" in drawn


def test_json_knows_no_nan():
    bad = page()
    bad.tables[0].rows[0][2] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        json.dumps(bad.as_json(), allow_nan=False)


@needs_chromium()
def test_the_browser_would_have_told(tmp_path):
    """The witness itself: an error in a script and an image from elsewhere are both seen."""
    path = tmp_path / "bad.html"
    path.write_text("<body><img src='http://192.0.2.1/x.png'><script>nothing.at.all()</script></body>")
    _, console, asked = opened(path, tmp_path)
    assert any("nothing is not defined" in line for line in console)
    assert asked == ["http://192.0.2.1/x.png"]
