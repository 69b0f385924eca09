"""What to say of a capture that holds no RoCE: what is in it, and why that is common."""

from __future__ import annotations

from collections import Counter

ROCE = ("rocev2", "rocev1", "pfc", "pause")


def no_roce(contents: Counter[str]) -> str | None:
    """One sentence, or None when there is RoCE (or its pause frames).

    Args:
        contents: Frames by kind; what is no RoCE by what it looks like (`tcp`, `uet`, ...).
    """
    total = contents.total()
    if any(contents[kind] for kind in ROCE):
        return None
    if not total:
        return "the capture holds no frames"
    text = f"no RoCE frame among {total} ({', '.join(f'{kind} {n}' for kind, n in contents.most_common(6))})"
    if contents["infiniband"]:
        return f"{text}; this is native InfiniBand, which has the same transport headers but no Ethernet"
    if contents["uet"] or contents["veroce"] or contents["iwarp"]:
        return f"{text}; a neighbour of RoCE, not RoCE itself"
    return (
        f"{text}; a host's own tcpdump does not see RDMA, which bypasses the kernel: capture at a switch's"
        " mirror port, or with the NIC's sniffer; another UDP port is read with --udp-port"
    )
