"""Named parameter sets: what the paper, a NIC, a simulator and introductory texts use.

A profile states only where it differs from the parameter tables' defaults, which are the paper's;
`np.` names belong to the notification point. "Confirmed" below says how a value is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from roce_pkt.errors import ScenarioError, nearest


class Value(NamedTuple):
    """A setting as text, and where it comes from."""

    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Profile:
    """One named set.

    Args:
        name: What `--profile` takes.
        title: A few words.
        about: What to know before trusting it.
        reference_rate_bps: Line rate its absolute rates were stated for; used only where a line rate
            is unknown and rates become fractions of it.
        algorithm: Module of `roce_pkt.cc` that its parameters are for.
        values: Differences from the tables' defaults.
    """

    name: str
    title: str
    about: str
    reference_rate_bps: float
    algorithm: str = "dcqcn"
    values: Mapping[str, Value] = field(default_factory=dict)

    def settings(self) -> dict[str, str]:
        """The reaction point's settings."""
        return {name: value.text for name, value in self.values.items() if not name.startswith(_NP)}

    def np_settings(self) -> dict[str, str]:
        """The notification point's settings, without their prefix."""
        return {
            name.removeprefix(_NP): value.text for name, value in self.values.items() if name.startswith(_NP)
        }


_NP = "np."


def _from(source: str, **texts: str) -> dict[str, Value]:
    return {name.replace("np_", _NP): Value(text, source) for name, text in texts.items()}


_LAW = "the NIC family's law as the HPCC simulator's source has it (stepped against its traces)"
_NIC = "NVIDIA parameter pages and transcriptions of them (documentation excerpts)"
_HPCC = "HPCC simulator: run.py for 100 Gb/s and the shipped configuration, read"
_TEXT = "introductory texts on RoCE"

_POLLED_FAMILY = _from(
    _LAW,
    alpha_timer="free",
    cut_trigger="polled",
    byte_counter="off",
    hyper_increase="after-one-step",
    cap_target="on",
)

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile(
                "paper",
                "DCQCN as published (SIGCOMM 2015, 40 Gb/s testbed)",
                "Values confirmed by several independent artefacts; the paper's text was not at hand.",
                40e9,
            ),
            Profile(
                "mlx",
                "documented defaults of NVIDIA/Mellanox NICs, ConnectX-4 and later",
                "Firmware arithmetic is not public: expect the shape, not the bits, of a NIC."
                " The byte counter is off because its unit is not public in words; byte_counter=on uses"
                " 32767 x 64 octets.",
                100e9,
                values=_POLLED_FAMILY
                | _from(
                    _NIC,
                    alpha0="1023/1024",
                    g="5/1024",
                    alpha_period="1us",
                    cut_period="4us",
                    min_dec_fac="50%",
                    min_rate="1Mbps",
                    clamp_target="off",
                    clamp_after_timer="on",
                    increase_period="300us",
                    threshold="1",
                    ai_rate="5Mbps",
                    hai_rate="50Mbps",
                    np_interval="4us",
                )
                | _from(
                    "NVIDIA default 32767; that its unit is 64 octets is a third-party simulator's reading",
                    byte_reset="2097088B",
                ),
            ),
            Profile(
                "hpcc-ns3",
                "the DCQCN of the HPCC ns-3 simulator at 100 Gb/s",
                "This simulator has no notification point: every CE mark is echoed at once (np.interval 0).",
                100e9,
                values=_POLLED_FAMILY
                | _from(
                    _HPCC,
                    alpha0="1",
                    g="1/256",
                    alpha_period="1us",
                    cut_period="4us",
                    min_rate="1Gbps",
                    clamp_target="off",
                    clamp_after_timer="on",
                    increase_period="300us",
                    threshold="1",
                    ai_rate="20Mbps",
                    hai_rate="200Mbps",
                    np_interval="0us",
                ),
            ),
            Profile(
                "primer",
                "numbers that introductory texts give, under the right laws",
                "Not for tuning. The texts' 150 KB is the older QCN's byte counter (the paper settled on"
                " 10 MB), and 5 % of line rate is a high floor.",
                40e9,
                values=_from(
                    _TEXT,
                    g="0.00390625",
                    alpha0="1",
                    threshold="5",
                    increase_period="55us",
                    ai_rate="40Mbps",
                    byte_reset="150KB",
                    min_rate="5%",
                    np_interval="2us",
                ),
            ),
        )
    }
)


def find(name: str, where: str = "--profile") -> Profile:
    """The profile called `name`.

    Raises:
        ScenarioError: Unknown name, with the nearest right one.
    """
    if name not in PROFILES:
        near = nearest(name, PROFILES)
        raise ScenarioError(where, f"unknown profile {name!r}{near}; known: {', '.join(PROFILES)}")
    return PROFILES[name]
