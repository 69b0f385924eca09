"""The result depends on the scenario and its seed, and on nothing else."""

import hashlib

import numpy as np
import pytest
from simulated import Run, peer_scenario, text_scenario

from roce_pkt.engine.session import Session
from roce_pkt.fabric.ecmp import path

PLACES = {"arriving", "arriving_last", "control", "control_last", "obeying", "obeying_last", "first", "last"}
"""Fields that name a place in the pool of packets; which place is nobody's business."""


def digest(arrays):
    total = hashlib.sha256()
    for array in (arrays.half, arrays.port, arrays.rp, arrays.line, arrays.group):
        plain = array.copy()
        if plain.dtype.names and "queue_byte_ps" in plain.dtype.names:
            plain["queue_byte_ps"] = np.round(plain["queue_byte_ps"], -3)
        for name in plain.dtype.names:
            if name in PLACES:
                continue
            total.update(plain[name].tobytes())
    return total.hexdigest()


def short(**changes):
    return peer_scenario("star-dcqcn-40g", duration="4ms", measure_from="0ms", fabric__hosts="5", **changes)


def test_the_same_seed_gives_the_same_run_and_another_another():
    first, again, other = (Run(short(seed=s), events=False) for s in ("7", "7", "8"))
    assert digest(first.arrays) == digest(again.arrays)
    assert digest(first.arrays) != digest(other.arrays)


def test_neither_slices_nor_looking_change_the_run():
    plain = Run(short(), events=False)
    sliced = Session(short())
    for until in range(0, 4 * 10**9 + 1, 137_000_001):
        sliced.advance(until)
    sliced.advance(4 * 10**9)
    sliced.settle()
    looked = Run(short(), every_ps=1_000_000, events=True)
    assert digest(plain.arrays) == digest(sliced.built.arrays) == digest(looked.arrays)


def test_event_and_frame_rows_come_in_time_order_and_miss_nothing():
    scenario = text_scenario(
        'receiver = 2\nmessage = "100KB"\ncount = 100',
        top='taps = ["host0", "switch0:2"]\nduration = "10ms"',
        switch='buffer = "400KB"\necn = { kmin = "10KB", kmax = "20KB", pmax = 0.5 }',
    )
    run = Run(scenario)
    assert len(run.frames) > 1 << 14
    assert (np.diff(run.frames["at_ps"]) >= 0).all()
    assert (np.diff(run.rows["time_ps"]) >= 0).all()
    data = run.frames[(run.frames["kind"] == 0) & (run.frames["port"] == 0)]
    assert len(data) == run.requester["sent"][0]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_packets_of_a_flow_stay_on_one_path(seed):
    scenario = text_scenario(
        'pattern = "flows"\npairs = [[0, 4], [1, 5], [2, 6], [3, 7]]\nmessage = "100KB"\ncount = 3\nqps = 4',
        top=f"seed = {seed}",
        fabric='kind = "leaf-spine"\nhosts = 8\nleaves = 2\nspines = 4',
    )
    run = Run(scenario)
    assert run.requester["naks"].sum() == 0
    assert (run.requester["messages"] == 3).all()
    # and the path is the one the hash says
    leaf = run.built.topology.hosts
    salt = int(run.arrays.node[leaf]["salt"])
    used = {path(int(h), salt, 4) for h in run.requester["hash"]}
    ports = [run.port(f"switch0:{4 + spine}")["queue_max_bytes"] > 0 for spine in range(4)]
    assert ports == [spine in used for spine in range(4)]


def test_conservation():
    run = Run(short(), events=False)
    on_wire = int(run.requester["sent"].sum() - run.responder["expected"].sum())
    queued = int(run.arrays.line["queued_bytes"].sum())
    assert 0 <= on_wire <= queued / 1048 + 5 * 6
    assert int(run.arrays.node["shared_used_bytes"].sum()) <= queued
