"""Compiles the units of the engine's machine code; imported where that must be done, and only there."""

from __future__ import annotations

from roce_pkt.engine import loop
from roce_pkt.engine.memory import FAR
from roce_pkt.engine.units import FUNCTIONS
from roce_pkt.jit import native
from roce_pkt.machine_code import Native

__all__ = ["loop", "natives"]


def natives(unit: str) -> dict[str, Native]:
    """The functions of a unit as machine code, by name."""
    return {name: native(FAR[name].function, *FAR[name].arguments) for name in FUNCTIONS[unit]}
