"""A dissected frame as people and programs read it: JSON, one line, or a tree with octet offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from roce_pkt.units import format_bytes, format_rate
from roce_pkt.wire import aeth, ib, mac_control, management_words, net
from roce_pkt.wire.dissection import Dissection, Layer
from roce_pkt.wire.header import text_value
from roce_pkt.wire.opcode import name_of

JsonObject = dict[str, object]


def layer_json(layer: Layer) -> JsonObject:
    """One header as JSON, with the words that belong to it."""
    values = layer.values
    if layer.header is mac_control.PFC:
        return {
            "enabled": mac_control.enabled_classes(values["enable"]),
            "quanta": mac_control.quanta_of(values),
        }
    out = layer.header.as_json(values)
    if layer.header is ib.BTH:
        return {"opcode": values["opcode"], "name": name_of(values["opcode"])} | values
    if layer.header is ib.AETH:
        syndrome = values["syndrome"]
        return {"syndrome": syndrome, "type": aeth.ack_type(syndrome), "value": aeth.value(syndrome)} | out
    return out


def _layers_json(layers: list[Layer]) -> JsonObject:
    out: JsonObject = {}
    tags = []
    for layer in layers:
        if layer.header is net.VLAN:
            tags.append(layer_json(layer))
            out["vlan"] = tags
        elif layer.header is not mac_control.MAC_CONTROL:
            out[layer.header.name] = layer_json(layer)
    return out


def frame_json(frame: Dissection, number: int, time_ns: int, wire_len: int, cap_len: int) -> JsonObject:
    """The frame as one JSON object.

    Args:
        frame: What `dissect` returned.
        number: 1-based frame number.
        time_ns: Capture time in nanoseconds since the epoch.
        wire_len: Octets on the wire.
        cap_len: Octets captured.
    """
    out: JsonObject = {
        "number": number,
        "time_ns": time_ns,
        "wire_len": wire_len,
        "cap_len": cap_len,
        "kind": frame.kind,
        "status": frame.status,
    }
    if frame.hint:
        out["hint"] = frame.hint
    if frame.tunnels:
        out["tunnel"] = [{"kind": t.kind, "id": t.ident} | _layers_json(t.layers) for t in frame.tunnels]
    out |= _layers_json(frame.layers)
    if frame.management is not None:
        out |= _layers_json(frame.management.layers)
        management_words.add_json(out, frame.management)
    if frame.bth is not None:
        out["payload"] = {"offset": frame.payload_offset, "length": frame.payload_len}
    if frame.telemetry is not None:
        out["int"] = frame.telemetry
    if frame.icrc is not None:
        value = frame.icrc.value
        out["icrc"] = {"value": value.hex() if value else None, "ok": frame.icrc.ok}
        if frame.icrc.why:
            out["icrc"] |= {"why": frame.icrc.why}  # type: ignore[operator]
    return out


def addresses(frame: Dissection) -> tuple[str, str]:
    """Source and destination in the highest layer that has them."""
    for header in (net.IPV4, net.IPV6):
        if layer := frame.find(header):
            fields = header.field("src"), header.field("dst")
            return text_value(fields[0], layer.values["src"]), text_value(fields[1], layer.values["dst"])
    if layer := frame.find(ib.GRH):
        gid = ib.GRH.field("sgid")
        return text_value(gid, layer.values["sgid"]), text_value(gid, layer.values["dgid"])
    if layer := frame.find(net.ETH):
        mac = net.ETH.field("src")
        return text_value(mac, layer.values["src"]), text_value(mac, layer.values["dst"])
    return "?", "?"


def summary(frame: Dissection) -> str:
    """The frame in one line, without number, time and addresses."""
    if frame.kind == "pfc":
        values = frame.layers[-1].values
        quanta = mac_control.quanta_of(values)
        parts = [
            f"{n}: {f'pause {quanta[n]} quanta' if quanta[n] else 'resume'}"
            for n in mac_control.enabled_classes(values["enable"])
        ]
        return "PFC " + ("; ".join(parts) or "no class enabled")
    if frame.kind == "pause":
        quanta_all = frame.layers[-1].values["quanta"]
        return f"PAUSE {quanta_all} quanta" if quanta_all else "PAUSE resume"
    if frame.bth is None:
        text = frame.hint or frame.kind
        return text if frame.status == "ok" else f"{text} [{frame.status}]"
    return " ".join(_bth_words(frame))


def _bth_words(frame: Dissection) -> Iterator[str]:
    bth = frame.bth or {}
    if frame.management is not None:
        # between the two QP1 nothing of the UD SEND says more than the datagram it carries
        yield from management_words.words(frame.management)
        yield f"psn {bth['psn']}"
    else:
        yield name_of(bth["opcode"])
        yield f"qp 0x{bth['dqpn']:x} psn {bth['psn']}"
    if layer := frame.find(ib.AETH):
        yield f"{aeth.describe(layer.values['syndrome'])} msn {layer.values['msn']}"
    if layer := frame.find(ib.RETH):
        yield f"va 0x{layer.values['va']:x} rkey 0x{layer.values['rkey']:x} len {layer.values['dmalen']}"
    if layer := frame.find(ib.ATOMICETH):
        yield f"va 0x{layer.values['va']:x}"
    if (layer := frame.find(ib.DETH)) and frame.management is None:
        yield f"from qp 0x{layer.values['sqpn']:x}"
    if layer := frame.find(ib.IMMDT):
        yield f"imm 0x{layer.values['data']:08x}"
    if layer := frame.find(ib.IETH):
        yield f"inv rkey 0x{layer.values['rkey']:x}"
    if frame.payload_len and frame.management is None:
        yield f"{frame.payload_len} B"
    for name, mark in (("ackreq", "AckReq"), ("solicited", "SE"), ("fecn", "FECN"), ("becn", "BECN")):
        if bth[name] and not (name == "becn" and bth["opcode"] == 0x81):
            yield mark
    for header in (net.IPV4, net.IPV6):
        if (ip := frame.find(header)) and ip.values["ecn"] == net.CE:
            yield "CE"
    if frame.icrc is not None and frame.icrc.ok is False:
        yield "ICRC WRONG"
    if frame.status != "ok":
        yield f"[{frame.status}]"


def tree(frame: Dissection, wire_len: int, cap_len: int) -> Iterator[tuple[int, str]]:
    """The frame as indented lines.

    Yields:
        Depth (0 for a header, 1 for a field) and text; offsets count octets from the frame's start.
    """
    management = frame.management.layers if frame.management else []
    for layer in (*frame.all_layers(), *management):
        last = layer.end - 1
        yield 0, f"{layer.header.title}  octets {layer.offset}-{last}"
        for name, place in layer.header.places.items():
            spec, value = layer.header.field(name), layer.values[name]
            if spec.reserved and not value:
                continue
            note = _note(layer, name, value) or management_words.note(layer, name) or spec.title
            yield (
                1,
                f"{layer.offset + place.offset:5d}  {name} = {text_value(spec, value)}"
                + (f"  ({note})" if note else ""),
            )
    if frame.management is not None and (line := management_words.tree_line(frame.management)):
        yield 0, line
    if frame.bth is not None:
        end = frame.payload_offset + frame.payload_len
        if frame.payload_len and frame.management is None:
            yield 0, f"Payload  octets {frame.payload_offset}-{end - 1}  ({format_bytes(frame.payload_len)})"
        if frame.padcount:
            yield 0, f"Pad  octets {end}-{end + frame.padcount - 1}"
    if frame.icrc is not None:
        yield 0, _icrc_line(frame)
    if frame.telemetry is not None:
        yield from _telemetry_lines(frame.telemetry)
    elif frame.trailer_len:
        what = "padding, FCS or a capture device's stamp"
        yield 0, f"Trailer  {frame.trailer_len} octets after the packet ({what})"
    if cap_len < wire_len:
        yield 0, f"Cut by the capture: {cap_len} of {wire_len} octets"
    if frame.status != "ok":
        yield 0, f"Stopped: {frame.status}"


def _telemetry_lines(found: dict[str, Any]) -> Iterator[tuple[int, str]]:
    yield 0, f"INT  records of hops after the packet  (hops {found['hops']}, scale {found['scale']})"
    for number, hop in enumerate(found["hop"]):
        text = f"queue {format_bytes(hop['queue_bytes'])}  sent {hop['sent_bytes']} B  at {hop['time_ns']} ns"
        yield 1, f"hop {number}  {format_rate(hop['speed_bps'])}  {text}"


def _icrc_line(frame: Dissection) -> str:
    icrc = frame.icrc
    if icrc is None:
        return ""
    value = icrc.value.hex() if icrc.value else "not captured"
    if icrc.ok:
        return f"ICRC  {value}  right"
    if icrc.ok is False and icrc.expected is not None:
        return f"ICRC  {value}  WRONG, should be {icrc.expected.hex()}"
    return f"ICRC  {value}  cannot be checked: {icrc.why}"


def _note(layer: Layer, name: str, value: int) -> str:
    if name == "opcode" and layer.header is ib.BTH:
        return name_of(value)
    if name == "syndrome":
        return aeth.describe(value)
    if name == "ecn":
        return net.ECN_NAMES[value]
    return ""
