"""Whole messages as frames: what a requester sends and, when asked, what its responder answers.

For hands and tests: every frame is right unless told otherwise, and nothing is lost or late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from roce_pkt import psn as serial
from roce_pkt.errors import InputError, nearest
from roce_pkt.wire import aeth, ib
from roce_pkt.wire.build import Path, Stack, Values, cnp_frame, roce_frame
from roce_pkt.wire.opcode import BY_NAME, Transport, segment_opcode, segments


@dataclass(frozen=True, slots=True)
class Pair:
    """Two queue pairs that talk, seen from the requester.

    Args:
        path: Below the BTH, requester to responder.
        transport: Service of the queue pairs.
        dqpn: The responder's queue pair.
        sqpn: The requester's queue pair, to which answers go.
        psn: First PSN.
        mtu_bytes: Path MTU.
        extra: Values set on every frame of the requester, by header and field name.
    """

    path: Path = field(default_factory=Path)
    transport: Transport = "RC"
    dqpn: int = 0x11
    sqpn: int = 0x12
    psn: int = 0
    mtu_bytes: int = 1024
    extra: Stack = field(default_factory=dict)

    def request(self, name: str, index: int, stack: Stack | None = None, payload: bytes = b"") -> bytes:
        """One packet of the requester, `index` packets after the first PSN."""
        if name not in BY_NAME:
            raise InputError(f"no packet {name}{nearest(name, BY_NAME)}")
        bth = {"dqpn": self.dqpn, "psn": serial.add(self.psn, index)}
        return roce_frame(self.path, BY_NAME[name].value, merge({"bth": bth}, stack, self.extra), payload)

    def answer(self, name: str, index: int, stack: Stack, payload: bytes = b"") -> bytes:
        """One packet of the responder."""
        bth = {"dqpn": self.sqpn, "psn": serial.add(self.psn, index)}
        return roce_frame(self.path.reversed(), BY_NAME[name].value, merge({"bth": bth}, stack), payload)

    def ack(self, index: int, syndrome: int = aeth.CREDITS_INVALID, msn: int = 1) -> bytes:
        """The responder's acknowledge (or NAK) for packet `index`."""
        return self.answer(
            f"{self.transport}_ACKNOWLEDGE", index, {"aeth": {"syndrome": syndrome, "msn": msn}}
        )


def merge(*stacks: Stack | None) -> dict[str, Values]:
    """Header values layered over each other, the later ones on top."""
    out: dict[str, Values] = {}
    for stack in stacks:
        for name, values in (stack or {}).items():
            out[name] = dict(out.get(name, {})) | dict(values)
    return out


def pattern(length_bytes: int) -> bytes:
    """Payload that shows its own offset: 0, 1, ... 255, 0, ..."""
    return bytes(i & 0xFF for i in range(length_bytes))


def message(
    pair: Pair, verb: str, payload: bytes, stack: Stack | None = None, suffix: str = ""
) -> Iterator[bytes]:
    """A SEND or an RDMA WRITE, cut to the path MTU, acknowledged where the transport does.

    Args:
        pair: Who talks.
        verb: `SEND` or `RDMA_WRITE`.
        payload: The message.
        stack: Values for its headers (`reth`, `immdt`, `ieth`, `deth`); unknown to a packet's
            opcode means not used there.
        suffix: `WITH_IMMEDIATE` or `WITH_INVALIDATE`.
    """
    cut = segments(len(payload), pair.mtu_bytes)
    given = merge({"reth": {"dmalen": len(payload)}}, stack)
    for index, (position, start, size) in enumerate(cut):
        value = segment_opcode(pair.transport, verb, position, suffix)
        name = next(n for n, op in BY_NAME.items() if op.value == value)
        last = position in ("last", "only")
        ask = {"bth": {"ackreq": int(last and pair.transport in ("RC", "RD", "XRC"))}}
        yield pair.request(name, index, merge(ask, given), payload[start : start + size])


def read(pair: Pair, length_bytes: int, stack: Stack | None = None) -> Iterator[bytes]:
    """An RDMA READ request; `read_answer` is what comes back."""
    given = merge({"bth": {"ackreq": 1}, "reth": {"dmalen": length_bytes}}, stack)
    yield pair.request(f"{pair.transport}_RDMA_READ_REQUEST", 0, given)


def read_answer(pair: Pair, payload: bytes) -> Iterator[bytes]:
    """The responses to a READ: one PSN each, starting at the request's."""
    for index, (position, start, size) in enumerate(segments(len(payload), pair.mtu_bytes)):
        name = f"{pair.transport}_RDMA_READ_RESPONSE_{position.upper()}"
        answer = {"aeth": {"syndrome": aeth.CREDITS_INVALID, "msn": 1}}
        yield pair.answer(name, index, answer, payload[start : start + size])


def atomic(pair: Pair, name: str, stack: Stack) -> Iterator[bytes]:
    """`COMPARE_SWAP` or `FETCH_ADD`."""
    yield pair.request(f"{pair.transport}_{name}", 0, merge({"bth": {"ackreq": 1}}, stack))


def atomic_answer(pair: Pair, original: int) -> Iterator[bytes]:
    """The acknowledge of an atomic, with the value that was there before."""
    answer = {"aeth": {"syndrome": aeth.CREDITS_INVALID, "msn": 1}, "atomicacketh": {"orig": original}}
    yield pair.answer(f"{pair.transport}_ATOMIC_ACKNOWLEDGE", 0, answer)


def cnp(pair: Pair) -> bytes:
    """The notification that a marked packet makes the responder send."""
    return cnp_frame(pair.path.reversed(), pair.sqpn)


def empty_response(pair: Pair) -> Iterator[bytes]:
    """What acknowledges FLUSH and ATOMIC WRITE: a READ response of no octets.

    Source: IBTA 1.5 annex A19 as in Linux rxe_resp.c.
    """
    yield from read_answer(pair, b"")


def ud(
    pair: Pair, payload: bytes, *, qkey: int, immediate: int | None = None, extra: Stack | None = None
) -> bytes:
    """One UD SEND."""
    if len(payload) > ib.PATH_MTUS_BYTES[-1]:
        raise InputError(
            f"a UD message is one packet: {len(payload)} octets are more than {ib.PATH_MTUS_BYTES[-1]}"
        )
    stack: dict[str, Values] = {"deth": {"qkey": qkey, "sqpn": pair.sqpn}}
    name = "UD_SEND_ONLY"
    if immediate is not None:
        name, stack["immdt"] = "UD_SEND_ONLY_WITH_IMMEDIATE", {"data": immediate}
    return pair.request(name, 0, merge(stack, extra), payload)
