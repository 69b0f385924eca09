"""A simulation's page: the same report, from samples and events."""

from __future__ import annotations

import base64
import json

import numpy as np
from browser import data_of, needs_chromium, opened

from roce_pkt.cli.app import run
from roce_pkt.report.page import Page
from roce_pkt.report.simulate_page import SimulationPage
from roce_pkt.run.simulate import simulate


def page():
    made = SimulationPage(400_000_000)
    events = []
    result = simulate(
        "two-to-one", {"duration": "400us", "measure_from": "0us"},
        on_samples=made.samples, on_rows=made.rows, on_event=events.append,
    )  # fmt: skip
    return made.page("two to one", result), result, events


def values(packed):
    return np.frombuffer(base64.b64decode(packed["bdata"]), f"<{packed['dtype']}")


def test_curves_are_the_run():
    found, result, events = page()
    assert isinstance(found, Page)
    panels = {panel.title: panel for panel in found.panels}
    rates = panels["Rate of senders"].curves
    assert [curve.group for curve in rates] == [group.key for group in found.groups]
    lowest = {}
    for event in events:
        if event.kind == "rp.cut":
            lowest[str(event.flow)] = min(lowest.get(str(event.flow), 1e12), event.state["rate_bps"])
    assert lowest
    for curve in rates:
        # a sample may miss what lasted less than its period, never show less than there was
        assert curve.value.min() * 1e9 >= lowest.get(curve.group, 0) * (1 - 1e-9)
    queue = max(curve.value.max() for curve in panels["Queues"].curves)
    assert 0 < queue * 1e3 <= max(port.queue_max_bytes for port in result.ports)
    told = sum(len(marks.time_s) for marks in panels["Notifications"].marks)
    assert told == sum(event.kind == "np.cnp" for event in events) > 0
    json.dumps(found.as_json(), allow_nan=False)


@needs_chromium()
def test_the_command_writes_a_page_a_browser_draws(tmp_path, capsys):
    path = tmp_path / "s.html"
    words = ["simulate", "--preset", "two-to-one", "--set", "duration=300us", "--set", "measure_from=0us"]
    assert run([*words, "--report", str(path)]) in (0, 1)
    capsys.readouterr()
    data = data_of(path.read_text())
    assert {table["title"] for table in data["tables"]} == {"Flows", "Ports"}
    assert ["fabric.rate", "40Gbps"] in [parameter[:2] for parameter in data["parameters"]]
    drawn, console, asked = opened(path, tmp_path)
    assert (console, asked) == ([], [])
    assert drawn.count("js-line") > 2
