"""The loop's machine code in units: the loop itself, and what it calls by address.

Units are compiled side by side, so what few packets need is not in the loop's. What few runs need
is not compiled for all others: faults, lists of messages, selective repeat, and laws over
acknowledgements are units of their own. Their functions' addresses are words of `w`.
"""

from __future__ import annotations

from typing import Any

from roce_pkt.machine_code import Unit, addresses

LOOP, RARE, FAULTS, LISTS, SELECTIVE, LAWS = "loop", "rare", "faults", "lists", "selective", "laws"
RUN = "loop_run"
FUNCTIONS = {
    LOOP: (RUN,),
    RARE: (
        *("host_react", "host_timers", "host_take_response"),
        *("host_notify", "pausing_pause_arrives", "pausing_pause_timers", "port_tell", "port_choose"),
        *("port_look_at_pairs", "recorder_record", "loop_sample"),
    ),
    FAULTS: ("faults_strike", "faults_release"),
    LISTS: (
        *("messages_read", "messages_holds", "messages_sent", "messages_due_ps", "waits_arrived"),
        *("waits_follow", "host_returned", "host_answered", "host_answer_held"),
    ),
    SELECTIVE: (
        "host_execute_selective",
        "selective_acknowledged",
        "selective_refused",
        "selective_timed_out",
    ),
    LAWS: (
        *("reaction_on_ack", "reaction_on_cnp", "reaction_on_timer"),
        *("reaction_leave_sender", "reaction_leave_switch"),
    ),
}
"""Functions of each unit, by module and name."""
BY_ADDRESS = tuple(name for unit in FUNCTIONS if unit != LOOP for name in FUNCTIONS[unit])
"""Words of `w` that hold an address of code, 0 where a run does not need it."""
CALLS = ("on_ack", "on_cnp", "on_timer")
"""Functions of a law that is called by address; words of `w` too."""
LAW = "law-"
"""Before the name of a law of `cc`: its unit."""
_HERE = "roce_pkt.engine"


def needed(w: Any, half: Any) -> list[str]:
    """Units that a run needs beside those that every run needs."""
    wanted = {FAULTS: w["rules"], LISTS: half["listed"].any(), SELECTIVE: w["selective"], LAWS: w["called"]}
    return [unit for unit, some in wanted.items() if some]


def install(w: Any, half: Any, law: str) -> int:
    """Load what a run needs, compiling what this machine has not compiled yet, and tell `w` where it is.

    Args:
        w: Record of `records.WORLD`.
        half: The queue pairs' halves.
        law: Name of the law of `cc` that is called by address, or "".

    Returns:
        The address of the loop.
    """
    units = [Unit(name, "engine", f"{_HERE}.natives") for name in (LOOP, RARE, *needed(w, half))]
    if law:
        units.append(Unit(LAW + law, "engine", f"{_HERE}.by_address"))
    found = addresses(units, "the simulator")
    for name in (*BY_ADDRESS, *(CALLS if law else ())):
        w[name] = found.get(name, 0)
    return found[RUN]
