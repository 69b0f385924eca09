"""Records and their plain twins, to and fro."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def record_of(values: Any, layout: np.dtype[Any]) -> Any:
    """A record with the values of a twin, its fields attributes in Python as in compiled code."""
    row = tuple(getattr(values, name) for name in layout.names or ())
    return np.array([row], layout).view(np.recarray)[0]


def more(records: NDArray[Any], values: Any, count: int) -> NDArray[Any]:
    """Records with `count` more, all with the values of a twin."""
    row = tuple(getattr(values, name) for name in records.dtype.names or ())
    return np.concatenate((records, np.full(count, np.array(row, records.dtype))))


def twins_of(records: NDArray[Any], kind: type) -> list[Any]:
    """Records as their plain twins."""
    names, out = records.dtype.names or (), []
    for values in records.tolist():
        one: Any = object.__new__(kind)
        for name, value in zip(names, values, strict=True):
            setattr(one, name, value)
        out.append(one)
    return out


def copy_of(values: Any) -> Any:
    """Another twin of the same values."""
    one = object.__new__(type(values))
    for name in type(values).__slots__:
        setattr(one, name, getattr(values, name))
    return one
