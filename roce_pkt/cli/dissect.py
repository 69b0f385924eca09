"""`roce-pkt dissect`: frames as lines, as a tree, as JSON lines or as chosen fields."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roce_pkt.cli.common import CaptureArgument, UdpPortOption, tell_losses
from roce_pkt.errors import InputError, nearest
from roce_pkt.report.text import console, printable
from roce_pkt.wire.dissection import Dissection
from roce_pkt.wire.frame import dissect as dissect_frame
from roce_pkt.wire.present import addresses, frame_json, summary, tree

if TYPE_CHECKING:
    from roce_pkt.capture import Capture
    from roce_pkt.capture.frames import Frames
    from roce_pkt.capture.model import Record


MAX_FRAMES = 1 << 62


class DissectFormat(StrEnum):
    """How frames are printed."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


def dissect(
    capture: CaptureArgument,
    frame: Annotated[
        int | None,
        typer.Option(
            "--frame", min=1, max=MAX_FRAMES, metavar="N", help="One frame as a tree with octet offsets."
        ),
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option("--fields", metavar="A,B,C", help="Tab-separated fields, e.g. bth.psn,ip.src."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="EXPR", help="Only frames that fit: 'opcode == CNP and dqpn == 18'."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, max=MAX_FRAMES, metavar="N", help="Stop after N frames.")
    ] = None,
    form: Annotated[
        DissectFormat, typer.Option("--format", help="Text, one JSON document, or one object a line.")
    ] = DissectFormat.TEXT,
    udp_port: UdpPortOption = 4791,
) -> int:
    """Read frames: a line each, one as a tree, JSON lines, or chosen fields."""
    from roce_pkt.capture import open as open_capture

    if frame is not None and (fields is not None or where is not None):
        raise InputError("--frame shows one frame whole: it goes without --fields and --where")
    if fields is not None and form is not DissectFormat.TEXT:
        raise InputError("--fields prints tab-separated text: it goes without --format")
    source = open_capture(capture, udp_port)
    if frame is not None:
        return _one(capture, source.records(), frame, form, udp_port)
    if fields is not None:
        _fields(source, [f.strip() for f in fields.split(",") if f.strip()], where, count)
        return 0
    clock = _Clock()
    records = islice(_records(source, where, clock), count)
    if form is not DissectFormat.TEXT:
        return _json(records, form, udp_port)
    kinds = _lines(records, udp_port, clock)
    _tell_if_nothing(kinds, where)
    tell_losses(source.losses)
    return 0


@dataclass(slots=True)
class _Clock:
    """When the capture began, whichever frames are shown."""

    start_ns: int | None = None

    def start(self, time_ns: int | None) -> None:
        if self.start_ns is None:
            self.start_ns = time_ns


def _batches(source: Capture, where: str | None) -> Iterator[Frames]:
    """Column batches, reduced to the frames that fit."""
    if where is None:
        yield from source
        return
    from roce_pkt.capture.where import Where

    test = Where(where)
    for frames in source:
        yield frames[test.mask(frames)]


def _records(source: Capture, where: str | None, clock: _Clock) -> Iterator[Record]:
    """Frames one by one; selected by columns when there is something to select."""
    if where is None:
        for record in source.records():
            clock.start(record.time_ns)
            yield record
        return
    from roce_pkt.capture.model import Record
    from roce_pkt.capture.where import Where

    test = Where(where)
    names = ("number", "time_ns", "interface_id", "link_type", "cap_len", "wire_len")
    for batch in source:
        clock.start(int(batch.time_ns[0]) if len(batch) else None)
        frames = batch[test.mask(batch)]
        for row, values in enumerate(zip(*(frames.column(n).tolist() for n in names), strict=True)):
            yield Record(**dict(zip(names, values, strict=True)), octets=frames.octets(row))


def _read(record: Record, udp_port: int) -> Dissection:
    return dissect_frame(record.octets, record.wire_len, record.link_type, udp_port)


def _as_json(record: Record, udp_port: int) -> dict[str, Any]:
    return frame_json(_read(record, udp_port), record.number, record.time_ns, record.wire_len, record.cap_len)


def _json(records: Iterator[Record], form: DissectFormat, udp_port: int) -> int:
    write = sys.stdout.write
    if form is DissectFormat.JSONL:
        for record in records:
            write(json.dumps(_as_json(record, udp_port)) + "\n")
        return 0
    write("[")
    separator = "\n"
    for record in records:
        write(separator + json.dumps(_as_json(record, udp_port)))
        separator = ",\n"
    write("\n]\n")
    return 0


# -- text


def _style(frame: Dissection) -> str:
    """Red for what is wrong, yellow for congestion, dim for what is not RoCE."""
    if frame.kind == "other":
        return "dim"
    text = summary(frame)
    if "NAK" in text or "ICRC WRONG" in text or frame.status != "ok":
        return "red"
    if frame.kind in ("pfc", "pause") or "CNP" in text or text.endswith("CE"):
        return "yellow"
    return ""


def _lines(records: Iterator[Record], udp_port: int, clock: _Clock) -> Counter[str]:
    from rich.text import Text

    out = console()
    plain = not out.is_terminal
    kinds: Counter[str] = Counter()
    for record in records:
        read = _read(record, udp_port)
        kinds[read.kind if read.kind != "other" else read.hint or "unread"] += 1
        source, destination = addresses(read)
        elapsed = (record.time_ns - (clock.start_ns or 0)) / 1e9
        line = printable(f"{record.number:6d} {elapsed:14.9f}  {source} > {destination}  {summary(read)}")
        if plain:
            sys.stdout.write(line + "\n")
        else:
            out.print(Text(line, style=_style(read)))
    return kinds


def _tell_if_nothing(kinds: Counter[str], where: str | None) -> None:
    """One line on stderr when there was nothing of interest to print."""
    from roce_pkt.report.nothing import nothing_here

    if where is not None:
        if not kinds:
            sys.stderr.write(f"note: no frame fits {printable(where)!r}\n")
    elif sum(kinds[k] for k in ("rocev2", "rocev1", "pfc", "pause")) == 0:
        sys.stderr.write(nothing_here(kinds) + "\n")


def _one(capture: str, records: Iterator[Record], number: int, form: DissectFormat, udp_port: int) -> int:
    from rich.text import Text

    record = next(islice(records, number - 1, None), None)
    if record is None:
        raise InputError(f"{capture}: has no frame {number}; see how many with: roce-pkt dissect {capture}")
    if form is not DissectFormat.TEXT:
        sys.stdout.write(json.dumps(_as_json(record, udp_port)) + "\n")
        return 0
    out = console()
    read = _read(record, udp_port)
    out.print(
        Text(f"Frame {record.number}: {record.wire_len} octets, {printable(summary(read))}", style="bold")
    )
    for comment in record.comments:
        out.print(Text(f"  comment: {printable(comment)}", style="italic"))
    for depth, text in tree(read, record.wire_len, record.cap_len):
        wrong = "WRONG" in text or text.startswith("Stopped")
        style = "red" if wrong else "bold cyan" if depth == 0 else ""
        out.print(Text("  " * depth + printable(text), style=style))
    return 0


# -- fields


def _flat(document: dict[str, Any]) -> dict[str, Any]:
    """`{"bth": {"psn": 1}}` as `{"bth.psn": 1}`; lists of numbers joined, lists of objects numbered."""
    out: dict[str, Any] = {}
    for key, value in document.items():
        if isinstance(value, dict):
            out |= {f"{key}.{inner}": v for inner, v in _flat(value).items()}
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for i, item in enumerate(value):
                prefix = key if i == 0 else f"{key}{i}"
                out |= {f"{prefix}.{inner}": v for inner, v in _flat(item).items()}
        elif isinstance(value, list):
            out[key] = ",".join(map(str, value))
        else:
            out[key] = value
    return out


def field_names() -> list[str]:
    """Every name `--fields` knows, from the header tables."""
    from roce_pkt.wire import cm, ib, mac_control, mad, management_words, net, rdma_cm

    names = ["number", "time_ns", "wire_len", "cap_len", "kind", "hint", "status"]
    names += ["payload.offset", "payload.length", "icrc.value", "icrc.ok", "icrc.why", "bth.name"]
    names += ["aeth.type", "aeth.value", "pfc.enabled", "pfc.quanta", "tunnel.kind", "tunnel.id"]
    headers = (net.ETH, net.VLAN, net.IPV4, net.IPV6, net.UDP, net.SLL, ib.LRH, ib.GRH, ib.BTH, *ib.EXTENDED)
    private = (rdma_cm.RDMA_CM_V4, rdma_cm.NVME_REQ, rdma_cm.RSOCKET)
    for header in (*headers, mac_control.PAUSE, mad.MAD, mad.RMPP, *cm.MESSAGES.values(), *private):
        names += [f"{header.name}.{f.name}" for f in header.fields]
    names += management_words.EXTRA_NAMES
    return list(dict.fromkeys(names))


MANAGEMENT = ("mad", "rmpp", "cm", "rdma_cm", "nvme_rdma", "rsocket")
"""Objects of management datagrams: a bare field name means them last."""


def _resolve(name: str, known: list[str]) -> str:
    """A field's full name; a bare one (`psn`) stands for the only or the BTH's field of that name."""
    if name in known or name.split(".", maxsplit=1)[0].rstrip("0123456789") in ("vlan", "tunnel"):
        return name
    ends = [k for k in known if k.endswith(f".{name}")]
    ends = [k for k in ends if k.partition(".")[0] not in MANAGEMENT] or ends
    for preferred in (f"bth.{name}", f"ip.{name}", f"cm.{name}"):
        if preferred in ends:
            return preferred
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise InputError(f"--fields: {name!r} could be {', '.join(ends)}")
    raise InputError(f"--fields: unknown field {name!r}{nearest(name, known)}")


def _fields(source: Capture, names: list[str], where: str | None, count: int | None) -> None:
    """Tab-separated fields: from columns where every name is one, else from each frame's JSON."""
    from roce_pkt.report import tsv

    if not names:
        raise InputError("--fields: no field named")
    if all(tsv.known(name) for name in names):
        rows = (line for frames in _batches(source, where) for line in tsv.lines(frames, names))
    else:
        known = field_names()
        columns = [_resolve(name, known) for name in names]
        rows = (_row(record, columns, source.udp_port) for record in _records(source, where, _Clock()))
    write = sys.stdout.write
    write("\t".join(names) + "\n")
    for line in islice(rows, count):
        write(line + "\n")


def _row(record: Record, columns: list[str], udp_port: int) -> str:
    flat = _flat(_as_json(record, udp_port))
    values = (flat.get(column) for column in columns)
    return "\t".join("" if v is None else _cell(v) for v in values)


def _cell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else printable(str(value))
