"""What a run over a capture is set up with: a profile, changes to it, the line rate, the tap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from roce_pkt.cc import dcqcn, profiles
from roce_pkt.cc.parameters import ParameterTable, Setting
from roce_pkt.endpoint import notification
from roce_pkt.errors import ScenarioError, nearest
from roce_pkt.run import checks

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
        cnp: What notifications are held to, a twin of `checks.NOTIFICATION`.
        pfc: What pauses are held to, a twin of `checks.PAUSES`.
        watchdog: A twin of `checks.WATCHDOG`.
        wire: A twin of `checks.WIRE`.
        given: Parameters that were asked for, by our names.
    """

    profile: str
    line_rate_bps: float | None
    rp: Any
    np: Any
    tap: Tap
    path_delay_ps: int
    cnp: Any
    pfc: Any
    watchdog: Any
    wire: Any
    given: frozenset[str] = frozenset()

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
        out = dcqcn.PARAMETERS.as_json(dcqcn.PARAMETERS.twin(self.rp))
        for prefix, table, values in self.tables:
            out |= {f"{prefix}{name}": value for name, value in table.as_json(values).items()}
        return out

    @property
    def tables(self) -> list[tuple[str, ParameterTable, Any]]:
        """Prefix, table and values of everything but the reaction point."""
        values = (self.cnp, self.pfc, self.watchdog, self.wire)
        rest = zip(checks.TABLES.items(), values, strict=True)
        return [(_NP, notification.PARAMETERS, self.np), *((p, t, v) for (p, t), v in rest)]

    def notifying(self, **values: int) -> Setup:
        """The same with other parameters of the notification point."""
        changed = notification.PARAMETERS.twin()
        for name in notification.PARAMETERS.dtype.names or ():
            setattr(changed, name, values.get(name, getattr(self.np, name)))
        return replace(self, np=changed)


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
    sorted_out: dict[int, dict[str, Setting]] = {}
    for name, value in (settings or {}).items():
        table, bare = _table_of(name)
        sorted_out.setdefault(id(table), {})[bare] = value
    rp = sorted_out.get(id(dcqcn.PARAMETERS), {})
    np_ = sorted_out.get(id(notification.PARAMETERS), {})
    rate = 1.0 if line_rate_bps is None else line_rate_bps
    scale = 1.0 if line_rate_bps is not None else 1.0 / chosen.reference_rate_bps
    where = f"profile {profile}: "
    dcqcn.PARAMETERS.record(chosen.settings(), rate, rate_scale=scale, where=where)  # blames the profile
    own = notification.PARAMETERS
    cnp, pfc, watchdog, wire = (
        table.twin(table.record(sorted_out.get(id(table), {}), rate, where=f"--set {prefix}"))
        for prefix, table in checks.TABLES.items()
    )
    return Setup(
        profile,
        line_rate_bps,
        dcqcn.PARAMETERS.record(chosen.settings() | rp, rate, rate_scale=scale),
        own.twin(own.record(chosen.np_settings() | np_, rate, where=f"--set {_NP}")),
        place,
        path_delay_ps,
        cnp,
        pfc,
        watchdog,
        wire,
        frozenset(_full_name(name) for name in settings or {}),
    )


def _full_name(name: str) -> str:
    """Our own name of a setting, with its prefix."""
    table, bare = _table_of(name)
    row = table.find(bare, name)[0].name
    held = {id(known): prefix for prefix, known in checks.TABLES.items()}
    return held.get(id(table), _NP if table is notification.PARAMETERS else "") + row


def _table_of(name: str) -> tuple[ParameterTable, str]:
    """The table a setting is for, and its name there."""
    for prefix, table in checks.TABLES.items():
        bare = name.removeprefix(prefix)
        known = bare in {row.name for row in table} or table.has_alias(bare)
        if known and (name != bare or table.has_alias(bare)):
            return table, bare
        if name != bare and prefix != _NP:
            return table, bare
    if name.startswith(_NP):
        return notification.PARAMETERS, name.removeprefix(_NP)
    bare = name.removeprefix(_CC)
    return (notification.PARAMETERS if notification.PARAMETERS.has_alias(bare) else dcqcn.PARAMETERS), bare
