"""Every registered law under random operations: bounds, finite state, the same compiled and plain."""

import ctypes
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_pkt.cc import dcqcn, feedback, registry
from roce_pkt.cc.law import NEVER_PS
from roce_pkt.engine.by_address import natives
from roce_pkt.engine.units import CALLS
from roce_pkt.machine_code import link

LINE = 100e9
ACK_LAWS = sorted(n for n in registry.BUILT_IN if hasattr(registry.built_in(n), "on_ack"))
ACK, CNP, LOOK = range(3)

OPERATION = st.tuples(
    st.sampled_from([ACK, ACK, ACK, CNP, LOOK]),
    st.integers(1, 400_000_000),  # wait, ps
    st.integers(1, 5_000_000_000),  # round trip, ps
    st.integers(0, 40),  # packets acknowledged
    st.integers(0, 200),  # packets outstanding beyond them
    st.booleans(),  # marked
    st.integers(0, feedback.MAX_HOPS),
    st.lists(st.integers(0, feedback.QUEUE_MASK), min_size=5, max_size=5),
    st.lists(st.integers(0, feedback.SENT_MASK), min_size=5, max_size=5),
    st.lists(st.integers(0, feedback.TIME_MASK), min_size=5, max_size=5),
)


def switches(table):
    return st.fixed_dictionaries(
        {}, optional={row.name: st.sampled_from(row.choices) for row in table if row.unit == "switch"}
    )


def values(record):
    return [record[name].tolist() for name in record.dtype.names]


class Plain:
    """A law stepped as Python."""

    def __init__(self, module, record):
        self.module, self.p, self.s = module, module.PARAMETERS.twin(record), module.State()
        module.start(self.p, self.s, 0)

    def call(self, name, *rest):
        function = getattr(self.module, name, None)
        return function(self.p, self.s, *rest) if function else 0

    def ack(self, record, now):
        record = feedback.Ack(record)
        return self.call("on_ack", record, now)

    def state(self):
        found = np.zeros(1, self.module.STATE)
        for name in self.module.STATE.names:
            found[name] = getattr(self.s, name)
            assert (found[name] == getattr(self.s, name)).all()  # no fraction in a whole number's place
        return values(found[0])


@cache
def compiled(name):
    return link(natives(f"law-{name}"))


class Machine:
    """The same law as the machine code that the engine calls."""

    def __init__(self, name, record):
        self.module, self.addresses = registry.built_in(name), compiled(name)
        self.p = np.array([record], record.dtype)
        self.s = np.zeros(1, self.module.STATE)
        begun = Plain(self.module, record)
        for field in self.module.STATE.names:
            self.s[field] = getattr(begun.s, field)

    def call(self, name, *rest):
        if name not in self.addresses:
            return 0
        result, raised = ctypes.c_int64(), ctypes.c_void_p()
        words = [
            ctypes.addressof(result),
            ctypes.addressof(raised),
            self.p.ctypes.data,
            self.s.ctypes.data,
            *rest,
        ]
        status = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * len(words))
        assert status(self.addresses[name])(*words) == 0
        return result.value

    def ack(self, record, now):
        record = np.array([record], feedback.ACK)
        return self.call("on_ack", record.ctypes.data, now)

    def state(self):
        return values(self.s[0])


def ack_record(operation, end):
    _, _, rtt, acked, outstanding, marked, hops, queue, sent, time = operation
    record = np.zeros(1, feedback.ACK)[0]
    record["end"], record["next"] = end, end + outstanding
    record["acked_bytes"], record["mtu_bytes"] = acked * 1024, 1024
    record["rtt_ps"], record["marked"], record["hops"] = rtt, marked, hops
    record["speed_bps"], record["queue"], record["sent"], record["time"] = LINE, queue, sent, time
    return record


def drive(law, operations):
    now = end = 0
    seen = []
    for operation in operations:
        now += operation[1]
        if operation[0] == ACK:
            end += operation[3]
            happened = law.ack(ack_record(operation, end), now)
        elif operation[0] == CNP:
            happened = law.call("on_cnp", now)
        else:
            happened = law.call("on_timer", now)
        seen.append((happened, law.state()))
    return seen


def numbers(state):
    for value in state:
        yield from value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", sorted(registry.BUILT_IN))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_law_stays_in_bounds_and_is_the_same_compiled(name, data):
    module = registry.built_in(name)
    record = module.PARAMETERS.record(data.draw(switches(module.PARAMETERS)), LINE)
    if "base_rtt_ps" in record.dtype.names:
        record["base_rtt_ps"] = data.draw(st.sampled_from([1_000, 4_160_000, 13_000_000, 10**12]))
    operations = data.draw(st.lists(OPERATION, min_size=1, max_size=40))
    plain = drive(Plain(module, record), operations)
    assert repr(plain) == repr(drive(Machine(name, record), operations))
    floor = record["min_rate_bps"] if "min_rate_bps" in record.dtype.names else LINE
    for happened, state in plain:
        assert happened in range(8)
        assert all(math.isfinite(number) for number in numbers(state))
        assert floor <= state[0] <= LINE


@pytest.mark.parametrize("name", ACK_LAWS)
def test_a_law_over_acknowledgements_begins_at_line_rate_and_says_what_it_needs(name):
    module = registry.built_in(name)
    record = module.PARAMETERS.record({}, LINE)
    if "base_rtt_ps" in record.dtype.names:
        record["base_rtt_ps"] = 4_160_000
    law = Plain(module, record)
    assert (law.s.rate_bps, law.s.timer_ps) == (LINE, NEVER_PS)
    assert module.FEEDBACK in (feedback.ECHO, feedback.RTT, feedback.INT)
    windowed = law.s.window_bytes < feedback.NO_WINDOW
    assert law.s.window_bytes == 52_000 if windowed else not hasattr(module, "set_window")


@pytest.mark.parametrize("name", sorted(registry.BUILT_IN))
def test_every_parameter_says_where_it_comes_from(name):
    for row in registry.built_in(name).PARAMETERS:
        assert row.doc.endswith((".", ")."))
        assert row.source
        row.read(row.default, row.name, LINE)


def test_what_an_engine_reads_stands_first_in_every_state():
    head = np.dtype(feedback.HEAD, align=True)
    for name in registry.BUILT_IN:
        state = registry.built_in(name).STATE
        shared = head.names[:4] if name == "dcqcn" else head.names
        assert [state.fields[field] for field in shared] == [head.fields[field] for field in shared]
    assert dcqcn.PARAMETERS.dtype.names[0] == "line_rate_bps"


def test_only_functions_that_exist_have_an_address():
    assert [call in compiled("hpcc") for call in CALLS] == [True, False, False]


def test_an_unknown_law_names_the_nearest():
    with pytest.raises(Exception, match="did you mean 'hpcc'"):
        registry.built_in("hpc")
