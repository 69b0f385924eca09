"""A congestion-control law of one's own: halve on a congestion echo, climb otherwise.

    roce-pkt simulate --preset incast --cc tools/examples/aimd_by_echo.py --set host.cc.cut=0.7

A parameter's unit is that of its default: p.step_bps, p.per_bytes, p.cut. A state holds whole numbers
(0) or fractions (0.0). `ack` has end, next, acked_bytes, mtu_bytes, rtt_ps, marked, hops.
"""

FEEDBACK = "echo"  # "rtt" for times too, "int" for a record of every hop
PARAMETERS = {"step": "1Gbps", "per": "100KB", "cut": 0.5, "floor": "100Mbps", "again": "500us"}
STATE = {"reduced_until": 0}


def start(p, s, now):
    """A flow begins at half of line."""
    s.rate_bps = p.line_rate_bps / 2


def on_ack(p, s, ack, now):
    """Once a window at most, a mark lowers the rate; every octet without one raises it."""
    if ack.marked and ack.end > s.reduced_until:
        s.reduced_until = ack.next
        s.rate_bps = max(p.floor_bps, s.rate_bps * p.cut)
        s.timer_ps = now + p.again_ps
    elif not ack.marked:
        s.rate_bps = min(p.line_rate_bps, s.rate_bps + p.step_bps * ack.acked_bytes / p.per_bytes)


def on_timer(p, s, now):
    """Nothing was cut for a while: try twice the rate."""
    s.rate_bps = min(p.line_rate_bps, 2.0 * s.rate_bps)
