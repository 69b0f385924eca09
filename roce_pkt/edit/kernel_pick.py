"""Choosers over the columns of a large capture, compiled."""
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

from roce_pkt.cc.law import compile_laws
from roce_pkt.edit import choose
from roce_pkt.jit import borrow, kernel, law

RULE = np.dtype([(name, "i8") for name in choose.FIELDS])

compile_laws()
_hit_by = law(choose.hit_by)


@kernel
def hit_by(rules: Any, facts: Any, hits: Any) -> Any:
    """See `choose.hit_by`.

    Args:
        rules: (rules,) of `RULE`; changed in place.
        facts: (facts, frames).
        hits: (rules, frames), filled.
    """
    _hit_by(borrow(rules), borrow(facts), borrow(hits))
