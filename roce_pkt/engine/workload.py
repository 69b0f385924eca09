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
PATTERNS = ("incast", "permutation", "all-to-all", "flows")
PLAIN = {"sizes": "fixed", "load": "", "arrival": "constant"}
"""Keys that must keep their default: the closed loop decides when packets leave."""


def check(scenario: Scenario) -> None:
    """Refuse a workload that is only for `generate`, naming the key.

    Raises:
        ScenarioError: The engine does not model it.
    """
    for index, traffic in enumerate(scenario.traffic):
        for key, allowed in (("pattern", PATTERNS), ("verb", tuple(SHAPES)), ("transport", SERVICES)):
            value = getattr(traffic, key)
            if value not in allowed:
                _refuse(
                    scenario, f"traffic[{index}].{key}", f"{value!r}", f"simulate takes {', '.join(allowed)}"
                )
        for key, default in PLAIN.items():
            if getattr(traffic, key) != default:
                _refuse(
                    scenario,
                    f"traffic[{index}].{key}",
                    repr(getattr(traffic, key)),
                    "simulate paces by itself",
                )
    _check_recovery(scenario)
    if scenario.fault:
        _refuse(
            scenario,
            "fault",
            f"{len(scenario.fault)} faults",
            "simulate loses frames only for want of buffer",
        )


def _check_recovery(scenario: Scenario) -> None:
    transport = scenario.host.transport
    if transport.recovery != "selective-repeat":
        return
    for index, traffic in enumerate(scenario.traffic):
        if traffic.transport != "rc" or SHAPES.get(traffic.verb) not in (SEND, WRITE):
            raise ScenarioError(
                f"{scenario.name}: traffic[{index}]",
                f"{traffic.verb} over {traffic.transport}: selective-repeat (host.transport.recovery) repeats"
                " packets of send and write over rc",
            )
    if transport.receive_queue:
        raise ScenarioError(
            f"{scenario.name}: host.transport.receive_queue",
            "selective-repeat has no receiver-not-ready: leave it at 0",
        )


def _refuse(scenario: Scenario, key: str, what: str, instead: str) -> None:
    raise ScenarioError(f"{scenario.name}: {key}", f"{what} is for generate; {instead}")
