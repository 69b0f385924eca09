"""Contrib as a second witness, who wins when both are loaded, and Scapy's extension loader."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from roce_pkt import layers

bits = {"solicited": 1, "migreq": 1, "version": 4, "fecn": 1, "becn": 1, "resv6": 6, "ackreq": 1, "resv7": 7}
bth_values = st.fixed_dictionaries(
    {"pkey": st.integers(0, 0xFFFF), "dqpn": st.integers(0, 0xFFFFFF), "psn": st.integers(0, 0xFFFFFF)}
    | {name: st.integers(0, (1 << width) - 1) for name, width in bits.items()}
)
tos = st.integers(0, 255)


def _run(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def _lowers(octet, ttl, address):
    yield IP(src="10.0.0.1", dst=f"10.0.0.{address}", tos=octet, ttl=ttl, id=octet << 8 | ttl)
    yield IPv6(src="fd00::1", dst=f"fd00::{address}", tc=octet, hlim=ttl, fl=octet << 12 | ttl)


@given(bth_values, tos, st.integers(1, 255), st.integers(1, 9), st.integers(0, 255), st.integers(0, 0xFFFFFF))
@settings(max_examples=60, deadline=None)
def test_contrib_builds_the_same_octets(values, octet, ttl, address, syndrome, msn):
    from scapy.contrib import roce as contrib

    for ip in _lowers(octet, ttl, address):
        udp = ip / UDP(sport=0xC000, dport=4791, chksum=0)
        ours = [
            udp / layers.BTH(opcode=0x11, **values) / layers.AETH(syndrome=syndrome, msn=msn),
            udp / layers.cnp(values["dqpn"]),
            udp / layers.BTH(opcode="UC_SEND_ONLY", **values) / b"abcdefgh",
        ]
        theirs = [
            udp / contrib.BTH(opcode=0x11, **values) / contrib.AETH(syndrome=syndrome, msn=msn),
            udp / contrib.cnp(values["dqpn"]),
            udp / contrib.BTH(opcode="UC_SEND_ONLY", **values) / b"abcdefgh",
        ]
        assert [bytes(p) for p in ours] == [bytes(p) for p in theirs]


def test_contrib_has_no_name_we_lack():
    from scapy.contrib import roce as contrib

    for name in ("BTH", "AETH", "GRH", "CNPPadding"):
        fields = {f.name for f in getattr(contrib, name).fields_desc}
        assert fields <= {f.name for f in getattr(layers, name).fields_desc}
    for name in ("cnp", "opcode", "CNP_OPCODE"):
        assert hasattr(layers, name)
    for value, text in contrib._bth_opcodes.items():
        assert layers.BTH(opcode=text).opcode == value


FRAMES = """
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
v2 = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")/IP(src="1.1.1.1")/UDP()/layers.cnp(1))
v1 = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")/layers.GRH()/layers.BTH())
pause = bytes(Ether(src="02:00:00:00:00:01")/layers.PAUSE())
def winner():
    read = Ether(v2)[UDP].payload, Ether(v1).payload, Ether(pause).payload
    print(*(type(layer).__module__.split(".")[0] for layer in read))
"""
CONTRIB = "import scapy.contrib.roce, scapy.contrib.mac_control\n"
OURS = "from roce_pkt import layers\n"


@pytest.mark.parametrize("imports", [CONTRIB + OURS, OURS + CONTRIB], ids=["contrib first", "contrib last"])
def test_who_wins_and_how_to_switch(imports):
    out = _run(
        imports
        + FRAMES
        + "winner(); layers.unbind(); winner(); layers.bind(); winner(); layers.bind(); winner()"
    )
    assert out == ["roce_pkt"] * 3 + ["scapy"] * 3 + ["roce_pkt"] * 6


def test_contrib_still_builds_its_own_beside_ours():
    out = _run(
        OURS
        + CONTRIB
        + "from scapy.layers.inet import IP, UDP\nfrom scapy.contrib.roce import BTH\n"
        + "p = IP(src='1.1.1.1')/UDP()/BTH()\nprint(p[UDP].dport, p[UDP].sport)"
    )
    assert out == ["4791", "53"]


def test_extension_loader_gives_the_same_classes_and_reads_frames():
    out = _run(
        "from scapy.config import conf\n"
        "conf.exts.load('roce-pkt')\n"
        "from scapy.layers.l2 import Ether\n"
        "octets = bytes.fromhex('%s')\n"
        % ("00" * 12 + "8808" + "0001" + "ffff" + "00" * 42)
        + "print(type(Ether(octets).payload).__name__)\n"
        "from scapy.layers import roce_pkt as layer\n"
        "from scapy.contrib import roce_pkt as contrib\n"
        "import roce_pkt.layers as ours\n"
        "print(all(getattr(m, n) is getattr(ours, n) for m in (layer, contrib) for n in ours.__all__))\n"
        "print(layer.__name__, len(conf.exts.exts), len(ours.__all__) > 25)"
    )
    assert out == ["PAUSE", "True", "scapy.layers.roce_pkt", "1", "True"]


def test_extension_loader_names_reach_a_console():
    out = _run(
        "from scapy.config import conf\nfrom scapy.main import load_layer\nimport roce_pkt.layers as ours\n"
        "conf.exts.load('roce-pkt')\nload_layer('roce_pkt', globals_dict=globals())\nprint(BTH is ours.BTH)"
    )
    assert out == ["True"]


def test_the_top_package_does_not_import_scapy():
    assert _run("import sys, roce_pkt\nprint(any(m.split('.')[0] == 'scapy' for m in sys.modules))") == [
        "False"
    ]


def test_layers_refuses_another_name():
    code = (
        "import sys, pathlib, roce_pkt\n"
        "sys.path.insert(0, str((pathlib.Path(roce_pkt.__file__).parent / 'layers').resolve().parent))\n"
        "try:\n    import layers\nexcept ImportError as e:\n    print(e)"
    )
    assert " ".join(_run(code)).startswith("import roce_pkt.layers, not layers")


def test_no_default_frame_leaves_port_53():
    packet = (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="1.1.1.1") / UDP() / layers.BTH()
    )
    assert int.from_bytes(bytes(packet)[34:36], "big") == 0xC000
