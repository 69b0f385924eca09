"""A law is written once: plain Python when it is stepped, compiled when an engine calls it.

A law is a small function over a parameter record `p`, a state record `s` and the time `now`
(integer picoseconds). `@law` only remembers it, so that stepping a law costs no compiler import;
`compile_laws()` makes every remembered law callable from compiled code, inlined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

CUT, INCREASE, ALPHA = 1, 2, 4
"""What happened, as bits in a law's answer."""

NEVER_PS = 1 << 62
"""A timer that is not armed. Later than any time a 64-bit picosecond clock reaches in 50 days."""

_waiting: list[Callable[..., Any]] = []


def law(function: F) -> F:
    """Remember `function` as a law and return it unchanged."""
    _waiting.append(function)
    return function


def compile_laws() -> None:
    """Make every law known so far callable from numba code; call again after importing more laws."""
    from roce_pkt.jit import callable_when_compiled

    while _waiting:
        callable_when_compiled(_waiting.pop(), forceinline=True)


def twin(layout: np.dtype[Any]) -> type:
    """The plain Python class with the fields of a record: what laws are stepped on outside an engine.

    Args:
        layout: A structured dtype of 64-bit integers and floats, or of arrays of them.

    Returns:
        A class whose objects start as zeros, or as a copy of the record given to it; arrays are lists.
    """
    names = layout.names or ()
    zeros = np.zeros((), layout)[()]

    def __init__(self: object, record: Any = None) -> None:  # noqa: N807
        values = zeros if record is None else record
        for name in names:
            setattr(self, name, values[name].tolist())

    def __repr__(self: object) -> str:  # noqa: N807
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)

    return type("Twin", (), {"__slots__": names, "__init__": __init__, "__repr__": __repr__})
