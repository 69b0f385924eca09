"""What simulated things are called in results, events and frames: addresses, ports, flows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from roce_pkt.engine.world import Built
from roce_pkt.events import FlowKey
from roce_pkt.scenario.schema import VERBS, Scenario

HOST_MAC = 0x020000000000
SWITCH_MAC = 0x020100000000


@dataclass(frozen=True)
class Names:
    """Names of one run.

    Args:
        scenario: What is simulated.
        built: Its arrays.
    """

    scenario: Scenario
    built: Built

    def address(self, host: int) -> str:
        """IP address of a host: 10.0.0.1 is host 0."""
        number = host + 1
        if self.scenario.host.ip == "ipv6":
            return f"fd00::{number:x}"
        return f"10.0.{number >> 8}.{number & 255}"

    def mac(self, port: int) -> int:
        """MAC of a port."""
        end = self.built.topology.ports[port]
        hosts = self.built.topology.hosts
        if end.node < hosts:
            return HOST_MAC | end.node + 1
        return SWITCH_MAC | (end.node - hosts) << 16 | end.number

    @cached_property
    def ports(self) -> list[str]:
        """Name of every port."""
        return [self.built.topology.port_name(index) for index in range(len(self.built.topology.ports))]

    @cached_property
    def _addresses(self) -> list[str]:
        return [self.address(host) for host in range(self.built.topology.hosts)]

    def flow(self, half: int) -> FlowKey:
        """What a half sends, as its frames name it."""
        pairs, names = self.built.pairs, self._addresses
        return FlowKey(
            names[pairs.host_of_half.item(half)],
            names[pairs.half["dst"].item(half)],
            pairs.qpn.item(pairs.half["peer"].item(half)),
        )

    def verbs(self, flow: int) -> str:
        """What a flow does: its verb, or those of its list."""
        pairs = self.built.pairs
        work = int(pairs.works.of_flow[flow])
        if work < 0:
            return pairs.flows[flow].traffic.verb
        first, end = (int(pairs.works.work[work][name]) for name in ("first", "end"))
        used = np.unique(pairs.works.message["manner"][first:end]) % len(VERBS)
        return "+".join(VERBS[number] for number in used.tolist()) or pairs.flows[flow].traffic.verb

    def number(self, half: int, position: int) -> int:
        """Messages of a flow before the one that a position in its stream belongs to.

        Args:
            half: Either half of the flow.
            position: As the engine counts.
        """
        pairs = self.built.pairs
        work = int(pairs.works.of_flow[int(pairs.flow_of_half[half])])
        if work < 0:
            return position // int(pairs.half["message_packets"][half])
        starts = pairs.works.positions(work)[1]
        return max(int(np.searchsorted(starts, position, "right")) - 1, 0)

    def request(self, half: int, position: int) -> tuple[str, int, int]:
        """The message that a position in a half's stream belongs to.

        Args:
            half: Either half of the flow.
            position: As the engine counts.

        Returns:
            Its verb, its length in octets, and how many of them lie before the position.
        """
        pairs, mtu = self.built.pairs, self.scenario.host.mtu_bytes
        flow = int(pairs.flow_of_half[half])
        traffic = pairs.flows[flow].traffic
        work = int(pairs.works.of_flow[flow])
        if work < 0:
            packets = int(pairs.half["message_packets"][half])
            return traffic.verb, traffic.message_bytes, position % packets * mtu
        first, starts = pairs.works.positions(work)
        number = self.number(half, position)
        m = pairs.works.message[first + number]
        verb = VERBS[int(m["manner"]) % len(VERBS)]
        return verb, int(m["length"]), (position - int(starts[number])) * mtu
