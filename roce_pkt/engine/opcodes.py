"""Opcodes of the engine's packets."""

from __future__ import annotations

from roce_pkt.engine import records
from roce_pkt.wire.opcode import BY_NAME, CNP

POSITIONS = {
    records.FIRST | records.LAST: "ONLY",
    records.FIRST: "FIRST",
    records.LAST: "LAST",
    0: "MIDDLE",
}
SUFFIXES = {
    "send_imm": "_WITH_IMMEDIATE",
    "write_imm": "_WITH_IMMEDIATE",
    "send_inv": "_WITH_INVALIDATE",
}
_FIXED = {
    records.READ_REQUEST: "RC_RDMA_READ_REQUEST",
    records.ATOMIC_REQUEST: "RC_FETCH_ADD",
    records.ATOMIC_RESPONSE: "RC_ATOMIC_ACKNOWLEDGE",
    records.ACK: "RC_ACKNOWLEDGE",
    records.NAK: "RC_ACKNOWLEDGE",
    records.RNR_NAK: "RC_ACKNOWLEDGE",
}


def opcode_of(kind: int, flags: int, verb: str, service: str) -> int:
    """The opcode of an engine's packet."""
    if kind == records.CNP:
        return CNP
    if kind == records.ATOMIC_REQUEST and verb == "cmp_swp":
        return BY_NAME["RC_COMPARE_SWAP"].value
    if kind in _FIXED:
        return BY_NAME[_FIXED[kind]].value
    position = POSITIONS[flags & (records.FIRST | records.LAST)]
    if kind == records.READ_RESPONSE:
        return BY_NAME[f"RC_RDMA_READ_RESPONSE_{position}"].value
    name = "RDMA_WRITE" if verb.startswith("write") else "SEND"
    suffix = SUFFIXES.get(verb, "") if flags & records.LAST else ""
    return BY_NAME[f"{service.upper()}_{name}_{position}{suffix}"].value
