"""Scapy layers for every RoCE header, PAUSE and PFC, made from the tables in `roce_pkt.wire`.

    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from roce_pkt.layers import BTH, RETH

    pkt = Ether()/IP(dst="10.0.0.2")/UDP()/BTH(dqpn=0x11, psn=7)/RETH(va=0x1000, rkey=5, dmalen=5)/b"hello"

Filled on build when not given, each of them overridable with a wrong value: the opcode (from the
stacked headers: RC and "Only" forms, the rule is in `roce_pkt.layers.infer`), padcount and pad
octets, GRH paylen, and the ICRC of RoCEv1, RoCEv2 over IPv4 and over IPv6. In the UDP header below:
destination port 4791, source port 0xC000, checksum 0 as Soft-RoCE sends it. `UDP(chksum=None)` has
Scapy compute it, and so does a UDP header whose `len` you write yourself, as with Scapy's contrib.

On dissection the opcode decides which headers follow; `show()` and `summary()` say whether the ICRC
is right (`pkt[BTH].icrc_ok`: True, False, or None where it cannot be checked: fragments, IPv6
extension headers, IPv4 options). `bytes(pkt)` gives a dissected frame's own octets back.

Connection management: `gsi()/CMReq(...)` and ten more messages, see `roce_pkt.layers.cm`.

Coming from `scapy.contrib.roce`, change the import line: names, arguments and fields are the same.
Both may be loaded; these layers then read port 4791 and EtherTypes 0x8915 and 0x8808, whichever was
loaded first. `unbind()` leaves them to contrib, `bind()` takes them back. Scapy users may also load
the extension: `conf.exts.load("roce-pkt")`, then `load_layer("roce_pkt")` for the names.
ERSPAN outside RoCE is Scapy's own `load_contrib("erspan")`.
"""

if not __name__.startswith("roce_pkt."):
    # a second copy of every class under another name would match nothing in the first
    raise ImportError(f"import roce_pkt.layers, not {__name__}: the package is known by that name only")

from scapy.layers import vxlan as _vxlan  # noqa: F401  its bindings, for RoCE inside

from roce_pkt.layers.bindings import bind, fill_lower_fields, unbind
from roce_pkt.layers.bth import BTH, CNP_OPCODE, cnp, opcode
from roce_pkt.layers.cm import (
    RDMACM,
    RDMACM6,
    CMApr,
    CMDrep,
    CMDreq,
    CMLap,
    CMMra,
    CMRej,
    CMRep,
    CMReq,
    CMRtu,
    CMSidrRep,
    CMSidrReq,
    NVMeRDMARej,
    NVMeRDMARep,
    NVMeRDMAReq,
    RSocketData,
)
from roce_pkt.layers.ecn import get_dscp, get_ecn, set_dscp, set_ecn
from roce_pkt.layers.extended import (
    AETH,
    DETH,
    FETH,
    IETH,
    RDETH,
    RETH,
    XRCETH,
    AtomicAckETH,
    AtomicETH,
    CNPPadding,
    ImmDt,
)
from roce_pkt.layers.grh import GRH
from roce_pkt.layers.mac_control import (
    ETHER_SPEED_MBIT_10,
    ETHER_SPEED_MBIT_100,
    ETHER_SPEED_MBIT_1000,
    PAUSE,
    PFC,
    MACControl,
    MACControlClassBasedFlowControl,
    MACControlPause,
    pfc,
)
from roce_pkt.layers.mad import MAD, RMPP, gsi

__all__ = [
    "AETH",
    "BTH",
    "CNP_OPCODE",
    "DETH",
    "ETHER_SPEED_MBIT_10",
    "ETHER_SPEED_MBIT_100",
    "ETHER_SPEED_MBIT_1000",
    "FETH",
    "GRH",
    "IETH",
    "MAD",
    "PAUSE",
    "PFC",
    "RDETH",
    "RDMACM",
    "RDMACM6",
    "RETH",
    "RMPP",
    "XRCETH",
    "AtomicAckETH",
    "AtomicETH",
    "CMApr",
    "CMDrep",
    "CMDreq",
    "CMLap",
    "CMMra",
    "CMRej",
    "CMRep",
    "CMReq",
    "CMRtu",
    "CMSidrRep",
    "CMSidrReq",
    "CNPPadding",
    "ImmDt",
    "MACControl",
    "MACControlClassBasedFlowControl",
    "MACControlPause",
    "NVMeRDMARej",
    "NVMeRDMARep",
    "NVMeRDMAReq",
    "RSocketData",
    "bind",
    "cnp",
    "get_dscp",
    "get_ecn",
    "gsi",
    "opcode",
    "pfc",
    "set_dscp",
    "set_ecn",
    "unbind",
]

fill_lower_fields()
bind()
