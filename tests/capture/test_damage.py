"""Mutated and truncated captures: no crash, no hang, and both ways of reading say the same.

ROCE_PKT_MUTATIONS and ROCE_PKT_SEED make longer runs by hand; with ROCE_PKT_CHECKED=1 every load and
store of the compiled reading is tested against its memory.
"""

import os
import random
import struct
import time
from pathlib import Path

import numpy as np

from roce_pkt import capture
from roce_pkt.capture import fill
from roce_pkt.capture.columns import COLUMNS
from roce_pkt.capture.compiled import compiled_batches
from roce_pkt.capture.frames import Frames
from roce_pkt.capture.model import Interface, Resolution
from roce_pkt.capture.writer import write_pcapng
from roce_pkt.errors import CaptureError

PCAPS = Path(__file__).parents[2] / "pcaps"
MUTATIONS = int(os.environ.get("ROCE_PKT_MUTATIONS", "400"))
SEED = int(os.environ.get("ROCE_PKT_SEED", "20240229"))
TIME_BOX_S = float(os.environ.get("ROCE_PKT_TIME_BOX", "20"))
INTERESTING = (0, 1, 4, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def seeds(folder):
    """Octets of small captures of both formats."""
    out = []
    for path in sorted(PCAPS.glob("*.pcap")):
        octets = path.read_bytes()
        if len(octets) > 60_000:
            continue
        out.append(octets)
        source = capture.open(path)
        wires = [Interface("eth0", 1, 10**11, Resolution(2, 30))]
        write_pcapng(folder / "seed.pcapng", source.records(), wires, comments=["seed"], force=True)
        out.append((folder / "seed.pcapng").read_bytes())
    return out


def mutate(dice, octets):
    """One to five faults: bits, words, cuts, repeats, holes."""
    data = bytearray(octets)
    for _ in range(dice.randint(1, 5)):
        if not data:
            break
        at = dice.randrange(len(data))
        match dice.randrange(7):
            case 0:
                data[at] ^= 1 << dice.randrange(8)
            case 1:
                data[at : at + 4] = struct.pack(dice.choice("<>") + "I", dice.choice(INTERESTING))
            case 2:
                del data[at:]
            case 3:
                del data[at : at + dice.randint(1, 64)]
            case 4:
                data[at:at] = data[at : at + dice.randint(1, 200)]
            case 5:
                data[at : at + dice.randint(1, 300)] = bytes(dice.randint(1, 300))
            case 6:
                data[at : at + 8] = dice.randbytes(8)
    return bytes(data)


def read(path, batches):
    try:
        source = capture.open(path)
        return Frames.concat(batches(source.walk())), source.losses
    except CaptureError as error:
        return str(error), []


def plainly(walk):
    while not walk.over:
        yield fill.plain_batch(walk, 4791)


def test_no_mutation_breaks_reading_and_both_readings_agree(tmp_path):
    dice, started, done = random.Random(SEED), time.monotonic(), 0
    pool = seeds(tmp_path)
    path = tmp_path / "mutated"
    while done < MUTATIONS and (time.monotonic() - started < TIME_BOX_S or not done):
        number = SEED * 1_000_003 + done
        dice.seed(number)
        path.write_bytes(mutate(dice, dice.choice(pool)))
        one, losses = read(path, lambda walk: compiled_batches(walk, 4791, verify=True))
        other, told = read(path, plainly)
        if isinstance(one, str) or isinstance(other, str):
            assert one == other, number
        else:
            for column in COLUMNS:
                assert np.array_equal(one.column(column.name), other.column(column.name)), (
                    number,
                    column.name,
                )
            assert losses == told, number
        done += 1
    assert done > 0
