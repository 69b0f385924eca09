"""tshark's names for management datagrams and CM messages, and a recorder of its reading of them.

    python tools/tshark_mad.py        record tests/data/tshark/mad/*.tsv.gz from pcaps/

Only frames that tshark takes for MADs are recorded. It reads six of the eleven messages; of MRA, LAP,
APR and both SIDR messages it says the name only.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import tshark

GOLDEN = tshark.GOLDEN / "mad"

_MAD = (
    *("baseversion", "mgmtclass", "classversion", "method", "status", "transactionid", "attributeid"),
    *("attributemodifier", "classspecific"),
)
_REQ = {
    "": "local_comm_id",
    "serviceid.dport": "port",
    "serviceid.protocol": "space",
    "localcaguid": "local_ca_guid",
    "localqkey": "qkey",
    "localqpn": "qpn",
    "responderres": "responder_resources",
    "localeecn": "local_eecn",
    "initdepth": "initiator_depth",
    "remoteeecn": "remote_eecn",
    "remoteresptout": "remote_cm_response_timeout",
    "transpsvctype": "transport_service_type",
    "e2eflowctrl": "end_to_end_flow_control",
    "startpsn": "start_psn",
    "localresptout": "local_cm_response_timeout",
    "retrcount": "retry_count",
    "pkey": "pkey",
    "pppmtu": "mtu",
    "rdcexist": "rdc_exists",
    "rnrretrcount": "rnr_retry_count",
    "maxcmretr": "max_cm_retries",
    "srq": "srq",
    "ext_transport": "extended_transport_type",
}
_PATH = {
    "locallid": "local_lid",
    "remotelid": "remote_lid",
    "flowlabel": "flow_label",
    "pktrate": "packet_rate",
    "tfcclass": "traffic_class",
    "hoplim": "hop_limit",
    "sl": "sl",
    "subnetlocal": "subnet_local",
    "localacktout": "local_ack_timeout",
}
_REP = {
    "": "local_comm_id",
    "remotecommid": "remote_comm_id",
    "localqkey": "qkey",
    "localqpn": "qpn",
    "localeecn": "local_eecn",
    "startpsn": "start_psn",
    "respres": "responder_resources",
    "initdepth": "initiator_depth",
    "tgtackdelay": "target_ack_delay",
    "failoveracc": "failover_accepted",
    "e2eflowctrl": "end_to_end_flow_control",
    "rnrretrcount": "rnr_retry_count",
    "srq": "srq",
    "localcaguid": "local_ca_guid",
}
_IDS = {"localcommid": "local_comm_id", "remotecommid": "remote_comm_id"}
_REJ = _IDS | {"msgrej": "message_rejected", "rejinfolen": "rejected_info_length", "reason": "reason"}
_IP = {"majv": "major", "minv": "minor", "ipv": "ip_version", "sport": "sport"}


def _of(prefix: str, names: dict[str, str], ours: str) -> dict[str, tuple[str, str]]:
    return {f"infiniband.{prefix}{'.' if n else ''}{n}": (f"{ours}.{o}", "int") for n, o in names.items()}


# tshark's field -> ours, and how to read tshark's text, as in tshark.FIELDS
FIELDS: dict[str, tuple[str, str]] = (
    {"frame.number": ("number", "int")}
    | {f"infiniband.mad.{name}": (f"mad.{name}", "int") for name in _MAD}
    | {"infiniband.mad.data": ("mad.all_data", "text")}
    | _of("cm.req", _REQ, "cm")
    | {"infiniband.cm.req.serviceid.prefix": ("cm.prefix", "hex")}
    | {
        f"infiniband.cm.req.{short}_{name}": (f"cm.{which}_{o}", "int")
        for short, which in (("prim", "primary"), ("alt", "alternate"))
        for name, o in _PATH.items()
    }
    | {
        f"infiniband.cm.req.prim_{name}{form}": (f"cm.primary_{o}", "address")
        for name, o in (("localgid", "local_gid"), ("remotegid", "remote_gid"))
        for form in ("", "_ipv4")
    }
    | {
        "infiniband.cm.req.alt_localgid": ("cm.alternate_local_gid", "gid"),
        "infiniband.cm.req.alt_remotegid": ("cm.alternate_remote_gid", "gid"),
        "infiniband.cm.req.private": ("cm.private_data", "text"),
    }
    | _of("cm.req.ip_cm", _IP, "rdma_cm")
    | {
        f"infiniband.cm.req.ip_cm.{short}{version}": (f"rdma_cm.{name}", "address")
        for short, name in (("sip", "src"), ("dip", "dst"))
        for version in (4, 6)
    }
    | {"infiniband.cm.req.ip_cm.private": ("cm.consumer_data", "text")}
    | _of("cm.rep", _REP, "cm")
    | {"infiniband.cm.rep.private": ("cm.private_data", "text")}
    | _of("cm.rtu", _IDS, "cm")
    | {"infiniband.cm.rtu.private": ("cm.private_data", "text")}
    | _of("cm.rej", _REJ, "cm")
    | {
        "infiniband.cm.rej.ari": ("cm.whole_ari", "text"),
        "infiniband.cm.rej.private": ("cm.private_data", "text"),
    }
    | _of("cm.dreq", _IDS, "cm")
    | {
        # under this name in DREQ
        "infiniband.cm.req.remoteqpneecn": ("cm.remote_qpn", "int"),
        "infiniband.cm.dreq.private": ("cm.private_data", "text"),
    }
    | _of("cm.drsp", _IDS, "cm")
    | {"infiniband.cm.drsp.private": ("cm.private_data", "text")}
)


def read(path: Path) -> str:
    """Tshark's reading of the MADs of a capture, with a header row."""
    words = [str(tshark.command()), "-r", str(path), "-Y", "infiniband.mad", "-n", "-T", "fields"]
    words += ["-E", "header=y", "-E", "occurrence=f"]
    for name in tshark.HEURISTICS:
        words += ["--disable-heuristic", name]
    for name in FIELDS:
        words += ["-e", name]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def golden(path: Path) -> Path:
    """Where the recorded reading of a capture lies."""
    return GOLDEN / f"{path.stem}.tsv.gz"


def record() -> None:
    """Record tshark's reading of every capture in pcaps/ that has MADs."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for old in GOLDEN.glob("*.tsv.gz"):
        old.unlink()
    for path in sorted((tshark.ROOT / "pcaps").glob("*.pcap*")):
        text = read(path)
        if len(tshark.rows(text)):
            golden(path).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    if tshark.command() is None:
        sys.exit("tshark is not installed")
    record()
