"""The round trip of a full packet and its acknowledgement through empty queues."""

from __future__ import annotations

import numpy as np

from roce_pkt.fabric.topology import Topology
from roce_pkt.scenario.plan import plan
from roce_pkt.scenario.schema import NONE, Scenario

HEADERS_BYTES = 82
"""Around the payload of a RoCEv2 packet over IPv4 on a wire, gap included."""
ACK_BYTES = 86


def base_rtt_ps(scenario: Scenario, net: Topology) -> int:
    """The longest unloaded round trip that a scenario's flows have.

    Args:
        scenario: Says who sends to whom, and the MTU.
        net: Nodes and links.
    """
    overhead = scenario.fabric.frame_overhead_bytes
    full = scenario.host.mtu_bytes + (HEADERS_BYTES if overhead == NONE else overhead)
    homes = {port.node: net.ports[port.peer].node for port in net.ports if port.node < net.hosts}
    home = np.array([homes[host] for host in range(net.hosts)])
    made = plan(scenario).connection
    a, b = made["a"][::-1], made["b"][::-1]
    _, one_of_each = np.unique(home[a] * (net.hosts + net.switches) + home[b], return_index=True)
    longest = 0.0
    for src, dst in zip(a[one_of_each].tolist(), b[one_of_each].tolist(), strict=True):
        links = net.path(src, dst)
        trip = sum(2 * end.delay_ps + (full + ACK_BYTES) * 8e12 / end.rate_bps for end in links)
        longest = max(longest, trip)
    return round(longest)
