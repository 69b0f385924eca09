"""What somebody should look at in an observed capture, in sentences."""

from __future__ import annotations

from roce_pkt.errors import Finding
from roce_pkt.flows.contents import no_roce
from roce_pkt.flows.survey import Survey
from roce_pkt.run import judge
from roce_pkt.run.observation import Observation, ObservedFlow
from roce_pkt.run.pause_findings import pause_findings
from roce_pkt.run.signs import Probes, Sign
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
    for rule in (
        _missing,
        _probed,
        _late,
        _wrong_qp,
        _unexpected,
        _early,
        _after_nak,
        _unasked,
        _exceeded,
        _mixed,
        _skipped,
    ):
        found = [finding for flow in seen.flows if (finding := rule(seen, flow)) is not None]
        out += found[:MOST_OF_A_RULE]
        if len(found) > MOST_OF_A_RULE:
            more = len(found) - MOST_OF_A_RULE
            out.append(Finding(found[0].rule, found[0].severity, f"the same of {more} more flows"))
    out += _ties(seen) + _unmatched(seen) + _looks(seen) + pause_findings(seen)
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


def _time(ps: float) -> str:
    return format_time_ns(ps / PS_PER_NS)


def _missing(seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Marks that were not answered."""
    if not flow.cnps_missing:
        return None
    marks = f"{flow.key}: {flow.sums.ce} CE marks call for {flow.cnps_expected} CNPs"
    if flow.cnps_seen:
        text = f"{marks}, {flow.cnps_missing} of them never came"
        return Finding("cnp.missing", "warning", text, seen.first_frame(flow, judge.MISSING))
    if flow.sign is Sign.ONLY_OTHERS:
        text = f"{marks}, none was seen; its receiver does send CNPs, but to others only"
        return Finding("cnp.missing", "warning", text, seen.first_frame(flow, judge.MISSING))
    why = "nothing at all comes back, so the capture may hold one direction only"
    if flow.sign is Sign.NO_SIGN:
        why = "its receiver's other frames are here and not one CNP: it shows no sign of DCQCN"
        if flow.probes is not None:
            why += f", and {_probes(flow.probes)}"
        why += "; called that, not failed"
    return Finding("cnp.none", "warning", f"{marks}, none was seen; {why}")


def _probes(found: Probes) -> str:
    few, many = found.frames
    return (
        f"{few} and {many} small frames to and fro between its addresses, one each way about every"
        f" {format_time_ns(found.every_ns)}, look like timing probes of another algorithm"
    )


def _probed(_seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Data that was never marked nor notified of, beside what looks like probes."""
    looks = flow.probes is not None and flow.sign is Sign.UNMARKED and not flow.cnps_seen
    if flow.probes is None or not looks or not flow.sums.data_frames or flow.small:
        return None
    text = f"{flow.key}: no CE mark and no CNP; {_probes(flow.probes)}; called that, not failed"
    return Finding("cc.probes", "note", text)


def _late(seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Notifications that took long."""
    late = int(flow.verdicts.late)
    if not late:
        return None
    allowed, most = _time(seen.setup.cnp.response_ps), _time(int(flow.verdicts.delay_max_ps))
    text = f"{flow.key}: {late} of {flow.cnps_seen} CNPs came more than {allowed} late, at most {most}"
    return Finding("cnp.late", "warning", text, seen.first_frame(flow, judge.LATE))


def _wrong_qp(seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Notifications for a queue pair that was not marked while another's was due."""
    wrong = int(flow.verdicts.wrong_qp)
    if not wrong:
        return None
    text = (
        f"{flow.key}: {wrong} CNPs although none of its frames was marked, when one for another queue pair"
        " of these addresses was due"
    )
    return Finding("cnp.wrong-qp", "warning", text, seen.first_frame(flow, judge.WRONG_QP))


def _unexpected(seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Notifications that no mark asked for, of a flow whose marks can be seen."""
    unexpected = int(flow.verdicts.unexpected)
    if not unexpected or not flow.cnps_expected:
        return None
    text = f"{flow.key}: {unexpected} of {flow.cnps_seen} CNPs without a mark since the one before"
    return Finding("cnp.unexpected", "warning", text, seen.first_frame(flow, judge.UNASKED))


def _early(seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Notifications closer than the receiver's pace."""
    early = int(flow.verdicts.early)
    if not early:
        return None
    pace = _time(seen.setup.np.interval_ps)
    text = f"{flow.key}: {early} of {flow.cnps_seen} CNPs came within {pace} of the one before"
    return Finding("cnp.early", "warning", text, seen.first_frame(flow, judge.EARLY))


def _after_nak(seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Notifications right behind NAKs."""
    after = int(flow.verdicts.after_nak)
    if not after:
        return None
    text = (
        f"{flow.key}: {after} CNPs without a mark follow a NAK; some NICs notify of loss as well,"
        " --set np.on_nak=on expects that"
    )
    return Finding("cnp.after-nak", "note", text, seen.first_frame(flow, judge.AFTER_NAK))


def _exceeded(seen: Observation, flow: ObservedFlow) -> Finding | None:
    """A sender faster than its model."""
    # behind a queue frames come as the queue lets them go, whatever their sender did meanwhile
    if flow.pace is None or not flow.pace.count or seen.setup.tap == "receiver":
        return None
    first = flow.pace.spans[0]
    text = f"{flow.key}: ahead of its model for {_time(flow.pace.over_ps)} in all, in {flow.pace.count} spans"
    if seen.setup.tap == "middle":
        text += "; frames that waited in a queue before the tap look so as well"
    return Finding("rp.exceeded", "note", text, first.frame)


def _mixed(_seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Data that can be marked, and data that cannot."""
    not_ect, *ect = flow.sums.ecn
    # acknowledgements that travel with the data need not be markable
    plain = not_ect - (flow.sums.frames - flow.sums.data_frames)
    if plain <= 0 or not sum(ect):
        return None
    text = (
        f"{flow.key}: {plain} data frames are Not-ECT and {sum(ect)} are ECT or CE; a switch drops the former"
    )
    return Finding("ecn.mixed", "warning", text)


def _looks(seen: Observation) -> list[Finding]:
    """Notifications in a class they should not be in."""
    out = []
    for name, counts, right in (
        ("dscp", seen.checks.dscp, seen.setup.cnp.dscp),
        ("priority", seen.checks.priority, seen.setup.cnp.priority),
    ):
        word = "DSCP" if name == "dscp" else "VLAN priority"
        for value, count in sorted(counts.items()):
            text = (
                f"{count} CNPs carry {word} {value}, not {right} (--set np.{name}={value} if that is meant)"
            )
            out.append(Finding(f"cnp.{name}", "warning", text, seen.checks.first[name, value]))
    return out


def _unasked(seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Notifications without a mark that asked for them."""
    unasked = int(flow.verdicts.unexpected)
    if not unasked or flow.cnps_expected or seen.setup.tap == "sender":
        return None
    text = (
        f"{flow.key}: {unasked} CNPs and no CE mark; the capture was taken before the queue that"
        " marked (--tap sender), or the receiver answers something else, such as loss"
    )
    return Finding("cnp.unasked", "note", text)


def _skipped(_seen: Observation, flow: ObservedFlow) -> Finding | None:
    """Gaps that were not followed timer by timer."""
    if flow.rp is None or not flow.rp.skipped_ps:
        return None
    gap = format_time_ns(flow.rp.skipped_ps / PS_PER_NS)
    return Finding("rp.gap", "warning", f"{flow.key}: the rate was not followed through {gap} of silence")


def _ties(seen: Observation) -> list[Finding]:
    """What the stamps cannot put in order."""
    tied = [(flow, flow.rp) for flow in seen.flows if flow.rp is not None and flow.rp.tied]
    if not tied:
        return []
    (flow, rp), count = tied[0], sum(rp.tied for _, rp in tied)
    flows = "1 flow" if len(tied) == 1 else f"{len(tied)} flows"
    text = (
        f"{count} ties in {flows}: two things within {_time(seen.tick_ps)}, the capture's clock tick, of each"
        " other. Either order fits; the rates after it are those of one of them. The first:"
        f" {flow.key}, a notification or step with {rp.ties[0].words[0]}"
    )
    return [Finding("rp.tie", "note", text, rp.ties[0].frame)]


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
