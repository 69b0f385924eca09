"""`roce-pkt rewrite`: other addresses, numbers and keys, with checksums and ICRC that follow."""

from __future__ import annotations

import sys
from dataclasses import asdict
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
from roce_pkt.errors import InputError, nearest


def rewrite(
    capture: CaptureArgument,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="File to write.")],
    maps: Annotated[
        list[str], typer.Option("--map", metavar="FIELD:OLD=NEW", help="One mapping (repeatable).")
    ] = [],  # noqa: B006
    to: Annotated[str, typer.Option("--to", help="Network header: ipv4, ipv6 or rocev1.")] = "",
    anonymise: Annotated[
        str, typer.Option("--anonymise", metavar="KEY", help="Hide who talks; drops what is no RoCE.")
    ] = "",
    payload: Annotated[str, typer.Option("--payload", help="keep, zero or random.")] = "",
    icrc: Annotated[str, typer.Option("--icrc", help="auto, keep, bad or fix.")] = "auto",
    reverse: Annotated[bool, typer.Option("--reverse", help="Undo the same mappings.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of random payloads.")] = 1,
    force: ForceOption = False,
    form: FormatOption = Format.TEXT,
    udp_port: UdpPortOption = 4791,
) -> int:
    """Write a capture again with fields mapped; checksums and ICRC follow.

    FIELD: ip (also gid), mac, vlan, pcp, dscp, ecn, ttl, flowlabel, sport, dport, pkey, qpn, psn, qkey, rkey
    or va. OLD=NEW maps one value, 10.0.0.0/24=192.0.2.0/24 a network, *=NEW all values, +N adds. VLAN none
    stands for no tag. Wrong ICRCs stay as wrong as they were (auto). --anonymise also zeroes payloads.

    Example: --map ip:10.0.0.1=192.0.2.1 --map dscp:26=46 --map psn:+1000 --map vlan:none=100
    """
    from roce_pkt.capture import open as open_capture
    from roce_pkt.edit.anonymise import anonymous
    from roce_pkt.edit.mapping import Mapping, parse_map
    from roce_pkt.edit.reframe import FAMILIES
    from roce_pkt.edit.rewrite import ICRC_MODES, PAYLOAD_MODES, Orders
    from roce_pkt.edit.rewrite import rewrite as do_rewrite
    from roce_pkt.files import check_outputs

    payload = payload or ("zero" if anonymise else "keep")
    for option, word, known in (
        ("--to", to, ("", *FAMILIES)),
        ("--icrc", icrc, ICRC_MODES),
        ("--payload", payload, PAYLOAD_MODES),
    ):
        if word not in known:
            raise InputError(
                f"{option}: {word!r} is none of {', '.join(filter(None, known))}{nearest(word, known)}"
            )
    found: dict[str, Mapping] = anonymous(anonymise) if anonymise else {}
    for text in maps:
        parse_map(text, found)
    orders = Orders(
        found,
        to or None,  # type: ignore[arg-type]
        icrc,  # type: ignore[arg-type]
        payload,  # type: ignore[arg-type]
        seed,
        drop_other=bool(anonymise),
    )
    if reverse:
        orders = orders.inverse()
    check_outputs([output], [capture], force=force)
    source = open_capture(capture, udp_port)
    done = do_rewrite(source, output, orders, force=force)
    if form is Format.JSON:
        print_json(with_losses(asdict(done), source.losses))
    else:
        left_out = f", {done.left_out} left out" if done.left_out else ""
        sys.stdout.write(
            f"{done.frames} frames: {done.changed} changed, {done.kept} as they were{left_out}\n"
        )
        tell_losses(source.losses)
    return 0
