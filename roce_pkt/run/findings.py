"""What somebody should look at in an observed capture, in sentences."""

from __future__ import annotations

from roce_pkt.errors import Finding
from roce_pkt.flows.contents import no_roce
from roce_pkt.flows.survey import Survey
from roce_pkt.run.observation import Observation, ObservedFlow
from roce_pkt.units import PS_PER_NS, format_rate, format_time_ns

MOST_OF_A_RULE = 10
"""Findings told one by one of each rule; the rest is counted."""


def findings(seen: Observation, survey: Survey) -> list[Finding]:
    """Everything worth saying.

    Args:
        seen: The result, without findings.
        survey: What the first pass learned.
    """
    nothing = no_roce(survey.contents)
    if nothing is not None:
        return [Finding("capture.no-roce", "warning", nothing)]
    out = _frames(survey)
    for rule in (_missing, _unasked, _skipped):
        found = [finding for flow in seen.flows if (finding := rule(seen, flow)) is not None]
        out += found[:MOST_OF_A_RULE]
        if len(found) > MOST_OF_A_RULE:
            more = len(found) - MOST_OF_A_RULE
            out.append(Finding(found[0].rule, found[0].severity, f"the same of {more} more flows"))
    out += _unmatched(seen)
    if seen.setup.line_rate_bps is None and seen.flows:
        out.append(_no_line_rate(seen))
    return out


def _frames(survey: Survey) -> list[Finding]:
    out = []
    if survey.wrong_icrc:
        text = f"{survey.wrong_icrc} frames have a wrong ICRC; a NIC drops them, so their marks do not count"
        out.append(Finding("icrc.wrong", "error", text, survey.first_wrong_icrc))
    if survey.backwards:
        text = f"time runs backwards {survey.backwards} times; near frames are put in order, others moved up"
        out.append(Finding("capture.time", "warning", text, survey.first_backwards))
    return out


def _missing(seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Marks that were not answered."""
    if not flow.cnps_missing:
        return None
    marks = f"{flow.key}: {flow.sums.ce} CE marks call for {flow.cnps_expected} CNPs"
    if flow.cnps_seen:
        text = f"{marks}, {flow.cnps_seen} were seen"
        pace = format_time_ns(seen.setup.np.interval_ps / PS_PER_NS)
        text += f"; the receiver may pace by more than {pace}, or for more than one queue pair"
        return Finding("cnp.missing", "warning", text)
    why = (
        "its receiver's other frames are here, so it shows no sign of DCQCN"
        if flow.answered
        else "nothing at all comes back, so the capture may hold one direction only"
    )
    return Finding("cnp.none", "warning", f"{marks}, none was seen; {why}")


def _unasked(seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Notifications without a mark that asked for them."""
    if not flow.cnps_seen or flow.cnps_expected or seen.setup.tap == "sender":
        return None
    text = (
        f"{flow.key}: {flow.cnps_seen} CNPs and no CE mark; the capture was taken before the queue that"
        " marked (--tap sender), or the receiver answers something else, such as loss"
    )
    return Finding("cnp.unasked", "note", text)


def _skipped(_seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Gaps that were not followed timer by timer."""
    if flow.rp is None or not flow.rp.skipped_ps:
        return None
    gap = format_time_ns(flow.rp.skipped_ps / PS_PER_NS)
    return Finding("rp.gap", "warning", f"{flow.key}: the rate was not followed through {gap} of silence")


def _unmatched(seen: Observation) -> list[Finding]:
    out = []
    for unmatched in seen.unmatched[:MOST_OF_A_RULE]:
        names = "; ".join(str(flow) for flow in unmatched.candidates[:4]) or "none was captured"
        more = len(unmatched.candidates) - 4
        names += f"; {more} more" if more > 0 else ""
        text = (
            f"{unmatched.count} CNPs {unmatched.key} belong to no flow that can be named; candidates: {names}"
        )
        out.append(Finding("cnp.unmatched", "warning", text))
    rest = sum(unmatched.count for unmatched in seen.unmatched[MOST_OF_A_RULE:])
    if rest:
        out.append(
            Finding("cnp.unmatched", "warning", f"{rest} more CNPs belong to no flow that can be named")
        )
    return out


def _no_line_rate(seen: Observation) -> Finding:
    from roce_pkt.cc.profiles import find

    reference = format_rate(find(seen.setup.profile).reference_rate_bps)
    text = (
        f"the line rate is unknown: rates are fractions of it, with the {seen.setup.profile} profile's steps"
        f" as on {reference}; give --line-rate for bits a second"
    )
    return Finding("line-rate.unknown", "note", text)
