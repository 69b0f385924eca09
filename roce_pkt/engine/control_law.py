"""The scenario's `host.cc` and `host.np` tables, read into the records the laws take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc import dcqcn, feedback, own, profiles, registry
from roce_pkt.cc.parameters import ParameterTable
from roce_pkt.endpoint import notification
from roce_pkt.engine import records
from roce_pkt.engine.layout import in_line
from roce_pkt.engine.units import CALLS
from roce_pkt.errors import InputError, ScenarioError
from roce_pkt.fabric.round_trip import base_rtt_ps
from roce_pkt.fabric.topology import Topology
from roce_pkt.machine_code import link
from roce_pkt.scenario.schema import Scenario
from roce_pkt.wire import telemetry

CNP_DSCP = 48
DCQCN = "dcqcn"
FIXED = "fixed"


@dataclass(slots=True)
class ControlLaw:
    """Reaction and notification point of every host.

    Args:
        name: Algorithm, or the file of a user's own.
        law: Its module (`dcqcn` for the fixed rate too: a reaction point that is never told), or an own law.
        parameters: One record for the reaction point.
        np_parameters: One record for the notification point.
        cnp_dscp: Code point of notifications.
        cnp_on_nack: Whether a sequence error also notifies.
        resolved: Every parameter as text, by dotted key.
    """

    name: str
    law: Any
    parameters: NDArray[Any]
    np_parameters: NDArray[Any]
    cnp_dscp: int
    cnp_on_nack: bool
    resolved: dict[str, Any]

    @property
    def feedback(self) -> str:
        """What the law needs in acknowledgements: "" for nothing."""
        return getattr(self.law, "FEEDBACK", "")

    @property
    def by_address(self) -> bool:
        """Whether the loop calls it by address."""
        return self.law is not dcqcn

    @property
    def telemetry_words(self) -> int:
        """Words beside each packet: when it was sent and its hops' number, then a word for each hop."""
        if not self.feedback:
            return 0
        return 2 + (feedback.MAX_HOPS if self.feedback == feedback.INT else 0)

    @property
    def header_bytes(self) -> int:
        """Octets that records of hops add to a frame."""
        return telemetry.TRAILER_BYTES if self.feedback == feedback.INT else 0

    def states(self, count: int) -> NDArray[Any]:
        """Reaction points of `count` halves, as each begins."""
        state = self.law.State()
        self.law.start(self.law.PARAMETERS.twin(self.parameters[0]), state, 0)
        states = in_line(count, self.law.STATE)
        for name in states.dtype.names or ():
            states[name] = getattr(state, name)
        return states

    def open_windows(self, half: NDArray[Any], states: NDArray[Any], mtu_bytes: int) -> None:
        """Set the senders' first windows."""
        half["window_most"] = half["window"]
        if self.by_address:
            packets = np.ceil(np.minimum(states["window_bytes"], 1e15) / mtu_bytes)
            half["window"] = np.minimum(half["window"], np.maximum(packets, 1).astype(np.int64))

    def install(self, w: Any) -> None:
        """Write into `w` what the loop looks at."""
        w["reacts"] = self.name == DCQCN
        w["notifies"] = not self.by_address
        w["int_scale"] = 1
        if not self.by_address:
            return
        if isinstance(self.law, own.OwnLaw):
            self._compile(self.law, w)
        else:
            w["called"] = records.BUILT_IN
            w["notifies"] = hasattr(self.law, "on_cnp")
        w["repaces"] = getattr(self.law, "REPACES", False)
        w["echoes"] = bool(self.feedback)
        w["telemetry_words"] = self.telemetry_words
        if "int_scale" in (self.parameters.dtype.names or ()):
            w["int_scale"] = self.parameters[0]["int_scale"]

    def _compile(self, law: own.OwnLaw, w: Any) -> None:
        """Compile a user's own law; it is not kept."""
        from roce_pkt.engine.by_address import own_natives

        w["called"] = records.OWN
        w["notifies"] = "on_cnp" in law.functions
        for name, address in link(own_natives(law)).items():
            w[name] = address

    @property
    def unit(self) -> str:
        """Name of the law whose machine code is loaded for the loop, or ""."""
        return self.name if self.by_address and not isinstance(self.law, own.OwnLaw) else ""

    def explain(self, state: Any, ack: Any, call: int, now_ps: int) -> None:
        """Name what is wrong in a user's own law whose compiled call failed.

        Args:
            state: The state before the call.
            ack: The acknowledgement it was given.
            call: Index into `units.CALLS`.
            now_ps: Time.

        Raises:
            InputError: Always.
        """
        law, name = self.law, CALLS[call]
        rest = (feedback.Ack(ack), now_ps) if name == "on_ack" else (now_ps,)
        law.call(name, law.PARAMETERS.twin(self.parameters[0]), law.State(state), *rest)
        line = law.functions[name].__code__.co_firstlineno
        raise InputError(f"{law.file}:{line}: {name} failed at {now_ps / 1e6:g} us of simulated time")


def speed_code(rate_bps: float) -> int:
    """A port's rate as telemetry says it; 0 for a rate it has no code for."""
    return feedback.SPEEDS_BPS.index(rate_bps) if rate_bps in feedback.SPEEDS_BPS else 0


def read(scenario: Scenario, net: Topology) -> ControlLaw:
    """Resolve algorithm, profile and parameters.

    Raises:
        ScenarioError: Unknown algorithm, profile or parameter, a value out of range, or traffic without
            the acknowledgements that the law needs.
        InputError: A user's own law is wrong.
    """
    cc, np_table = dict(scenario.host.cc), dict(scenario.host.np)
    name = str(cc.pop("algorithm", DCQCN))
    law = _law(name)
    profile = profiles.find(str(cc.pop("profile", "paper")), "host.cc.profile")
    line_rate = scenario.fabric.rate_bps
    cnp_dscp = np_table.pop("dscp", CNP_DSCP)
    if not isinstance(cnp_dscp, int) or not 0 <= cnp_dscp <= 63:
        raise ScenarioError("host.np.dscp", f"{cnp_dscp!r} is not a number from 0 to 63")
    on_nack = np_table.pop("cnp_on_nack", False)
    if not isinstance(on_nack, bool):
        raise ScenarioError("host.np.cnp_on_nack", f"{on_nack!r} is not true or false")
    if name == FIXED and cc:
        raise ScenarioError(f"host.cc.{next(iter(cc))}", "algorithm fixed has no parameters")
    settings = profile.settings() | cc if profile.algorithm == name else cc
    table = law.PARAMETERS
    parameters = table.record(settings, line_rate, where="host.cc.")
    if "base_rtt_ps" in table.dtype.names and parameters["base_rtt_ps"] == 0:
        parameters["base_rtt_ps"] = base_rtt_ps(scenario, net)
    np_parameters = notification.PARAMETERS.record(
        profile.np_settings() | np_table, line_rate, where="host.np."
    )
    resolved: dict[str, Any] = {"host.cc.algorithm": name, "host.cc.profile": profile.name}
    if name != FIXED:
        resolved |= _texts("host.cc", table, parameters)
    resolved |= _texts("host.np", notification.PARAMETERS, np_parameters)
    resolved |= {"host.np.dscp": cnp_dscp, "host.np.cnp_on_nack": on_nack}
    found = ControlLaw(name, law, _one(parameters), _one(np_parameters), cnp_dscp, on_nack, resolved)
    _check(scenario, net, found)
    if isinstance(law, own.OwnLaw):
        law.try_out(parameters)
    return found


def _law(name: str) -> Any:
    """A law by name, or a user's own by the name of its file."""
    if name == FIXED:
        return dcqcn
    if name.endswith(".py"):
        return own.load(name)
    announced = registry.announced()
    if name not in registry.BUILT_IN and name in announced:
        return own.load(own.file_of(announced[name]))
    return registry.built_in(name)


def _check(scenario: Scenario, net: Topology, law: ControlLaw) -> None:
    """Refuse a law where what it needs does not exist."""
    if not law.feedback:
        return
    for index, traffic in enumerate(scenario.traffic):
        if traffic.transport != "rc" or traffic.verb == "read":
            what = "read" if traffic.verb == "read" else traffic.transport
            raise ScenarioError(
                f"{scenario.name}: traffic[{index}]",
                f"{law.name} learns from acknowledgements of data, and {what} has none;"
                " it takes rc with send, write or atomic",
            )
    if law.feedback != feedback.INT:
        return
    for end in net.ports:
        if not speed_code(end.rate_bps):
            known = ", ".join(f"{s / 1e9:g}" for s in feedback.SPEEDS_BPS[1:])
            raise ScenarioError(
                f"{scenario.name}: fabric.rate",
                f"{law.name}'s hops have codes for {known} Gbps only",
            )


def _one(record: Any) -> NDArray[Any]:
    return np.array([record], record.dtype)


def _texts(prefix: str, table: ParameterTable, record: Any) -> dict[str, str]:
    return {f"{prefix}.{row.name}": row.text(record[row.field]).replace(" ", "") for row in table}
