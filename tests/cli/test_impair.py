from __future__ import annotations

import json
from pathlib import Path

import pytest

from roce_pkt.cli.app import run


def test_impair_states_what_it_did(pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "out.pcap"
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\ndo = "ce"\nprobability = 0.1\n')
    words = [
        "impair",
        str(pcaps / "clean.pcap"),
        "-o",
        str(out),
        "--fault",
        "drop nth=5",
        "--faults",
        str(faults),
    ]
    assert run([*words, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["frames_in"] - document["frames_out"] == document["faults"]["drop"] == 1
    assert len(Path(document["truth"]).read_text().splitlines()) == sum(document["faults"].values())
    assert run(words) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*words, "--force"]) == 0


def test_impair_without_a_fault_says_how(pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["impair", str(pcaps / "clean.pcap"), "-o", str(tmp_path / "x")]) == 2
    assert "--fault 'drop" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            "drp",
            "do: 'drp' is not known (did you mean 'drop'?); allowed: drop, ce, corrupt, duplicate, reorder,",
        ),
        ("drop psn=abc", "psn: 'abc' is not a whole number from -1 to 16777215;"),
        ("drop psm=3", "psm: unknown key 'psm' (did you mean 'psn'?)"),
        (
            "corrupt what=fld",
            "what: 'fld' is not known (did you mean 'field'?); allowed: bit, field, payload",
        ),
    ],
)
def test_a_wrong_word_is_named_by_its_key(
    fault: str, says: str, pcaps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["impair", str(pcaps / "clean.pcap"), "-o", str(tmp_path / "x"), "--fault", fault]) == 2
    assert capsys.readouterr().err.startswith(f"roce-pkt: --fault {fault!r}: {says}")
