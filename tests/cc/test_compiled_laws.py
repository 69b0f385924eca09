"""The same law text, compiled and in plain Python: the same bits after any sequence of operations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_pkt.cc import dcqcn, fixed
from roce_pkt.cc.law import compile_laws, law, twin
from roce_pkt.cc.profiles import PROFILES

CNP, BYTES, LOOK = 0, 1, 2


def drive(p, s, kinds, waits_ps, octets, after):
    """Operations in time order, every due timer first; the state after each goes to `after`."""
    dcqcn.start(p, s, 0)
    now = 0
    for i in range(len(kinds)):
        until = now + waits_ps[i]
        due = dcqcn.next_timer_ps(p, s)
        while due <= until:
            dcqcn.on_timer(p, s, due)
            due = dcqcn.next_timer_ps(p, s)
        now = until
        if kinds[i] == CNP:
            dcqcn.on_cnp(p, s, now)
        elif kinds[i] == BYTES:
            dcqcn.on_bytes(p, s, octets[i], now)
        else:
            dcqcn.on_timer(p, s, now)
        after[i, 0] = s.rate_bps
        after[i, 1] = s.target_bps
        after[i, 2] = s.alpha
        after[i, 3] = s.phase
        after[i, 4] = dcqcn.stage(s)


@pytest.fixture(scope="module")
def compiled_drive():
    import numba

    compile_laws()
    compile_laws()  # registers nothing twice
    return numba.njit(drive)


OPERATION = st.tuples(
    st.sampled_from([CNP, CNP, BYTES, LOOK]),
    st.integers(0, 400_000_000),
    st.integers(0, 200_000),
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={row.name: st.sampled_from(row.choices) for row in dcqcn.PARAMETERS if row.unit == "switch"}
    | {
        "g": st.sampled_from(["1/256", "1/16", "5/1024", "0"]),
        "alpha0": st.sampled_from(["1", "0.5", "0"]),
        "threshold": st.integers(1, 6),
        "byte_reset": st.sampled_from(["1B", "150KB", "10MB"]),
        "min_dec_fac": st.sampled_from(["0", "50%", "95%"]),
        "rate_on_first_cnp": st.sampled_from(["0", "1Gbps"]),
        "max_rate": st.sampled_from(["0", "30Gbps"]),
        "increase_period": st.sampled_from(["1us", "55us", "300us"]),
    },
)


@settings(max_examples=150, deadline=None)
@given(
    profile=st.sampled_from(sorted(PROFILES)),
    changes=SETTINGS,
    operations=st.lists(OPERATION, min_size=1, max_size=40),
)
def test_compiled_and_plain_agree_to_the_bit_and_stay_in_bounds(compiled_drive, profile, changes, operations):
    record = dcqcn.PARAMETERS.record(PROFILES[profile].settings() | changes, 40e9)
    kinds, waits, octets = (np.array(column) for column in zip(*operations, strict=True))
    plain, compiled = np.zeros((2, len(kinds), 5))

    p, s = dcqcn.PARAMETERS.twin(record), dcqcn.State()
    drive(p, s, kinds.tolist(), waits.tolist(), octets.tolist(), plain)

    state = np.zeros(1, dcqcn.STATE)[0]
    compiled_drive(record, state, kinds, waits, octets, compiled)

    assert plain.tobytes() == compiled.tobytes()
    rate, target, alpha = plain[:, 0], plain[:, 1], plain[:, 2]
    top = dcqcn.ceiling_bps(p)
    assert (rate >= p.min_rate_bps).all()
    assert (rate <= top).all()
    assert np.isfinite(target).all()
    assert (not p.cap_target) or (target <= top).all()
    assert ((alpha >= 0) & (alpha <= 1)).all()


def test_a_law_may_call_a_law_over_records_in_an_array(compiled_drive):
    import numba

    box = np.dtype([("x", "f8"), ("n", "i8")], align=True)

    @law
    def halve(s):
        s.x /= 2.0

    @law
    def halve_twice(s):
        halve(s)
        halve(s)
        s.n += 1
        return s.n

    compile_laws()

    @numba.njit
    def every(boxes):
        total = 0
        for i in range(len(boxes)):
            total += halve_twice(boxes[i])
        return total

    boxes = np.zeros(3, box)
    boxes["x"] = 8
    assert every(boxes) == 3
    assert boxes["x"].tolist() == [2, 2, 2]
    plain = twin(box)()
    plain.x = 8.0
    halve_twice(plain)
    assert (plain.x, plain.n) == (2, 1)


def test_the_null_law_compiles_and_never_acts(compiled_drive):
    import numba

    @numba.njit
    def go(p, s):
        fixed.start(p, s, 0)
        happened = fixed.on_cnp(p, s, 1) + fixed.on_bytes(p, s, 2, 3) + fixed.on_timer(p, s, 4)
        return happened, fixed.next_timer_ps(p, s)

    p = fixed.PARAMETERS.record({}, 1e9)
    s = np.zeros(1, fixed.STATE)[0]
    happened, due = go(p, s)
    assert (happened, s["rate_bps"]) == (0, 1e9)
    assert due > 10**18


def test_a_twin_refuses_a_field_the_record_does_not_have():
    with pytest.raises(AttributeError):
        dcqcn.State().rate = 1


def test_importing_laws_does_not_import_the_compiler():
    import subprocess
    import sys

    code = "import sys, roce_pkt.cc.dcqcn, roce_pkt.cc.profiles; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(share=st.floats(0, 1), steps=st.integers(0, 10_000))
def test_kept_is_a_power(share, steps):
    assert math.isclose(dcqcn.kept(share, steps), share**steps, rel_tol=1e-9, abs_tol=1e-300)
