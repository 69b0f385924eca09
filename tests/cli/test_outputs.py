"""Outputs of every verb: never the input itself, never twice the same; what could not be read is told."""

from __future__ import annotations

import json
import os
import sys

import pytest
from conftest import ROOT, said

WHOLE = (ROOT / "pcaps" / "rc_read.pcap").read_bytes()
SCENARIO = '[fabric]\nhosts = 3\n[[traffic]]\nreceiver = 2\nmessage = "1MB"\n'

COPIES = ["icrc fix {in} -o {out}", "rewrite {in} -o {out}", "impair {in} -o {out} --fault 'ce nth=1'"]
FROM_CAPTURE = [*COPIES, "export {in} -o {out}", "replay {in} --events {out}", "replay {in} --report {out}"]
FROM_SCENARIO = [
    "simulate {in} --png {out}",
    "simulate {in} --events {out}",
    "generate {in} -o {out}",
    "sweep {in} --vary seed=1,2 -o {out}",
]


def words(text, **names):
    import shlex

    return [word.format(**names) for word in shlex.split(text)]


@pytest.mark.parametrize("link", [False, True], ids=["itself", "by a link"])
@pytest.mark.parametrize("command", [*FROM_CAPTURE, *FROM_SCENARIO])
def test_the_input_is_never_written_over(capsys, tmp_path, command, link):
    source, other = tmp_path / "in", tmp_path / "other"
    octets = SCENARIO.encode() if command in FROM_SCENARIO else WHOLE[:700]
    source.write_bytes(octets)
    if link:
        os.link(source, other)
    target = other if link else source
    code, out, err = said(capsys, *words(command, **{"in": source, "out": target}), "--force")
    assert (code, out, err) == (2, "", f"roce-pkt: {target}: is the input itself; name another file\n")
    assert source.read_bytes() == octets


@pytest.mark.parametrize("kernels", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("command", COPIES)
def test_copies_tell_what_they_could_not_read(capsys, tmp_path, monkeypatch, command, kernels):
    import roce_pkt.capture.kernel_walk as loaded

    monkeypatch.setitem(sys.modules, loaded.__name__, loaded)
    if not kernels:  # as in a process that has read nothing yet
        monkeypatch.delitem(sys.modules, loaded.__name__)
    source, target = tmp_path / "cut.pcap", tmp_path / "copy.pcap"
    source.write_bytes(WHOLE[:700])
    given = words(command, **{"in": source, "out": target})
    code, _, err = said(capsys, *given)
    assert code == 0
    assert err == "warning: octet 626: 74 octets of an unfinished record; it is cut, or still being written\n"
    document = json.loads(said(capsys, *given, "--force", "--format", "json")[1])
    assert [loss["rule"] for loss in document["losses"]] == ["capture.cut"]


@pytest.mark.parametrize(
    "command",
    ["simulate {in} --events {out} --series {out}", "sweep {in} --vary seed=1,2 -o {out} --png {out}"],
)
def test_two_outputs_are_two_files(capsys, tmp_path, command):
    source, target = tmp_path / "s.toml", tmp_path / "out"
    source.write_text(SCENARIO)
    code, _, err = said(capsys, *words(command, **{"in": source, "out": target}))
    assert (code, err) == (2, f"roce-pkt: {target}: is named for two outputs\n")
    assert not target.exists()
