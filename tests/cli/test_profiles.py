"""`roce-pkt profiles`: every value with its unit and source."""

import json

import pytest

from roce_pkt.cc import dcqcn
from roce_pkt.cc.profiles import PROFILES
from roce_pkt.cli.app import run
from roce_pkt.endpoint import notification


def said(capsys, *words):
    code = run(["profiles", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_side_by_side(capsys):
    code, out, err = said(capsys)
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    assert rows["parameter"] == list(PROFILES)
    assert rows["increase_period"] == ["55", "us", "300", "us", "300", "us", "55", "us"]
    assert rows["cut_trigger"] == ["each-cnp", "polled", "polled", "each-cnp"]
    assert {row.name for row in dcqcn.PARAMETERS} <= rows.keys()
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


@pytest.mark.parametrize("name", PROFILES)
def test_one_with_sources_and_foreign_names(capsys, name):
    code, out, err = said(capsys, name)
    assert (code, err) == (0, "")
    count = len(dcqcn.PARAMETERS.rows) + len(notification.PARAMETERS.rows)
    assert out.count("source: ") == count
    assert "rpg_ai_rate" in out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


def test_json_has_values_units_and_sources(capsys):
    code, out, _ = said(capsys, "--format", "json")
    profiles = {profile["name"]: profile for profile in json.loads(out)}
    assert code == 0
    values = {p["name"]: p for p in profiles["mlx"]["parameters"]}
    assert (values["increase_period"]["value"], values["increase_period"]["unit"]) == (300_000_000, "ps")
    assert (values["np.interval"]["value"], values["ai_rate"]["value"]) == (4_000_000, 5e6)
    assert values["cut_trigger"]["value"] == "polled"
    assert {"name": "dce_tcp_g", "unit": "1024ths kept"} in values["g"]["aliases"]
    assert all(p["source"] and p["doc"] for profile in profiles.values() for p in profile["parameters"])
    assert profiles["paper"]["parameters"][-3]["value"] == 50_000_000


def test_an_unknown_name(capsys):
    code, out, err = said(capsys, "mlxx")
    assert (code, out) == (2, "")
    assert "did you mean 'mlx'" in err
