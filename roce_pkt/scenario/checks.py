"""What the values of a scenario must be together: thresholds below the buffer, hosts that exist."""

from __future__ import annotations

import re
from collections.abc import Callable

from roce_pkt.errors import ScenarioError
from roce_pkt.scenario.schema import SCRIPTED, Scenario, Traffic

LISTED = "messages"
"""The scripted pattern whose messages wait for nobody."""
Where = Callable[[tuple[str | int, ...]], str]
TAP = re.compile(r"host(\d+)|switch(\d+):(\d+)")


def check(where: Where, scenario: Scenario) -> None:
    """Refuse a scenario whose values contradict each other.

    Args:
        where: Turns a path of keys into the place an error names.
        scenario: The values, each already right by itself.

    Raises:
        ScenarioError: The first contradiction found.
    """
    _fabric(where, scenario)
    _switch(where, scenario)
    _watchdog(where, scenario)
    for index, traffic in enumerate(scenario.traffic):
        _traffic(where, scenario, index, traffic)
    for tap in scenario.taps:
        if TAP.fullmatch(tap) is None:
            raise ScenarioError(where(("taps",)), f"{tap!r} is no tap; write 'host2' or 'switch0:2'")


def _fabric(where: Where, scenario: Scenario) -> None:
    fabric = scenario.fabric
    if fabric.kind == "dumbbell" and fabric.left >= fabric.hosts:
        raise ScenarioError(
            where(("fabric", "left")),
            f"{fabric.left} hosts on the left leave none of {fabric.hosts} on the right",
        )
    if fabric.kind == "leaf-spine" and fabric.hosts % fabric.leaves:
        raise ScenarioError(
            where(("fabric", "hosts")),
            f"{fabric.hosts} hosts do not spread evenly over {fabric.leaves} leaves",
        )
    if fabric.kind == "ring" and fabric.hosts % fabric.ring:
        raise ScenarioError(
            where(("fabric", "hosts")),
            f"{fabric.hosts} hosts do not spread evenly over {fabric.ring} switches",
        )
    if fabric.kind == "fat-tree" and (fabric.k % 2 or fabric.hosts > fabric.k**3 // 4):
        raise ScenarioError(
            where(("fabric", "k")),
            f"k is even, and a fat-tree of k = {fabric.k} has at most {fabric.k**3 // 4} hosts",
        )
    if fabric.links and fabric.kind != "custom":
        raise ScenarioError(where(("fabric", "links")), f"links are for kind custom, not {fabric.kind}")
    if scenario.duration_ps <= scenario.measure_from_ps:
        raise ScenarioError(where(("measure_from",)), "statistics would start after the end (duration)")
    if scenario.duration_ps > 100 * 10**12:
        raise ScenarioError(where(("duration",)), "more than 100s of simulated time")


def _watchdog(where: Where, scenario: Scenario) -> None:
    watchdog, storm = scenario.watchdog, scenario.storm
    for name, value in (("poll", watchdog.poll_ps), ("detection", watchdog.detection_ps)):
        if value < 1000:
            raise ScenarioError(where(("watchdog", name)), "a watchdog looks once a nanosecond at most")
    for host in storm.hosts:
        if host >= scenario.fabric.hosts:
            raise ScenarioError(where(("storm", "hosts")), f"host {host} does not exist")
    if storm.hosts and (
        scenario.switch.pfc.mode == "off" or storm.priority not in scenario.switch.pfc.priorities
    ):
        raise ScenarioError(
            where(("storm", "priority")), f"class {storm.priority} is not lossless (switch.pfc.priorities)"
        )


def _switch(where: Where, scenario: Scenario) -> None:
    switch = scenario.switch
    for name, value in (("kmin", switch.ecn.kmin_bytes), ("kmax", switch.ecn.kmax_bytes)):
        if switch.ecn.enabled and value > switch.buffer_bytes:
            raise ScenarioError(
                where(("switch", "ecn", name)),
                f"{value} octets is above the buffer, {switch.buffer_bytes} octets (switch.buffer)",
            )
    if switch.ecn.adapt_every_ps < 1_000_000:
        raise ScenarioError(
            where(("switch", "ecn", "adapt_every")), "looking more than once a microsecond is no use"
        )
    if switch.ecn.kmin_bytes > switch.ecn.kmax_bytes:
        raise ScenarioError(where(("switch", "ecn", "kmin")), "kmin is above kmax")
    if switch.buffer_bytes < 2 * scenario.host.mtu_bytes:
        raise ScenarioError(where(("switch", "buffer")), "the buffer holds not even two full packets")


def _traffic(where: Where, scenario: Scenario, index: int, traffic: Traffic) -> None:
    hosts = scenario.fabric.hosts

    def reject(key: str, what: str) -> None:
        raise ScenarioError(where(("traffic", index, key)), what)

    def known(key: str, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            if number >= hosts:
                reject(key, f"host {number} does not exist; hosts are 0 to {hosts - 1}")

    known("senders", traffic.senders)
    if traffic.pattern == "incast":
        known("receiver", (traffic.receiver,))
        if traffic.receiver in traffic.senders:
            reject("senders", f"host {traffic.receiver} is the receiver and cannot send to itself")
    if traffic.pattern in ("flows", LISTED):
        if not traffic.pairs:
            reject("pairs", f"pattern {traffic.pattern} needs pairs, e.g. [[0, 2], [1, 2]]")
        for pair in traffic.pairs:
            known("pairs", pair)
            if pair[0] == pair[1]:
                reject("pairs", f"host {pair[0]} cannot send to itself")
    if len(set(traffic.senders)) != len(traffic.senders):
        reject("senders", "a host is named twice; use qps for more queue pairs")
    if not 1 <= traffic.message_bytes <= 1 << 31:
        reject("message", "a message is 1 octet to 2 GiB")
    if traffic.transport == "ud" and traffic.verb not in ("send", "send_imm"):
        reject("verb", f"UD carries only send and send_imm, not {traffic.verb}")
    if traffic.transport == "uc" and traffic.verb not in ("send", "send_imm", "write", "write_imm"):
        reject("verb", f"UC carries send, send_imm, write and write_imm, not {traffic.verb}")
    if traffic.transport == "ud" and traffic.message_bytes > scenario.host.mtu_bytes:
        reject(
            "message", f"a UD message fits one packet, at most {scenario.host.mtu_bytes} octets (host.mtu)"
        )
    if traffic.verb in ("atomic", "cmp_swp", "fetch_add", "atomic_write") and traffic.message_bytes != 8:
        reject("message", "an atomic works on 8B")
    if traffic.pattern == LISTED:
        if 0 in traffic.lengths:
            reject("lengths", "a message is 1 octet to 2 GiB")
        if traffic.times_ps and len(traffic.times_ps) != max(len(traffic.lengths), traffic.count, 1):
            reject("times", "as many times as messages, or none")
        if traffic.transport == "ud" and max(traffic.lengths, default=0) > scenario.host.mtu_bytes:
            most = scenario.host.mtu_bytes
            reject("lengths", f"a UD message fits one packet, at most {most} octets (host.mtu)")
    elif traffic.pattern in SCRIPTED and traffic.transport not in ("rc", "xrc"):
        reject("transport", f"messages of {traffic.pattern} wait for each other, which needs rc or xrc")
    if traffic.sizes == "uniform" and traffic.message_min_bytes > traffic.message_bytes:
        reject("message_min", "above the largest message (message)")
    if traffic.start_ps >= scenario.duration_ps:
        reject("start", "starts after the end (duration)")
