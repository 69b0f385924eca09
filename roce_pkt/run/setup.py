"""What a run over a capture is set up with: a profile, changes to it, the line rate, the tap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from roce_pkt.cc import dcqcn, profiles
from roce_pkt.cc.parameters import Setting
from roce_pkt.endpoint import notification
from roce_pkt.errors import ScenarioError, nearest

Tap = Literal["sender", "receiver", "middle"]
TAPS: tuple[Tap, ...] = ("sender", "receiver", "middle")
_NP = "np."
_CC = "cc."


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything the machines run with.

    Args:
        profile: Name of the profile.
        line_rate_bps: Line rate, or None: rates are fractions of it.
        rp: Reaction point, a record of `dcqcn.PARAMETERS`.
        np: Notification point, a twin of `notification.PARAMETERS`.
        tap: Where the capture was taken.
        path_delay_ps: One way from sender to receiver.
    """

    profile: str
    line_rate_bps: float | None
    rp: Any
    np: Any
    tap: Tap
    path_delay_ps: int

    @property
    def to_receiver_ps(self) -> int:
        """Between the tap and the receiver."""
        return {"sender": self.path_delay_ps, "receiver": 0}.get(self.tap, self.path_delay_ps // 2)

    @property
    def to_sender_ps(self) -> int:
        """Between the tap and the sender."""
        return self.path_delay_ps - self.to_receiver_ps

    @property
    def rate_unit(self) -> str:
        """What every rate is in."""
        return "bit/s" if self.line_rate_bps is not None else "fraction of line rate"

    def as_json(self) -> dict[str, object]:
        """Every parameter in its own unit; switches as words."""
        np_ = notification.PARAMETERS.as_json(self.np)
        return dcqcn.PARAMETERS.as_json(dcqcn.PARAMETERS.twin(self.rp)) | {
            f"{_NP}{name}": value for name, value in np_.items()
        }


def set_up(
    profile: str = "paper",
    settings: Mapping[str, Setting] | None = None,
    *,
    line_rate_bps: float | None = None,
    tap: str = "middle",
    path_delay_ps: int = 0,
) -> Setup:
    """Read what the machines run with.

    Args:
        profile: Name of a profile.
        settings: Changes to it, by our names (`ai_rate`, `np.interval`) or foreign ones.
        line_rate_bps: Line rate of the senders' ports, if known.
        tap: `sender`, `receiver` or `middle`.
        path_delay_ps: One way from sender to receiver.

    Raises:
        ScenarioError: An unknown name or a value out of range.
    """
    chosen = profiles.find(profile)
    place = next((known for known in TAPS if known == tap), None)
    if place is None:
        raise ScenarioError("--tap", f"{tap!r}{nearest(tap, TAPS)}; one of {', '.join(TAPS)}")
    if path_delay_ps < 0:
        raise ScenarioError("--path-delay", "a delay is not negative")
    rp: dict[str, Setting] = {}
    np_: dict[str, Setting] = {}
    for name, value in (settings or {}).items():
        bare = name.removeprefix(_CC)
        if name.startswith(_NP):
            np_[name.removeprefix(_NP)] = value
        elif notification.PARAMETERS.has_alias(bare):
            np_[bare] = value
        else:
            rp[bare] = value
    rate = 1.0 if line_rate_bps is None else line_rate_bps
    scale = 1.0 if line_rate_bps is not None else 1.0 / chosen.reference_rate_bps
    where = f"profile {profile}: "
    dcqcn.PARAMETERS.record(chosen.settings(), rate, rate_scale=scale, where=where)  # blames the profile
    table, own = dcqcn.PARAMETERS, notification.PARAMETERS
    return Setup(
        profile,
        line_rate_bps,
        table.record(chosen.settings() | rp, rate, rate_scale=scale),
        own.twin(own.record(chosen.np_settings() | np_, rate, where=f"--set {_NP}")),
        place,
        path_delay_ps,
    )
