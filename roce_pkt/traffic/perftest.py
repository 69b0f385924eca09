"""Scenarios from perftest command lines: `ib_write_bw -q 4 -s 65536 -m 4096`.

Two hosts: the client sends (or reads from) the server, as perftest does. Flags that say nothing
about frames (device, GID index, CPU) are accepted and left aside.

Source: perftest's man page and perftest_parameters.c (options and their defaults).
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn

from roce_pkt.errors import InputError, nearest

PROGRAMS = {
    "ib_send_bw": ("send", 65536, 128),
    "ib_write_bw": ("write", 65536, 128),
    "ib_read_bw": ("read", 65536, 128),
    "ib_atomic_bw": ("fetch_add", 8, 128),
    "ib_send_lat": ("send", 2, 1),
    "ib_write_lat": ("write", 2, 1),
    "ib_read_lat": ("read", 2, 1),
    "ib_atomic_lat": ("fetch_add", 8, 1),
}
"""Program -> verb, default size, default depth."""
ATOMICS = {"CMP_AND_SWAP": "cmp_swp", "FETCH_AND_ADD": "fetch_add"}
DEFAULT_ITERATIONS = 1000
_UNUSED_WITH_VALUE = (
    "-d",
    "--ib-dev",
    "-i",
    "--ib-port",
    "-x",
    "--gid-index",
    "-p",
    "--port",
    "-u",
    "--qp-timeout",
)
_UNUSED_FLAGS = (
    "-F",
    "--CPU-freq",
    "-R",
    "--rdma_cm",
    "--report_gbits",
    "-e",
    "--events",
    "-N",
    "--no_peak",
    "-z",
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"--like: {message}")


def _parser(program: str) -> argparse.ArgumentParser:
    _, size, depth = PROGRAMS[program]
    parser = _Parser(prog=program, add_help=False, allow_abbrev=False)
    parser.add_argument("server", nargs="?")
    parser.add_argument("-q", "--qp", type=int, default=1)
    parser.add_argument("-s", "--size", type=int, default=size)
    parser.add_argument("-m", "--mtu", type=int, default=1024)
    parser.add_argument("-n", "--iters", type=int, default=DEFAULT_ITERATIONS)
    parser.add_argument("-t", "--tx-depth", type=int, default=depth)
    parser.add_argument("-c", "--connection", default="RC")
    parser.add_argument("-o", "--outs", type=int, default=16)
    parser.add_argument("-b", "--bidirectional", action="store_true")
    parser.add_argument("-S", "--sl", type=int, default=None)
    parser.add_argument("-A", "--atomic_type", default="FETCH_AND_ADD")
    parser.add_argument("-T", "--tos", type=int, default=None)
    parser.add_argument("--tclass", type=int, default=None)
    parser.add_argument("-D", "--duration", type=int, default=None)
    parser.add_argument("--rate_limit", type=float, default=None)
    parser.add_argument("--burst_size", type=int, default=None)
    parser.add_argument("--flow_label", type=int, default=None)
    parser.add_argument("--ipv6", action="store_true")
    for flag in range(0, len(_UNUSED_WITH_VALUE), 2):
        parser.add_argument(*_UNUSED_WITH_VALUE[flag : flag + 2], dest=f"_value{flag}")
    for flag_name in _UNUSED_FLAGS:
        parser.add_argument(flag_name, action="store_true", dest="_flag")
    return parser


def scenario_text(command: str) -> str:
    """The scenario, as TOML, of a perftest command.

    Args:
        command: As typed on the client, with or without the server's name.

    Raises:
        InputError: Not a perftest program, an unknown flag or a value that cannot be.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--like {command!r}: {error}") from None
    program = words[0].rsplit("/", 1)[-1] if words else ""
    if program not in PROGRAMS:
        raise InputError(
            f"--like {command!r}: {program!r} is none of {', '.join(PROGRAMS)}{nearest(program, PROGRAMS)}"
        )
    given = _parser(program).parse_args(words[1:])
    return _toml(_values(program, given), f"# As {command}\n")


def _values(program: str, given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    verb, _, _ = PROGRAMS[program]
    if verb == "fetch_add":
        if given.atomic_type not in ATOMICS:
            raise InputError(f"--like: atomic type {given.atomic_type!r} is none of {', '.join(ATOMICS)}")
        verb, given.size = ATOMICS[given.atomic_type], 8
    service = given.connection.lower()
    tclass = given.tos if given.tclass is None else given.tclass
    host: dict[str, Any] = {"mtu": given.mtu}
    if tclass is not None:
        host["dscp"] = tclass >> 2
    if given.ipv6:
        host["ip"] = "ipv6"
    traffic: dict[str, Any] = {
        "pattern": "flows",
        "pairs": [[1, 0], [0, 1]] if given.bidirectional else [[1, 0]],
        "verb": verb,
        "transport": service,
        "message": f"{given.size}B",
        "qps": given.qp,
        "depth": given.tx_depth,
        "count": 0 if given.duration else given.iters,
    }
    if given.rate_limit is not None:
        traffic["load"] = f"{given.rate_limit:g}Gbps L2"
    if given.burst_size is not None:
        traffic |= {"arrival": "burst", "burst": given.burst_size}
    frames = {"sport": "flow-label", "flow_label": given.flow_label} if given.flow_label is not None else {}
    return {
        "": {"name": program, "duration": f"{given.duration or 10}s"},
        "fabric": {"hosts": 2},
        "host": host,
        "host.ack": {"every": 4096},
        "host.transport": {"max_rd_atomic": given.outs},
        "frames": frames,
        "[traffic]": traffic,
    }


def _toml(tables: dict[str, dict[str, Any]], comment: str) -> str:
    lines = [comment]
    for table, values in tables.items():
        if table and values:
            lines.append(f"[{table}]")
        lines += [f"{key} = {_word(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _word(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
