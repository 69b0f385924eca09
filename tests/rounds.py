"""The nine runs that are replayed: three parameter sets, one, four and sixty-four queue pairs a host."""

from roce_pkt.scenario.reader import read_text

LAWS = ("paper", "mlx", "hpcc-ns3")
QUEUE_PAIRS = (1, 4, 64)
SCENARIO = """
name = "round-trip"
seed = {seed}
duration = "800us"
measure_from = "0us"
taps = [{taps}]
[fabric]
hosts = 3
rate = "40Gbps"
[switch.ecn]
kmin = "5KB"
kmax = "200KB"
pmax = 0.01
[host]
cc = {{ algorithm = "dcqcn", {law} }}
[[traffic]]
pattern = "incast"
receiver = 2
message = "1MB"
qps = {qps}
"""


def scenario(law, qps, *, taps=1, seed=3):
    """Two hosts send to a third; the first `taps` of them are tapped.

    Args:
        law: A profile's name, or the inside of `host.cc`.
        qps: Queue pairs of each sender.
        taps: How many senders' ports are recorded.
        seed: Of the run.
    """
    return read_text(
        SCENARIO.format(
            law=law if "=" in law else f'profile = "{law}"',
            qps=qps,
            seed=seed,
            taps=", ".join(f'"host{n}"' for n in range(taps)),
        )
    )
