"""What an observed capture is held to: how fast a receiver answers, how a pause is obeyed, what a storm is.

These belong to the observer, not to DCQCN: a receiver may take a while to send what is due, a sender
may finish what it has begun.
"""

from __future__ import annotations

from collections.abc import Mapping

from roce_pkt.cc.parameters import OFF_ON, Alias, Parameter, ParameterTable

TRUST_AUTO, TRUST_PCP, TRUST_DSCP = range(3)

NOTIFICATION = ParameterTable(
    Parameter(
        "response", "ps", "20us", "Time a receiver may take to send a due notification; later is late.",
        "ours: some microseconds in a NIC and one trip past the tap", high=10**15,
    ),
    Parameter(
        "dscp", "count", "48", "DSCP that notifications carry.",
        "NVIDIA cnp_dscp default", high=63, aliases=(Alias("", ("cnp_dscp", "np_cnp_dscp", "DcQcnCnpDscp")),),
    ),
    Parameter(
        "priority", "count", "6", "Priority of notifications that have a VLAN tag.",
        "NVIDIA cnp_802p_prio default", high=7,
        aliases=(Alias("", ("cnp_802p_prio", "np_cnp_prio", "DcQcnCnp802pPrio")),),
    ),
    Parameter(
        "on_nak", "switch", "off", "A NAK for a sequence error asks for a notification, as a mark does.",
        "Lumina's checker: ConnectX-5 and -6 do, ConnectX-4 and E810 do not", choices=OFF_ON,
        aliases=(Alias("", ("cnp_on_nack",)),),
    ),
)  # fmt: skip

PAUSES = ParameterTable(
    Parameter(
        "response", "ps", "0", "Time a sender may take to obey a pause; 0: by the link's speed.",
        "802.3 31B.3.7 as SONiC's table has it", high=10**12,
    ),
    Parameter(
        "trust", "switch", "auto", "A frame's class: VLAN priority, DSCP / 8, or auto: the tag if any.",
        "NVIDIA and SONiC defaults", choices=("auto", "pcp", "dscp"),
    ),
)  # fmt: skip

WATCHDOG = ParameterTable(
    Parameter("poll", "ps", "100ms", "How often the watchdog looks.", "SONiC", low=1000, high=10**15),
    Parameter(
        "detection", "ps", "200ms", "Paused without a frame for so long is a storm.", "SONiC", low=1000,
        high=10**15,
    ),
    Parameter(
        "restoration", "ps", "200ms", "Without a pause frame for so long it is over.", "SONiC", low=1000,
        high=10**15,
    ),
)  # fmt: skip

WIRE = ParameterTable(
    Parameter(
        "window", "ps", "10us", "Window that rates on the wire are measured over.", "ours", low=1, high=10**15
    ),
    Parameter(
        "burst",
        "bytes",
        "16KB",
        "How far a sender may be ahead of its model.",
        "ours: some frames",
        high=10**9,
    ),
    Parameter("tolerance", "ratio", "5%", "How much faster than its model a sender may be.", "ours", high=10),
)

TABLES: Mapping[str, ParameterTable] = {"np.": NOTIFICATION, "pfc.": PAUSES, "wd.": WATCHDOG, "wire.": WIRE}
"""Tables by the prefix of their names in `--set`; `np.` is shared with the notification point's own."""
