"""What somebody should look at in the pauses of a capture."""

from __future__ import annotations

from roce_pkt.errors import Finding
from roce_pkt.run.observation import Observation
from roce_pkt.run.sums import Pause
from roce_pkt.units import PS_PER_NS, format_rate, format_time_ns

MUCH_OF_THE_TIME = 0.5
MOST_NUMBERS = 8
"""Frame numbers named in one sentence."""


def pause_findings(seen: Observation) -> list[Finding]:
    """Frames inside pauses, storms, links that stand still most of the time, and what cannot be told."""
    out = []
    for pause in seen.pauses:
        out += _violations(pause) + _storms(pause)
        if pause.share is not None and pause.share > MUCH_OF_THE_TIME:
            text = f"pauses by {pause.name} stop the link for {pause.share:.0%} of the capture"
            out.append(Finding("pfc.share", "warning", text))
    out += _speeds(seen.pauses, seen.setup.line_rate_bps)
    return out


def _violations(pause: Pause) -> list[Finding]:
    if not pause.violations or pause.response_ns is None:
        return []
    numbers = ", ".join(map(str, pause.first_violations[:MOST_NUMBERS]))
    more = ", ..." if pause.violations > MOST_NUMBERS else ""
    text = (
        f"{pause.violations} frames were sent inside a pause by {pause.name}, more than the"
        f" {format_time_ns(pause.response_ns)} that a sender may take to stop after its start: frames"
        f" {numbers}{more}"
    )
    return [Finding("pfc.violation", "error", text, pause.first_violations[0])]


def _storms(pause: Pause) -> list[Finding]:
    out = []
    for storm in pause.storms[:MOST_NUMBERS]:
        over = "and not let go within the capture"
        if storm.over_ps is not None:
            over = f"and let go at {format_time_ns(storm.over_ps / PS_PER_NS)}"
        at = format_time_ns(storm.at_ps / PS_PER_NS)
        text = (
            f"pauses by {pause.name}: a watchdog would have called it a storm {at} into the capture, {over}"
        )
        out.append(Finding("pfc.storm", "warning", text))
    return out


def _speeds(pauses: list[Pause], line_rate_bps: float | None) -> list[Finding]:
    """What was guessed, or could not be."""
    out = []
    if any(pause.speed_bps is None for pause in pauses):
        text = "without a link speed pauses are counted but not timed: give --line-rate"
        out.append(Finding("pfc.no-speed", "note", text))
    elif pauses and line_rate_bps is None:
        speeds = sorted({pause.speed_bps for pause in pauses if pause.speed_bps is not None})
        known = " and ".join(map(format_rate, speeds))
        text = f"pauses are timed at {known}, as the capture states or its bursts show"
        out.append(Finding("pfc.speed", "note", text))
    unclear = [pause.name for pause in pauses if pause.violations is None and pause.speed_bps is not None]
    if unclear:
        text = f"which frames the pauses by {', '.join(unclear[:3])} should have stopped cannot be told"
        out.append(Finding("pfc.unclear", "note", text))
    return out
