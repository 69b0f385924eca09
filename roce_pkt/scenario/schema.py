"""What a scenario may say: every key with its default, its unit and what it means.

The classes below are the schema; reading, writing defaults out, error texts and the reference in
the documentation are all derived from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roce_pkt.scenario import field as f
from roce_pkt.scenario.fault import Fault
from roce_pkt.scenario.look import Look

PATTERNS = (
    "incast", "permutation", "all-to-all", "flows", "ring-allreduce", "tree-allreduce", "pipeline",
    "moe-alltoall", "storage-mix", "messages",
)  # fmt: skip
SCRIPTED = PATTERNS[4:]
"""Patterns whose messages are listed one by one, most of them waiting for each other."""
VERBS = (
    "send", "send_imm", "send_inv", "write", "write_imm", "read", "atomic", "cmp_swp", "fetch_add", "flush",
    "atomic_write",
)  # fmt: skip
VERB_NUMBER = {name: number for number, name in enumerate(VERBS)}
SIZES = ("fixed", "uniform", "log-normal", "web-search", "hadoop", "storage", "ai-collectives")
ARRIVALS = ("constant", "poisson", "on-off", "burst")
AUTO = -1
NONE = -1
SAME = -1
ENDLESS = 0


@dataclass(frozen=True, slots=True)
class Fabric:
    """Hosts, switches and the links between them."""

    kind: str = f.choice(
        "star", "how switches are joined", "star", "dumbbell", "leaf-spine", "fat-tree", "ring", "custom"
    )
    hosts: int = f.integer(3, "number of hosts", 2, 4096)
    left: int = f.integer(0, "dumbbell: hosts on the first switch (0 = half)", 0, 4095)
    leaves: int = f.integer(2, "leaf-spine: leaf switches", 1, 256)
    spines: int = f.integer(2, "leaf-spine: spine switches", 1, 256)
    k: int = f.integer(4, "fat-tree: ports of a switch, even; up to k^3/4 hosts", 2, 16)
    ring: int = f.integer(4, "ring: switches", 3, 256)
    links: tuple[str, ...] = f.texts([], "custom: `host0-switch0`, `switch0-switch1 400Gbps 2us`")
    rate_bps: float = f.rate("100Gbps", "rate of host links")
    delay_ps: int = f.time("1us", "one-way delay of host links (5 ns a metre)")
    trunk_rate_bps: float = f.rate("same", "rate of links between switches", same=NONE)
    trunk_delay_ps: int = f.time("same", "delay of links between switches", same=NONE)
    routing: str = f.choice("ecmp", "choice among equal paths", "ecmp", "flowlet", "per-packet")
    flowlet_gap_ps: int = f.time("50us", "flowlet: a flow that paused so long may take another path")
    frame_overhead_bytes: int = f.size(
        "real", "octets a frame adds to its payload on the wire, to compare with other models", real=NONE
    )
    serialisation_quantum_ps: int = f.time("1ps", "frame times are cut to multiples of this")


@dataclass(frozen=True, slots=True)
class Ecn:
    """Marking by queue length (RED)."""

    enabled: bool = f.flag(True, "mark at all")
    kmin_bytes: int = f.size("400KB", "queue where marking starts")
    kmax_bytes: int = f.size("1600KB", "queue above which every ECT frame is marked")
    pmax: float = f.fraction(0.2, "probability of a mark at kmax")
    mark: str = f.choice("enqueue", "which queue a frame is judged by", "enqueue", "dequeue")
    adaptive: bool = f.flag(False, "each port scales kmin and kmax by its load, marks and queue")
    adapt_every_ps: int = f.time("100us", "adaptive: interval between two looks")
    adapt_low: float = f.fraction(0.1, "adaptive: smallest scale", 0.01, 1.0)
    adapt_high: float = f.fraction(16.0, "adaptive: largest scale", 1.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Pfc:
    """Pausing the upstream sender."""

    mode: str = f.choice(
        "pfc", "PFC by class, 802.3x PAUSE of the whole port, or none", "pfc", "pause", "off"
    )
    priorities: tuple[int, ...] = f.numbers([3], "lossless classes", 7)
    alpha: float = f.fraction(0.125, "share of the free shared buffer one ingress group may take", 0, 64)
    headroom_bytes: int = f.size("auto", "room kept for frames in flight after XOFF, per group", auto=AUTO)
    reserve_bytes: int = f.size("4KiB", "buffer each ingress group owns")
    resume_bytes: int = f.size("3KiB", "how far below XOFF a group must fall before XON")
    quanta: int = f.integer(65535, "pause time in an XOFF, in 512 bit times", 1, 65535)
    refresh_ps: int = f.time("auto", "XOFF is repeated after this (auto = half its pause)", auto=AUTO)
    response_ps: int = f.time(
        "auto", "delay from a pause frame to its effect (auto = 802.3 by speed)", auto=AUTO
    )


@dataclass(frozen=True, slots=True)
class Qos:
    """From code point to class, and how classes share a port."""

    trust: str = f.choice("dscp", "field that decides the priority", "dscp", "pcp")
    dscp_to_priority: dict[int, int] = f.mapping({"26": 3, "48": 6}, "others go to priority 0", 63, 7)
    priority_to_class: dict[int, int] = f.mapping({}, "others keep their number", 7, 7)
    weights: dict[int, int] = f.mapping(
        {}, "deficit round robin weight by class; other classes go first, highest number first", 7, 1000
    )


@dataclass(frozen=True, slots=True)
class Switch:
    """Every switch."""

    buffer_bytes: int = f.size("16MiB", "packet memory")
    forwarding: str = f.choice(
        "store-and-forward", "when a frame may leave", "store-and-forward", "cut-through"
    )
    lossy_alpha: float = f.fraction(1.0, "as pfc.alpha, for classes without PFC", 0, 64)
    ecn: Ecn = f.section(Ecn, "marking")
    pfc: Pfc = f.section(Pfc, "pausing")
    qos: Qos = f.section(Qos, "classes")


@dataclass(frozen=True, slots=True)
class Watchdog:
    """The PFC watchdog of every switch, as SONiC has it."""

    enabled: bool = f.flag(False, "watch at all")
    detection_ps: int = f.time(
        "200ms", "paused without a frame for so long is a storm (SONiC: 100 ms to 5 s)"
    )
    restoration_ps: int = f.time(
        "200ms", "without a pause frame for so long it is over (SONiC: 100 ms to 60 s)"
    )
    poll_ps: int = f.time("100ms", "how often it looks")
    action: str = f.choice("drop", "what a storm does to its queue", "drop", "forward", "alert")


@dataclass(frozen=True, slots=True)
class Storm:
    """Broken adapters that send XOFF without end for a while."""

    hosts: tuple[int, ...] = f.numbers([], "hosts whose adapters break (none = no storm)", 4095)
    priority: int = f.integer(3, "class they stop", 0, 7)
    start_ps: int = f.time("1ms", "when they break")
    duration_ps: int = f.time("1s", "how long")


@dataclass(frozen=True, slots=True)
class Ack:
    """Acknowledgements of a reliable connection."""

    every: int = f.integer(1, "ask for one after this many packets (and at the end of a message)", 1, 4096)
    dscp: int = f.integer(48, "code point of ACK and NAK", 0, 63)
    coalesce: int = f.integer(1, "requests for an acknowledgement that one may answer together", 1, 4096)
    hold_ps: int = f.time("2us", "how long an acknowledgement waits for others to join it")


@dataclass(frozen=True, slots=True)
class Transport:
    """Timers and limits of a queue pair, with the verbs' own names."""

    timeout: int = f.integer(14, "retry timer: 4.096 us x 2^timeout, 0 = never", 0, 31)
    retry_cnt: int = f.integer(7, "retries before the queue pair fails", 0, 7)
    rnr_retry: int = f.integer(7, "receiver-not-ready retries, 7 = without end", 0, 7)
    min_rnr_timer: int = f.integer(12, "receiver-not-ready wait, by its code", 0, 31)
    max_rd_atomic: int = f.integer(16, "READs and ATOMICs a queue pair keeps outstanding", 1, 255)
    window_bytes: int = f.size("none", "unacknowledged octets a queue pair may have", none=NONE)
    receive_queue: int = f.integer(0, "receive work requests posted for SEND (0 = never short)", 0, 1 << 20)
    repost_ps: int = f.time("10us", "time until a used receive work request is posted again")
    recovery: str = f.choice(
        "go-back-n", "send again from a lost packet on, or lost packets only (IRN; send and write over rc)",
        "go-back-n", "selective-repeat",
    )  # fmt: skip
    reordering: int = f.integer(
        1, "selective-repeat: packets sent later that must arrive before one counts as lost", 1, 1023
    )
    rto_low_ps: int = f.time("100us", "selective-repeat: retry timer with 3 packets outstanding or fewer")
    rto_high_ps: int = f.time("320us", "selective-repeat: retry timer with more")
    behaviour: str = f.choice("spec", "endpoints of the specification, or of Linux Soft-RoCE", "spec", "rxe")


@dataclass(frozen=True, slots=True)
class Host:
    """Every host and its adapter."""

    mtu_bytes: int = f.integer(1024, "payload octets in a full packet", 64, 9000)
    ip: str = f.choice("ipv4", "network header", "ipv4", "ipv6")
    dscp: int = f.integer(26, "code point of data", 0, 63)
    vlan: int = f.integer(0, "VLAN number of every frame, its PCP by the priority; 0 = untagged", 0, 4094)
    rate_limit_bps: float = f.rate("none", "limit of the whole host", none=NONE)
    ack: Ack = f.section(Ack, "acknowledgements")
    transport: Transport = f.section(Transport, "queue pairs")
    cc: dict[str, Any] = f.free_table("reaction point: algorithm, profile, and parameters by their own names")
    np: dict[str, Any] = f.free_table("notification point: mode, interval, scope, dscp")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Messages between hosts."""

    pattern: str = f.choice("incast", "who sends to whom", *PATTERNS)
    senders: tuple[int, ...] = f.numbers([], "hosts that send (none = all others)", 4095)
    receiver: int = f.integer(0, "incast: the host that receives", 0, 4095)
    pairs: tuple[tuple[int, int], ...] = f.pairs([], "flows, messages: [source, destination] of each")
    lengths: tuple[int, ...] = f.numbers([], "messages: octets of each, in order (none = `message`)", 1 << 31)
    times_ps: tuple[int, ...] = f.times(
        [], "messages: earliest posting of each, after `start` (none = at once)"
    )
    verb: str = f.choice("write", "operation", *VERBS)
    transport: str = f.choice("rc", "service", "rc", "uc", "ud", "xrc")
    message_bytes: int = f.size("1MB", "octets of a message (its largest, or its median, by sizes)")
    sizes: str = f.choice("fixed", "law of message sizes", *SIZES)
    message_min_bytes: int = f.size("1B", "uniform: octets of the smallest message")
    sigma: float = f.fraction(1.0, "log-normal: standard deviation of the logarithm", 0, 10)
    count: int = f.integer(ENDLESS, "messages on each queue pair (0 = until the end)")
    qps: int = f.integer(1, "queue pairs for each pair of hosts", 1, 65535)
    start_ps: int = f.time("0us", "when the first message is posted")
    stagger_ps: int = f.time("0us", "added to the start for each further queue pair")
    rate_bps: float = f.rate("none", "limit of each queue pair", none=NONE)
    dscp: int = f.integer(SAME, "code point of its data (-1 = host.dscp)", SAME, 63)
    load: str = f.text("", "rate of each queue pair as testers say it: 40%, 10Gbps L2, 10Gbps L1, 2Mpps")
    arrival: str = f.choice("constant", "when packets (simulate: messages) are due at that rate", *ARRIVALS)
    burst: int = f.integer(32, "burst: packets (simulate: whole messages) at line rate", 1, 1 << 20)
    gap_ps: int = f.time("10us", "burst: from the end of a burst to the next")
    on_ps: int = f.time("10us", "on-off: mean time on")
    off_ps: int = f.time("10us", "on-off: mean time off")
    think_ps: int = f.time("1us", "patterns with waits: from what a message waits for to its posting")
    depth: int = f.integer(128, "work requests a queue pair keeps posted", 1, 4096)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole simulation."""

    name: str = f.text("unnamed", "shown in results")
    seed: int = f.integer(1, "the one source of chance", 0, (1 << 62) - 1)
    duration_ps: int = f.time("5ms", "simulated time")
    measure_from_ps: int = f.time("0us", "statistics count from here")
    taps: tuple[str, ...] = f.texts([], "where frames are recorded: `host2`, `switch0:2`")
    fabric: Fabric = f.section(Fabric, "topology")
    switch: Switch = f.section(Switch, "switches")
    watchdog: Watchdog = f.section(Watchdog, "watchdog")
    storm: Storm = f.section(Storm, "broken adapters")
    host: Host = f.section(Host, "hosts")
    frames: Look = f.section(Look, "how generated frames look")
    traffic: tuple[Traffic, ...] = f.section(Traffic, "one or more tables of messages")
    fault: tuple[Fault, ...] = f.section(Fault, "faults done to frames where they leave their host, in order")
    written: dict[str, Any] = f.apart()
    """The scenario as a file would state it, with every default."""
