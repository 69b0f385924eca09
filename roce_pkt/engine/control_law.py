"""The scenario's `host.cc` and `host.np` tables, read into the records the laws take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.cc import dcqcn, profiles
from roce_pkt.endpoint import notification
from roce_pkt.errors import ScenarioError, nearest
from roce_pkt.scenario.schema import Scenario

ALGORITHMS = ("dcqcn", "fixed")
CNP_DSCP = 48


@dataclass(frozen=True, slots=True)
class ControlLaw:
    """Reaction and notification point of every host.

    Args:
        reacts: False for the fixed rate.
        parameters: One record for the reaction point.
        np_parameters: One record for the notification point.
        cnp_dscp: Code point of notifications.
        cnp_on_nack: Whether a sequence error also notifies.
        resolved: Every parameter as text, by dotted key.
    """

    reacts: bool
    parameters: NDArray[Any]
    np_parameters: NDArray[Any]
    cnp_dscp: int
    cnp_on_nack: bool
    resolved: dict[str, Any]

    def states(self, count: int) -> NDArray[Any]:
        """Reaction points of `count` halves, before their first notification."""
        state = dcqcn.State()
        dcqcn.start(dcqcn.PARAMETERS.twin(self.parameters[0]), state, 0)
        states = np.zeros(count, dcqcn.STATE)
        for name in states.dtype.names or ():
            states[name] = getattr(state, name)
        return states


def read(scenario: Scenario) -> ControlLaw:
    """Resolve algorithm, profile and parameters.

    Raises:
        ScenarioError: Unknown algorithm, profile or parameter, or a value out of range.
    """
    cc, np_table = dict(scenario.host.cc), dict(scenario.host.np)
    algorithm = cc.pop("algorithm", "dcqcn")
    if algorithm not in ALGORITHMS:
        near = nearest(str(algorithm), ALGORITHMS)
        raise ScenarioError("host.cc.algorithm", f"{algorithm!r} is not one of {', '.join(ALGORITHMS)}{near}")
    profile = profiles.find(str(cc.pop("profile", "paper")), "host.cc.profile")
    line_rate = scenario.fabric.rate_bps
    cnp_dscp = np_table.pop("dscp", CNP_DSCP)
    if not isinstance(cnp_dscp, int) or not 0 <= cnp_dscp <= 63:
        raise ScenarioError("host.np.dscp", f"{cnp_dscp!r} is not a number from 0 to 63")
    on_nack = np_table.pop("cnp_on_nack", False)
    if not isinstance(on_nack, bool):
        raise ScenarioError("host.np.cnp_on_nack", f"{on_nack!r} is not true or false")
    settings = profile.settings() | (cc if algorithm == "dcqcn" else {})
    parameters = dcqcn.PARAMETERS.record(settings, line_rate, where="host.cc")
    if algorithm == "fixed" and cc:
        raise ScenarioError(f"host.cc.{next(iter(cc))}", "algorithm fixed has no parameters")
    np_parameters = notification.PARAMETERS.record(
        profile.np_settings() | np_table, line_rate, where="host.np"
    )
    resolved: dict[str, Any] = {"host.cc.algorithm": algorithm, "host.cc.profile": profile.name}
    if algorithm == "dcqcn":
        resolved |= _texts("host.cc", dcqcn.PARAMETERS, parameters)
    resolved |= _texts("host.np", notification.PARAMETERS, np_parameters)
    resolved |= {"host.np.dscp": cnp_dscp, "host.np.cnp_on_nack": on_nack}
    return ControlLaw(
        algorithm == "dcqcn", _one(parameters), _one(np_parameters), cnp_dscp, on_nack, resolved
    )


def _one(record: Any) -> NDArray[Any]:
    return np.array([record], record.dtype)


def _texts(prefix: str, table: Any, record: Any) -> dict[str, str]:
    return {f"{prefix}.{row.name}": row.text(record[row.field]).replace(" ", "") for row in table}
