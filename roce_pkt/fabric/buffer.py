"""Shared packet memory: what an ingress group may hold, and when it asks its neighbour to stop.

A group is the frames of one class that came in by one port. It owns a reserve, then takes from the
pool shared by the switch up to alpha times what is free there, then (lossless classes) from its
headroom. Sources: 802.1Qbb 36; dynamic thresholds as in Choudhury and Hahne 1998; the order of
reserve, shared and headroom as in the HPCC simulator's switch-mmu.
"""

from __future__ import annotations

from typing import Any

from roce_pkt.cc.law import law


@law
def threshold_bytes(sw: Any, group: Any) -> float:
    """Shared octets a group may use now: alpha (shared total - shared used)."""
    return group.alpha * (sw.shared_total_bytes - sw.shared_used_bytes)


@law
def shared_bytes(group: Any) -> int:
    """Octets of a group beyond its reserve, headroom not counted."""
    return max(group.used_bytes - group.reserve_bytes, 0)


@law
def admit(sw: Any, group: Any, size: int) -> bool:
    """Take a frame into the buffer, or refuse it.

    Args:
        sw: Switch: `shared_total_bytes`, `shared_used_bytes`.
        group: Its ingress group: `used_bytes`, `reserve_bytes`, `alpha`, `headroom_bytes`,
            `headroom_used_bytes`.
        size: Octets of the frame.
    """
    beyond = group.used_bytes + size - group.reserve_bytes
    if beyond <= 0:
        group.used_bytes += size
        return True
    if beyond <= threshold_bytes(sw, group):
        group.used_bytes += size
        sw.shared_used_bytes += min(size, beyond)
        return True
    if group.headroom_used_bytes + size <= group.headroom_bytes:
        group.headroom_used_bytes += size
        return True
    return False


@law
def release(sw: Any, group: Any, size: int) -> None:
    """A frame leaves: headroom is emptied first, then the shared pool, then the reserve."""
    from_headroom = min(group.headroom_used_bytes, size)
    group.headroom_used_bytes -= from_headroom
    rest = size - from_headroom
    sw.shared_used_bytes -= min(rest, shared_bytes(group))
    group.used_bytes -= rest


@law
def must_pause(sw: Any, group: Any) -> bool:
    """XOFF: the group is in its headroom, or at its threshold."""
    return group.headroom_used_bytes > 0 or shared_bytes(group) >= threshold_bytes(sw, group)


@law
def may_resume(sw: Any, group: Any, resume_bytes: int) -> bool:
    """XON: headroom is empty and the group is `resume_bytes` below its threshold, or out of the pool."""
    if group.headroom_used_bytes > 0:
        return False
    shared = shared_bytes(group)
    return shared == 0 or shared + resume_bytes <= threshold_bytes(sw, group)
