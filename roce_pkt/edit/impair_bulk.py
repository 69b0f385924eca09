"""Faults to millions of frames: most are passed on in runs, the machine sees those something happens to.

That is a frame that a rule hits, one whose time lets another go that was held back, and the last one that
a held frame of its flow waits for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from roce_pkt.capture.columns import header_bit
from roce_pkt.capture.frames import Frames
from roce_pkt.capture.model import Record
from roce_pkt.capture.reader import Capture
from roce_pkt.capture.run import Run
from roce_pkt.edit.act import Place
from roce_pkt.edit.impair import Impairer
from roce_pkt.edit.pick import Facts, Flow
from roce_pkt.flows.table import FlowTable
from roce_pkt.wire import ib, net

_FACTS = (
    "src_hi", "src_lo", "dst_hi", "dst_lo", "dqpn", "opcode", "psn", "headers", "l3_offset", "payload_offset",
    "payload_len",
)  # fmt: skip
_NETWORKS = tuple((header_bit(header), header) for header in (net.IPV4, net.IPV6, ib.GRH))


class Batches:
    """Impairs a capture batch after batch.

    Args:
        capture: Whose frames.
        machine: What is done to them.
    """

    def __init__(self, capture: Capture, machine: Impairer) -> None:
        self._capture, self._machine = capture, machine
        self._flows = FlowTable()

    def runs(self) -> Iterator[Run | Record]:
        """Frames as they leave; those still held at the end last."""
        pcapng = self._capture.format == "pcapng"
        for frames in self._capture.batches(verify=False):
            if len(frames):
                yield from self._batch(frames, Run.of(frames, pcapng=pcapng)).pieces()
        yield from self._machine.end()

    def _batch(self, frames: Frames, run: Run) -> Run:
        batch, machine = _Batch(frames, run, self._flows), self._machine
        hits = machine.picker.look_at_all(frames, batch.roce, batch.flow)
        rows, facts = [*hits, len(run)], batch.facts_of([*hits])
        at = number = 0
        while at < len(run):
            turn = min(rows[number], batch.due(machine.due_ns, at), batch.turn(machine.waiting(), at))
            batch.keep(at, turn)
            machine.passed(turn - at)
            for flow, count in batch.passing(machine.waiting(), at, turn):
                machine.went_by(flow, count)
            if turn < len(run):
                if turn == rows[number]:
                    batch.put(machine.see(run.record(turn), facts[number], hits[turn]))
                    number += 1
                else:
                    batch.put(machine.see(run.record(turn), batch.facts(turn), []))
            at = turn + 1
        return batch.leaving()


class _Batch:
    """A batch on its way through the machine.

    Args:
        frames: As read.
        run: The same, to be written.
        flows: Numbers of flows.
    """

    def __init__(self, frames: Frames, run: Run, flows: FlowTable) -> None:
        self.roce = np.flatnonzero(frames.has(ib.BTH))
        self._frames, self._run, self._flows = frames, run, flows
        self._latest = np.maximum.accumulate(frames.time_ns)
        self._is_roce = frames.has(ib.BTH)
        self._numbers: NDArray[np.int64] | None = None
        self._places: dict[Flow, NDArray[np.int64]] = {}
        self._known: dict[tuple[int, ...], int] = {}
        self._firsts: list[int] = []
        self._counts: list[int] = []
        self._records: list[Record] = []

    def flow(self) -> NDArray[np.int64]:
        """Flow number of each RoCE frame."""
        if self._numbers is None:
            self._numbers = self._flows.number(self._frames[self.roce])
        return self._numbers

    def facts(self, row: int) -> Facts | None:
        """What is known of a frame; None for one that is no RoCE."""
        return self.facts_of([row])[0] if self._is_roce[row] else None

    def facts_of(self, rows: list[int]) -> list[Facts]:
        """What is known of RoCE frames."""
        found = []
        columns = (self._frames.column(name)[rows].tolist() for name in _FACTS)
        for src_hi, src_lo, dst_hi, dst_lo, dqpn, opcode, psn, headers, l3, payload, size in zip(
            *columns, strict=True
        ):
            header = next((h for bit, h in _NETWORKS if headers & bit), None)
            flow = (src_hi << 64 | src_lo, dst_hi << 64 | dst_lo, dqpn)
            found.append(Facts(flow, opcode, psn, Place(header, l3, payload, size)))
        return found

    def due(self, due_ns: int | None, at: int) -> int:
        """The first row, from `at` on, at whose time a held frame is due."""
        if due_ns is None:
            return len(self._run)
        row = int(np.searchsorted(self._latest, due_ns))
        if row < at:
            # times that run backwards: the latest so far was an earlier row's
            late = np.flatnonzero(self._run.time_ns[at:] >= due_ns)
            row = at + int(late[0]) if len(late) else len(self._run)
        return row

    def turn(self, waiting: dict[Flow, int], at: int) -> int:
        """The first row, from `at` on, behind which a held frame leaves as enough of its flow went by."""
        row = len(self._run)
        for flow, left in waiting.items():
            places = self._of(flow)
            n = int(np.searchsorted(places, at)) + left - 1
            if n < len(places):
                row = min(row, int(places[n]))
        return row

    def passing(self, waiting: dict[Flow, int], at: int, end: int) -> Iterator[tuple[Flow, int]]:
        """How many frames of the flows that wait go by between two rows."""
        for flow in waiting:
            first, last = np.searchsorted(self._of(flow), (at, end)).tolist()
            if last > first:
                yield flow, last - first

    def _of(self, flow: Flow) -> NDArray[np.int64]:
        if flow not in self._places:
            source, destination, qp = flow
            low = (1 << 64) - 1
            key = (source >> 64, source & low, destination >> 64, destination & low, qp)
            numbers = self.flow()
            if len(self._known) < len(self._flows.keys):
                self._known = {one: number for number, one in enumerate(self._flows.keys)}
            self._places[flow] = self.roce[numbers == self._known.get(key, -1)]
        return self._places[flow]

    def keep(self, at: int, end: int) -> None:
        """Rows that leave as they are."""
        if end > at:
            self._firsts.append(at)
            self._counts.append(end - at)

    def put(self, records: Iterator[Record]) -> None:
        """Frames that leave now."""
        for record in records:
            self._firsts.append(-1)
            self._counts.append(1)
            self._records.append(record)

    def leaving(self) -> Run:
        """Everything that leaves, in order."""
        firsts, counts = np.array(self._firsts, np.int64), np.array(self._counts, np.int64)
        places = np.cumsum(counts) - counts
        rows = np.arange(int(counts.sum())) + np.repeat(np.maximum(firsts, 0) - places, counts)
        run = self._run[rows]
        run.put(places[firsts < 0].tolist(), self._records)
        return run
