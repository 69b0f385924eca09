"""Let a capture be sent again and again as one stream: PSNs go on where the last pass ended.

Requests and the answers to them move together: both carry PSNs of the requester's numbering.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from roce_pkt import psn as serial
from roce_pkt.capture.model import Record
from roce_pkt.capture.reader import Capture
from roce_pkt.edit.pick import Flow, facts_of
from roce_pkt.flows.pairs import Evidence
from roce_pkt.flows.survey import Survey
from roce_pkt.wire import ib, icrc
from roce_pkt.wire.frame import dissect
from roce_pkt.wire.opcode import CNP, OPCODES


class _Span:
    """How many PSNs a numbering uses, as far as its frames show."""

    def __init__(self) -> None:
        self._first = -1
        self._low = self._high = 0

    def add(self, psns: Iterable[int]) -> None:
        for psn in psns:
            if self._first < 0:
                self._first = psn
            position = serial.distance(psn, serial.add(self._first, self._high)) + self._high
            self._low, self._high = min(self._low, position), max(self._high, position)

    @property
    def size(self) -> int:
        """PSNs from the lowest to the highest."""
        return 0 if self._first < 0 else self._high - self._low + 1


class Resume:
    """Frames of later passes over a capture.

    Args:
        capture: Read twice to learn which flows belong together and how many PSNs each uses.
    """

    def __init__(self, capture: Capture) -> None:
        survey = Survey()
        for frames in capture:
            survey.add(frames)
        evidence = Evidence(survey, range(len(survey.flows)))
        for frames in capture.batches(verify=False):
            evidence.add(survey.rows(frames))
        partners = evidence.partners()
        keys = [(k[0] << 64 | k[1], k[2] << 64 | k[3], k[4]) for k in survey.flows.keys]
        self._partner: dict[Flow, Flow] = {keys[a]: keys[b] for a, b in partners.items()}
        for number, key in enumerate(keys):
            back = survey.sends_back(number)
            if key not in self._partner and len(back) == 1:
                self._partner[key] = keys[back[0]]
        self._udp_port = capture.udp_port
        self._spans: dict[Flow, _Span] = {}
        self._learn(capture, survey, keys)

    def _learn(self, capture: Capture, survey: Survey, keys: list[Flow]) -> None:
        response = np.zeros(256, bool)
        response[[op.value for op in OPCODES.values() if not op.request]] = True
        for frames in capture.batches(verify=False):
            rows = survey.rows(frames)
            for flow, opcode, psn in zip(
                rows.flow.tolist(), rows.opcode.tolist(), rows.psn.tolist(), strict=True
            ):
                if opcode != CNP:
                    owner = self._owner(keys[flow], answers=bool(response[opcode]))
                    self._spans.setdefault(owner, _Span()).add((psn,))

    def _owner(self, flow: Flow, *, answers: bool) -> Flow:
        """The flow whose requests number a frame."""
        return self._partner.get(flow, flow) if answers else flow

    def frame(self, record: Record, passes: int) -> bytes | memoryview:
        """A frame as it looks after `passes` whole passes."""
        read = dissect(record.octets, record.wire_len, record.link_type, self._udp_port)
        facts = facts_of(read)
        bth = read.find(ib.BTH)
        if facts is None or bth is None or facts.opcode == CNP:
            return record.octets
        op = OPCODES.get(facts.opcode)
        span = self._spans.get(self._owner(facts.flow, answers=bool(op and not op.request)))
        if span is None:
            return record.octets
        values = bth.values | {"psn": serial.add(facts.psn, passes * span.size)}
        octets = bytes(record.octets)
        octets = octets[: bth.offset] + ib.BTH.pack(values) + octets[bth.end :]
        if read.cover is None or read.icrc is None or not read.icrc.ok:
            return octets
        end = read.cover.end
        return octets[:end] + icrc.compute(octets, read.cover) + octets[end + ib.ICRC_BYTES :]
