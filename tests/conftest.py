from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parent.parent
PCAPS = sorted((ROOT / "pcaps").glob("*.pcap*"))

# The same examples on every machine and every run; more of them with ROCE_PKT_EXAMPLES.
hypothesis.settings.register_profile(
    "project",
    derandomize=True,
    deadline=None,
    max_examples=int(os.environ.get("ROCE_PKT_EXAMPLES", "100")),
    database=None,
)
hypothesis.settings.load_profile("project")


def said(capsys, *words):
    """Exit code, output and errors of the command, run in this process."""
    from roce_pkt.cli.app import run

    code = run([str(w) for w in words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="session")
def pcaps() -> Path:
    return ROOT / "pcaps"


@pytest.fixture(scope="session")
def captures() -> Path:
    """A larger set of captures with their README of known truth, for those who have it."""
    folder = Path(os.environ.get("ROCE_PKT_CAPTURES", "/nowhere"))
    if not (folder / "README.md").is_file():
        pytest.skip("ROCE_PKT_CAPTURES names no folder of captures; the set in pcaps/ is tested")
    return folder
