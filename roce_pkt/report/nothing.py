"""What to say about a capture without RoCE: what is in it, and why that is common."""

from __future__ import annotations

from collections import Counter

from roce_pkt.flows.contents import no_roce
from roce_pkt.report.text import printable


def nothing_here(kinds: Counter[str]) -> str:
    """One paragraph.

    Args:
        kinds: Frames by kind, or by hint for those that are not RoCE.
    """
    return printable(f"note: {no_roce(kinds) or 'there is RoCE here'}")
