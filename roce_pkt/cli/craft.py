"""`roce-pkt craft KIND`: one frame or exchange from the shell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import typer

from roce_pkt.cli import craft_cm
from roce_pkt.cli.common import ForceOption
from roce_pkt.errors import InputError, nearest
from roce_pkt.report.text import printable
from roce_pkt.units import parse_time_ps
from roce_pkt.wire import aeth, exchange, ib, mac_control, net
from roce_pkt.wire.build import Path, Stack, Values, mac_control_frame, roce_frame
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.header import Field
from roce_pkt.wire.opcode import TRANSPORT_BASES, Transport, name_of, parse_opcode
from roce_pkt.wire.present import addresses, summary

SETTABLE: dict[str, dict[str, Field]] = {
    header.name: {field.name: field for field in header.fields}
    for header in (
        net.ETH, net.VLAN, ib.GRH, ib.BTH, *ib.EXTENDED, net.UDP,
        mac_control.MAC_CONTROL, mac_control.PFC, mac_control.PAUSE,
    )
} | craft_cm.settable()  # fmt: skip
SETTABLE["ip"] = {field.name: field for field in (*net.IPV4.fields, *net.IPV6.fields)}
ICRC = Field("value", 32, "hex")


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line asked for, read once."""

    pair: exchange.Pair
    payload: bytes
    stack: Stack
    immediate: int | None
    invalidate: int | None
    opcode: str
    syndrome: int | None
    quanta: dict[int, int]
    pause_quanta: int
    exchange: bool
    service: str
    private: bytes | None


def _number(text: str, option: str) -> int:
    try:
        return int(text.replace("_", ""), 0)
    except ValueError:
        raise InputError(f"{option}: {text!r} is no number (decimal or 0x...)") from None


def _suffix(order: Order) -> tuple[str, Stack]:
    if order.immediate is not None and order.invalidate is not None:
        raise InputError("--imm and --inv exclude each other: a message ends one way")
    if order.immediate is not None:
        return "WITH_IMMEDIATE", {"immdt": {"data": order.immediate}}
    if order.invalidate is not None:
        return "WITH_INVALIDATE", {"ieth": {"rkey": order.invalidate}}
    return "", {}


def _message(verb: str) -> Callable[[Order], Iterator[bytes]]:
    def make(order: Order) -> Iterator[bytes]:
        suffix, tail = _suffix(order)
        frames = list(
            exchange.message(order.pair, verb, order.payload, exchange.merge(order.stack, tail), suffix)
        )
        yield from frames
        if order.exchange and order.pair.transport in ("RC", "RD", "XRC"):
            yield order.pair.ack(len(frames) - 1)

    return make


def _read(order: Order) -> Iterator[bytes]:
    yield from exchange.read(order.pair, len(order.payload), order.stack)
    if order.exchange:
        yield from exchange.read_answer(order.pair, order.payload)


def _atomic(name: str) -> Callable[[Order], Iterator[bytes]]:
    def make(order: Order) -> Iterator[bytes]:
        yield from exchange.atomic(order.pair, name, order.stack)
        if order.exchange:
            yield from exchange.atomic_answer(order.pair, 0)

    return make


def _one(name: str) -> Callable[[Order], Iterator[bytes]]:
    def make(order: Order) -> Iterator[bytes]:
        payload = order.payload[:8].ljust(8, b"\0") if name == "ATOMIC_WRITE" else b""
        length = len(payload) or len(order.payload)
        stack = exchange.merge({"bth": {"ackreq": 1}, "reth": {"dmalen": length}}, order.stack)
        yield order.pair.request(f"{order.pair.transport}_{name}", 0, stack, payload)
        if order.exchange:
            yield from exchange.empty_response(order.pair)

    return make


def _ack(kind: aeth.AckType, code: int) -> Callable[[Order], Iterator[bytes]]:
    def make(order: Order) -> Iterator[bytes]:
        value = code if order.syndrome is None else order.syndrome
        syndrome = aeth.TYPES.index(kind) << 5 | value
        name = f"{order.pair.transport}_ACKNOWLEDGE"
        yield order.pair.request(
            name, 0, exchange.merge({"aeth": {"syndrome": syndrome, "msn": 1}}, order.stack)
        )

    return make


def _cnp(order: Order) -> Iterator[bytes]:
    pair = order.pair
    yield pair.request("CNP", 0, exchange.merge({"bth": {"becn": 1, "psn": 0}}, order.stack))


def _ud(order: Order) -> Iterator[bytes]:
    qkey = dict(order.stack.get("deth", {})).get("qkey", 0x11111111)
    yield exchange.ud(order.pair, order.payload, qkey=qkey, immediate=order.immediate, extra=order.stack)


def _opcode(order: Order) -> Iterator[bytes]:
    if not order.opcode:
        raise InputError(
            "craft opcode: name one with --opcode, e.g. --opcode RC_SEND_MIDDLE or --opcode 0xe0"
        )
    name = name_of(parse_opcode(order.opcode))
    if name.startswith("0x"):
        bth = {"dqpn": order.pair.dqpn, "psn": order.pair.psn}
        stack = exchange.merge({"bth": bth}, order.stack, order.pair.extra)
        yield roce_frame(order.pair.path, int(name, 16), stack, order.payload)
    else:
        yield order.pair.request(name, 0, order.stack, order.payload)


def _management(make: craft_cm.Maker) -> Callable[[Order], Iterator[bytes]]:
    def run(order: Order) -> Iterator[bytes]:
        wanted = craft_cm.Wanted(order.pair, order.service, order.private, order.payload, order.exchange)
        return make(wanted)

    return run


def _pfc(order: Order) -> Iterator[bytes]:
    given = order.pair.extra
    body = mac_control.pfc_octets(order.quanta or {3: 0xFFFF}, given=given)
    yield mac_control_frame(order.pair.path.src_mac, body, given.get("eth"))


def _pause(order: Order) -> Iterator[bytes]:
    given = order.pair.extra
    body = mac_control.pause_octets(order.pause_quanta, given)
    yield mac_control_frame(order.pair.path.src_mac, body, given.get("eth"))


KINDS: dict[str, tuple[str, Callable[[Order], Iterator[bytes]]]] = {
    "send": ("SEND, cut to the path MTU", _message("SEND")),
    "write": ("RDMA WRITE", _message("RDMA_WRITE")),
    "read": ("RDMA READ request", _read),
    "atomic": ("COMPARE SWAP", _atomic("COMPARE_SWAP")),
    "fetch-add": ("FETCH ADD", _atomic("FETCH_ADD")),
    "flush": ("FLUSH", _one("FLUSH")),
    "atomic-write": ("ATOMIC WRITE of 8 octets", _one("ATOMIC_WRITE")),
    "ack": ("acknowledge; --code is the credit code", _ack("ack", aeth.CREDITS_INVALID)),
    "nak": ("NAK; --code is the reason, 0 PSN sequence error", _ack("nak", 0)),
    "rnr": ("receiver not ready; --code is the timer code", _ack("rnr", 1)),
    "cnp": ("congestion notification", _cnp),
    "ud": ("UD SEND", _ud),
    "opcode": ("any opcode, see --opcode", _opcode),
    "pfc": ("priority flow control, see --quanta", _pfc),
    "pause": ("802.3 PAUSE, see --quanta", _pause),
} | {name: (words, _management(make)) for name, (words, make) in craft_cm.KINDS.items()}


def _path(
    src: str, dst: str, *, src_mac: str, dst_mac: str, sport: int | None, dscp: int, ecn: str, ttl: int,
    vlan: int | None, pcp: int, v1: bool,
) -> Path:  # fmt: skip
    import ipaddress

    for option, text in (("--src", src), ("--dst", dst)):
        try:
            ipaddress.ip_address(text)
        except ValueError:
            raise InputError(f"{option}: {text!r} is no IPv4 or IPv6 address") from None
    names = {n.lower(): i for i, n in enumerate(net.ECN_NAMES)} | {str(i): i for i in range(4)}
    if ecn.lower() not in names:
        raise InputError(f"--ecn: {ecn!r} is none of {', '.join(net.ECN_NAMES)}")
    return Path(
        src=src, dst=dst, src_mac=_mac(src_mac, "--src-mac"), dst_mac=_mac(dst_mac, "--dst-mac"), sport=sport,
        dscp=dscp, ecn=names[ecn.lower()], ttl=ttl, vid=vlan, pcp=pcp, v1=v1,
    )  # fmt: skip


def _mac(text: str, option: str) -> int:
    digits = text.replace(":", "").replace("-", "")
    try:
        if len(digits) != 12:
            raise ValueError
        return int(digits, 16)
    except ValueError:
        raise InputError(f"{option}: {text!r} is no MAC address like 02:00:00:00:00:01") from None


def _settings(assignments: list[str]) -> dict[str, Values]:
    """`--set bth.resv7=1` and so on, by header."""
    out: dict[str, dict[str, int]] = {}
    for assignment in assignments:
        target, _, text = assignment.partition("=")
        header_name, _, name = target.partition(".")
        field = _settable(header_name, name, assignment)
        if not text:
            raise InputError(f"--set {assignment}: give it a value, --set {target}=VALUE")
        value = _value(text, field, f"--set {target}")
        if not 0 <= value < 1 << field.bits:
            raise InputError(f"--set {target}: {text} does not fit {field.bits} bits")
        out.setdefault(header_name, {})[name] = value
    return dict(out)


def _settable(header: str, name: str, assignment: str) -> Field:
    """The field that a setting names."""
    known = SETTABLE | {"icrc": {ICRC.name: ICRC}}
    if header not in known:
        owners = [f"{owner}.{header}" for owner, fields in known.items() if header in fields and not name]
        hint = f" (did you mean {' or '.join(owners)}?)" if owners else nearest(header, known)
        raise InputError(f"--set {assignment}: write HEADER.FIELD=VALUE; no header {header!r}{hint}")
    if name not in known[header]:
        fields = known[header]
        hint = nearest(f"{header}.{name}", [f"{header}.{field}" for field in fields])
        raise InputError(
            f"--set {assignment}: {header} has no field {name!r}{hint}; it has {', '.join(fields)}"
        )
    return known[header][name]


def _value(text: str, field: Field, option: str) -> int:
    """A number, or an address as its field is written."""
    if field.show == "mac" and (":" in text or "-" in text):
        return _mac(text, option)
    if field.show in ("ipv4", "ipv6") and ("." in text or ":" in text):
        import ipaddress

        try:
            return int(ipaddress.ip_address(text))
        except ValueError:
            raise InputError(f"{option}: {text!r} is no IP address") from None
    return _number(text, option)


def _payload(length: int, text: str) -> bytes:
    if not text:
        return exchange.pattern(length)
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise InputError(f"--payload: {text[:40]!r} is no even number of hex digits") from None


def _quanta(items: list[str], kind: str) -> tuple[dict[int, int], int]:
    """`3=65535` per class for PFC, one bare number for PAUSE."""
    classes: dict[int, int] = {}
    for item in items:
        left, _, right = item.rpartition("=")
        value = _number(right, "--quanta")
        if not 0 <= value <= 0xFFFF or (kind == "pfc" and left not in tuple("01234567")):
            raise InputError(f"--quanta {item}: write CLASS=QUANTA for pfc (3=65535), or 0..65535 for pause")
        if kind == "pfc":
            classes[int(left)] = value
        else:
            return {}, value
    return classes, 0xFFFF


def craft(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="One of: " + ", ".join(KINDS) + ".")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Write a pcap, or pcapng by its name.")
    ] = "",
    force: ForceOption = False,
    show_hex: Annotated[bool, typer.Option("--hex", help="Print octets, one frame a line.")] = False,
    src: Annotated[str, typer.Option(help="Source IPv4 or IPv6 address.")] = "10.0.0.1",
    dst: Annotated[str, typer.Option(help="Destination address.")] = "10.0.0.2",
    src_mac: Annotated[str, typer.Option(help="Source MAC.")] = "02:00:00:00:00:01",
    dst_mac: Annotated[str, typer.Option(help="Destination MAC.")] = "02:00:00:00:00:02",
    sport: Annotated[int | None, typer.Option(min=0, max=65535, help="UDP source port.")] = None,
    transport: Annotated[str, typer.Option(help="rc, uc, ud, rd or xrc.")] = "rc",
    qp: Annotated[str, typer.Option(metavar="QPN", help="Destination queue pair.")] = "0x11",
    reply_qp: Annotated[
        str, typer.Option(metavar="QPN", help="Source queue pair: where answers go.")
    ] = "0x12",
    psn: Annotated[str, typer.Option(metavar="PSN", help="First packet sequence number.")] = "0",
    length: Annotated[int, typer.Option(min=0, max=1 << 31, help="Message octets.")] = 64,
    payload: Annotated[str, typer.Option(metavar="HEX", help="Payload octets instead of a pattern.")] = "",
    mtu: Annotated[int, typer.Option(help="Path MTU in octets.")] = 1024,
    imm: Annotated[str, typer.Option(metavar="DATA", help="Immediate data.")] = "",
    inv: Annotated[str, typer.Option(metavar="RKEY", help="Remote key to invalidate.")] = "",
    code: Annotated[int | None, typer.Option(min=0, max=31, help="AETH code of ack, nak, rnr.")] = None,
    opcode: Annotated[
        str, typer.Option(metavar="NAME", help="Opcode name or number for `craft opcode`.")
    ] = "",
    service: Annotated[
        str, typer.Option(metavar="S", help="Port, application or service id of cm-* and connection.")
    ] = "tcp:4420",
    quanta: Annotated[list[str], typer.Option(metavar="[CLASS=]N", help="Pause quanta (repeatable).")] = [],  # noqa: B006
    dscp: Annotated[int, typer.Option(min=0, max=63)] = 26,
    ecn: Annotated[str, typer.Option(help="Not-ECT, ECT(0), ECT(1) or CE.")] = "ECT(0)",
    ttl: Annotated[int, typer.Option(min=0, max=255)] = 64,
    vlan: Annotated[int | None, typer.Option(min=0, max=4095, help="VLAN of an 802.1Q tag.")] = None,
    pcp: Annotated[int, typer.Option(min=0, max=7, help="Priority of the tag.")] = 3,
    v1: Annotated[bool, typer.Option("--v1", help="RoCEv1 instead of RoCEv2.")] = False,
    answer: Annotated[bool, typer.Option("--exchange", help="Add the responder's answer.")] = False,
    count: Annotated[int, typer.Option(min=1, max=10_000_000, help="Repeat the whole N times.")] = 1,
    gap: Annotated[str, typer.Option(metavar="TIME", help="Time between frames.")] = "1us",
    settings: Annotated[
        list[str],
        typer.Option("--set", metavar="H.F=V", help="Any header field, right or wrong (repeatable)."),
    ] = [],  # noqa: B006
) -> int:
    """Make one frame or exchange, from the shell.

    KIND is send, write, read, atomic, fetch-add, flush, atomic-write, ack, nak, rnr, cnp, ud, opcode, pfc,
    pause, connection or a CM message (cm-req, cm-rep, ...). Lengths, pads, checksums and the ICRC are right
    unless --set says otherwise.
    """
    if kind not in KINDS:
        raise InputError(f"craft: unknown kind {kind!r}{nearest(kind, KINDS)}; one of {', '.join(KINDS)}")
    if transport.upper() not in TRANSPORT_BASES:
        raise InputError(f"--transport: {transport!r} is none of rc, uc, ud, rd, xrc")
    if mtu not in ib.PATH_MTUS_BYTES:
        raise InputError(f"--mtu: {mtu} is none of {', '.join(map(str, ib.PATH_MTUS_BYTES))}")
    qpns = _number(qp, "--qp"), _number(reply_qp, "--reply-qp"), _number(psn, "--psn")
    for option, number in zip(("--qp", "--reply-qp", "--psn"), qpns, strict=True):
        if not 0 <= number < 1 << 24:
            raise InputError(f"{option}: {number} does not fit 24 bits")
    path = _path(
        src, dst, src_mac=src_mac, dst_mac=dst_mac, sport=sport, dscp=dscp, ecn=ecn, ttl=ttl,
        vlan=vlan, pcp=pcp, v1=v1,
    )  # fmt: skip
    classes, pause_quanta = _quanta(quanta, kind)
    kind_of_service: Transport = transport.upper()  # type: ignore[assignment]
    order = Order(
        pair=exchange.Pair(path, kind_of_service, *qpns, mtu_bytes=mtu, extra=_settings(settings)),
        payload=_payload(length, payload),
        stack={},
        immediate=_number(imm, "--imm") if imm else None,
        invalidate=_number(inv, "--inv") if inv else None,
        opcode=opcode,
        syndrome=code,
        quanta=classes,
        pause_quanta=pause_quanta,
        exchange=answer,
        service=service,
        private=_payload(0, payload) if payload else None,
    )
    try:
        frames = list(KINDS[kind][1](order))
    except ValueError as error:
        raise InputError(f"craft {kind}: {error}") from None
    _all_used(order.pair.extra, frames)
    return _deliver(
        frames * count, parse_time_ps(gap, "--gap") // 1000, output, force=force, show_hex=show_hex
    )


def _all_used(settings: Stack, frames: list[bytes]) -> None:
    """A setting that no frame can carry would be lost without a word."""
    present: dict[str, set[str]] = {"icrc": {"value"}}
    for frame in frames:
        read = dissect(frame)
        management = read.management.layers if read.management else []
        for layer in (*read.layers, *management):
            present.setdefault(layer.header.name, set()).update(layer.values)
        if management and "service_id" in present.get("cm", ()):
            present.setdefault("rdma_cm", set()).update(SETTABLE["rdma_cm"])
    for header, values in settings.items():
        if header not in present:
            raise InputError(
                f"--set {header}: no frame made here has that header, only {', '.join(sorted(present))}"
            )
        for name in values.keys() - present[header]:
            raise InputError(f"--set {header}.{name}: no frame made here has that field")


def _deliver(frames: list[bytes], gap_ns: int, output: str, *, force: bool, show_hex: bool) -> int:
    if output:
        from roce_pkt.capture.model import LINK_ETHERNET, Record
        from roce_pkt.capture.writer import write_pcap, write_pcapng

        records = (
            Record(i + 1, i * gap_ns, 0, LINK_ETHERNET, len(frame), len(frame), frame)
            for i, frame in enumerate(frames)
        )
        write = write_pcapng if output.endswith(".pcapng") else write_pcap
        write(output, records, force=force)
    if show_hex:
        for frame in frames:
            sys.stdout.write(frame.hex() + "\n")
    else:
        for number, frame in enumerate(islice(frames, 20), 1):
            read = dissect(frame)
            source, destination = addresses(read)
            sys.stdout.write(printable(f"{number:4d}  {source} > {destination}  {summary(read)}") + "\n")
        if len(frames) > 20:
            sys.stdout.write(f"      ... {len(frames) - 20} more\n")
    return 0
