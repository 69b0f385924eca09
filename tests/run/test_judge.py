"""Notifications judged in constructed captures: each verdict once, beside a near miss that stays silent."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from crafted import ack, cnp, data, frame, pcap
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from roce_pkt.capture import open as open_capture
from roce_pkt.run import machines
from roce_pkt.run.observe import observe

A, B, C, D = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.1.2"
"""Senders A and C; B and D are addresses of one receiving port (`crafted` makes MACs from the last octet)."""


def judged(tmp_path, frames, *, tap="middle", path_delay_ps=0, **settings):
    path = pcap(tmp_path / "c.pcap", sorted(frames, key=lambda f: f[0]))
    settings = {name.replace("np_", "np.", 1): value for name, value in settings.items()}
    return observe(
        open_capture(path), settings=settings, line_rate_bps=100e9, tap=tap, path_delay_ps=path_delay_ps
    )


def rules(seen):
    return {finding.rule: finding for finding in seen.findings if finding.rule != "rp.exceeded"}


def counts(seen, dqpn=0x22):
    (flow,) = [flow for flow in seen.flows if flow.key.dqpn == dqpn and flow.sums.data_frames]
    found = flow.verdicts
    return {
        name: int(getattr(found, name))
        for name in ("expected", "on_time", "late", "early", "unexpected", "after_nak", "wrong_qp", "missing")
        if getattr(found, name)
    }


def marks(start, stop, step=10.0, **how):
    return [(float(t), data(int(t), ce=True, **how)) for t in np.arange(start, stop, step)]


def nak(psn, **how):
    how = {"src": B, "dst": A, "dqpn": 0x11} | how
    return frame(how["src"], how["dst"], 0x11, how["dqpn"], psn, struct.pack("!BBH", 0x60, 0, 1))


def test_all_on_time(tmp_path):
    """Marks all the time, an answer 3 us after each that the pacing lets through."""
    seen = judged(tmp_path, marks(0, 500) + [(t + 3.0, cnp()) for t in range(0, 500, 60)])
    assert counts(seen) == {"expected": 9, "on_time": 9}
    assert rules(seen) == {}
    assert int(seen.flows[0].verdicts.delay_max_ps) == 3_000_000


@pytest.mark.parametrize(("delay", "verdict"), [(19.9, "on_time"), (20.0, "on_time"), (20.1, "late")])
def test_late_and_just_in_time(tmp_path, delay, verdict):
    seen = judged(tmp_path, [(0.0, data(ce=True)), (delay, cnp()), (300.0, data(1))])
    assert counts(seen) == {"expected": 1, verdict: 1}
    assert set(rules(seen)) == ({"cnp.late"} if verdict == "late" else set())


def test_missing_names_the_mark(tmp_path):
    frames = [
        (0.0, data(0, ce=True)),
        (2.0, cnp()),
        (100.0, data(1, ce=True)),
        (200.0, data(2, ce=True)),
        (203.0, cnp()),
    ]
    seen = judged(tmp_path, frames)
    assert counts(seen) == {"expected": 3, "on_time": 2, "missing": 1}
    assert rules(seen)["cnp.missing"].frame == 3


def test_a_mark_within_the_interval_may_stay_unanswered(tmp_path):
    """49 us after the notification left: nothing is owed; and an answer 51 us after is right as well."""
    silent = [(0.0, data(0, ce=True)), (2.0, cnp()), (51.0, data(1, ce=True)), (300.0, data(2))]
    assert counts(judged(tmp_path, silent)) == {"expected": 1, "on_time": 1}
    answered = [*silent, (53.5, cnp())]
    assert counts(judged(tmp_path, answered)) == {"expected": 2, "on_time": 2}


def test_early_and_just_not(tmp_path):
    frames = [*marks(0, 200, 5.0), (1.0, cnp()), (31.0, cnp())]
    assert counts(judged(tmp_path, frames, np_interval="50us"))["early"] == 1
    frames = [*marks(0, 60, 5.0), (1.0, cnp()), (51.0, cnp())]
    assert counts(judged(tmp_path, frames, np_interval="50us")) == {"expected": 2, "on_time": 2}


def test_unexpected_without_a_mark(tmp_path):
    frames = [(0.0, data(0, ce=True)), (2.0, cnp()), (400.0, data(1)), (410.0, cnp())]
    seen = judged(tmp_path, frames)
    assert counts(seen) == {"expected": 1, "on_time": 1, "unexpected": 1}
    assert rules(seen)["cnp.unexpected"].frame == 4
    frames[2] = (400.0, data(1, ce=True))
    assert rules(judged(tmp_path, frames)) == {}


def pair(ce_on):
    """Two queue pairs A to B, joined by acknowledgements; marks on one of them."""
    out = []
    for n in range(30):
        for qpn, dqpn in ((0x11, 0x22), (0x12, 0x23)):
            psn = n + (0 if dqpn == 0x22 else 5000)
            out.append((10.0 * n + (dqpn - 0x22), data(psn, dqpn=dqpn, ce=dqpn == ce_on and n == 15)))
            out.append((10.0 * n + 5 + (dqpn - 0x22), ack(psn, dqpn=qpn)))
    return out


def test_wrong_queue_pair(tmp_path):
    """The mark is on QP 0x23 at 151 us; 2 us later its sender's neighbour is told."""
    seen = judged(tmp_path, [*pair(0x23), (153.0, cnp(dqpn=0x11))])
    assert counts(seen, 0x22) == {"wrong_qp": 1}
    assert counts(seen, 0x23) == {"expected": 1, "missing": 1}
    assert "cnp.wrong-qp" in rules(seen)
    right = judged(tmp_path, [*pair(0x23), (153.0, cnp(dqpn=0x12))])
    assert counts(right, 0x23) == {"expected": 1, "on_time": 1}
    assert rules(right) == {}


def test_a_nak_that_is_answered(tmp_path):
    frames = [(float(10 * n), data(n)) for n in range(30)] + [(105.0, nak(10)), (107.0, cnp())]
    seen = judged(tmp_path, frames)
    assert counts(seen) == {"after_nak": 1}
    assert rules(seen)["cnp.after-nak"].severity == "note"
    assert counts(judged(tmp_path, frames, np_on_nak="on")) == {"expected": 1, "on_time": 1}
    # a notification long after is not the NAK's; with the option an unanswered NAK is missed
    far = [*frames[:-1], (207.0, cnp())]
    assert counts(judged(tmp_path, far)) == {"unexpected": 1}
    assert counts(judged(tmp_path, frames[:-1], np_on_nak="on")) == {"expected": 1, "missing": 1}


def test_an_rnr_nak_asks_for_nothing(tmp_path):
    rnr = frame(B, A, 0x11, 0x11, 10, struct.pack("!BBH", 0x21, 0, 1))
    frames = [(float(10 * n), data(n)) for n in range(30)] + [(105.0, rnr)]
    assert counts(judged(tmp_path, frames, np_on_nak="on")) == {}


FLOWS = [(A, B, 0x31, 0x41), (A, B, 0x32, 0x42), (A, D, 0x33, 0x43), (C, B, 0x34, 0x44)]
"""Source, destination, sender's and receiver's queue pair."""
KEYS = {
    "qp": lambda f: f,
    "ip_pair": lambda f: f[:2],
    "dst_ip": lambda f: f[0],
    "port": lambda f: "one",
}


def paced(scope, interval=50.0, span=3000.0, jitter=0.0):
    """Four flows marked all the time, a receiver that paces by `scope`, queue pairs joined by ACKs."""
    out, quiet = [], {}
    time, n = 0.0, 0
    while time < span:
        flow = FLOWS[n * 7 % 4]
        src, dst, qpn, dqpn = flow
        psn = n + 1000 * dqpn
        out.append((time, data(psn, src=src, dst=dst, dqpn=dqpn, ce=True)))
        if n < 40:
            out.append((time + 0.5, ack(psn, src=dst, dst=src, dqpn=qpn)))
        if time >= quiet.get(KEYS[scope](flow), 0.0):
            quiet[KEYS[scope](flow)] = time + interval
            out.append((time + 2.0 + jitter * (n % 3), cnp(src=dst, dst=src, dqpn=qpn)))
        time, n = time + 1.7, n + 1
    return out


@pytest.mark.parametrize("scope", sorted(KEYS))
def test_the_scope_given_is_right_and_silent(tmp_path, scope):
    seen = judged(tmp_path, paced(scope), np_scope=scope, np_interval="50us")
    assert rules(seen) == {}
    assert sum(flow.cnps_missing for flow in seen.flows) == 0
    assert seen.paced.scope_from == "given"
    on_time = sum(int(flow.verdicts.on_time) for flow in seen.flows)
    assert on_time == sum(flow.cnps_seen for flow in seen.flows) > 50


@pytest.mark.parametrize("scope", sorted(KEYS))
@pytest.mark.parametrize("jitter", [0.0, 0.4])
def test_the_scope_is_inferred(tmp_path, scope, jitter):
    seen = judged(tmp_path, paced(scope, jitter=jitter))
    assert seen.as_json()["pacing"]["scope"] == scope
    assert rules(seen) == {}


@pytest.mark.parametrize(("real", "believed"), [("port", "qp"), ("ip_pair", "qp"), ("qp", "port")])
def test_the_wrong_scope_is_noticed(tmp_path, real, believed):
    """A coarser receiver leaves marks unanswered; a finer one sends more often than allowed."""
    seen = judged(tmp_path, paced(real), np_scope=believed, np_interval="50us")
    assert set(rules(seen)) & ({"cnp.missing"} if believed == "qp" else {"cnp.early", "cnp.wrong-qp"})


@pytest.mark.parametrize("interval", [4.0, 20.0, 120.0])
def test_the_interval_is_inferred(tmp_path, interval):
    """Marks of one pair of addresses, at most 5.1 us apart, bound it that closely."""
    seen = judged(tmp_path, paced("ip_pair", interval=interval), np_scope="ip_pair")
    found = seen.as_json()["pacing"]
    assert found["interval_from"] == "capture"
    assert 0.5 * interval <= found["interval_ns"] / 1000 <= interval + 5.1
    assert rules(seen) == {}
    assert "stayed unanswered" in found["text"] or interval == 4.0


def test_few_notifications_prove_nothing(tmp_path):
    seen = judged(tmp_path, [*marks(0, 100), (2.0, cnp()), (62.0, cnp())])
    assert seen.as_json()["pacing"] == {
        "interval_ns": 50_000, "interval_from": "profile", "scope": "qp", "scope_from": "profile", "text": ""
    }  # fmt: skip


@pytest.mark.parametrize(("dscp", "ok"), [(48, True), (0, False)])
def test_the_dscp_of_notifications(tmp_path, dscp, ok):
    told = frame(B, A, 0x81, 0x11, 0, bytes(16), ecn=0, dscp=dscp, becn=1)
    seen = judged(tmp_path, [(0.0, data(ce=True)), (2.0, told), (9.0, data(1))])
    assert set(rules(seen)) == (set() if ok else {"cnp.dscp"})
    assert rules(judged(tmp_path, [(0.0, data(ce=True)), (2.0, told), (9.0, data(1))], np_dscp=dscp)) == {}


@pytest.mark.parametrize(("priority", "ok"), [(6, True), (3, False)])
def test_the_priority_of_notifications(tmp_path, priority, ok):
    told = cnp()
    told = told[:12] + struct.pack("!HH", 0x8100, priority << 13 | 100) + told[12:]
    seen = judged(tmp_path, [(0.0, data(ce=True)), (2.0, told), (9.0, data(1))])
    assert set(rules(seen)) == (set() if ok else {"cnp.priority"})


def test_path_and_tap_shift_what_is_due(tmp_path):
    """Marks reach the receiver 8 us after the tap; a notification left it 8 us before: 4 us of its own."""
    frames = [(0.0, data(ce=True)), (20.0, cnp()), (100.0, data(1))]
    seen = judged(tmp_path, frames, tap="sender", path_delay_ps=8_000_000)
    assert int(seen.flows[0].verdicts.delay_sum_ps) == 4_000_000


def datagrams(count, *, size=16, every=20.0, opcode=0x64, dqpn=0x99, src=A, dst=B):
    """Small unreliable frames one way."""
    body = struct.pack("!II", 0x1234, 0x77) if opcode == 0x64 else b""
    return [
        (n * every + (0.5 if src == A else 3.5), frame(src, dst, opcode, dqpn, n, body + bytes(size)))
        for n in range(count)
    ]


def to_and_fro(count, back=None, **how):
    back = count if back is None else back
    return [*datagrams(count, **how), *datagrams(back, src=B, dst=A, **how)]


UNANSWERED = [*marks(0, 200), *((t + 1.0, ack(int(t))) for t in range(0, 200, 10))]
MAD = {"size": 256, "dqpn": 1}


@pytest.mark.parametrize(
    ("more", "looks"),
    [
        (to_and_fro(10), True),
        (to_and_fro(10, opcode=0xF0), True),  # an opcode no table knows
        (to_and_fro(10, back=8), True),
        ([], False),
        (to_and_fro(7), False),
        (to_and_fro(10, back=7), False),
        (datagrams(10), False),
        (to_and_fro(10, **MAD), False),  # management is no probe
        (to_and_fro(10, size=1000), False),
    ],
)
def test_a_sender_without_any_sign_of_dcqcn_is_called_that(tmp_path, more, looks):
    seen = judged(tmp_path, [*UNANSWERED, *more])
    finding = rules(seen)["cnp.none"]
    assert finding.severity == "warning"
    assert "it shows no sign of DCQCN" in finding.text
    assert finding.text.endswith("; called that, not failed")
    assert ("look like timing probes" in finding.text) == looks
    assert not seen.failed
    flow = next(flow for flow in seen.as_json()["flows"] if flow["ce"])
    assert flow["sign"] == "no sign of DCQCN"
    assert (flow["probes"] is not None) == looks
    if looks:
        assert flow["probes"]["frames"][1] == 10
        assert flow["probes"]["every_ns"] == 20_000


def test_a_receiver_that_tells_others_has_a_notification_missing(tmp_path):
    """The near miss: it does speak DCQCN, so this flow's marks were not answered."""
    other = [(5.0, data(0, src="10.0.0.3", dqpn=0x33, ce=True)), (6.0, cnp(dst="10.0.0.3", dqpn=0x44))]
    seen = judged(tmp_path, [*UNANSWERED, *other])
    assert "cnp.none" not in rules(seen)
    assert "send CNPs, but to others only" in rules(seen)["cnp.missing"].text
    signs = {flow.key.dqpn: flow.sign for flow in seen.flows if flow.sums.ce}
    assert signs == {0x22: "only others notified", 0x33: "notified"}


def test_one_direction_is_called_that(tmp_path):
    seen = judged(tmp_path, marks(0, 200))
    assert "one direction only" in rules(seen)["cnp.none"].text
    assert "no sign" not in rules(seen)["cnp.none"].text
    assert [flow.sign for flow in seen.flows] == ["one direction only"]


def test_probes_beside_data_that_was_never_marked(tmp_path):
    plain = [(float(n), data(n)) for n in range(50)]
    seen = judged(tmp_path, [*plain, *to_and_fro(12)])
    finding = rules(seen)["cc.probes"]
    assert finding.severity == "note"
    assert finding.text.endswith("look like timing probes of another algorithm; called that, not failed")
    assert [f.rule for f in seen.findings].count("cc.probes") == 1  # of the data, not of the probes
    assert "cc.probes" not in rules(judged(tmp_path, [*plain, *datagrams(12)]))
    assert "cc.probes" not in rules(judged(tmp_path, [*plain, *to_and_fro(12), (70.0, cnp())]))


def test_not_ect_data_beside_ect_data(tmp_path):
    frames = [(float(n), frame(A, B, 4, 0x22, n, bytes(64), ecn=0 if n == 5 else 2)) for n in range(20)]
    assert set(rules(judged(tmp_path, frames))) == {"ecn.mixed"}
    acks = [(float(n), frame(A, B, 0x11, 0x22, n, b"\x1f\0\0\0", ecn=0)) for n in range(20)]
    assert rules(judged(tmp_path, [f for f in frames if f[0] != 5] + acks)) == {}


@examples(max_examples=60)
@given(
    script=st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from(["mark", "cnp", "nak", "data", "mark2", "cnp2"])),
        max_size=60,
    ),
    mode=st.sampled_from(["gate", "trailing", "periodic"]),
    scope=st.sampled_from(["qp", "ip_pair", "port"]),
    interval=st.sampled_from(["0us", "7us", "50us"]),
)
def test_compiled_equals_plain_and_every_notification_gets_one_verdict(
    tmp_path_factory, script, mode, scope, interval
):
    makers = {
        "mark": lambda t: data(t, ce=True), "mark2": lambda t: data(t, ce=True, dqpn=0x23, src=C),
        "cnp": lambda _: cnp(),
        "cnp2": lambda _: cnp(dst=C, dqpn=0x12), "nak": nak, "data": data,
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("j")
    frames = [(float(t), makers[what](t)) for t, what in script]
    results = []
    for many in (10**9, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(machines, "MANY_ROWS", many)
            seen = judged(folder, frames, np_mode=mode, np_scope=scope, np_interval=interval, np_on_nak="on")
        results.append(seen.as_json())
        for flow in seen.flows:
            found = flow.verdicts
            told = ("on_time", "late", "early", "unexpected", "after_nak", "wrong_qp")
            assert sum(int(getattr(found, name)) for name in told) == flow.cnps_seen
            assert found.expected == found.on_time + found.late + found.missing
    assert results[0] == results[1]
