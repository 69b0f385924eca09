"""Writes what a run leaves behind beside its counters: event rows, frame rows, queue histograms."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import numpy as np

from roce_pkt.cc.feedback import MAX_HOPS
from roce_pkt.engine.memory import (
    I64,
    U32,
    cold,
    far,
    frame_at,
    histogram_at,
    law,
    packet_at,
    row_at,
    rp_at,
    set_histogram,
    telemetry_at,
)
from roce_pkt.engine.records import BINS, FRAMES_FULL, MARGIN_ROWS, ROWS_FULL, STRUCK
from roce_pkt.engine.rows import FINE, NO_HALF

GRID_SHIFT = 20
"""Queue lengths are sampled for percentiles every 2^20 ps, by arithmetic, when a queue changes."""


@cold
def note(w, kind, half, port, number, t):
    """Write an event row, with the reaction point's state when a half is named."""
    row = row_at(w, w.rows)
    row.time_ps = t
    row.kind = kind
    row.half = half
    row.port = port
    row.number = number
    if half != np.uint32(NO_HALF):
        s = rp_at(w, half)
        row.rate_bps = s.rate_bps
        row.target_bps = s.target_bps
        row.alpha = s.alpha
        row.phase = s.phase
    w.rows = np.uint32(w.rows + np.uint32(1))
    if w.rows + MARGIN_ROWS > w.row_limit:
        w.stop = ROWS_FULL


@far(U32, U32, I64, I64)
def record(w, p, x, sent, t):
    """Write a frame row: a packet passes a tapped port."""
    f = packet_at(w, x)
    row = frame_at(w, w.frames)
    row.at_ps = t
    row.psn = f.psn
    row.port = p
    row.half = f.half
    row.count = f.count
    row.size = f.size
    row.payload = f.payload
    row.sent = sent
    row.kind = f.kind
    row.class_ = f.class_
    row.ecn = f.ecn
    row.flags = f.flags
    row.hit = f.hit if f.flags & STRUCK else np.uint32(0)
    if w.telemetry_words > 2:
        first = np.uint32(np.uint32(x) * np.uint32(w.telemetry_words) + np.uint32(1))
        for i in range(1 + MAX_HOPS):
            row.telemetry[i] = telemetry_at(w, np.uint32(first + np.uint32(i)))
    w.frames = np.uint32(w.frames + np.uint32(1))
    if w.frames + MARGIN_ROWS > w.frame_limit:
        w.stop = FRAMES_FULL


@law
def bin_of(queue_bytes):
    """Histogram bin of a queue length: exact below 32 octets, then 32 bins an octave (3 %)."""
    octave = 0
    while queue_bytes >= 2 * FINE:
        queue_bytes >>= 1
        octave += 1
    return octave * FINE + queue_bytes


@law
def queue_changes(w, p, o, size, t):
    """A port's queue grows (or, negative, shrinks) by `size` octets; its past is accounted."""
    since = o.queued_since_ps
    queued = o.queued_bytes
    o.queue_byte_ps += queued * (t - since)
    ticks = (t >> GRID_SHIFT) - (since >> GRID_SHIFT)
    if ticks > 0:
        place = np.uint32(p * np.uint32(BINS) + np.uint32(bin_of(queued)))
        set_histogram(w, place, np.uint32(histogram_at(w, place) + np.uint32(ticks)))
    o.queued_since_ps = t
    queued += size
    o.queued_bytes = queued
    o.queue_max_bytes = max(o.queue_max_bytes, queued)
