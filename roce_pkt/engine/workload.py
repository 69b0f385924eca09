"""What of a scenario's workload the engine models, and a plain word about what it does not."""

from __future__ import annotations

from roce_pkt.engine.records import ATOMIC, READ, SEND, SERVICES, WRITE
from roce_pkt.errors import ScenarioError
from roce_pkt.scenario.schema import Scenario

SHAPES = {
    "send": SEND, "send_imm": SEND, "send_inv": SEND, "write": WRITE, "write_imm": WRITE, "read": READ,
    "atomic": ATOMIC, "fetch_add": ATOMIC, "cmp_swp": ATOMIC,
}  # fmt: skip
"""How a verb travels: a message one way, a READ's data back, an ATOMIC's answer back."""


def check(scenario: Scenario) -> None:
    """Refuse what only `generate` can make, naming the key.

    Raises:
        ScenarioError: The engine does not model it.
    """
    for index, traffic in enumerate(scenario.traffic):
        for key, allowed in (("verb", tuple(SHAPES)), ("transport", SERVICES)):
            value = getattr(traffic, key)
            if value not in allowed:
                raise ScenarioError(
                    f"{scenario.name}: traffic[{index}].{key}",
                    f"{value!r} is for generate; simulate takes {', '.join(allowed)}",
                )
    _check_recovery(scenario)


def _check_recovery(scenario: Scenario) -> None:
    transport = scenario.host.transport
    if transport.recovery != "selective-repeat":
        return
    for index, traffic in enumerate(scenario.traffic):
        reads = traffic.pattern == "storage-mix" or SHAPES.get(traffic.verb) not in (SEND, WRITE)
        if traffic.transport != "rc" or reads:
            raise ScenarioError(
                f"{scenario.name}: traffic[{index}]",
                f"{traffic.pattern} of {traffic.verb} over {traffic.transport}: selective-repeat"
                " (host.transport.recovery) repeats packets of send and write over rc",
            )
    if transport.receive_queue:
        raise ScenarioError(
            f"{scenario.name}: host.transport.receive_queue",
            "selective-repeat has no receiver-not-ready: leave it at 0",
        )
