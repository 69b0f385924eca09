"""Write the profile's decode-as entries anew: which protocols give way to RoCE on low source ports.

Wireshark asks the owner of the lower port number first, and a RoCE frame's source port may be any.
So in this profile the owners of ports below 4791 step back, except services that share a network
with RoCE and are worth seeing. Needs tshark.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROCE = 4791
KEPT = {53, 67, 68, 69, 123, 137, 138, 161, 162, 319, 320, 514, 520, 546, 547, 1985, 3784, 3785, 4784}
"""DNS, DHCP, TFTP, NTP, NetBIOS, SNMP, PTP, syslog, RIP, DHCPv6, HSRP, BFD."""
HEAD = "# Written by low_ports.py: on these source ports RoCE comes first.\n"


def entries(decodes: str) -> list[str]:
    """Lines of the profile's file.

    Args:
        decodes: What `tshark -G decodes` says: table, value and protocol, a line each.
    """
    owners = {}
    for line in decodes.splitlines():
        table, value, protocol = line.split("\t")[:3]
        if table == "udp.port" and int(value) < ROCE and int(value) not in KEPT:
            owners[int(value)] = protocol
    return [f"decode_as_entry: udp.port,{port},{name},(none)" for port, name in sorted(owners.items())]


def main() -> None:
    """Write the file."""
    out = subprocess.run(["tshark", "-G", "decodes"], capture_output=True, text=True, check=True).stdout
    place = Path(__file__).parent / "roce-pkt" / "decode_as_entries"
    place.write_text(HEAD + "\n".join(entries(out)) + "\n")


if __name__ == "__main__":
    main()
