import pytest

from roce_pkt.errors import InputError, ScenarioError
from roce_pkt.scenario import presets
from roce_pkt.scenario.field import rows_of
from roce_pkt.scenario.flows import as_flows, flow_rows
from roce_pkt.scenario.place import line_of
from roce_pkt.scenario.reader import read_file, read_text
from roce_pkt.scenario.schema import Fabric, Pfc, Scenario, Traffic

GOOD = """name = "x"
[fabric]
hosts = 4
[switch]
buffer = "1MiB"
ecn = { kmin = "5KB", kmax = "200KB", pmax = 0.01 }
[switch.pfc]
alpha = 0.25
[[traffic]]
receiver = 2
[[traffic]]
pattern = "flows"
pairs = [[0, 1]]
verb = "send"
"""


def test_values_units_and_defaults():
    scenario = read_text(GOOD)
    assert scenario.switch.buffer_bytes == 1 << 20
    assert (scenario.switch.ecn.kmin_bytes, scenario.switch.ecn.pmax) == (5000, 0.01)
    assert scenario.fabric.delay_ps == 1_000_000
    assert [t.verb for t in scenario.traffic] == ["write", "send"]


def test_every_default_is_written_out():
    written = read_text(GOOD).written

    def keys(section, table):
        for key, (_, row) in rows_of(section).items():
            assert key in table
            if isinstance(row.default, type) and key not in ("traffic", "fault"):
                keys(row.default, table[key])

    keys(Scenario, written)
    for table in written["traffic"]:
        keys(Traffic, table)
    assert written["switch"]["pfc"]["alpha"] == 0.25
    assert written["switch"]["pfc"]["reserve"] == "4KiB"


def test_what_is_written_out_reads_back_to_the_same_scenario():
    def toml(table, prefix=""):
        plain = {k: v for k, v in table.items() if not isinstance(v, dict) and k not in ("traffic", "fault")}
        text = "".join(f"{k} = {value(v)}\n" for k, v in plain.items())
        for key, inner in table.items():
            if isinstance(inner, dict):
                text += f"[{prefix}{key}]\n" + toml(inner, f"{prefix}{key}.")
        for inner in table.get("traffic", []):
            text += "[[traffic]]\n" + toml(inner)
        return text

    def value(v):
        import json

        return json.dumps(v)

    first = read_text(GOOD)
    again = read_text(toml(first.written))
    assert again == first


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("pmax = 0.01", "pmx = 0.01", ("s.toml:6: switch.ecn.pmx", "did you mean 'pmax'")),
        ('"5KB"', '"5us"', ("s.toml:6: switch.ecn.kmin", "unknown unit 'us'", "'5us'", "KiB")),
        ('"5KB"', '"5"', ("s.toml:6: switch.ecn.kmin", "'5' has no unit")),
        ('"200KB"', '"2MB"', ("s.toml:6: switch.ecn.kmax", "2000000 octets is above the buffer", "1048576")),
        (
            "receiver = 2",
            "receiver = 4",
            ("s.toml:10: traffic[0].receiver", "host 4 does not exist", "0 to 3"),
        ),
        ('verb = "send"', 'verb = "sned"', ("s.toml:14: traffic[1].verb", "'sned'", "did you mean 'send'")),
        ("hosts = 4", "hosts = 4.5", ("s.toml:3: fabric.hosts", "4.5 is not a whole number from 2 to 4096")),
        ("hosts = 4", "hosts = true", ("s.toml:3: fabric.hosts", "not a whole number")),
        ("[switch.pfc]", "[swich.pfc]", ("swich", "did you mean 'switch'")),
        ("alpha = 0.25", "alpha = -1", ("s.toml:8: switch.pfc.alpha", "-1 is not a number from 0 to 64")),
        ("alpha = 0.25", "priorities = [9]", ("s.toml:8: switch.pfc.priorities", "9", "0 to 7")),
        ("pairs = [[0, 1]]", "pairs = [[0, 0]]", ("s.toml:13: traffic[1].pairs", "cannot send to itself")),
        ("pairs = [[0, 1]]", "", ("traffic[1].pairs", "needs pairs")),
        ('buffer = "1MiB"', 'buffer = "1KB"', ("s.toml:6", "above the buffer")),
        ('name = "x"', 'taps = ["hst2"]', ("s.toml:1: taps", "'hst2' is no tap")),
        ('name = "x"', 'duration = "200s"', ("s.toml:1: duration", "100s")),
        ("hosts = 4", "hosts = ", ("s.toml", "not TOML", "line 3")),
    ],
)
def test_an_error_names_file_line_key_value_and_what_is_allowed(old, new, parts):
    assert old in GOOD
    with pytest.raises(ScenarioError) as error:
        read_text(GOOD.replace(old, new, 1), "s.toml")
    text = str(error.value)
    assert "\n" not in text
    for part in parts:
        assert part in text


def test_no_traffic_is_an_error():
    with pytest.raises(ScenarioError, match="at least one"):
        read_text('name = "x"\n')


def test_changes_reach_into_tables():
    scenario = read_text(GOOD, changes := "s.toml", {"switch.ecn.kmin": "10KB", "fabric.hosts": "8"})
    assert changes == "s.toml"
    assert (scenario.switch.ecn.kmin_bytes, scenario.fabric.hosts) == (10_000, 8)
    with pytest.raises(ScenarioError, match="did you mean 'kmin'"):
        read_text(GOOD, "s.toml", {"switch.ecn.kmn": "10KB"})


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_file(tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"name = \xff")
    with pytest.raises(InputError, match="octet 7"):
        read_file(tmp_path / "b.toml")


def test_lines_of_keys_in_tables_inline_tables_and_arrays():
    assert line_of(GOOD, ("fabric", "hosts")) == 3
    assert line_of(GOOD, ("switch", "ecn", "pmax")) == 6
    assert line_of(GOOD, ("switch", "pfc", "alpha")) == 8
    assert line_of(GOOD, ("traffic", 0, "receiver")) == 10
    assert line_of(GOOD, ("traffic", 1, "pairs")) == 13
    assert line_of(GOOD, ("name",)) == 1


@pytest.mark.parametrize("name", presets.names())
def test_presets_read_and_say_what_to_look_at(name):
    scenario = presets.load(name)
    assert scenario.name == name
    assert "look at" in presets.find(name).about.lower()


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(ScenarioError, match="did you mean 'incast'"):
        presets.find("incats")


def flows(scenario):
    return as_flows(scenario, flow_rows(scenario))


def traffic(**changes):
    text = "".join(f"{k} = {v}\n" for k, v in changes.items())
    return read_text(f"[fabric]\nhosts = 5\n[[traffic]]\n{text}")


def test_patterns():
    pairs = [(f.src, f.dst) for f in flows(traffic(receiver=4))]
    assert pairs == [(0, 4), (1, 4), (2, 4), (3, 4)]
    pairs = [(f.src, f.dst) for f in flows(traffic(pattern='"all-to-all"'))]
    assert len(pairs) == len(set(pairs)) == 20
    assert pairs[:5] == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]
    pairs = [(f.src, f.dst) for f in flows(traffic(pattern='"permutation"'))]
    assert sorted(a for a, _ in pairs) == sorted(b for _, b in pairs) == [0, 1, 2, 3, 4]
    assert all(a != b for a, b in pairs)
    starts = [f.start_ps for f in flows(traffic(receiver=4, qps=2, stagger='"1us"'))]
    assert starts == [i * 1_000_000 for i in range(8)]


def test_names_carry_units_and_keys_do_not():
    assert "headroom" in rows_of(Pfc)
    assert rows_of(Pfc)["headroom"][0] == "headroom_bytes"
    assert rows_of(Fabric)["rate"][0] == "rate_bps"
