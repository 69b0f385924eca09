"""`roce-pkt check`: what is wrong in a capture."""

from __future__ import annotations

from typing import Annotated

import typer

from roce_pkt.cli.common import CaptureArgument, Format, FormatOption, UdpPortOption, print_json


def check(
    capture: CaptureArgument,
    limit: Annotated[
        int, typer.Option("--limit", min=0, metavar="N", help="Findings shown of each rule.")
    ] = 5,
    form: FormatOption = Format.TEXT,
    udp_port: UdpPortOption = 4791,
) -> int:
    """Find what is wrong: ICRC, lengths, pads, opcode order, field rules, PFC.

    Leaves with 1 when a finding is an error.
    """
    from roce_pkt.analysis.check import check as judge
    from roce_pkt.capture import open as open_capture

    source = open_capture(capture, udp_port)
    verdict = judge(source)
    verdict.add(source.losses)
    if form is Format.JSON:
        print_json(
            {
                "capture": {"file": capture, "frames": verdict.frames, "kinds": dict(verdict.kinds)},
                "icrc": dict(verdict.icrc),
                "counts": dict(verdict.counts),
                "findings": [finding.as_json() for finding in verdict.findings],
            }
        )
    else:
        from roce_pkt.report.check_text import show

        show(capture, verdict, limit)
    return 1 if verdict.failed else 0
