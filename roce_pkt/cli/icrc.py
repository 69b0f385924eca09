"""`roce-pkt icrc explain` and `icrc fix`."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated

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
from roce_pkt.report.text import console
from roce_pkt.wire import icrc as invariant
from roce_pkt.wire.dissection import Dissection
from roce_pkt.wire.frame import dissect

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    help="Explain a frame's ICRC, or repair a capture's.", no_args_is_help=True, rich_markup_mode=None
)


def _masked(frame: Dissection) -> list[tuple[int, str, str]]:
    """Masked fields: octet offset in the frame, header and field name, and the mask in hex."""
    cover = frame.cover
    if cover is None:
        return []
    out = []
    for layer in frame.layers:
        size = layer.header.size_bytes
        first = layer.offset - cover.network_offset
        mask = int.from_bytes(cover.mask[max(first, 0) : max(first, 0) + size], "big")
        if first < 0 or layer.offset > cover.bth_offset:
            continue
        for field in layer.header.fields:
            place = layer.header.places[field.name]
            end = size - place.offset - place.size
            bits = mask >> 8 * end & ((1 << 8 * place.size) - 1)
            if bits >> place.shift & place.mask:
                out.append(
                    (layer.offset + place.offset, f"{layer.header.name}.{field.name}", f"{field.bits} bits")
                )
    return out


@app.command()
def explain(
    capture: CaptureArgument,
    frame: Annotated[
        int, typer.Option("--frame", min=1, max=1 << 62, metavar="N", help="Frame number, from 1.")
    ],
    form: FormatOption = Format.TEXT,
    udp_port: UdpPortOption = 4791,
) -> int:
    """Show which octets a frame's ICRC covers, which are masked, and both values."""
    from roce_pkt.capture import open as open_capture

    record = next(islice(open_capture(capture, udp_port).records(), frame - 1, None), None)
    if record is None:
        raise InputError(f"{capture}: has no frame {frame}")
    read = dissect(record.octets, record.wire_len, record.link_type, udp_port)
    if read.icrc is None:
        raise InputError(
            f"{capture}: frame {frame} has no ICRC: it is {read.hint or read.kind} [{read.status}]"
        )
    value, expected, cover = read.icrc.value, read.icrc.expected, read.cover
    document: dict[str, object] = {
        "frame": frame,
        "network": cover.network if cover else None,
        "covered": [cover.network_offset, cover.end] if cover else None,
        "masked": [{"offset": o, "field": f, "ones": b} for o, f, b in _masked(read)],
        "value": value.hex() if value else None,
        "expected": expected.hex() if expected else None,
        "ok": read.icrc.ok,
        "why": read.icrc.why,
    }
    if form is Format.JSON:
        print_json(document)
    else:
        _explain_text(record.octets, read, document)
    return 1 if read.icrc.ok is False else 0


def _explain_text(octets: memoryview | bytes, read: Dissection, document: dict[str, object]) -> None:
    from rich.text import Text

    out = console()
    cover = read.cover
    if cover is None or read.icrc is None:
        value = document["value"] or "not captured"
        out.print(Text(f"ICRC {value} cannot be checked: {document['why']}", style="yellow"))
        return
    head = invariant.masked_headers(octets, cover)
    out.print(Text("CRC-32 (zlib), stored little-endian, over:", style="bold"))
    out.print("  8 octets     ff ff ff ff ff ff ff ff            (place of a local routing header)")
    _hex_lines(out, octets, cover, head)
    rest = cover.end - cover.network_offset - len(head)
    out.print(f"  {rest} octets  from octet {cover.network_offset + len(head)} on, as they are")
    out.print(Text("Masked with ones, because a router may write there:", style="bold"))
    for offset, name, bits in _masked(read):
        out.print(f"  octet {offset:3d}  {name} ({bits})")
    ok = read.icrc.ok
    out.print(f"In the frame, octets {cover.end}-{cover.end + 3}: {document['value']}")
    out.print(f"Computed:                 {document['expected']}")
    out.print(Text("right" if ok else "WRONG", style="green" if ok else "bold red"))


def _hex_lines(out: Console, octets: memoryview | bytes, cover: invariant.Coverage, head: bytes) -> None:
    """The masked headers, sixteen octets a line, changed octets in capitals."""
    start = cover.network_offset
    for at in range(0, len(head), 16):
        row = head[at : at + 16]
        cells = []
        for i, octet in enumerate(row):
            plain = octets[start + at + i]
            cells.append(f"{octet:02X}" if octet != plain else f"{octet:02x}")
        out.print(f"  octet {start + at:4d}   {' '.join(cells)}")


@app.command()
def fix(
    capture: CaptureArgument,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="File to write.")],
    force: ForceOption = False,
    form: FormatOption = Format.TEXT,
    udp_port: UdpPortOption = 4791,
) -> int:
    """Write the capture again with every wrong ICRC put right; nothing else changes."""
    from dataclasses import asdict

    from roce_pkt.capture import open as open_capture
    from roce_pkt.edit.repair import repair_icrc
    from roce_pkt.files import check_outputs

    check_outputs([output], [capture], force=force)
    source = open_capture(capture, udp_port)
    done = repair_icrc(source, output, force=force)
    if form is Format.JSON:
        print_json(with_losses(asdict(done), source.losses))
    else:
        sys.stdout.write(
            f"{done.frames} frames: {done.repaired} repaired, {done.right} were right, "
            f"{done.not_checked} have no ICRC that can be checked\n"
        )
        tell_losses(source.losses)
    return 0
