"""Frames of a workload at the rate of its lines, without a fabric: scenario -> rows -> capture."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.kernel_put import PCAP, PCAPNG, RECORD_BYTES
from roce_pkt.capture.model import LINK_ETHERNET, Interface, Record
from roce_pkt.capture.writer import interface_block, packet_block, pcap_header, section_block
from roce_pkt.edit.impair import truth_path
from roce_pkt.errors import InputError
from roce_pkt.files import whole_file
from roce_pkt.kernel_cache import announce_compile
from roce_pkt.scenario import presets
from roce_pkt.scenario.checks import TAP
from roce_pkt.scenario.plan import Plan, plan
from roce_pkt.scenario.schema import Scenario
from roce_pkt.traffic import setup
from roce_pkt.traffic.framing import Framer
from roce_pkt.traffic.rows import RESPONDER, ROW
from roce_pkt.traffic.start import world_of
from roce_pkt.units import PS_PER_NS

BATCH_ROWS = 1 << 15
Rows = NDArray[Any]


@dataclass(slots=True)
class Generated:
    """What was made: frames, their octets, the last time stamp, and faults by kind."""

    frames: int = 0
    octets: int = 0
    last_ns: int = 0
    connections: int = 0
    faults: Counter[str] = field(default_factory=Counter)


class Generation:
    """The frames of a scenario.

    Args:
        scenario: What to send.
        most: Frames to make at most; 0 for no limit.

    Attributes:
        done: Counts, while they grow.
        truth: Lines about faults done, in order.
    """

    def __init__(self, scenario: Scenario, most: int = 0) -> None:
        self.scenario, self.most = scenario, most
        self.plan: Plan = plan(scenario)
        self.done = Generated(connections=len(self.plan.connections))
        self.truth: list[bytes] = []
        self._setup_ps = setup.duration_ps(self.plan)

    def rows(self) -> Iterator[Rows]:
        """Rows of a scenario without faults, in time order, as the taps see them."""
        taps = _tapped_hosts(self.scenario)
        made = self._plain()
        seen = made if taps is None else _at_taps(made, self.plan, taps)
        left = self.most or 1 << 62
        for batch in seen:
            rows = batch[:left]
            left -= len(rows)
            if self._setup_ps:
                rows["time_ps"] += self._setup_ps
            if len(rows):
                yield rows
            if not left:
                return

    def _plain(self) -> Iterator[Rows]:
        from roce_pkt import jit
        from roce_pkt.traffic import schedule

        if not jit.is_compiled(schedule.run):
            announce_compile("the generator")
        run: Any = schedule.run
        world = world_of(self.plan)
        rows = np.zeros(BATCH_ROWS, ROW)
        while count := run(world, rows):
            yield rows[:count]

    def _reacting(self, interface: Interface, *, pcapng: bool) -> Iterator[tuple[int, memoryview]]:
        """Frames of a scenario with faults, as they are recorded between the hosts."""
        from roce_pkt import jit
        from roce_pkt.traffic import react_loop
        from roce_pkt.traffic.react import Reaction

        if not jit.is_compiled(react_loop.run):
            announce_compile("the generator with faults")
        reaction = Reaction(self.plan, self._setup_ps)
        self.done.faults, self.truth = reaction.faults, reaction.truth
        for run in reaction.runs(self.most, _tapped_hosts(self.scenario)):
            if not len(run):
                continue
            heads = run.block_heads((interface,)) if pcapng else run.pcap_heads(LINK_ETHERNET, 1)
            self.done.last_ns = int(run.time_ns[-1])
            self.done.frames += len(run)
            self.done.octets += int(run.size.sum())
            if heads is None:
                raise InputError("times of the scenario's frames do not fit the capture")
            for _, octets in run.chunks(heads, blocks=pcapng):
                yield reaction.last_ps, octets

    def write(self, path: str | Path, *, force: bool = False) -> Generated:
        """Write the frames as pcapng when the name ends so, else as pcap with nanoseconds.

        Args:
            path: Where to; with faults, `edit.impair.truth_path(path)` gets a line for each.
            force: Replace files that are there.

        Raises:
            InputError: The output cannot be written.
        """
        if not self.scenario.fault:
            return self._write(path, force=force)
        with whole_file(truth_path(path), force=force) as truth:
            done = self._write(path, force=force)
            truth.writelines(self.truth)
        return done

    def _write(self, path: str | Path, *, force: bool) -> Generated:
        pcapng = str(path).endswith(".pcapng")
        interface = Interface("generated", speed_bps=int(self.scenario.fabric.rate_bps))
        with whole_file(path, force=force) as stream:
            if pcapng:
                stream.write(section_block() + interface_block(interface))
            else:
                stream.write(pcap_header(1))
            for octets in self._records(pcapng=pcapng, interface=interface):
                stream.write(octets)
        return self.done

    def _records(self, *, pcapng: bool, interface: Interface) -> Iterator[bytes | memoryview]:
        def plain(time_ps: int, frame: bytes) -> bytes:
            self.done.frames += 1
            self.done.octets += len(frame)
            self.done.last_ns = time_ps // PS_PER_NS
            if pcapng:
                record = Record(0, time_ps // PS_PER_NS, 0, 1, len(frame), len(frame), frame)
                return packet_block("", record, interface)
            seconds, rest = divmod(time_ps // PS_PER_NS, 10**9)
            return struct.pack("<IIII", seconds, rest, len(frame), len(frame)) + frame

        for time_ps, frame in setup.before(self.plan):
            yield plain(time_ps, frame)
        last_ps = self._setup_ps
        bulk = (
            self._reacting(interface, pcapng=pcapng) if self.scenario.fault
            else self._bulk(PCAPNG if pcapng else PCAP)
        )  # fmt: skip
        for ended_ps, octets in bulk:
            last_ps = ended_ps
            yield octets
        for time_ps, frame in setup.after(self.plan, last_ps):
            yield plain(time_ps, frame)

    def _bulk(self, file_format: np.uint64) -> Iterator[tuple[int, memoryview]]:
        framer = Framer(self.plan, file_format)
        for rows in self.rows():
            last_ps = int(rows["time_ps"][-1])
            for count, octets in framer.write(rows):
                self.done.frames += count
                self.done.octets += len(octets) - count * RECORD_BYTES[file_format]
                yield last_ps, octets
            self.done.last_ns = last_ps // PS_PER_NS


def _tapped_hosts(scenario: Scenario) -> set[int] | None:
    """Hosts whose line is recorded; None for what all hosts send."""
    hosts = set()
    for tap in scenario.taps:
        found = TAP.fullmatch(tap)
        if found is None or found[1] is None:
            raise InputError(f"tap {tap!r}: without a fabric there are only hosts to record at, e.g. 'host0'")
        if int(found[1]) >= scenario.fabric.hosts:
            raise InputError(f"tap {tap!r}: hosts are host0 to host{scenario.fabric.hosts - 1}")
        hosts.add(int(found[1]))
    return hosts or None


def _at_taps(made: Iterator[Rows], whole: Plan, hosts: set[int]) -> Iterator[Rows]:
    """What tapped hosts send when it leaves, and what they receive a delay after it left."""
    ends = whole.all_ends()[:2].T
    tapped = np.isin(np.arange(whole.scenario.fabric.hosts), list(hosts))
    held = np.zeros(0, ROW)
    for rows in made:
        answers = rows["role"] == RESPONDER
        src = np.where(answers, ends[rows["half"], 1], ends[rows["half"], 0])
        dst = np.where(answers, ends[rows["half"], 0], ends[rows["half"], 1])
        received = rows[tapped[dst] & ~tapped[src]].copy()
        received["time_ps"] += whole.scenario.fabric.delay_ps
        both = np.concatenate((held, rows[tapped[src]], received))
        both = both[np.argsort(both["time_ps"], kind="stable")]
        ready = int(np.searchsorted(both["time_ps"], rows["time_ps"][-1], "right"))
        held = both[ready:]
        yield both[:ready]
    yield held


def generate(
    source: Scenario | str | Path,
    path: str | Path,
    changes: Mapping[str, str] | None = None,
    *,
    most: int = 0,
    force: bool = False,
) -> Generated:
    """Write the frames of a scenario to a capture.

    Args:
        source: A scenario, a file, or the name of a preset.
        path: Where to; pcapng when the name ends so.
        changes: Dotted key -> value, as `{"host.mtu": "4096"}`.
        most: Frames at most; 0 for no limit.
        force: Replace files that are there.

    Raises:
        InputError: The scenario is wrong, or the output cannot be written.
    """
    return Generation(presets.scenario_of(source, changes), most).write(path, force=force)
