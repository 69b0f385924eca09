"""Every parameter of every profile, filled in: what `profiles` shows."""

from __future__ import annotations

from dataclasses import dataclass

from roce_pkt.cc import dcqcn
from roce_pkt.cc.parameters import Parameter, ParameterTable
from roce_pkt.cc.profiles import PROFILES, Profile, find
from roce_pkt.endpoint import notification
from roce_pkt.run.pacing import Pacing
from roce_pkt.run.setup import Setup


@dataclass(frozen=True, slots=True)
class Filled:
    """One parameter in one profile.

    Args:
        name: As `--set` takes it.
        row: The parameter.
        text: Its value as the profile states it.
        number: Its value in the row's unit.
        source: Where the value comes from.
    """

    name: str
    row: Parameter
    text: str
    number: float
    source: str

    @property
    def shown(self) -> str:
        """The value for people: as stated where that is a ratio or a share, else with its unit."""
        stated = self.row.unit == "ratio" or self.text.endswith("%")
        return self.text if stated else self.row.text(self.number)

    def as_json(self) -> dict[str, object]:
        """As a JSON object."""
        value: object = self.row.choices[int(self.number)] if self.row.choices else self.number
        return {
            "name": self.name,
            "value": value,
            "unit": self.row.unit,
            "text": self.text,
            "source": self.source,
            "doc": self.row.doc,
            "allowed": self.row.range_text(),
            "aliases": [
                {"name": alias_name, "unit": alias.unit}
                for alias in self.row.aliases
                for alias_name in alias.names
            ],
        }


@dataclass(frozen=True, slots=True)
class FilledProfile:
    """One profile with every parameter.

    Args:
        profile: The profile.
        parameters: Reaction point first, then notification point.
    """

    profile: Profile
    parameters: tuple[Filled, ...]

    def as_json(self) -> dict[str, object]:
        """As a JSON object."""
        profile = self.profile
        return {
            "name": profile.name,
            "title": profile.title,
            "about": profile.about,
            "algorithm": profile.algorithm,
            "reference_rate_bps": profile.reference_rate_bps,
            "parameters": [filled.as_json() for filled in self.parameters],
        }


def listed(name: str | None) -> list[FilledProfile]:
    """One profile, or all.

    Raises:
        ScenarioError: Unknown name, with the nearest right one.
    """
    chosen = list(PROFILES.values()) if name is None else [find(name, "profile")]
    return [
        FilledProfile(
            profile,
            (
                *_fill(profile, dcqcn.PARAMETERS, profile.settings(), ""),
                *_fill(profile, notification.PARAMETERS, profile.np_settings(), "np."),
            ),
        )
        for profile in chosen
    ]


def used(setup: Setup, paced: Pacing) -> list[tuple[str, str, str, str]]:
    """What a run over a capture used: name, value, source and meaning of each parameter."""
    inferred = {"np.interval": paced.interval_from, "np.scope": paced.scope_from}
    chosen = find(setup.profile).values
    fractions = setup.line_rate_bps is None
    tables = [("", dcqcn.PARAMETERS, dcqcn.PARAMETERS.twin(setup.rp)), *setup.tables]
    out = []
    for prefix, table, values in tables:
        for row in table:
            name, number = f"{prefix}{row.name}", getattr(values, row.field)
            text = f"{number:.6g} of line" if row.unit == "bps" and fractions else row.text(number)
            source = chosen[name].source if name in chosen else row.source
            if name in setup.given:
                source = "as asked for"
            elif inferred.get(name) == "capture":
                source = "inferred from the capture"
            out.append((name, text, source, row.doc))
    return out


def _fill(profile: Profile, table: ParameterTable, settings: dict[str, str], prefix: str) -> list[Filled]:
    record = table.record(settings, profile.reference_rate_bps)
    out = []
    for row in table:
        value = profile.values.get(f"{prefix}{row.name}")
        text, source = (row.default, row.source) if value is None else value
        out.append(Filled(f"{prefix}{row.name}", row, text, record[row.field].item(), source))
    return out
