"""What senders really sent against their models, and curves thinned without losing what sticks out."""

from __future__ import annotations

import numpy as np
import pytest
from crafted import cnp, data, pcap
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from roce_pkt.capture import open as open_capture
from roce_pkt.run import machines
from roce_pkt.run import observe as module
from roce_pkt.run.observe import observe
from roce_pkt.run.track import COLUMNS, Thinned, Track, thin
from roce_pkt.run.wire import sliding_rate_bps

FRAME_BITS = (1082 + 24) * 8


def run(tmp_path, frames, name="c.pcap", watchers=(), **settings):
    path = pcap(tmp_path / name, sorted(frames, key=lambda f: f[0]))
    settings = {key.replace("_", ".", 1): value for key, value in settings.items()}
    return observe(open_capture(path), settings=settings, line_rate_bps=100e9, watchers=watchers)


def at_rate(gbps, start, stop, first=0):
    gap = FRAME_BITS / gbps / 1000
    count = int((stop - start) / gap)
    return [(start + n * gap, data(first + n)) for n in range(count)]


def test_a_sender_that_obeys_is_never_ahead(tmp_path):
    """Halved at 50 us; 50 Gb/s until the next step, 75 after it."""
    frames = [*at_rate(100, 0, 50), (50.0, cnp()), *at_rate(50, 50, 105, 1000), *at_rate(75, 105, 150, 5000)]
    (pace,) = [flow.pace for flow in run(tmp_path, frames).flows if flow.pace]
    assert (pace.count, pace.over_ps, pace.spans) == (0, 0, [])


def test_a_sender_that_does_not_is_caught_where_it_began(tmp_path):
    """On at 100 Gb/s where 50 are allowed: 16 KB ahead after some 2.6 us, caught up after the pause."""
    frames = [*at_rate(100, 0, 80), (50.0, cnp()), *at_rate(50, 110, 115, 5000)]
    seen = run(tmp_path, frames)
    (pace,) = [flow.pace for flow in seen.flows if flow.pace]
    (span,) = pace.spans
    assert pace.count == 1
    assert span.from_ps / 1e6 == pytest.approx(50 + 16_000 * 8 / (100e3 - 52.5e3), abs=0.3)
    assert span.to_ps / 1e6 == pytest.approx(110, abs=0.1)
    (finding,) = [f for f in seen.findings if f.rule == "rp.exceeded"]
    assert (finding.severity, finding.frame) == ("note", span.frame)
    assert seen.as_json()["flows"][0]["over_model"]["count"] == 1
    assert run(tmp_path, frames, wire_burst="1MB").flows[0].pace.count == 0
    assert run(tmp_path, frames, wire_tolerance="110%").flows[0].pace.count == 0


def test_a_span_at_the_end_lasts_to_the_end(tmp_path):
    (pace,) = [flow.pace for flow in run(tmp_path, [*at_rate(100, 0, 80), (50.0, cnp())]).flows if flow.pace]
    assert pace.over_ps == pace.spans[0].to_ps - pace.spans[0].from_ps
    assert pace.spans[0].to_ps / 1e6 == pytest.approx(80, abs=0.2)


@examples(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 300), st.sampled_from(["data", "data", "data", "cnp"])), max_size=80),
    st.sampled_from([0, 1000, 3000]),
)
def test_compiled_equals_plain_and_rounds_change_nothing(tmp_path_factory, script, burst):
    frames = [(t / 10, cnp() if what == "cnp" else data(t)) for t, what in script]
    folder = tmp_path_factory.mktemp("w")
    results = []
    for many, round_frames, kept in (
        (10**9, 10**9, 10**9),
        (-1, 10**9, 10**9),
        (10**9, 7, 10**9),
        (-1, 7, 10),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(machines, "MANY_FRAMES", many)
            patch.setattr(module, "ROUND_FRAMES", round_frames)
            patch.setattr(module, "KEPT_FRAMES", kept)
            results.append(run(folder, frames, wire_burst=f"{burst}B").as_json())
    assert all(result == results[0] for result in results[1:])


def test_the_sliding_rate():
    times = np.array([0, 10, 20, 1000], np.int64) * 1000
    assert sliding_rate_bps(times, np.array([100, 100, 100, 100]), 15_000).tolist() == pytest.approx(
        [8 * n / 15e-9 for n in (100, 200, 200, 100)]
    )


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(-1e3, 1e3)), max_size=300), st.integers(1, 50))
def test_thinning_keeps_what_sticks_out(points, columns):
    points = sorted(points)
    times = np.array([t for t, _ in points], np.int64)
    values = np.array([v for _, v in points])
    kept = thin(times, values, 0, 10**6, columns)
    column = times // max(10**6 // columns, 1)
    for which in np.unique(column):
        own = column == which
        left = values[own & kept]
        assert 1 <= len(left) <= 4
        assert (left.min(), left.max()) == (values[own].min(), values[own].max())
        assert kept[np.flatnonzero(own)[[0, -1]]].all()


def test_a_curve_of_millions_stays_small_and_keeps_its_peaks():
    curve = Thinned()
    rng = np.random.default_rng(1)
    for start in range(0, 10**9, 10**7):
        times = np.arange(start, start + 10**7, 1000, dtype=np.int64)
        values = rng.random(len(times))
        if start == 5 * 10**8:
            values[4321], values[777] = 99.0, -99.0
        curve.add(times, values)
    times, values = curve.points()
    assert len(times) <= 4 * (COLUMNS + 1)
    assert (values.max(), values.min()) == (99.0, -99.0)
    assert times[values.argmax()] == 5 * 10**8 + 4321 * 1000
    assert (np.diff(times) > 0).all()


def test_what_a_track_holds_of_a_capture(tmp_path):
    frames = [(n * 0.1, data(n, dqpn=0x20 + n % 15, ce=n % 15 == 3 and n > 300)) for n in range(900)]
    tracks = []

    def make(plan):
        tracks.append(Track(plan, top=4))
        return tracks[0]

    seen = run(tmp_path, frames, watchers=[make])
    (track,) = tracks
    names = [seen.flows[0].key.dqpn for _ in ()] or [track.plan.survey.flows.name(f).dqpn for f in track.top]
    assert names[0] == 0x23  # the marked one first, though all are of one size
    assert len(names) == 4
    marked = track.flows[track.top[0]]
    assert (marked.data.sum(), marked.marks.sum()) == (60, 40)
    assert track.rest.data.sum() == 11 * 60
    assert track.rest_octets.sum() == 11 * 60 * (1082 + 24)
    assert sum(len(found) for rows in marked.verdicts.values() for found in rows) > 0
    times, values = marked.rate.points()
    assert values.min() == next(flow for flow in seen.flows if flow.key.dqpn == 0x23).rp.rate_min_bps
    assert len(times) > 0
