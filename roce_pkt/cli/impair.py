"""`roce-pkt impair`: do faults to a capture."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from roce_pkt.cli.common import (
    CaptureArgument,
    ForceOption,
    Format,
    FormatOption,
    UdpPortOption,
    print_json,
    tell_losses,
    with_losses,
)
from roce_pkt.errors import InputError


def impair(
    capture: CaptureArgument,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="File to write.")],
    fault: Annotated[
        list[str], typer.Option("--fault", metavar="'KIND K=V ...'", help="A fault (repeatable).")
    ] = [],  # noqa: B006
    faults: Annotated[str, typer.Option("--faults", metavar="FILE", help="TOML with [[fault]] tables.")] = "",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every chance.")] = 1,
    force: ForceOption = False,
    form: FormatOption = Format.TEXT,
    udp_port: UdpPortOption = 4791,
) -> int:
    """Do faults to a capture; what was done is listed in FILE.truth.jsonl.

    KIND is drop, ce, corrupt, duplicate, reorder, delay, truncate or replay. Frames are chosen by src,
    dst, qp (destination), opcode, psn, message, occurrence, nth, count, probability and burst; all that
    are given must agree. Others: what=bit|field|payload, bit, field, value (corrupt), distance (reorder,
    replay), time (delay, duplicate), bytes (truncate).

    Example: --fault 'drop qp=0x11 psn=1007 occurrence=2' --fault 'ce probability=0.1 burst=3'
    """
    from roce_pkt.capture import open as open_capture
    from roce_pkt.edit.fault_words import fault_from_words, faults_from_file
    from roce_pkt.edit.impair import impair as do_faults
    from roce_pkt.edit.impair import truth_path
    from roce_pkt.files import check_outputs

    wanted = [fault_from_words(text) for text in fault if text.strip()]
    if faults:
        wanted += faults_from_file(faults)
    if not wanted:
        raise InputError(
            "impair: no fault given; e.g. --fault 'drop qp=0x11 psn=1007', or --faults FILE.toml"
        )
    check_outputs([output, truth_path(output)], [capture, faults], force=force)
    source = open_capture(capture, udp_port)
    done = do_faults(source, output, wanted, seed=seed, force=force)
    if form is Format.JSON:
        document = {
            "frames_in": done.frames_in,
            "frames_out": done.frames_out,
            "faults": dict(done.faults),
            "truth": str(truth_path(output)),
            "seed": seed,
        }
        print_json(with_losses(document, source.losses))
    else:
        kinds = ", ".join(f"{count} {kind}" for kind, count in done.faults.items()) or "no fault fitted"
        sys.stdout.write(f"{done.frames_in} frames in, {done.frames_out} out: {kinds}\n")
        tell_losses(source.losses)
    return 0
