"""What to say about a capture without RoCE: what is in it, and why that is common."""

from __future__ import annotations

from collections import Counter

from roce_pkt.report.text import printable


def nothing_here(kinds: Counter[str]) -> str:
    """One paragraph.

    Args:
        kinds: Frames by kind, or by hint for those that are not RoCE.
    """
    total = sum(kinds.values())
    if not total:
        return "note: the capture holds no frames"
    shares = ", ".join(f"{printable(kind)} {n}" for kind, n in kinds.most_common(6))
    text = f"note: no RoCE frame among {total} ({shares})"
    if kinds["infiniband"]:
        return f"{text}; this is native InfiniBand, which has the same transport headers but no Ethernet"
    if kinds["uet"] or kinds["veroce"] or kinds["iwarp"]:
        return f"{text}; a neighbour of RoCE, not RoCE itself"
    return (
        f"{text}; a host's own tcpdump does not see RDMA, which bypasses the kernel: capture at a switch's"
        " mirror port, or with the NIC's sniffer; another UDP port is read with --udp-port"
    )
