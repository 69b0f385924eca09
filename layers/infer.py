"""Which opcode a stack of headers means when none was given.

The rule: of all opcodes that carry exactly these headers, take the one that stands alone in its
message ("Only"), whose payload is there or not there as it is in the stack, and whose number is
lowest; RC comes first because its numbers do. So

    BTH()/Raw             RC_SEND_ONLY              BTH()/DETH()/Raw      UD_SEND_ONLY
    BTH()/RETH()/Raw      RC_RDMA_WRITE_ONLY        BTH()/XRCETH()/...    XRC_...
    BTH()/RETH()          RC_RDMA_READ_REQUEST      BTH()/RDETH()/...     RD_...
    BTH()/AETH()          RC_ACKNOWLEDGE            BTH()/CNPPadding()    CNP
    BTH()/AETH()/Raw      RC_RDMA_READ_RESPONSE_ONLY

An AtomicETH is a COMPARE_SWAP when its `compare` was given, else a FETCH_ADD. A stack that no
opcode has is an RC_SEND_ONLY: its headers are payload to a receiver.
"""

from __future__ import annotations

from functools import cache

from scapy.packet import NoPayload, Packet, Padding

from roce_pkt.layers.extended import ExtendedHeader, header_of
from roce_pkt.wire import ib
from roce_pkt.wire.header import Header
from roce_pkt.wire.opcode import BY_NAME, OPCODES, Opcode


def opcode_of_stack(bth: Packet) -> int:
    """The opcode that the layers above `bth` mean."""
    headers: list[Header] = []
    above, compare = bth.payload, False
    while isinstance(above, ExtendedHeader):
        header = header_of(above)
        if header is not None:
            headers.append(header)
        compare = compare or (header is ib.ATOMICETH and "compare" in above.fields)
        above = above.payload
    return _best(tuple(headers), not isinstance(above, NoPayload | Padding), compare)


@cache
def _best(headers: tuple[Header, ...], payload: bool, compare: bool) -> int:
    def rank(op: Opcode) -> tuple[bool, bool, bool, int]:
        wrong_atomic = op.operation == "atomic" and compare != op.name.endswith("COMPARE_SWAP")
        return op.position != "only", op.payload != payload, wrong_atomic, op.value

    fitting = [op for op in OPCODES.values() if op.headers == headers]
    return min(fitting, key=rank, default=BY_NAME["RC_SEND_ONLY"]).value
