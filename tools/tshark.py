"""tshark as a witness: which of its fields say what ours say, and a recorder of its own reading.

    python tools/tshark.py            record tests/data/tshark/*.tsv.gz from pcaps/
    python tools/tshark.py FILE...    print tshark's reading of captures

The recorded reading lets the comparison run where tshark is not installed. Payload heuristics are
off: with them, tshark takes RDMA payload for other protocols by chance.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "data" / "tshark"
HEURISTICS = [
    "smcr_infiniband",
    "smb_direct_infiniband",
    "rpcrdma_infiniband",
    "nvme_rdma",
    "lnet_ib",
    "iser_infiniband",
    "eth_over_ib",
    "mellanox_eoib",
    "sdp_infiniband",
    "fc_infiniband",
]

# tshark's field -> ours in `dissect --format jsonl`, flattened; how to read tshark's text
FIELDS: dict[str, tuple[str, str]] = {
    "frame.number": ("number", "int"),
    "frame.len": ("wire_len", "int"),
    "eth.dst": ("eth.dst", "text"),
    "eth.src": ("eth.src", "text"),
    "vlan.id": ("vlan.vid", "int"),
    "vlan.priority": ("vlan.pcp", "int"),
    "ip.src": ("ip.src", "text"),
    "ip.dst": ("ip.dst", "text"),
    "ip.dsfield.dscp": ("ip.dscp", "int"),
    "ip.dsfield.ecn": ("ip.ecn", "int"),
    "ip.ttl": ("ip.ttl", "int"),
    "ip.id": ("ip.id", "int"),
    "ip.flags.df": ("ip.df", "bool"),
    "ip.len": ("ip.len", "int"),
    "ip.checksum": ("ip.chksum", "int"),
    "ipv6.src": ("ip.src", "text"),
    "ipv6.dst": ("ip.dst", "text"),
    "ipv6.tclass.dscp": ("ip.dscp", "int"),
    "ipv6.tclass.ecn": ("ip.ecn", "int"),
    "ipv6.flow": ("ip.flowlabel", "int"),
    "ipv6.plen": ("ip.len", "int"),
    "ipv6.hlim": ("ip.ttl", "int"),
    "udp.srcport": ("udp.sport", "int"),
    "udp.dstport": ("udp.dport", "int"),
    "udp.length": ("udp.len", "int"),
    "udp.checksum": ("udp.chksum", "int"),
    "infiniband.grh.tclass": ("grh.tclass", "int"),
    "infiniband.grh.flowlabel": ("grh.flowlabel", "int"),
    "infiniband.grh.paylen": ("grh.paylen", "int"),
    "infiniband.grh.nxthdr": ("grh.nexthdr", "int"),
    "infiniband.grh.hoplmt": ("grh.hoplmt", "int"),
    "infiniband.grh.sgid": ("grh.sgid", "text"),
    "infiniband.grh.dgid": ("grh.dgid", "text"),
    "infiniband.bth.opcode": ("bth.opcode", "int"),
    "infiniband.bth.se": ("bth.solicited", "bool"),
    "infiniband.bth.m": ("bth.migreq", "bool"),
    "infiniband.bth.padcnt": ("bth.padcount", "int"),
    "infiniband.bth.tver": ("bth.version", "int"),
    "infiniband.bth.p_key": ("bth.pkey", "int"),
    "infiniband.reserved": ("bth.resv8a", "hex"),
    "infiniband.bth.destqp": ("bth.dqpn", "int"),
    "infiniband.bth.a": ("bth.ackreq", "bool"),
    "infiniband.bth.reserved7": ("bth.resv7", "int"),
    "infiniband.bth.psn": ("bth.psn", "int"),
    "infiniband.rdeth.eecnxt": ("rdeth.eec", "int"),
    "infiniband.deth.q_key": ("deth.qkey", "int"),
    "infiniband.deth.srcqp": ("deth.sqpn", "int"),
    "infiniband.reth.va": ("reth.va", "int"),
    "infiniband.reth.r_key": ("reth.rkey", "int"),
    "infiniband.reth.dmalen": ("reth.dmalen", "int"),
    "infiniband.aeth.syndrome": ("aeth.syndrome", "int"),
    "infiniband.aeth.msn": ("aeth.msn", "int"),
    "infiniband.atomiceth.swapdt": ("atomiceth.swap", "int"),
    "infiniband.atomiceth.cmpdt": ("atomiceth.compare", "int"),
    "infiniband.atomicacketh.origremdt": ("atomicacketh.orig", "int"),
    "infiniband.immdt": ("immdt.data", "hex"),
    "infiniband.ieth": ("ieth.rkey", "hex"),
    "infiniband.invariant.crc": ("icrc.value", "int"),
    "macc.pause_time": ("pause.quanta", "int"),
    "data.len": ("payload.length", "int"),
    "_ws.expert.message": ("expert", "text"),
}


def command() -> str | None:
    """Tshark's path, or None."""
    return shutil.which("tshark")


def version() -> str:
    """The version that answers, e.g. 4.0.17."""
    out = subprocess.run([str(command()), "--version"], capture_output=True, text=True, check=True)
    return out.stdout.split()[2].rstrip(".")


def read(path: Path) -> str:
    """Tshark's reading of a capture: tab-separated, a header row, first occurrence of each field."""
    words = [str(command()), "-r", str(path), "-T", "fields", "-E", "header=y", "-E", "occurrence=f", "-n"]
    for name in HEURISTICS:
        words += ["--disable-heuristic", name]
    for name in FIELDS:
        words += ["-e", name]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def rows(text: str) -> list[dict[str, str]]:
    """The reading as one dictionary a frame, empty fields left out."""
    lines = text.rstrip("\n").split("\n")
    names = lines[0].split("\t")
    return [{n: v for n, v in zip(names, line.split("\t"), strict=False) if v} for line in lines[1:]]


def value(text: str, how: str) -> int | str:
    """One field of tshark's as we would write it."""
    match how:
        case "int":
            return int(text, 16 if text.startswith("0x") else 10)
        case "hex":
            return int(text.replace(":", ""), 16)
        case "bool":
            return int(text in ("1", "True"))
        case _:
            return text


def golden(path: Path) -> Path:
    """Where the recorded reading of a capture lies."""
    return GOLDEN / f"{path.stem}.tsv.gz"


def record() -> None:
    """Record tshark's reading of every capture in pcaps/."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for old in GOLDEN.glob("*.tsv.gz"):
        old.unlink()
    for path in sorted((ROOT / "pcaps").glob("*.pcap*")):
        golden(path).write_bytes(gzip.compress(read(path).encode(), mtime=0))
    (GOLDEN / "version.txt").write_text(version() + "\n")


if __name__ == "__main__":
    if command() is None:
        sys.exit("tshark is not installed")
    if sys.argv[1:]:
        for name in sys.argv[1:]:
            print(read(Path(name)), end="")
    else:
        record()
