"""From a scenario to the engine's arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc.feedback import ACK
from roce_pkt.cc.law import NEVER_PS
from roce_pkt.endpoint import rc_selective
from roce_pkt.engine import control_law, fault_rules, queue_pairs, records, workload
from roce_pkt.engine.arrays import Arrays
from roce_pkt.engine.frame_sizes import FrameSizes
from roce_pkt.engine.layout import in_line
from roce_pkt.engine.records import BINS, BLOCK, CLASSES, FAR_PS, IDLE_KEY, SHIFT
from roce_pkt.errors import ScenarioError
from roce_pkt.fabric import headroom, link, topology
from roce_pkt.fabric.round_trip import base_rtt_ps
from roce_pkt.fabric.topology import Topology
from roce_pkt.scenario import dice
from roce_pkt.scenario.schema import AUTO, NONE, Scenario
from roce_pkt.units import PS_PER_US
from roce_pkt.wire import aeth

MIN_POOL, MAX_POOL = 1 << 14, 1 << 22
EVENT_ROWS, FRAME_ROWS = 1 << 16, 1 << 16
SAMPLE_CELLS = 1 << 21
PAUSE_MODES = {"off": records.NO_PAUSE, "pfc": records.PFC, "pause": records.PAUSE_8023}


@dataclass(slots=True)
class Built:
    """The arrays, and what people need to read them.

    Args:
        w: The one record the engine takes, of `records.WORLD`.
        arrays: What it points at.
        topology: Nodes and ports.
        pairs: The queue pairs.
        law: What the senders react by.
        resolved: Values that the scenario left to be computed, by dotted key.
    """

    w: Any
    arrays: Arrays
    topology: Topology
    pairs: queue_pairs.QueuePairs
    law: control_law.ControlLaw
    resolved: dict[str, Any]


def build(scenario: Scenario, *, trace: bool = False, sample_every_ps: int = 0) -> Built:
    """Make the arrays of one run.

    Args:
        scenario: What to simulate.
        trace: Write event rows.
        sample_every_ps: Sampling period of queues and rates, 0 for none.

    Raises:
        ScenarioError: A value that only shows to be wrong here (buffer below headroom, unknown tap,
            a parameter of congestion control).
    """
    workload.check(scenario)
    net = topology.build(scenario.fabric)
    law = control_law.read(scenario, net)
    sizes = FrameSizes(scenario, law.header_bytes)
    pairs = queue_pairs.lay_out(scenario, sizes)
    resolved: dict[str, Any] = dict(law.resolved)
    port = _ports(scenario, net, sizes, resolved)
    node, tree, top = _nodes(scenario, net, pairs, port)
    group = _groups(scenario, net, node, sizes, resolved)
    line = in_line(len(net.ports) * CLASSES, records.LINE)
    line["paused_until_ps"] = NEVER_PS
    for class_, weight in scenario.switch.qos.weights.items():
        line["quantum_bytes"][class_::CLASSES] = weight * sizes.full_frame
    half = pairs.half
    faults = fault_rules.lay_out(scenario)
    port["discards"][node["first_port"][: net.hosts][faults.hosts]] = 0xFF
    turns = _turns(pairs, port, line)
    route, paths = _routes(net, node)
    _taps(scenario, net, port)
    samples = (
        max(1, min(4096, SAMPLE_CELLS // max(len(net.ports) + 4 * len(half), 1))) if sample_every_ps else 1
    )
    pool = _pool_size(scenario, net, sizes)
    arrays = Arrays(
        node=node,
        port=port,
        line=line,
        group=group,
        half=half,
        rp=law.states(len(half)),
        watch=pairs.watches(law.np_parameters),
        packet=in_line(pool, records.PACKET),
        tree=tree,
        turns=turns,
        top=top,
        route=route,
        path=paths,
        histogram=np.zeros(len(net.ports) * BINS, np.uint32),
        row=np.zeros(EVENT_ROWS if trace else records.MARGIN_ROWS, records.EVENT_ROW),
        frame=np.zeros(FRAME_ROWS if scenario.taps else records.MARGIN_ROWS, records.FRAME_ROW),
        queues=np.zeros((samples, len(net.ports)), np.int64),
        rates=np.zeros((samples, len(half) if sample_every_ps else 0), records.RATE_SAMPLE),
        cc=law.parameters,
        np=law.np_parameters,
        ack=np.zeros(1, ACK),
        flowlet=_flowlets(scenario, net, node),
        before=in_line(1, law.law.STATE),
        selective=np.zeros(len(half) if selects(scenario) else 1, rc_selective.STATE),
        telemetry=np.zeros(pool * law.telemetry_words, np.uint64),
        work=pairs.works.work,
        message=pairs.works.message,
        wait=pairs.works.wait,
        next=pairs.works.next,
        manner=pairs.works.manner,
        rule=faults.rule,
        hit=faults.hit,
        seen=faults.seen,
        opcode=faults.opcode,
        headers=faults.headers,
        unchecked=faults.unchecked,
    )
    if selects(scenario):
        _bound_windows(scenario, net, half, resolved)
    law.open_windows(half, arrays.rp, scenario.host.mtu_bytes)
    w = np.zeros(1, records.WORLD)[0]
    _begin(w, net, trace, sample_every_ps, scenario.fabric.serialisation_quantum_ps)
    _settings(w, scenario, sizes, law, resolved)
    arrays.connect(w)
    return Built(w, arrays, net, pairs, law, resolved)


def _begin(w: Any, net: Topology, trace: bool, sample_every_ps: int, quantum_ps: int) -> None:
    w["fresh"] = 1
    w["trace"] = trace
    w["next_sample_ps"] = 0 if sample_every_ps else NEVER_PS
    w["sample_every_ps"] = sample_every_ps
    shortest = min(int(p.delay_ps + records.SHORTEST_WIRE_BYTES * 8e12 / p.rate_bps) for p in net.ports)
    w["lookahead_ps"] = max(shortest - quantum_ps, 1)


def _ports(scenario: Scenario, net: Topology, sizes: FrameSizes, resolved: dict[str, Any]) -> NDArray[Any]:
    port = in_line(len(net.ports), records.PORT)
    refresh = scenario.switch.pfc.refresh_ps
    fastest: dict[int, float] = {}
    for end in net.ports:
        fastest[end.node] = max(end.rate_bps, fastest.get(end.node, 0.0))
    weighted = sum(1 << c for c in scenario.switch.qos.weights)
    for index, end in enumerate(net.ports):
        p = port[index]
        p["node"], p["peer"], p["delay_ps"] = end.node, end.peer, end.delay_ps
        p["ps_per_byte"] = link.ps_per_byte(end.rate_bps)
        p["quantum_ps"] = link.quantum_ps(end.rate_bps)
        pause_ps = scenario.switch.pfc.quanta * link.quantum_ps(end.rate_bps)
        p["refresh_ps"] = max(pause_ps // 2, 1) if refresh == AUTO else refresh
        p["host"] = end.node < net.hosts
        towards = net.ports[end.peer].node
        p["cut_through"] = (
            scenario.switch.forwarding == "cut-through"
            and towards >= net.hosts
            and end.rate_bps >= fastest[towards]
        )
        if p["host"] and scenario.host.rate_limit_bps != NONE:
            p["limit_ps_per_byte"] = round(8e12 / scenario.host.rate_limit_bps)
        p["speed"] = control_law.speed_code(end.rate_bps)
        p["dice"], p["dice_step"] = dice.stream_of(scenario.seed, index)
    port["known_size"] = -1
    ecn = scenario.switch.ecn
    port["kmin_bytes"], port["kmax_bytes"], port["pmax"] = ecn.kmin_bytes, ecn.kmax_bytes, ecn.pmax
    port["pause_due_ps"] = NEVER_PS
    port["weighted"] = weighted
    resolved["switch.pfc.refresh"] = f"{int(port['refresh_ps'].max())}ps"
    del sizes
    return port


def _nodes(
    scenario: Scenario, net: Topology, pairs: queue_pairs.QueuePairs, port: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Nodes, a tree of sources for each, and the tree over nodes."""
    count = net.hosts + net.switches
    node = np.zeros(count, records.NODE)
    ports_of = np.bincount(port["node"], minlength=count)
    halves_of = np.zeros(count, np.int64)
    halves_of[: net.hosts] = np.bincount(pairs.host_of_half, minlength=net.hosts)
    node["ports"] = ports_of
    node["first_port"] = np.concatenate(([0], np.cumsum(ports_of)[:-1]))
    node["first_half"] = np.concatenate(([0], np.cumsum(halves_of)[:-1]))
    node["leaves"] = 3 * ports_of + (halves_of > 0)
    node["halves"] = halves_of
    node["base"] = np.concatenate(([0], np.cumsum(2 * node["leaves"].astype(np.int64))[:-1]))
    node["host"][: net.hosts] = 1
    node["timers"] = int(2 * node["leaves"].astype(np.int64).sum()) + 2 * node["first_half"].astype(np.int64)
    if halves_of.max() * 2 >= 1 << SHIFT:
        raise ScenarioError("traffic", f"more than {(1 << SHIFT) // 2 - 3} queue pairs on one host")
    leaves = node["leaves"][port["node"]]
    number = np.arange(len(port)) - node["first_port"][port["node"]]
    port["base"] = node["base"][port["node"]]
    port["arrival_leaf"] = leaves + number
    port["send_leaf"] = leaves + ports_of[port["node"]] + number
    port["pause_leaf"] = leaves + 2 * ports_of[port["node"]] + number
    half = pairs.half
    half["port"] = node["first_port"][pairs.host_of_half]
    local = np.arange(len(half)) - node["first_half"][pairs.host_of_half]
    half["timer_leaf"] = node["halves"][pairs.host_of_half] + local
    half["cell"] = half["port"] * CLASSES + half["class_"]
    for index in range(net.hosts, count):
        node[index]["salt"] = dice.stream_of(scenario.seed, 1 << 20 | index)[0]
    tree = np.full(int(2 * node["leaves"].astype(np.int64).sum()) + 2 * len(half), IDLE_KEY, np.int64)
    blocks = records.blocks_of(count)
    top = np.full(blocks * (BLOCK + 1), IDLE_KEY, np.int64)
    first_sends = pairs.first_send_ps(net.hosts)
    for host in range(net.hosts):
        n = node[host]
        base, size = int(n["base"]), int(n["leaves"])
        tree[base + size : base + 2 * size] = IDLE_KEY | np.arange(size, 2 * size)
        if first_sends[host] < FAR_PS:
            leaf = int(port["send_leaf"][n["first_port"]])
            tree[base + leaf] = int(first_sends[host]) << SHIFT | leaf
        _play(tree[base : base + 2 * size])
        top[host] = tree[base + 1]
    for index in range(net.hosts, count):
        base, size = int(node[index]["base"]), int(node[index]["leaves"])
        tree[base + size : base + 2 * size] = IDLE_KEY | np.arange(size, 2 * size)
        _play(tree[base : base + 2 * size])
    top[blocks * BLOCK :] = top[: blocks * BLOCK].reshape(blocks, BLOCK).min(axis=1)
    return node, tree, top


def _play(tree: NDArray[np.int64]) -> None:
    """Fill a tree's inner places from its leaves, a run of places with finished children at a time."""
    end = len(tree) // 2
    while end > 1:
        first = (end + 1) // 2
        tree[first:end] = np.minimum(tree[2 * first : 2 * end : 2], tree[2 * first + 1 : 2 * end : 2])
        end = first


def _turns(pairs: queue_pairs.QueuePairs, port: NDArray[Any], line: NDArray[Any]) -> NDArray[np.int64]:
    """For each host and class, a tree of its queue pairs by the time they may send."""
    half = pairs.half
    parts = []
    base = 0
    order = np.argsort(half["cell"], kind="stable")
    cells, starts = np.unique(half["cell"][order], return_index=True)
    first_half = np.concatenate(([0], np.cumsum(np.bincount(pairs.host_of_half))))
    for cell, members in zip(cells, np.split(order, starts[1:]), strict=True):
        count = len(members)
        tree = np.full(2 * count, IDLE_KEY, np.int64)
        half["tree_leaf"][members] = count + np.arange(count)
        local = members - first_half[pairs.host_of_half[members]]
        due = np.where(half["idle"][members], FAR_PS, half["avail_ps"][members])
        tree[count:] = due << SHIFT | local
        _play(tree)
        parts.append(tree)
        line["tree"][cell] = base
        port["several"][cell // CLASSES] = port["paced"][cell // CLASSES] != 0
        port["paced"][cell // CLASSES] |= 1 << int(cell % CLASSES)
        port["turn_root"][cell // CLASSES] = base + 1
        base += 2 * count
    return np.concatenate(parts)


def _groups(
    scenario: Scenario, net: Topology, node: NDArray[Any], sizes: FrameSizes, resolved: dict[str, Any]
) -> NDArray[Any]:
    """Ingress groups, and what is left for the shared pool."""
    switch, pfc = scenario.switch, scenario.switch.pfc
    group = in_line(len(net.ports) * CLASSES, records.GROUP)
    group["alpha"] = switch.lossy_alpha
    group["refresh_due_ps"] = NEVER_PS
    kept = np.zeros(len(node), np.int64)
    lossless = pfc.priorities if pfc.mode != "off" else ()
    for index, end in enumerate(net.ports):
        room = pfc.headroom_bytes
        if room == AUTO:
            response = headroom.response_ps(end.rate_bps) if pfc.response_ps == AUTO else pfc.response_ps
            room = headroom.headroom_bytes(end.rate_bps, end.delay_ps, sizes.full_wire, response)
            resolved["switch.pfc.headroom"] = f"{room}B"
        for class_ in lossless:
            g = group[index * CLASSES + class_]
            g["lossless"], g["alpha"] = 1, pfc.alpha
            g["headroom_bytes"], g["reserve_bytes"] = room, pfc.reserve_bytes
            kept[end.node] += room + pfc.reserve_bytes
    node["shared_total_bytes"] = switch.buffer_bytes - kept
    for index in range(net.hosts, len(node)):
        if node[index]["shared_total_bytes"] < 2 * sizes.full_frame:
            raise ScenarioError(
                "switch.buffer",
                f"{switch.buffer_bytes} octets; headroom and reserve of {net.node_name(index)} alone take"
                f" {kept[index]}: give more buffer, or less pfc.headroom",
            )
    return group


def _routes(net: Topology, node: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """A table by destination for each switch, equal sets of ports stored once."""
    route = np.zeros(net.switches * net.hosts, records.ROUTE)
    sets: dict[tuple[int, ...], int] = {}
    paths: list[int] = []
    place, first, count = [], [], []
    for (switch, host), ports in net.next_ports().items():
        key = tuple(ports)
        if len(ports) > 1 and key not in sets:
            sets[key] = len(paths)
            paths += ports
        place.append((switch - net.hosts) * net.hosts + host)
        first.append(sets[key] if len(ports) > 1 else ports[0])
        count.append(len(ports))
    route["first"][place], route["count"][place] = first, count
    node["route"][net.hosts :] = np.arange(net.switches) * net.hosts
    return route, np.array(paths or [0], np.uint32)


def _flowlets(scenario: Scenario, net: Topology, node: NDArray[Any]) -> NDArray[Any]:
    """What each switch remembers of flowlets."""
    each = records.FLOWLET_MASK + 1 if scenario.fabric.routing == "flowlet" else 0
    node["flowlets"][net.hosts :] = np.arange(net.switches) * each
    return np.zeros(max(net.switches * each, 1), records.FLOWLET)


def _settings(
    s: Any, scenario: Scenario, sizes: FrameSizes, law: control_law.ControlLaw, resolved: dict[str, Any]
) -> None:
    """Write what the scenario sets for all into `w`."""
    host, switch = scenario.host, scenario.switch
    s["buffer_bytes"] = switch.buffer_bytes
    s["ecn"], s["mark_at_dequeue"] = switch.ecn.enabled, switch.ecn.mark == "dequeue"
    s["pause_mode"] = PAUSE_MODES[switch.pfc.mode]
    s["cnp_on_nack"] = law.cnp_on_nack
    law.install(s)
    s["routing"] = records.ROUTINGS.index(scenario.fabric.routing)
    s["flowlet_gap_ps"] = scenario.fabric.flowlet_gap_ps
    s["ack_class"] = queue_pairs.class_of(scenario, host.ack.dscp)
    s["cnp_class"] = queue_pairs.class_of(scenario, law.cnp_dscp)
    s["ack_every"], s["mtu_bytes"] = host.ack.every, host.mtu_bytes
    for name in ("min", "gap", "ack", "cnp", "read_request", "atomic_request", "atomic_response", "pause"):
        s[f"{name}_bytes"] = getattr(sizes, name)
    s["quanta"], s["resume_bytes"] = switch.pfc.quanta, switch.pfc.resume_bytes
    response = switch.pfc.response_ps
    s["response_ps"] = headroom.response_ps(scenario.fabric.rate_bps) if response == AUTO else response
    resolved["switch.pfc.response"] = f"{int(s['response_ps'])}ps"
    s["quantum_ps"] = scenario.fabric.serialisation_quantum_ps
    s["rnr_wait_ps"] = aeth.RNR_TIMERS_US[host.transport.min_rnr_timer] * PS_PER_US
    s["rnr_code"], s["repost_ps"] = host.transport.min_rnr_timer, host.transport.repost_ps
    s["selective"] = selects(scenario)
    s["reordering"] = host.transport.reordering
    s["rto_low_ps"], s["rto_high_ps"] = host.transport.rto_low_ps, host.transport.rto_high_ps
    s["read_resources"] = host.transport.max_rd_atomic


def selects(scenario: Scenario) -> bool:
    """Whether lost packets are repeated one by one."""
    return scenario.host.transport.recovery == "selective-repeat"


def _bound_windows(scenario: Scenario, net: Topology, half: NDArray[Any], resolved: dict[str, Any]) -> None:
    """Let senders have what the longest path holds outstanding, and no more than the rings hold."""
    # spec: IRN 2018 sec. 3.2: outstanding packets are bounded by the bandwidth-delay product
    mtu = scenario.host.mtu_bytes
    pipe_bytes = scenario.fabric.rate_bps / 8e12 * base_rtt_ps(scenario, net)
    # a window that ends before an acknowledgement is asked for would wait for the timer
    packets = max(math.ceil(pipe_bytes / mtu) + 1, 2 * scenario.host.ack.every)
    packets = min(packets, rc_selective.WINDOW)
    if scenario.host.transport.window_bytes != NONE:
        packets = min(max(scenario.host.transport.window_bytes // mtu, 1), rc_selective.WINDOW)
    half["window"] = np.minimum(half["window"], packets)
    half["timeout_ps"] = scenario.host.transport.rto_high_ps
    resolved["host.transport.window"] = f"{packets * mtu}B"


def _pool_size(scenario: Scenario, net: Topology, sizes: FrameSizes) -> int:
    """Packets that can exist at once: switch buffers full of full frames, twice, and full links."""
    buffered = net.switches * scenario.switch.buffer_bytes / sizes.full_frame
    flying = sum(p.delay_ps * p.rate_bps / 8e12 / 64 + 4 for p in net.ports)
    return int(min(max(2 * buffered + flying, MIN_POOL), MAX_POOL))


def _taps(scenario: Scenario, net: Topology, port: NDArray[Any]) -> None:
    names = {net.port_name(index): index for index in range(len(net.ports))}
    for tap in scenario.taps:
        if tap not in names:
            known = f"host0 to host{net.hosts - 1}, switch0:0 and so on"
            raise ScenarioError("taps", f"{tap!r} does not exist; ports here are {known}")
        port["tap"][names[tap]] = 1
