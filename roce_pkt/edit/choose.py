"""Whether a fault is done to a frame: the choosers of a `[[fault]]` table as laws, for captures and engines.

State `rule`: the choosers by the names of `scenario.fault.Fault`, addresses as numbers of any kind;
`chance` of 2^32, `dice` and `dice_step` of its own stream, `fitted`, `hits`, `left`.
"""

# ruff: noqa: PLR1714 - compiled code compares; it does not search tuples

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import law
from roce_pkt.scenario.dice import throw
from roce_pkt.scenario.fault import ALL, ANY

CERTAIN = 1 << 32


@law
def fits(
    rule: Any, src: int, dst: int, qp: int, opcode: int, psn: int, message: int, occurrence: int
) -> bool:
    """Whether all choosers that look at the frame alone agree.

    Args:
        rule: A rule.
        src: Source address.
        dst: Destination address.
        qp: Destination queue pair.
        opcode: BTH opcode.
        psn: BTH PSN.
        message: Number of its message in its flow, from 1; 0 for answers.
        occurrence: How often this packet has been sent, this time included.
    """
    return (
        (rule.src == ANY or rule.src == src)
        and (rule.dst == ANY or rule.dst == dst)
        and (rule.qp == ANY or rule.qp == qp)
        and (rule.opcode == ANY or rule.opcode == opcode)
        and (rule.psn == ANY or rule.psn == psn)
        and (rule.message == ALL or rule.message == message)
        and (rule.occurrence == ALL or rule.occurrence == occurrence)
    )


@law
def chooses(rule: Any) -> bool:
    """Whether a fitting frame is hit, by order, chance and burst."""
    rule.fitted += 1
    if rule.count != ALL and rule.hits >= rule.count:
        return False
    if rule.left == 0:
        if rule.nth != ALL and rule.nth != rule.fitted:
            return False
        if rule.chance < CERTAIN and throw(rule) >= rule.chance:
            return False
        rule.left = rule.burst
    rule.left -= 1
    rule.hits += 1
    return True


FIELDS = (
    "src", "dst", "qp", "opcode", "psn", "message", "occurrence", "nth", "count", "burst", "chance", "dice",
    "dice_step", "fitted", "hits", "left",
)  # fmt: skip
"""What a rule is and remembers."""


def hit_by(rules: Any, facts: Any, hits: Any) -> None:
    """Which frames are hit by which rules.

    Args:
        rules: In any order: they do not disturb each other.
        facts: What `fits` looks at, a row of numbers each.
        hits: For each rule a row with a place for each frame, filled.
    """
    src, dst, qp, opcode, psn, message, occurrence = facts
    for k in range(len(rules)):
        rule = rules[k]
        for n in range(len(psn)):
            hits[k][n] = fits(
                rule, src[n], dst[n], qp[n], opcode[n], psn[n], message[n], occurrence[n]
            ) and chooses(rule)
