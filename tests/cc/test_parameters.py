"""One row a parameter: units, ranges, foreign names, and messages that help."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_pkt.cc import dcqcn
from roce_pkt.cc.profiles import PROFILES, find
from roce_pkt.errors import ScenarioError

TABLE = dcqcn.PARAMETERS


def value(line_rate_bps=100e9, **settings):
    (name,) = settings
    row, _ = TABLE.find(name, f"--set {name}")
    return TABLE.record(settings, line_rate_bps)[row.field].item()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("ai_rate", "40Mbps", 40e6),
        ("ai_rate", "40 Mb/s", 40e6),
        ("min_rate", "5%", 5e9),
        ("increase_period", "55us", 55_000_000),
        ("increase_period", "0.5ms", 500_000_000),
        ("byte_reset", "10MB", 10_000_000),
        ("byte_reset", "1MiB", 1 << 20),
        ("g", "1/256", 1 / 256),
        ("g", "0.5%", 0.005),
        ("g", 0.25, 0.25),
        ("threshold", "5", 5),
        ("threshold", 5, 5),
        ("max_rate", "0", 0),
        ("cut_trigger", "polled", 1),
        ("cap_target", "off", 0),
        ("cap_target", True, 1),
    ],
)
def test_values_with_units(name, text, expected):
    assert value(**{name: text}) == expected


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("dce_tcp_g", 1019, 5 / 1024),
        ("alpha_g", 1019, 5 / 1024),
        ("initial_alpha_value", 1023, 1023 / 1024),
        ("dce_tcp_rtt", 1, 1_000_000),
        ("K", 55, 55_000_000),
        ("T", 55, 55_000_000),
        ("rpg_ai_rate", 5, 5e6),
        ("RPG_AI_RATE", 5, 5e6),
        ("rp_ai_rate", "5", 5e6),
        ("R_HAI", 200, 200e6),
        ("R_AI", "40Mbps", 40e6),
        ("rpg_gd", 11, 0.5),
        ("rpg_gd", 10, 1.0),
        ("rpg_min_dec_fac", 50, 0.5),
        ("RATE_REDUCE_MONITOR_PERIOD", 4, 4_000_000),
        ("clamp_tgt_rate_after_time_inc", 1, 1),
        ("DcQcnClampTgtRate", 0, 0),
        ("rpg_byte_reset", 32767, 2_097_088),
        ("B", "10MB", 10_000_000),
        ("dcqcn_B", 150_000, 150_000),
        ("F", 5, 5),
        ("minimum_rate_limmit", "0.002", 2e6),
    ],
)
def test_foreign_names_bring_their_own_unit(name, number, expected):
    assert value(**{name: number}) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("ai_rte", "1Mbps", "did you mean 'ai_rate'"),
        ("rpg_ai_rat", "1", "did you mean 'rpg_ai_rate'"),
        ("ai_rate", "40", "'40' has no unit"),
        ("ai_rate", "40us", "unknown unit 'us'"),
        ("ai_rate", "200Gbps", "above the line rate"),
        ("increase_period", "0us", "out of range; increase_period takes 1 ns to"),
        ("increase_period", "1e30s", "more than the clock"),
        ("g", "2", "out of range; g takes 0 to 1"),
        ("g", "1/0", "is no number"),
        ("g", "nan", "is no number"),
        ("g", "1e999999999", "is no number"),
        ("g", "9" * 5000, "is no number"),
        ("threshold", "2.5", "not a whole number"),
        ("threshold", "0", "out of range; threshold takes 1 to 31"),
        ("cut_trigger", "poled", "did you mean 'polled'"),
        ("byte_reset", "-1", "is no size"),
    ],
)
def test_mistakes_are_named_with_what_is_allowed(name, text, message):
    with pytest.raises(ScenarioError, match=message) as error:
        value(**{name: text})
    assert f"--set {name}" in str(error.value)


@given(text=st.text(max_size=12), name=st.sampled_from(TABLE.names()))
def test_any_text_is_a_value_or_one_clear_error(name, text):
    row, _ = TABLE.find(name, "")
    try:
        number = TABLE.record({name: text}, 1e9)[row.field]
    except ScenarioError as error:
        message = str(error)
    else:
        message, name = "", ""
        assert number >= 0
    assert name in message


def test_names_are_unique_in_every_vocabulary():
    names = [name if len(name) <= 2 else name.lower() for name in TABLE.names()]
    assert len(names) == len(set(names))


def test_fractions_of_line_where_the_line_rate_is_unknown():
    paper = find("paper")
    record = TABLE.record(paper.settings() | {"min_rate": "5%"}, 1.0, rate_scale=1 / paper.reference_rate_bps)
    assert (record["line_rate_bps"], record["ai_rate_bps"], record["min_rate_bps"]) == (1, 0.001, 0.05)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_every_profile_builds_and_names_a_source_for_each_value(profile):
    record = TABLE.record(profile.settings(), profile.reference_rate_bps)
    assert all(value.source for value in profile.values.values())
    for row in TABLE:
        assert row.text(record[row.field].item())
        assert row.doc.endswith(".")
        assert row.source


def test_documented_profile_values():
    mlx = TABLE.record(find("mlx").settings(), 100e9)
    for name, number in {
        "dce_tcp_g": 1019, "dce_tcp_rtt": 1, "initial_alpha_value": 1023, "rate_to_set_on_first_cnp": 0,
        "rpg_min_dec_fac": 50, "rpg_min_rate": 1, "rpg_max_rate": 0, "rpg_gd": 11,
        "rate_reduce_monitor_period": 4, "clamp_tgt_rate": 0, "clamp_tgt_rate_after_time_inc": 1,
        "rpg_time_reset": 300, "rpg_byte_reset": 32767, "rpg_threshold": 1,
        "rpg_ai_rate": 5, "rpg_hai_rate": 50,
    }.items():  # fmt: skip
        row, _ = TABLE.find(name, "")
        assert mlx[row.field] == value(**{name: number}), name


def test_unknown_profile_names_the_nearest():
    with pytest.raises(ScenarioError, match=r"did you mean 'paper'\?.*known: paper, mlx, hpcc-ns3, primer"):
        find("papper")
