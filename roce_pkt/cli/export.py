"""`roce-pkt export`: the columns of a capture as a Parquet file."""

from __future__ import annotations

from typing import Annotated

import typer

from roce_pkt.cli.common import (
    CaptureArgument,
    ForceOption,
    Format,
    FormatOption,
    OutputOption,
    UdpPortOption,
    print_json,
    tell_losses,
)


def export(
    capture: CaptureArgument,
    output: OutputOption,
    where: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="EXPR", help="Only frames that fit, e.g. 'opcode == CNP and dqpn == 0x11'."
        ),
    ] = None,
    form: FormatOption = Format.TEXT,
    udp_port: UdpPortOption = 4791,
    force: ForceOption = False,
) -> int:
    """Write the columns of a capture to a Parquet file."""
    from roce_pkt.capture import open as open_capture
    from roce_pkt.capture.export import write_parquet
    from roce_pkt.capture.where import parse_where
    from roce_pkt.files import check_outputs

    check_outputs([output], [capture], force=force)
    chosen = parse_where(where) if where is not None else None
    source = open_capture(capture, udp_port)
    batches = source.batches() if chosen is None else (chosen(frames) for frames in source.batches())
    count = write_parquet(output, batches, force=force)
    if form is Format.JSON:
        losses = [finding.as_json() for finding in source.losses]
        print_json({"output": output, "frames": count, "read": len(source), "losses": losses})
    else:
        typer.echo(f"{output}: {count} of {len(source)} frames")
        tell_losses(source.losses)
    return 0
