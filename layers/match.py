"""Which packet answers which, so that Scapy's `sr()` pairs RoCE requests with their responses.

A response carries the requester's queue pair, a request the responder's, and neither names the
other's: packets are paired by addresses (the IP header or GRH below does that), transport and PSN.
"""

from __future__ import annotations

from scapy.packet import Packet

from roce_pkt import psn
from roce_pkt.layers.extended import AETH, RETH
from roce_pkt.wire import aeth, ib
from roce_pkt.wire.opcode import OPCODES, RESPONSES

RELIABLE = ("RC", "RD", "XRC")
ACKNOWLEDGED = ("send", "write", "resync")
ANSWERED_BY_READ_RESPONSE = ("flush", "atomic_write")
SEQUENCE_ERROR = 0


def packets_of_read(request: Packet) -> int:
    """The most packets a READ's response can have: the path MTU is not in it, so the least one."""
    reth = request.getlayer(RETH)
    length = reth.dmalen if reth else 0
    return max(1, -(-length // min(ib.PATH_MTUS_BYTES)))


def is_answer(reply: Packet, request: Packet) -> bool:
    """True when the BTH `reply` answers the BTH `request`.

    A positive ACK answers the packet whose PSN it carries (the last one it acknowledges). A PSN
    sequence error carries the PSN that was expected, which is before the request's own.
    """
    answer, asked = OPCODES.get(reply.opcode), OPCODES.get(request.opcode)
    if answer is None or asked is None or answer.operation not in RESPONSES or not asked.request:
        return False
    if asked.transport not in RELIABLE or asked.transport != answer.transport:
        return False
    ahead = psn.distance(reply.psn, request.psn)
    span = packets_of_read(request) if asked.operation == "read_request" else 1
    match answer.operation:
        case "read_response":
            # spec: IBTA A19: FLUSH and ATOMIC WRITE are answered by an empty READ RESPONSE ONLY
            lone = answer.position == "only" and asked.operation in ANSWERED_BY_READ_RESPONSE
            return 0 <= ahead < span and (lone or asked.operation == "read_request")
        case "atomic_ack":
            return ahead == 0 and asked.operation == "atomic"
        case _:
            return _acknowledges(reply, asked.operation, ahead, span)


def _acknowledges(reply: Packet, operation: str, ahead: int, span: int) -> bool:
    header = reply.getlayer(AETH)
    if header is None:
        return False
    kind = aeth.ack_type(header.syndrome)
    if kind == "ack":
        return ahead == 0 and operation in ACKNOWLEDGED
    if kind == "nak" and aeth.value(header.syndrome) == SEQUENCE_ERROR:
        return ahead < span
    return 0 <= ahead < span
