"""An observed capture as a page: which curves, marks, bands and rows there are, and what they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.report.page import (
    REST,
    Bands,
    Curve,
    Group,
    Kind,
    Marks,
    Page,
    Panel,
    Parameter,
    Symbol,
    Table,
)
from roce_pkt.run import judge
from roce_pkt.run.observation import Observation, ObservedFlow
from roce_pkt.run.pacing import WORDS
from roce_pkt.run.parameter_list import used
from roce_pkt.run.sums import Pause
from roce_pkt.run.track import COLUMNS, SHARE_COLUMNS, SHOWN_VERDICTS, FlowTrack, Track
from roce_pkt.units import PS_PER_NS, PS_PER_S, format_rate, format_time_ns

MOST_SHOWN = 4
"""Flows visible when the page opens."""
MOST_ROWS = 5000
MOST_BANDS = 2000
"""Bands drawn of one lane; nearer than a screen can tell apart, they are one."""
SYMBOLS: dict[int, Symbol] = {judge.ON_TIME: "dot", judge.MISSING: "cross"}


def page_of(name: str, seen: Observation, track: Track) -> Page:
    """The page.

    Args:
        name: The capture as the user named it.
        seen: What was observed.
        track: Its curves.
    """
    flows = {flow.sums.number: flow for flow in seen.flows}
    shown = [flows[number] for number in track.top]
    groups = [Group(_key(flow), str(flow.key), at < MOST_SHOWN) for at, flow in enumerate(shown)]
    rest = sum(not flow.acks_only for flow in seen.flows) - len(shown)
    if rest > 0:
        groups.append(Group(REST, f"the other {rest:,} flows"))
    return Page(
        title=name,
        facts=_facts(seen),
        span_s=track.span_ps / PS_PER_S,
        groups=groups,
        panels=[
            _rates(seen, track, shown),
            _wire(track, shown if seen.setup.line_rate_bps is None else [], rest),
            _alpha(track, shown),
            _marked(track, shown, rest),
            _notifications(track, shown),
            _pauses(seen.pauses, track.span_ps),
        ],
        tables=[_flow_table(seen, shown, rest), *_pause_tables(seen)],
        findings=seen.findings,
        parameters=[Parameter(*parameter) for parameter in used(seen.setup, seen.paced)],
    )  # fmt: skip


def _key(flow: ObservedFlow) -> str:
    return f"flow{flow.sums.number}"


def _facts(seen: Observation) -> list[tuple[str, str]]:
    setup = seen.setup
    line = "unknown" if setup.line_rate_bps is None else format_rate(setup.line_rate_bps)
    pace = format_time_ns(setup.np.interval_ps / PS_PER_NS)
    scope = str(setup.as_json()["np.scope"])
    facts = [
        ("frames", f"{seen.frames:,}"),
        ("RoCE", f"{seen.roce:,}"),
        ("span", format_time_ns(seen.duration_ns)),
        ("flows", f"{len(seen.flows):,}"),
        ("profile", setup.profile),
        ("line rate", line),
        (
            "at most one CNP",
            f"per {pace} ({seen.paced.interval_from}), each {WORDS[scope]} ({seen.paced.scope_from})",
        ),
        ("tap", setup.tap),
    ]
    if seen.paced.text:
        facts.append(("pacing", seen.paced.text))
    return facts


def _seconds(time_ps: NDArray[Any]) -> NDArray[np.float64]:
    return time_ps / PS_PER_S


def _scale(seen: Observation) -> float:
    return 1.0 if seen.setup.line_rate_bps is None else 1e-9


def _rates(seen: Observation, track: Track, shown: list[ObservedFlow]) -> Panel:
    fractions = seen.setup.line_rate_bps is None
    unit = "of line" if fractions else "Gb/s"
    note = "solid: the model's rate, dotted: its target" + ("" if fractions else ", thin: on the wire")
    panel = Panel("Rate", unit, note)
    scale = _scale(seen)
    for flow in shown:
        lines = track.flows[flow.sums.number]
        if not fractions:
            times, values = lines.wire.points()
            panel.curves.append(
                Curve("on the wire", _key(flow), _seconds(times), values * 1e-9, "line", "thin")
            )
        if flow.rp is None:
            continue
        for name, curve, weight in (("target", lines.target, "dotted"), ("rate", lines.rate, "main")):
            times, values = curve.points()
            # unlimited until its first notification, and at its last rate to the end
            times = np.concatenate(([0], times, [track.span_ps]))
            values = np.concatenate(
                ([seen.line_rate], values, values[-1:] if len(values) else [seen.line_rate])
            )
            panel.curves.append(Curve(name, _key(flow), _seconds(times), values * scale, "step", weight))  # type: ignore[arg-type]
    return panel


def _middles(track: Track, columns: int) -> NDArray[np.float64]:
    return np.asarray((np.arange(columns) + 0.5) * (track.span_ps / columns / PS_PER_S), np.float64)


def _wire(track: Track, shown: list[ObservedFlow], rest: int) -> Panel:
    window = format_time_ns(int(track.plan.setup.wire.window_ps) / PS_PER_NS)
    note = f"over {window}" if shown else "all other flows together"
    panel = Panel("Rate on the wire", "Gb/s", note)
    for flow in shown:
        times, values = track.flows[flow.sums.number].wire.points()
        panel.curves.append(Curve("on the wire", _key(flow), _seconds(times), values * 1e-9))
    if rest > 0:
        panel.curves.append(Curve("on the wire", REST, _middles(track, COLUMNS), track.rest_bps * 1e-9))
    return panel


def _alpha(track: Track, shown: list[ObservedFlow]) -> Panel:
    panel = Panel("Alpha", "")
    for flow in shown:
        times, values = track.flows[flow.sums.number].alpha.points()
        if len(times):
            panel.curves.append(Curve("alpha", _key(flow), _seconds(times), values, "step"))
    return panel


def _marked(track: Track, shown: list[ObservedFlow], rest: int) -> Panel:
    panel = Panel("CE marks", "% of data")
    tracks: list[tuple[str, FlowTrack]] = [(_key(flow), track.flows[flow.sums.number]) for flow in shown]
    for key, lines in [*tracks, *([(REST, track.rest)] if rest > 0 else [])]:
        if lines.marks.any():
            # a part without data has no share
            share = np.where(lines.data > 0, 100 * lines.marks / np.maximum(lines.data, 1), np.nan)
            panel.curves.append(Curve("marked", key, _middles(track, SHARE_COLUMNS), share, "line"))
    return panel


def _notifications(track: Track, shown: list[ObservedFlow]) -> Panel:
    panel = Panel(
        "Notifications", "", "dot: on time, ring: late, early or unexpected, cross: owed and missing"
    )
    for flow in shown:
        lines = track.flows[flow.sums.number]
        lane = f"{flow.key.dst} 0x{flow.key.dqpn:x}"
        for what in SHOWN_VERDICTS:
            found = lines.verdict(what)
            if len(found):
                word = judge.VERDICTS[what]
                notes = [
                    f"frame {frame}" + (f", {format_time_ns(span / PS_PER_NS)}" if span else "")
                    for frame, span in found[:, 1:].tolist()
                ]
                times = _seconds(found[:, 0])
                panel.marks.append(
                    Marks(f"CNP {word}", _key(flow), times, lane, SYMBOLS.get(what, "ring"), notes)
                )
    return panel


def _pauses(pauses: list[Pause], span_ps: int) -> Panel:
    panel = Panel("Pauses")
    for pause in pauses:
        if pause.paused_ns is None:
            continue
        starts, stops = joined(*pause.line.spans(span_ps), span_ps // MOST_BANDS)
        lane = pause.name
        panel.bands.append(Bands("paused", lane, _seconds(starts), _seconds(stops), shade=True))
    return panel


def joined(
    starts: NDArray[np.int64], stops: NDArray[np.int64], gap_ps: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bands that stand nearer than `gap_ps` as one, where there are too many to draw each."""
    if len(starts) <= MOST_BANDS:
        return starts, stops
    apart = starts[1:] - stops[:-1] > gap_ps
    return starts[np.concatenate(([True], apart))], stops[np.concatenate((apart, [True]))]


FLOW_COLUMNS: list[tuple[str, Kind]] = [
    ("flow", "text"), ("packets", "number"), ("bytes", "bytes"), ("CE", "number"), ("marked", "percent"),
    ("CNPs due", "number"), ("seen", "number"), ("missing", "number"), ("late", "number"), ("lowest", "rate"),
    ("last", "rate"), ("alpha", "number"), ("wire mean", "rate"), ("over model", "time"),
]  # fmt: skip


def _flow_table(seen: Observation, shown: list[ObservedFlow], rest: int) -> Table:
    top = {id(flow) for flow in shown}
    fractions = seen.setup.line_rate_bps is None
    columns = [
        (n, "percent" if k == "rate" and fractions and n != "wire mean" else k) for n, k in FLOW_COLUMNS
    ]
    order = sorted(seen.flows, key=lambda flow: id(flow) not in top)
    rows: list[list[Any]] = []
    groups: list[str | None] = []
    for flow in order[:MOST_ROWS]:
        lowest, last = seen.rates(flow)
        v = flow.verdicts
        rows.append([
            str(flow.key), flow.sums.frames, flow.sums.octets, flow.sums.ce, flow.mark_share,
            flow.cnps_expected, flow.cnps_seen, flow.cnps_missing, int(v.late), lowest, last,
            None if flow.rp is None else round(flow.rp.alpha, 4), flow.sums.wire_rate_bps,
            None if flow.pace is None else flow.pace.over_ps / PS_PER_NS,
        ])  # fmt: skip
        own = _key(flow) if id(flow) in top else None
        groups.append(own or (REST if rest > 0 and not flow.acks_only else None))
    left = len(order) - len(rows)
    note = f"{left} more flows; replay --format json has every one" if left > 0 else ""
    return Table("Flows", columns, rows, groups, note)


def _pause_tables(seen: Observation) -> list[Table]:
    if not seen.pauses:
        return []
    columns: list[tuple[str, Kind]] = [
        ("pauses by", "text"), ("class", "text"), ("XOFF", "number"), ("XON", "number"), ("paused", "time"),
        ("share", "percent"), ("longest", "time"), ("violations", "number"), ("storms", "number"),
        ("link", "rate"), ("response allowed", "time"),
    ]  # fmt: skip
    rows: list[list[Any]] = [
        [
            p.direction, "all" if p.priority is None else str(p.priority), p.xoff, p.xon, p.paused_ns,
            p.share, p.longest_ns, p.violations, len(p.storms), p.speed_bps, p.response_ns,
        ]
        for p in seen.pauses
    ]  # fmt: skip
    return [Table("Pauses", columns, rows)]
