"""The two ways to read a capture into columns: plainly, and compiled; tests hold them to each other."""

from roce_pkt import capture
from roce_pkt.capture import fill
from roce_pkt.capture.compiled import compiled_batches
from roce_pkt.capture.frames import Frames


def plain(path):
    walk = capture.open(path).walk()
    parts = []
    while not walk.over:
        parts.append(fill.plain_batch(walk, 4791))
    return Frames.concat(parts), walk.capture


def compiled(path):
    walk = capture.open(path).walk()
    return Frames.concat(compiled_batches(walk, 4791, verify=True)), walk.capture
