"""`roce-pkt send`: put a capture on a wire."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from roce_pkt.cli.common import CaptureArgument, Format, FormatOption, UdpPortOption, print_json
from roce_pkt.errors import InputError

if TYPE_CHECKING:
    from roce_pkt.run.send import Pace


def send(
    capture: CaptureArgument,
    interface: Annotated[
        str, typer.Option("--interface", "-i", metavar="IF", help="Interface to send on; never guessed.")
    ] = "",
    rate: Annotated[
        str, typer.Option("--rate", help="10Gbps on the wire, 1Mpps, or max; else time stamps.")
    ] = "",
    speed: Annotated[
        float, typer.Option("--speed", min=1e-6, max=1e6, help="Time stamps divided by it.")
    ] = 1.0,
    loop: Annotated[int, typer.Option("--loop", min=0, metavar="N", help="Passes; 0 until interrupted.")] = 1,
    form: FormatOption = Format.TEXT,
    udp_port: UdpPortOption = 4791,
) -> int:
    """Send a capture's frames, as their time stamps say or at a rate; PSNs go on from pass to pass.

    Needs the capability CAP_NET_RAW. Leaves with 1 when frames were refused.
    """
    if not interface:
        raise InputError("send: name the interface, e.g. --interface veth0; none is ever guessed")
    from roce_pkt.capture import open as open_capture
    from roce_pkt.run.send import Sender
    from roce_pkt.run.wire_socket import WireSocket
    from roce_pkt.units import format_rate

    pace = _pace(rate, speed)
    with WireSocket(interface) as wire:
        sender = Sender(open_capture(capture, udp_port), wire, pace)
        try:
            done = sender.run(loop)
        except KeyboardInterrupt:
            done = sender.stopped()
    if form is Format.JSON:
        print_json(done.as_json())
    else:
        rates = done.as_json()
        sys.stdout.write(
            f"{done.sent} of {done.attempted} frames sent, {done.octets} octets in {done.seconds:.3f} s: "
            f"{format_rate(8 * done.octets / max(done.seconds, 1e-9))}, {rates['rate_pps']:.0f} frames/s\n"
        )
        if done.refused:
            sys.stdout.write(f"{done.refused} frames were refused: longer than the interface's MTU allows\n")
    return 1 if done.refused else 0


def _pace(rate: str, speed: float) -> Pace:
    from roce_pkt.run.send import Pace
    from roce_pkt.units import parse_rate_bps

    if not rate:
        return Pace(speed=speed)
    if speed != 1.0:
        raise InputError("--speed and --rate exclude each other")
    if rate == "max":
        return Pace(flat_out=True)
    if rate.endswith("pps"):
        return Pace(rate_pps=_positive(parse_rate_bps(rate.removesuffix("pps") + "bps", "--rate")))
    return Pace(rate_bps=_positive(parse_rate_bps(rate, "--rate")))


def _positive(value: float) -> float:
    if value <= 0:
        raise InputError("--rate: must be more than nothing")
    return value
