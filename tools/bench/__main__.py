"""Measure reading, verifying, writing, editing and filtering as ratios, in one run on one machine.

    python tools/bench [CAPTURE ...] [--megabytes 500] [--runs 5] [--json FILE]

The work file is made of real frames repeated. Every figure is the median of several runs of one
process with warm caches, in CPU time where one core works and wall time where two do; the others
(Scapy, dpkt, tshark) read a shorter file of the same frames.
The sink is memory, always; what that is in a file on this machine depends on its disk.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import measure


def table(results: list[dict[str, Any]]) -> str:
    """The results as a table of 80 columns."""
    lines = [f"{'what':<44}{'M/s':>9}{'GB/s':>9}{'ratio':>9}  goal"]
    for row in results:
        rate = f"{row['frames_per_s'] / 1e6:.3g}"
        volume = f"{row['bytes_per_s'] / 1e9:.3g}" if row.get("bytes_per_s") else ""
        ratio = f"{row['ratio']:.3g}" if row.get("ratio") else ""
        lines.append(f"{row['name']:<44}{rate:>9}{volume:>9}{ratio:>9}  {row.get('goal', '')}")
    return "\n".join(lines)


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(
        prog="tools/bench", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("captures", nargs="*", type=Path, help="captures whose frames are repeated")
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="roce-pkt-bench-") as folder:
        results, notes = measure.all_of(args.captures, Path(folder), args.megabytes, args.runs)
    print(table(results))
    print("sink: memory (a reused buffer); median of", args.runs, "runs;", notes["machine"])
    for note in notes["remarks"]:
        print("note:", note)
    if args.json:
        args.json.write_text(json.dumps({"results": results, **notes}, indent=1) + "\n")
    return 0 if notes["columns_equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
