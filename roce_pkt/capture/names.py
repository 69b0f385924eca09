"""Names by which expressions reach columns: their own, and the dotted ones of a frame's JSON.

Dotted names follow from the header fields that the column table names as sources; the few that are no
field of a header stand below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from roce_pkt.capture.columns import BY_NAME, COLUMNS, NAMES_OF, header_bit, presence_mask
from roce_pkt.capture.frames import ADDRESSES
from roce_pkt.wire import aeth, ib, net

_NOT_A_FIELD = {
    "tunnel.kind": "tunnel_kind",
    "tunnel.id": "tunnel_id",
    "bth.name": "opcode",
    "payload.offset": "payload_offset",
    "payload.length": "payload_len",
    "icrc.value": "icrc",
    "icrc.ok": "icrc_ok",
    "pfc.enabled": "pfc_enabled",
    "pfc.quanta": "pfc_quanta",
}
_UNKNOWN = {"null": -1}


@dataclass(frozen=True, slots=True)
class Named:
    """What a name in an expression means.

    Args:
        text: The name.
        column: A column, or one of `ADDRESSES`.
        headers: Bits of the headers of which a frame must have one; 0 when every frame has the column.
        element: Which of several values in a row; None for any of them.
        shift: Bits of the column below those that are meant.
        mask: Those bits, shifted down; 0 when it is all of them.
        words: Names of values.
    """

    text: str
    column: str
    headers: int
    element: int | None = None
    shift: int = 0
    mask: int = 0
    words: tuple[tuple[str, int], ...] = ()

    def word(self, text: str) -> int | None:
        """The value of that name, however it is spelt: `CE`, `ect(0)`, `Not-ECT`."""
        wanted = _plain(text)
        return next((value for word, value in self.words if _plain(word) == wanted), None)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _words(column: str) -> tuple[tuple[str, int], ...]:
    if column == "ecn":
        names: tuple[str, ...] = net.ECN_NAMES
    elif column == "icrc_ok":
        return tuple(_UNKNOWN.items())
    else:
        names = NAMES_OF.get(column, ())
    return tuple((name, value) for value, name in enumerate(names))


def _dotted() -> dict[str, Named]:
    found: dict[str, Named] = {}
    for column in COLUMNS:
        base = column.name.removesuffix(f"_{column.part}") if column.part else column.name
        for element, (header, field) in enumerate(column.sources):
            text = f"{header.name}.{field}"
            if column.index or (text in found and found[text].column != base):
                continue  # of two VLAN tags the outer one is meant
            bits = header_bit(header) | (found[text].headers if text in found else 0)
            found[text] = Named(
                text, base, bits, element if column.width > 1 else None, words=_words(column.name)
            )
    for text, column_name in _NOT_A_FIELD.items():
        known = presence_mask(BY_NAME[column_name])
        if text.startswith(("payload.", "icrc.")):
            known = header_bit(ib.BTH)
        found[text] = Named(text, column_name, known, words=_words(column_name))
    types = tuple((name, value) for value, name in enumerate(aeth.TYPES))
    bits = header_bit(ib.AETH)
    found["aeth.type"] = Named("aeth.type", "syndrome", bits, shift=5, mask=3, words=types)
    found["aeth.value"] = Named("aeth.value", "syndrome", bits, mask=31)
    return found


@cache
def known_names() -> dict[str, Named]:
    """Every name, columns first."""
    own = {c.name: Named(c.name, c.name, presence_mask(c), words=_words(c.name)) for c in COLUMNS}
    own |= {name: Named(name, name, presence_mask(BY_NAME[f"{name}_lo"])) for name in ADDRESSES}
    return own | _dotted()
