"""Generated frames are what the plain builder makes, obey the rules of PSN, MSN and length, are on time."""

from __future__ import annotations

import shutil
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_pkt import psn as serial
from roce_pkt.analysis.check import check
from roce_pkt.capture import open as open_capture
from roce_pkt.run.generate import Generation
from roce_pkt.scenario import presets
from roce_pkt.scenario.plan import plan
from roce_pkt.scenario.reader import read_text
from roce_pkt.scenario.schema import PATTERNS, VERB_NUMBER, VERBS
from roce_pkt.traffic import schedule, verbs
from roce_pkt.traffic.rows import ROW
from roce_pkt.traffic.start import world_of
from roce_pkt.wire import ib, net
from roce_pkt.wire.build import Path as Way
from roce_pkt.wire.build import roce_frame
from roce_pkt.wire.dissection import Dissection
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.header import ipv4_text, ipv6_text

ATOMIC_LENGTH = ("atomic", "cmp_swp", "fetch_add", "atomic_write")
LOOKS = {
    "ipv4": "",
    "ipv6": '[host]\nip = "ipv6"\n[frames]\nflow_label = 0x12345\nsport = "flow-label"\n',
    "vlan": "[host]\nvlan = 100\n",
    "v1": '[frames]\nversion = "v1"\npayload = "random"\n',
}


def made(text: str, tmp_path: Path, name: str = "a.pcap") -> list[tuple[int, bytes]]:
    path = tmp_path / name
    Generation(read_text(text)).write(path, force=True)
    return [(r.time_ns, bytes(r.octets)) for r in open_capture(path).records()]


def simple(verb: str, service: str, more: str = "", size: str = "1001B", count: int = 3) -> str:
    length = "8B" if verb in ATOMIC_LENGTH else size
    return (
        f"[fabric]\nhosts = 2\n[[traffic]]\nsenders = [1]\nreceiver = 0\nverb = '{verb}'\n"
        f"transport = '{service}'\n"
        f"message = '{length}'\ncount = {count}\n{more}"
    )


def exists(verb: str, service: str) -> bool:
    only = verbs.REQUEST[verbs.SERVICES.index(service), VERB_NUMBER[verb], verbs.ONLY]
    return bool(only != verbs.NO_OPCODE)


def rebuilt(frame: bytes) -> bytes:
    """The frame made again by the plain builder from what the plain reader says."""
    read = dissect(frame)
    values = {layer.header.name: layer.values for layer in read.layers}
    ip, grh, eth = values.get("ip", {}), values.get("grh", {}), values["eth"]
    vlan = values.get("vlan")
    source = ip.get("src", grh.get("sgid", 0))
    show = ipv4_text if ip.get("version") == 4 else ipv6_text
    way = Way(
        src=show(source), dst=show(ip.get("dst", grh.get("dgid", 0))), src_mac=eth["src"], dst_mac=eth["dst"],
        sport=values["udp"]["sport"] if "udp" in values else 0,
        dscp=ip["dscp"] if ip else grh["tclass"] >> 2, ecn=ip["ecn"] if ip else grh["tclass"] & 3,
        ttl=ip.get("ttl", grh.get("hoplmt", 64)), ip_id=ip.get("id", 0),
        flow_label=ip.get("flowlabel", grh.get("flowlabel", 0)),
        vid=vlan["vid"] if vlan else None, pcp=vlan["pcp"] if vlan else 0, v1=bool(grh),
    )  # fmt: skip
    start = read.payload_offset
    stack = {n: v for n, v in values.items() if n in {h.name for h in ib.EXTENDED} | {"bth"}}
    stack["bth"] = {k: v for k, v in stack["bth"].items() if k != "padcount"}
    return roce_frame(way, values["bth"]["opcode"], stack, frame[start : start + read.payload_len])


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("service", verbs.SERVICES)
def test_every_verb_is_what_the_plain_builder_makes(look: str, service: str, tmp_path: Path):
    for verb in VERBS:
        if not exists(verb, service):
            continue
        frames = made(simple(verb, service, LOOKS[look], "2001B" if service != "ud" else "777B"), tmp_path)
        assert len(frames) >= 3
        for _, frame in frames:
            assert rebuilt(frame) == frame


def judge(frames: list[bytes], mtu: int) -> None:
    """The rules that hold on every reliable connection where nothing is lost."""
    read = [dissect(frame) for frame in frames]
    next_psn: dict[tuple[int, int, int], int] = {}
    open_length: dict[tuple[int, int, int], int | None] = {}
    for d in read:
        assert d.status == "ok"
        assert d.icrc.ok
        assert d.padcount == -d.payload_len % 4
        ip, op, bth = d.find(net.IPV4).values, d.opcode, d.bth
        if not op.request:
            continue
        flow = (ip["src"], ip["dst"], bth["dqpn"])
        assert bth["psn"] == next_psn.get(flow, bth["psn"])
        reth = d.find(ib.RETH)
        used = max(1, -(-reth.values["dmalen"] // mtu)) if op.operation == "read_request" else 1
        next_psn[flow] = serial.add(bth["psn"], used)
        if op.position in ("first", "middle"):
            assert d.payload_len == mtu
        if op.operation == "write":
            length = reth.values["dmalen"] if op.starts_message else open_length[flow]
            open_length[flow] = length - d.payload_len
            assert (open_length[flow] == 0) == op.ends_message
    answers = [d for d in read if not d.opcode.request]
    by_flow: dict[tuple[int, int, int], list[Dissection]] = {}
    for d in answers:
        ip = d.find(net.IPV4).values
        by_flow.setdefault((ip["src"], ip["dst"], d.bth["dqpn"]), []).append(d)
    for mine in by_flow.values():
        psns = [d.bth["psn"] for d in mine]
        assert all(serial.before(a, b) for a, b in pairwise(psns))
        msns = [d.find(ib.AETH).values["msn"] for d in mine if d.find(ib.AETH)]
        assert all(a <= b for a, b in pairwise(msns))


WORDS = st.fixed_dictionaries(
    {
        "pattern": st.sampled_from(PATTERNS),
        "verb": st.sampled_from([v for v in VERBS if v not in ATOMIC_LENGTH and v != "flush"]),
        "message": st.integers(1, 20_000).map(lambda n: f"{n}B"),
        "sizes": st.sampled_from(["fixed", "uniform", "log-normal"]),
        "qps": st.integers(1, 3),
        "count": st.integers(1, 4),
        "depth": st.integers(1, 6),
        "arrival": st.sampled_from(["constant", "poisson", "on-off", "burst"]),
        "load": st.sampled_from(["", "40%", "3Gbps", "3Gbps L2", "0.5Mpps"]),
        "stagger": st.sampled_from(["0us", "3us"]),
    }
)


@settings(max_examples=30)
@given(WORDS, st.sampled_from(ib.PATH_MTUS_BYTES), st.integers(2, 5), st.integers(1, 9), st.integers(0, 3))
def test_rules_hold_over_random_scenarios(tmp_path_factory, words, mtu, hosts, every, coalesce):
    traffic = "\n".join(f"{k} = {v!r}" for k, v in words.items())
    if words["pattern"] in ("flows", "messages"):
        traffic += "\npairs = [[1, 0]]"
    text = (
        f"duration = '50ms'\n[fabric]\nhosts = {hosts}\n[host]\nmtu = {mtu}\n"
        f"ack = {{ every = {every}, coalesce = {coalesce + 1} }}\n[frames]\npsn = 0xfffffa\n"
        f"[[traffic]]\n{traffic}\n"
    )
    frames = made(text, tmp_path_factory.mktemp("g"))
    times = [time for time, _ in frames]
    assert times == sorted(times)
    judge([frame for _, frame in frames], mtu)
    assert frames


@pytest.mark.parametrize("name", presets.names())
def test_check_and_tshark_find_nothing_in_a_preset(name: str, tmp_path: Path):
    path = tmp_path / "p.pcap"
    Generation(presets.load(name), 4000).write(path)
    verdict = check(open_capture(path))
    assert verdict.counts == {}
    assert verdict.icrc["right"] == verdict.frames > 100
    if shutil.which("tshark") is None:
        return
    import tshark

    rows = tshark.rows(tshark.read(path))
    assert len(rows) == verdict.frames
    assert {r.get("_ws.expert.message") for r in rows} == {None}
    assert all("infiniband.bth.psn" in r for r in rows)


def test_ten_million_frames_do_not_drift():
    text = simple("send", "uc", "load = '33.3%'\n", "1024B", 0).replace(
        "[fabric]", "duration = '100s'\n[fabric]"
    )
    world = world_of(plan(read_text(text)))
    rows, seen = np.zeros(1 << 18, ROW), 0
    octets = 14 + 20 + 8 + 12 + 1024 + 4 + 24
    gap = Fraction(octets * 8 * 10**12) / Fraction(333, 1000) / 10**11
    while seen < 10_000_000:
        count = schedule.run(world, rows)
        for k in (0, count // 2, count - 1):
            assert rows["time_ps"][k] == (seen + k) * gap // 1
        seen += count


@pytest.mark.parametrize(
    ("load", "gap_ps"),
    [
        ("", Fraction(1106 * 80)),
        ("25Gbps", Fraction(1106 * 320)),
        ("25Gbps L2", Fraction(1086 * 320)),
        ("1Mpps", Fraction(10**6)),
        ("7%", Fraction(1106 * 8 * 10**12, 7 * 10**9)),
    ],
)
def test_rates_as_testers_say_them(load: str, gap_ps: Fraction, tmp_path: Path):
    frames = made(simple("send", "uc", f"load = '{load}'\n", "1024B", 1000), tmp_path)
    times = [time for time, _ in frames]
    assert times == [n * gap_ps // 1000 for n in range(1000)]


@pytest.mark.parametrize("arrival", ["poisson", "on-off"])
def test_random_arrivals_keep_their_mean(arrival: str, tmp_path: Path):
    more = f"load = '1Gbps'\narrival = '{arrival}'\non = '100us'\noff = '100us'\n"
    text = simple("send", "uc", more, "1024B", 20_000).replace("[fabric]", "duration = '10s'\n[fabric]", 1)
    times = np.array([time for time, _ in made(text, tmp_path)])
    mean = 1106 * 8 * (2 if arrival == "on-off" else 1)
    assert abs(np.diff(times).mean() / mean - 1) < 0.1
    assert np.diff(times).std() > 0.5 * mean


def test_bursts_and_gaps(tmp_path: Path):
    frames = made(simple("send", "uc", "arrival = 'burst'\nburst = 5\ngap = '3us'\n", "1024B", 20), tmp_path)
    gaps = [b - a for (a, _), (b, _) in pairwise(frames)]
    assert {gap for n, gap in enumerate(gaps) if n % 5 != 4} <= {88, 89}
    assert {gap for n, gap in enumerate(gaps) if n % 5 == 4} <= {3088, 3089}


def test_an_acknowledgement_may_settle_several_messages(tmp_path: Path):
    one = made(simple("write", "rc", "", "256B", 64), tmp_path)
    text = simple("write", "rc", "[host]\nack = { coalesce = 8, hold = '50us' }\n", "256B", 64)
    few = made(text, tmp_path)
    acks = [sum(dissect(f).opcode.operation == "ack" for _, f in frames) for frames in (one, few)]
    assert acks == [64, 8]
    assert dissect(few[-1][1]).find(ib.AETH).values["msn"] == 64


def test_the_depth_bounds_what_is_outstanding(tmp_path: Path):
    frames = made(simple("send", "rc", "depth = 3\n", "100B", 50), tmp_path)
    outstanding = most = 0
    for _, frame in frames:
        outstanding += 1 if dissect(frame).opcode.request else -1
        most = max(most, outstanding)
    assert most == 3


def test_set_up_and_tear_down_frame_the_data(tmp_path: Path):
    frames = made(simple("send", "rc", "[frames]\nsetup = true\n", "100B", 2), tmp_path)
    to_qp1 = [dissect(f).bth["dqpn"] == ib.GSI_QPN for _, f in frames]
    assert to_qp1 == [True] * 3 + [False] * 4 + [True] * 2
    assert [t for t, _ in frames] == sorted(t for t, _ in frames)
    assert check(open_capture(tmp_path / "a.pcap")).counts == {}


def test_a_tap_sees_what_its_host_receives_a_delay_later(tmp_path: Path):
    text = simple("send", "rc", "", "100B", 1)
    everywhere = made(text, tmp_path)
    at_receiver = made("taps = ['host0']\n" + text, tmp_path)
    assert [f for _, f in at_receiver] == [f for _, f in everywhere]
    assert at_receiver[0][0] - everywhere[0][0] == 1000
    assert at_receiver[1][0] == everywhere[1][0]


def test_pcapng_holds_the_same_frames_and_the_line_rate(tmp_path: Path):
    text = simple("write", "rc", "", "3001B", 5)
    plain = made(text, tmp_path)
    Generation(read_text(text)).write(tmp_path / "a.pcapng")
    capture = open_capture(tmp_path / "a.pcapng")
    assert [(r.time_ns, bytes(r.octets)) for r in capture.records()] == plain
    assert capture.interfaces[0].speed_bps == 100_000_000_000


def test_a_count_ends_the_capture(tmp_path: Path):
    done = Generation(read_text(simple("write", "rc", "", "3001B", 0)), 1234).write(tmp_path / "a.pcap")
    assert done.frames == 1234 == len(open_capture(tmp_path / "a.pcap"))


def test_a_step_of_the_ring_waits_for_the_neighbour(tmp_path: Path):
    text = (
        "[fabric]\nhosts = 4\ndelay = '5us'\n[[traffic]]\npattern = 'ring-allreduce'\nmessage = '4096B'\n"
        "verb = 'write_imm'\ncount = 1\nthink = '0us'\n"
    )
    starts: dict[int, list[int]] = {}
    for time, frame in made(text, tmp_path):
        d = dissect(frame)
        if d.opcode.request and d.opcode.starts_message:
            starts.setdefault(d.find(net.IPV4).values["src"], []).append(time)
    assert len(starts) == 4
    for times in starts.values():
        assert len(times) == 6
        assert all(b - a >= 5000 for a, b in pairwise(times))
