"""A simulation's page: the same report, from samples and events."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from browser import data_of, needs_chromium, opened

from roce_pkt.cli.app import run
from roce_pkt.report import png
from roce_pkt.report.page import Curve, Page, Panel
from roce_pkt.report.simulate_page import SimulationPage
from roce_pkt.run.bins import PARTS
from roce_pkt.run.simulate import load, simulate


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


def pictured(name, changes=None, every=None):
    scenario = load(name, changes)
    made = SimulationPage(scenario.duration_ps)
    result = simulate(scenario, on_samples=made.samples, on_rows=made.rows, sample_every_ps=every)
    return made.page(name, result), result


def curves(found, title):
    return next(panel.curves for panel in found.panels if panel.title == title)


@pytest.mark.parametrize("name", ["ring-allreduce", "moe-alltoall", "storage-mix", "all-to-all"])
def test_a_picture_ends_with_what_happened(name):
    found, result = pictured(name)
    done_s = result.summary["done_ns"] / 1e9
    assert done_s == max(f.completion_ns for f in result.flows if f.completion_ns is not None) / 1e9
    assert 1.0 < found.span_s / done_s < 1.05
    assert found.span_s < 0.1 * result.summary["sim_time_ns"] / 1e9
    assert found.caption.startswith("all messages done at ")
    [together] = [c for c in curves(found, "Goodput of all flows") if c.weight == "main"]
    assert len(together.time_s) > 25
    assert together.time_s[-1] < found.span_s
    assert np.count_nonzero(together.value) > len(together.value) / 3
    width = together.time_s[1]
    octets = together.value.sum() * width / 8 * 1e9
    assert octets == pytest.approx(delivered(result), rel=0.02)
    for panel in found.panels:
        for curve in panel.curves:
            assert curve.time_s[-1] <= found.span_s
        for marks in panel.marks:
            assert marks.time_s[-1] <= found.span_s


def delivered(result):
    """Octets of payload, by what each flow says of its goodput."""
    return sum(f.goodput_bps * f.completion_ns / 8e9 for f in result.flows if f.completion_ns is not None)


def test_a_full_run_has_its_whole_axis():
    found, result = pictured("two-to-one", {"duration": "400us", "measure_from": "100us"})
    assert result.summary["done_ns"] is None
    assert found.span_s == pytest.approx(400e-6)
    assert found.since_s == pytest.approx(100e-6)
    assert "messages done" not in found.caption
    assert found.caption.startswith("from 100 us on: ")
    [together] = [c for c in curves(found, "Goodput of all flows") if c.weight == "main"]
    assert len(together.time_s) == PARTS


def test_a_run_with_work_left_has_its_whole_axis_and_says_how_much():
    found, result = pictured("incast", {"duration": "4.1ms"})
    done = sum(f.completion_ns is not None for f in result.flows)
    assert 0 < done < 16
    assert found.span_s == pytest.approx(4.1e-3)
    assert found.caption.startswith(f"{done} of 16 flows done in 4.1 ms")


def test_goodput_is_never_above_the_link_it_came_over():
    found, _ = pictured("permutation")
    [limit] = [c for c in curves(found, "Goodput of receivers") if c.name == "link of a host"]
    for curve in curves(found, "Goodput of receivers"):
        assert curve.value.max() <= limit.value[0]
    assert any(c.name == "to 10.0.0.8" for c in curves(found, "Goodput of receivers"))


def test_queues_are_seen_beside_the_thresholds_that_matter():
    found, _ = pictured("latency-jitter", {"duration": "300us", "measure_from": "0us"}, 1_000_000)
    assert {c.name: c.value[0] for c in curves(found, "Queues") if c.weight == "dotted"} == {"Kmin": 3000.0}
    note = next(panel.note for panel in found.panels if panel.title == "Queues")
    assert "Kmin 3 MB to Kmax 4 MB" in note
    found, _ = pictured("victim-flow", {"duration": "100us"}, 1_000_000)
    assert all(c.weight == "main" for c in curves(found, "Queues"))  # nothing is marked there


def test_a_peak_before_statistics_count_does_not_hide_the_rest():
    found, result = pictured("two-to-one", every=5_000_000)
    panel = next(panel for panel in found.panels if panel.title == "Queues")
    later = max(port.queue_max_bytes for port in result.ports) / 1e3
    assert max(c.value.max() for c in panel.curves) > 4 * later
    assert later < panel.top < 2 * later
    assert [c.value[0] for c in panel.curves if c.name == "Kmin"] == [5.0]


def test_pictures_of_short_runs_are_sampled_more_often():
    periods = []

    def take(times, *_):
        periods.append(int(np.diff(times[:2])[0]))

    for name, changes in (("all-to-all", {}), ("two-to-one", {"duration": "1ms", "measure_from": "0us"})):
        simulate(name, changes, on_samples=take)
        periods[periods.index(periods[-1]) :] = periods[-1:]
    assert periods == [20_000, 1_000_000]


def test_a_png_is_drawn_with_lines_that_cover_each_other_in_turn(tmp_path):
    time = np.linspace(0, 1, 50)
    same = [Curve(name, None, time, np.sin(time) + 1) for name in "ab"]
    other = Curve("c", None, time, np.cos(9 * time) + 1)
    dashes = png._dashes([*same, other])
    assert {id(one) for one in same} == set(dashes)
    (first, pattern), (second, _) = (dashes[id(one)] for one in same)
    assert (first, second) == (0.0, pattern[0])
    path = tmp_path / "a.png"
    png.write_png(path, Page("$ {x} \\", [], 1.0, panels=[Panel("p", "1", curves=[*same, other])]))
    assert path.read_bytes().startswith(b"\x89PNG")
