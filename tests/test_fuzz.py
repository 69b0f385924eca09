"""A seeded, time-boxed mutation fuzz: damaged captures through whole verbs.

ROCE_PKT_FUZZ_SECONDS lengthens it, ROCE_PKT_FUZZ_SEED moves it; both are printed when it fails.
"""

from __future__ import annotations

import os
import random
import time

import pytest
from conftest import PCAPS

from roce_pkt.cli.app import run

SECONDS = float(os.environ.get("ROCE_PKT_FUZZ_SECONDS", "6"))
SEED = int(os.environ.get("ROCE_PKT_FUZZ_SEED", "20"))
VERBS = (
    ["dissect"],
    ["dissect", "--format", "jsonl"],
    ["check", "--format", "json"],
    ["replay", "--format", "json", "--line-rate", "100Gbps"],
    ["icrc", "explain", "--frame", "2"],
)
INTERESTING = (0, 1, 4, 0x7F, 0x80, 0xFF)


def damaged(dice: random.Random, octets: bytes) -> bytes:
    """A few octets changed, a piece removed, doubled or cut off."""
    out = bytearray(octets)
    for _ in range(dice.randint(1, 12)):
        at = dice.randrange(len(out))
        match dice.randrange(6):
            case 0:
                del out[at : at + dice.randint(1, 40)]
            case 1:
                out[at:at] = out[at : at + dice.randint(1, 40)]
            case 2:
                out[at : at + 4] = dice.choice((b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\0\0\0\x80"))
            case 3 if len(out) > 200:
                del out[at + 100 :]
            case 4:
                out[at] = dice.choice(INTERESTING)
            case _:
                out[at] ^= 1 << dice.randrange(8)
        if not out:
            return b"\0"
    return bytes(out)


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_damaged_captures(words, tmp_path, capsys):
    dice = random.Random(f"{SEED} {words}")
    small = [p for p in PCAPS if p.stat().st_size < 120_000]
    path = tmp_path / "damaged.pcap"
    end = time.monotonic() + SECONDS
    tries = 0
    while time.monotonic() < end:
        source = dice.choice(small)
        octets = damaged(dice, source.read_bytes()[: dice.choice((400, 4000, 40_000))])
        path.write_bytes(octets)
        started = time.monotonic()
        code = run([*words, str(path)])
        _, err = capsys.readouterr()
        tries += 1
        about = f"seed {SEED}, try {tries}, from {source.name}: exit {code}: {err[:300]}"
        assert code in (0, 1, 2), about
        assert "a fault in roce-pkt itself" not in err, about
        assert time.monotonic() - started < 20, about  # a hang, not a speed
    assert tries > 10
