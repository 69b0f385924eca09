"""The compiled first pass and the plain one learn the same of any capture."""

from __future__ import annotations

import numpy as np
import pytest
from crafted import ack, cnp, data, datagram, frame, pcap, pfc, tcp
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.capture import open as open_capture
from roce_pkt.flows import rows as reduced
from roce_pkt.flows import table
from roce_pkt.flows.survey import Survey

MAKERS = {
    "data": lambda n: data(n, dqpn=n % 7, src=f"10.0.0.{1 + n % 5}"),
    "marked": lambda n: data(n, ce=True, dqpn=n % 3),
    "wrong": lambda n: data(n, wrong_icrc=True),
    "six": lambda n: frame("fd00::1", f"fd00::{2 + n % 4}", 4, 1, n, bytes(64)),
    "ud": lambda n: datagram(n, sqpn=n % 4),
    "ack": ack,
    "nak": lambda n: frame("10.0.0.2", "10.0.0.1", 0x11, 0x11, n, b"\x60\0\0\1"),
    "cnp": lambda n: cnp(dqpn=n % 6),
    "pfc": lambda n: pfc({3: n}),
    "tcp": lambda _: tcp(),
    "cut": lambda n: data(n)[:40],
}


def both(frames):
    """The same columns walked plainly and compiled, with their rows."""
    out = []
    for kernel in ("plain", "compiled"):
        survey, rows = Survey(), []
        for start in range(0, len(frames), 7):
            part = frames[start : start + 7]
            part.kernel = kernel
            rows.append(survey.add(part))
        out.append((survey, rows))
    return out


def sums(survey):
    return sorted((survey.flows.name(flow.number), flow[1:]) for flow in survey)


def named(survey, rows):
    pairs = zip(rows.flow.tolist(), rows.cnp.tolist(), strict=True)
    return [(survey.cnps if notifies else survey.flows).name(flow) for flow, notifies in pairs]


@given(st.lists(st.tuples(st.sampled_from(sorted(MAKERS)), st.integers(0, 50)), max_size=40))
def test_any_frames(tmp_path_factory, script):
    path = pcap(tmp_path_factory.mktemp("k") / "c.pcap", [(n, MAKERS[what](n)) for what, n in script])
    (plain, plain_rows), (compiled, compiled_rows) = both(open_capture(path).frames())
    assert sums(plain) == sums(compiled)
    assert plain.contents == compiled.contents
    assert {plain.flows.name(f): s for f, s in plain.senders.items()} == {
        compiled.flows.name(f): s for f, s in compiled.senders.items()
    }
    assert dict(zip(map(plain.cnps.name, range(len(plain.cnps))), plain.cnp_counts, strict=True)) == dict(
        zip(map(compiled.cnps.name, range(len(compiled.cnps))), compiled.cnp_counts, strict=True)
    )
    for one, other in zip(plain_rows, compiled_rows, strict=True):
        for name in reduced.NAMES:
            if name != "flow":
                assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert named(plain, one) == named(compiled, other)
    for number, key in enumerate(plain.flows.keys):
        assert np.array_equal(plain.links[number], compiled.links[compiled.flows.find(key)])


@pytest.mark.parametrize("room", [4, 64])
def test_tables_that_grow_while_walking(tmp_path, monkeypatch, room):
    monkeypatch.setattr(table, "_LEAST_ROOM", room)
    frames = [(n, data(n, dqpn=n % 300)) for n in range(900)] + [(n, cnp(dqpn=n)) for n in range(50)]
    frames = open_capture(pcap(tmp_path / "c.pcap", frames)).frames()
    frames.kernel = "compiled"
    survey = Survey()
    rows = survey.add(frames)
    assert (len(survey.flows), len(survey.cnps), len(rows)) == (300, 50, 950)
    assert [flow.frames for flow in survey] == [3] * 300
    names = [survey.flows.name(flow).dqpn for flow in rows.flow[:900].tolist()]
    assert names == [n % 300 for n in range(900)]
    again = survey.rows(frames)
    assert np.array_equal(again.flow, rows.flow)
    assert [flow.frames for flow in survey] == [3] * 300
